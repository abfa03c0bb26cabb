"""The SVM inside AFR's loss: exact while its inputs change, and its gradients against finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miserly.estimators.afr._nested_svm import NestedSVM, SVMState
from miserly.solvers import newton_svm
from oracles.linear import svm_gradient
from oracles.nested_svm import literal_slope, outer_loss

N_TRAIN, N_SEEN, N_ROWS = 40, 70, 80


def problem(seed=0, S=4):
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(N_ROWS, S))
    y = np.where(phi[:, 0] + 0.7 * rng.normal(size=N_ROWS) > 0, 1.0, -1.0)
    return phi, y, np.where(y > 0, 2.0, 1.0) * rng.uniform(0.5, 1.5, N_ROWS)


def nested(phi, y, mu, C):
    svm = NestedSVM(y, mu, N_TRAIN, N_SEEN - N_TRAIN, C)
    for column in phi.T:
        svm.add(column)
    return svm


def difference(loss, phi, i, s, step=1e-5):
    up, down = phi.copy(), phi.copy()
    up[i, s] += step
    down[i, s] -= step
    return (loss(up) - loss(down)) / (2 * step)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("C", [0.02, 1.3])
def test_the_slope_is_the_finite_difference(seed, C):
    phi, y, mu = problem(seed)
    svm = nested(phi, y, mu, C)

    def loss(phi):
        return outer_loss(phi, y, mu, N_TRAIN, N_SEEN, C)

    assert svm.loss() == pytest.approx(loss(phi), abs=1e-12)
    for s in range(phi.shape[1]):
        wanted = [difference(loss, phi, i, s) for i in range(N_SEEN)]
        np.testing.assert_allclose(svm.slope(s), wanted, rtol=0, atol=1e-7)
    assert np.abs(svm.slope(0)[:N_TRAIN]).max() > 1e-3  # training rows matter


@pytest.mark.parametrize("C", [0.02, 1.3])
@pytest.mark.parametrize("rows", [None, slice(N_SEEN, N_ROWS)], ids=["V", "O"])
def test_the_slope_of_penalty_is_the_finite_difference(C, rows):
    phi, y, mu = problem(2)
    up, down = (outer_loss(phi, y, mu, N_TRAIN, N_SEEN, C + step, rows=rows) for step in (1e-6, -1e-6))
    assert nested(phi, y, mu, C).slope_of_penalty(rows) == pytest.approx((up - down) / 2e-6, rel=1e-6, abs=1e-9)


def test_one_solve_gives_what_the_literal_rule_gives():
    phi, y, mu = problem(3)
    svm = nested(phi, y, mu, 0.7)
    for s in range(phi.shape[1]):
        literal = [literal_slope(phi, y, mu, N_TRAIN, N_SEEN, 0.7, i, s) for i in range(N_TRAIN)]
        np.testing.assert_allclose(svm.slope(s)[:N_TRAIN], literal, rtol=0, atol=1e-13)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), C=st.floats(1e-3, 1e2))
def test_the_answer_stays_exact_while_columns_come_change_and_go(seed, C):
    rng = np.random.default_rng(seed)
    phi, y, mu = problem(seed)
    svm = nested(phi, y, mu, C)
    for _ in range(30):
        what = rng.random()
        if what < 0.2:
            svm.add(rng.normal(size=N_ROWS))
        elif what < 0.3 and svm.n_dims > 1:
            svm.restore(SVMState(int(rng.integers(1, svm.n_dims)), svm.penalty))
        elif what < 0.4:
            svm.penalty = C * rng.uniform(0.5, 2.0)
        else:
            s = int(rng.integers(svm.n_dims))
            svm.change(s, svm.phi[:, s] + 0.2 * rng.normal(size=N_ROWS))
        if rng.random() < 0.7:
            _ = svm.w
    Z, train = svm.phi[:N_TRAIN].copy(), slice(0, N_TRAIN)
    w, b, _ = newton_svm(Z, y[train], svm.penalty, mu[train])
    np.testing.assert_allclose(np.append(svm.w, svm.b), np.append(w, b), rtol=1e-8, atol=1e-8)
    gradient = svm_gradient(np.append(svm.w, svm.b), Z, y[train], svm.penalty, mu[train])
    assert np.abs(gradient).max() <= 1e-8 * max(1.0, svm.penalty * mu[train].sum())


def test_sums_that_have_drifted_are_counted_again():
    phi, y, mu = problem(5)
    svm = nested(phi, y, mu, 1.0)
    w = svm.w.copy()
    svm.change(0, phi[:, 0] + 0.1)
    _ = svm.w
    svm._inside.gram += 1e-3
    svm.change(0, phi[:, 0])
    np.testing.assert_allclose(svm.w, w, rtol=0, atol=1e-10)

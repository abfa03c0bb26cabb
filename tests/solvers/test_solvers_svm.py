"""Newton's SVM, Platt's scaling, discriminants and standardisation: by hand, and against slow or foreign solvers."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.calibration import _sigmoid_calibration
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.svm import LinearSVC

from miserly.baselines._standard import standardise
from miserly.solvers import discriminant, newton_svm, platt
from oracles.linear import platt_loss, svm_gradient, svm_minimum


def rows(n, d, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d))
    y = np.sign(Z[:, 0] + 0.5 * Z[:, -1] + 0.3 + noise * rng.normal(size=n))
    return Z, y, rng.uniform(0.1, 2.0, n)


def test_svm_by_hand():
    # two points at ±1: ½w² + ½C·2(1 − w)² has its minimum where w = 2C(1 − w), b = 0 by symmetry
    for C in (0.5, 1.0, 10.0):
        w, b, _ = newton_svm(np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0]), C)
        assert w[0] == pytest.approx(2 * C / (1 + 2 * C), abs=1e-15)
        assert b == pytest.approx(0.0, abs=1e-15)


def test_svm_by_hand_with_a_row_beyond_the_margin():
    # points −1, 1, 9 with labels −, +, +: the last is far outside, so the answer for C = 1 is the one of the two above
    w, b, steps = newton_svm(np.array([[-1.0], [1.0], [9.0]]), np.array([-1.0, 1.0, 1.0]), 1.0)
    assert w[0] == pytest.approx(2 / 3, abs=1e-15)
    assert b == pytest.approx(0.0, abs=1e-15)
    assert steps > 1


@pytest.mark.parametrize(("n", "d"), [(40, 3), (300, 20), (20, 60)])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_svm_is_the_general_minimisers(n, d, C):
    Z, y, weights = rows(n, d)
    w, b, _ = newton_svm(Z, y, C, weights)
    slow = svm_minimum(Z, y, C, weights)
    np.testing.assert_allclose(np.append(w, b), slow, rtol=1e-5, atol=1e-5)


def test_svm_is_liblinears_at_half_its_c():
    Z, y, weights = rows(500, 10)
    peer = LinearSVC(C=0.35, dual=False, tol=1e-12, max_iter=10_000, intercept_scaling=1e4).fit(Z, y, weights)
    w, b, _ = newton_svm(Z, y, 0.7, weights)
    np.testing.assert_allclose(w, peer.coef_[0], rtol=0, atol=1e-6)
    assert b == pytest.approx(peer.intercept_[0], abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(2, 60),
    d=st.integers(1, 40),
    C=st.floats(1e-3, 1e3),
    noise=st.sampled_from([0.0, 0.3, 3.0]),
    weightless=st.booleans(),
    seed=st.integers(0, 10_000),
)
@example(n=57, d=24, C=749.0, noise=0.0, weightless=False, seed=400)  # rows nearly separable: 50 steps
def test_the_gradient_of_the_svm_vanishes(n, d, C, noise, weightless, seed):
    Z, y, weights = rows(n, d, seed, noise)
    if weightless:
        weights[: n // 2] = 0.0
        weights[-1] = 1.0
    w, b, steps = newton_svm(Z, y, C, weights)
    gradient = svm_gradient(np.append(w, b), Z, y, C, weights)
    assert np.abs(gradient).max() <= 1e-9 * max(1.0, C * weights.sum())
    assert steps < 100


def test_platt_by_hand():
    # score 1: three of four positive; score −1: one of four. Softened targets are 5/6 and 1/6, so the two scores get
    # (3·5/6 + 1/6)/4 = 2/3 and 1/3: log-odds ± log 2
    scores = np.repeat([1.0, -1.0], 4)
    scale, offset = platt(scores, [1, 1, 1, 0, 1, 0, 0, 0])
    assert scale == pytest.approx(np.log(2), abs=1e-12)
    assert offset == pytest.approx(0.0, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), std=st.sampled_from([1e-6, 1.0, 1e6]), mean=st.floats(-5, 5), noise=st.floats(0, 3))
def test_platt_is_a_minimum(seed, std, mean, noise):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=50)
    y = (scores + noise * rng.normal(size=50) > 0.3).astype(float)
    weights = rng.uniform(0, 3, 50)
    scale, offset = platt(std * (scores + mean), y, weights)
    mine = platt_loss((scale, offset), std * (scores + mean), y, weights)
    slow = minimize(platt_loss, np.zeros(2), (scores, y, weights), "BFGS", options={"gtol": 1e-9})
    assert mine <= slow.fun + 1e-8 * abs(slow.fun)


def test_platt_is_scikit_learns():
    Z, y, weights = rows(400, 1)
    a, b = _sigmoid_calibration(Z[:, 0], y > 0, weights)
    np.testing.assert_allclose(platt(Z[:, 0], y > 0, weights), (-a, -b), rtol=1e-4)


def test_platt_of_nothing_to_see():
    scale, offset = platt(np.full(6, 3.0), [1, 0, 0, 0, 0, 0])
    assert scale == 0.0
    p = ((1 + 1) / (1 + 2) + 5 * 1 / (5 + 2)) / 6
    assert offset == pytest.approx(np.log(p / (1 - p)), abs=1e-9)
    assert np.isfinite(platt([0.0, 1.0], [1, 1])).all()


def test_discriminant_is_linear_discriminant_analysis():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 5000)
    scores = rng.normal(size=(15000, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0], [0.2, 0, 2]]) + 1.5 * np.eye(3)[y]
    matrix, offset = discriminant(scores, y[:, None] == np.arange(3), np.ones(15000))
    z = scores @ matrix + offset
    p = np.exp(z - z.max(axis=1, keepdims=True))
    peer = LinearDiscriminantAnalysis(solver="lsqr").fit(scores, y)
    np.testing.assert_allclose(p / p.sum(axis=1, keepdims=True), peer.predict_proba(scores), rtol=0, atol=1e-3)


def test_discriminant_by_hand():
    # one score; class 0 at −2 and 0, class 1 at 0 and 2. Within: (4 + 2)/5 = 1.2, with one row's worth of the whole
    # cloud (mean square 2) added to four rows' sum of 4. Log-odds of x: x · (1 − −1)/1.2.
    scores = np.array([[-2.0], [0.0], [0.0], [2.0]])
    matrix, offset = discriminant(scores, np.array([[1, 0], [1, 0], [0, 1], [0, 1]], bool), np.ones(4))
    np.testing.assert_allclose(matrix, [[-1 / 1.2, 1 / 1.2]], atol=1e-15)
    np.testing.assert_allclose(offset, np.log(0.5) - 0.5 / 1.2, atol=1e-15)


def test_discriminant_of_scores_that_do_not_vary_is_the_prior():
    """The rounding of the classes' means was taken for a difference, and blown up by 1e18."""
    member = np.eye(3, dtype=bool)[np.repeat([0, 1, 2], [10, 200, 90])]
    for noise in (0.0, 1e-16):
        scores = np.array([-0.3, 0.2, -0.9]) + noise * np.random.default_rng(0).normal(size=(300, 3))
        matrix, offset = discriminant(scores, member, np.ones(300))
        np.testing.assert_allclose(np.exp(scores @ matrix + offset), np.tile([11, 201, 91], (300, 1)) / 303, rtol=1e-9)


def test_standard_columns():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(1e6, 1.0, 50), np.full(50, 0.1), rng.normal(size=50) * 1e200, rng.normal(size=50)])
    share = rng.random(50)
    share /= share.sum()
    data = standardise(X, share)
    assert sorted(data.order) == [0, 2, 3]
    np.testing.assert_allclose(share @ data.Z, 0, atol=1e-12)
    np.testing.assert_allclose(share @ data.Z**2, 1, rtol=1e-12)
    beta = rng.normal(size=(3, 2))
    weights, constant = data.raw(beta, np.array([1.0, 2.0]))
    np.testing.assert_allclose(X[:, data.order] @ weights + constant, data.Z @ beta + [1.0, 2.0], atol=1e-8)


@pytest.mark.parametrize("n", [5, 300])
def test_standard_columns_do_not_depend_on_their_order(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    X[:256, 3] = X[:256, 1]
    before, order = X.copy(), rng.permutation(6)
    one, other = standardise(X, np.full(n, 1 / n)), standardise(X[:, order], np.full(n, 1 / n))
    assert np.array_equal(one.Z, other.Z)
    assert np.array_equal(X[:, one.order], X[:, order][:, other.order])
    assert np.array_equal(X, before)

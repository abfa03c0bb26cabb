"""The group lasso: by hand, against its plain twin, scikit-learn and the conditions of optimality."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Lasso, MultiTaskLasso

from miserly.baselines._group_lasso import GroupLasso, least_squares
from miserly.baselines._standard import standardise
from miserly.kernels.lasso import descend_gram, descend_residual
from oracles.linear import lasso_sweep, lasso_violation


def problem(n, d, n_outputs, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.5 * rng.normal(size=(d, d)) / np.sqrt(d)) + 3
    Y = X[:, : min(5, d)] @ rng.normal(size=(min(5, d), n_outputs)) + noise * rng.normal(size=(n, n_outputs))
    share = np.full(n, 1 / n)
    Z = standardise(X, share).Z / np.sqrt(n)
    return Z, (Y - Y.mean(axis=0)) / np.sqrt(n)


def test_by_hand_on_orthogonal_features():
    # Z has orthonormal columns, so each block is its pull shrunk by the penalty: the first feature pulls with
    # (3, 4), length 5, and keeps 5 − 2.5 of it, half; the second pulls with (0, 1), less than its penalty of 2.
    Z = np.eye(3)[:, :2]
    Y = np.array([[3.0, 4.0], [0.0, 1.0], [7.0, 7.0]])
    fit = GroupLasso(Z, Y).solve(np.array([2.5, 2.0]))
    np.testing.assert_allclose(fit.beta, [[1.5, 2.0], [0.0, 0.0]], rtol=0, atol=1e-15)
    assert fit.converged


def test_free_features_are_taken_out_exactly():
    # x2 = (1, 1)/√2 leans on the free x1 = (1, 0). What x1 cannot explain of x2 is (0, 1/√2), of y = (2, 3) it is
    # (0, 3): pull 3/√2, square ½, penalty 1/√2 leave β2 = (3 − 1)/√2 / ½ = 2√2; so x2 explains (2, 2), x1 the other 0.
    Z, Y = np.array([[1.0, np.sqrt(0.5)], [0.0, np.sqrt(0.5)]]), np.array([[2.0], [3.0]])
    fit = GroupLasso(Z, Y).solve(np.array([0.0, np.sqrt(0.5)]))
    np.testing.assert_allclose(fit.beta[:, 0], [0.0, 2 * np.sqrt(2)], rtol=0, atol=1e-14)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(("n", "d"), [(60, 12), (12, 30)])
def test_a_sweep_is_the_plain_twins(n, d, n_outputs):
    Z, Y = problem(n, d, n_outputs)
    rng = np.random.default_rng(1)
    beta = rng.normal(size=(d, n_outputs)) * (rng.random(d) < 0.5)[:, None]
    penalty = rng.uniform(0.0, 1.0, d)
    expected = lasso_sweep(Z, Y, penalty, beta)
    by_gram, by_residual = beta.copy(), beta.copy()
    pull = np.ascontiguousarray((Z.T @ (Y - Z @ beta)).T)
    descend_gram(Z.T @ Z, penalty, pull, by_gram, 0.0, 1)
    residual = np.ascontiguousarray((Y - Z @ beta).T)
    descend_residual(np.ascontiguousarray(Z.T), (Z**2).sum(axis=0), penalty, residual, by_residual, 0.0, 1)
    np.testing.assert_allclose(by_gram, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(by_residual, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(pull.T, Z.T @ (Y - Z @ by_gram), rtol=0, atol=1e-12)
    np.testing.assert_allclose(residual.T, Y - Z @ by_residual, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("n", "d", "n_outputs"), [(200, 30, 1), (300, 40, 4), (40, 90, 1), (40, 90, 3)])
def test_scikit_learns_lasso(n, d, n_outputs):
    Z, Y = problem(n, d, n_outputs)
    lasso = GroupLasso(Z, Y)
    level = 0.1 * lasso.gradient_norms(np.zeros(d, bool)).max()
    # its objective divides by 2n; rows here carry the root of 1/n already
    kind = Lasso if n_outputs == 1 else MultiTaskLasso
    peer = kind(alpha=level, fit_intercept=False, tol=1e-12, max_iter=100_000)
    peer.fit(Z * np.sqrt(n), (Y if n_outputs > 1 else Y[:, 0]) * np.sqrt(n))
    np.testing.assert_allclose(
        lasso.solve(np.full(d, level)).beta, np.reshape(peer.coef_, (n_outputs, d)).T, rtol=0, atol=1e-6
    )


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(10, 40),
    d=st.integers(1, 50),
    n_outputs=st.integers(1, 3),
    free=st.floats(0, 1),
    twins=st.booleans(),
    level=st.floats(0.01, 1.2),
    seed=st.integers(0, 10_000),
)
def test_the_conditions_of_optimality_hold(n, d, n_outputs, free, twins, level, seed):
    Z, Y = problem(n, d, n_outputs, seed)
    if twins:
        Z = np.hstack([Z, Z[:, :2]])
    rng = np.random.default_rng(seed)
    penalty = level * np.linalg.norm(Y) * rng.uniform(0.1, 1, Z.shape[1]) * (rng.random(Z.shape[1]) >= free)
    fit = GroupLasso(Z, Y).solve(penalty)
    assert fit.converged
    assert lasso_violation(Z, Y, penalty, fit.beta) <= 1e-7 * np.linalg.norm(Y)


def test_a_warm_start_ends_at_the_same_place_with_less_work():
    Z, Y = problem(400, 60, 1)
    lasso = GroupLasso(Z, Y)
    high, low = (np.full(60, share * lasso.gradient_norms(np.zeros(60, bool)).max()) for share in (0.02, 0.015))
    cold, warm = lasso.solve(low), lasso.solve(low, start=lasso.solve(high).beta)
    np.testing.assert_allclose(warm.beta, cold.beta, rtol=0, atol=1e-12)
    assert warm.n_sweeps < cold.n_sweeps


def test_nothing_is_bought_above_the_pull():
    Z, Y = problem(50, 10, 2)
    lasso = GroupLasso(Z, Y)
    strength = lasso.gradient_norms(np.zeros(10, bool))
    strength *= 1.01
    assert not lasso.solve(strength).beta.any()
    strength[3] *= 0.98
    assert np.flatnonzero(lasso.solve(strength).beta.any(axis=1)).tolist() == [3]


@pytest.mark.parametrize(("n", "d"), [(30, 5), (5, 30), (30, 29)])
def test_least_squares_is_the_shortest(n, d):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, d))
    Z = np.hstack([Z, Z[:, :1]])
    Y = rng.normal(size=(n, 2))
    np.testing.assert_allclose(least_squares(Z, Y), np.linalg.lstsq(Z, Y, rcond=1e-10)[0], rtol=0, atol=1e-7)

"""Cascades with given columns: the losses by hand and against finite differences, the solver against a plain one."""

import numpy as np
import pytest

from miserly.baselines._tiered_cascade import and_or, expected_cost, fit_stages, soft_likelihood
from miserly.solvers import RawDesign

LOG2 = np.log(2)


def differences(loss, scores, step=1e-6):
    """Slopes of each row's loss, one score at a time."""
    slopes = np.empty_like(scores)
    for k in range(scores.shape[1]):
        there, here = scores.copy(), scores.copy()
        there[:, k] += step
        here[:, k] -= step
        slopes[:, k] = (loss(there)[0] - loss(here)[0]) / (2 * step)
    return slopes


rng = np.random.default_rng(0)
SCORES = 2 * rng.normal(size=(200, 4))
POSITIVE = rng.random(200) < 0.5


@pytest.mark.parametrize(
    "loss",
    [
        lambda z: soft_likelihood(z, POSITIVE),
        lambda z: expected_cost(z, np.array([0.5, 2.0, 1.0, 3.0])),
        lambda z: and_or(z, POSITIVE),
        lambda z: and_or(z, POSITIVE, "minimum"),
    ],
    ids=["likelihood", "cost", "noisy or", "minimum"],
)
def test_slopes_are_those_of_finite_differences(loss):
    values, slopes = loss(SCORES)
    assert np.isfinite(values).all()
    np.testing.assert_allclose(slopes, differences(loss, SCORES), atol=1e-5 * np.abs(slopes).max())
    assert np.abs(slopes).max() > 0.1


def test_the_soft_cascade_by_hand():
    """Two stages at score 0 say ½ each: P = ¼. The second costs 3 and is reached with ½."""
    scores = np.zeros((2, 2))
    loss, slopes = soft_likelihood(scores, np.array([True, False]))
    np.testing.assert_allclose(loss, [2 * LOG2, -np.log(0.75)])
    np.testing.assert_allclose(slopes, [[-0.5, -0.5], [1 / 6, 1 / 6]])
    paid, cost_slopes = expected_cost(scores[:1], np.array([1.0, 3.0]))
    assert paid.tolist() == [2.5]
    assert cost_slopes.tolist() == [[0.75, 0.0]]


def test_and_or_by_hand():
    """Scores 0.5 and −1: slacks of a positive row ½ and 2, of a negative one 1½ and 0."""
    scores = np.array([[0.5, -1.0]] * 2)
    for negatives in ("noisy_or", "minimum"):
        loss, slopes = and_or(scores, np.array([True, False]), negatives)
        assert loss[0] == pytest.approx(2.0, rel=1e-4)  # ½ · 2², by the largest
        assert slopes[0] == pytest.approx([0.0, -2.0], abs=1e-3)
        assert loss[1] == 0.0  # one stage rejects it
        assert not slopes[1].any()
    scores = np.array([[0.5, 1.0]])  # slacks of a negative row 1½ and 2
    loss, slopes = and_or(scores, np.array([False]))
    assert loss.tolist() == [0.5 * 2.25 * 4.0]
    assert slopes.tolist() == [[1.5 * 4.0, 2.25 * 2.0]]
    loss, slopes = and_or(scores, np.array([False]), "minimum")
    size = (1.5**-8 + 2.0**-8) ** (-1 / 8)
    assert loss[0] == pytest.approx(0.5 * size**2)
    assert 1.4 < size < 1.5


def test_extreme_scores_are_finite():
    scores = np.array([[800.0, 900.0], [-800.0, 5.0], [800.0, -800.0]])
    for positive in (np.ones(3, bool), np.zeros(3, bool)):
        for loss in (soft_likelihood, and_or, lambda z, p: and_or(z, p, "minimum")):
            assert all(np.isfinite(part).all() for part in loss(scores, positive))


def by_proximal_steps(Z, allowed, loss, penalty, steps=8000, size=0.5):
    """The same minimum, slowly: a step along the slope, then each weight shrunk by its penalty."""
    beta, bias = np.zeros(allowed.shape), np.zeros(allowed.shape[1])
    for _ in range(steps):
        slopes = loss(Z @ beta + bias)[1]
        beta = beta - size * (Z.T @ slopes) * allowed
        beta = np.sign(beta) * np.maximum(np.abs(beta) - size * penalty[:, None], 0.0)
        bias = bias - size * slopes.sum(axis=0)
    return beta, bias


def test_weights_are_those_of_a_slow_descent():
    X = rng.normal(size=(60, 3))
    positive = X[:, 0] + 0.5 * X[:, 2] + rng.normal(size=60) > 0
    design = RawDesign(X)
    Z = np.column_stack([design.column(j) for j in range(3)])
    allowed = np.array([[True, True], [True, True], [False, True]])
    penalty = np.array([0.01, 0.03, 0.02])

    def loss(scores):
        each, slopes = soft_likelihood(scores, positive)
        return each.mean(), slopes / len(scores)

    found = fit_stages(design, allowed, loss, penalty, np.zeros(2), 2000, 1e-15)
    beta, bias = by_proximal_steps(Z, allowed, loss, penalty)
    assert found.beta[2, 0] == 0.0
    assert (found.beta == 0.0).sum() == (beta == 0.0).sum() > 1
    np.testing.assert_allclose(found.beta, beta, atol=1e-4)
    np.testing.assert_allclose(found.bias, bias, atol=1e-4)


def test_a_large_design_gives_the_same(monkeypatch):
    X = rng.normal(size=(50, 3))
    positive = X[:, 0] > 0

    def loss(scores):
        each, slopes = and_or(scores, positive)
        return each.mean(), slopes / len(scores)

    given = RawDesign(X), np.ones((3, 2), bool), loss, np.full(3, 0.01), np.zeros(2), 100, 1e-12
    held = fit_stages(*given)
    monkeypatch.setattr("miserly.baselines._tiered_cascade.DENSE_CELLS", 0)
    in_blocks = fit_stages(*given)
    np.testing.assert_allclose(in_blocks.beta, held.beta, atol=1e-5)

"""Losses: derivatives against finite differences, best constants, and boosting that goes downhill on each of them."""

import numpy as np
import pytest

from miserly.boosting import (
    LocalBackend,
    LogLoss,
    ModelPricing,
    Settings,
    SoftmaxLoss,
    SquaredHingeLoss,
    SquaredLoss,
    TreeLimits,
    bin_data,
    boost,
)
from miserly.costs import CostTable


class HuberLoss:
    """A loss of a user's own: squared near zero, linear beyond one."""

    n_outputs = 1

    def constant(self, y):
        low, high = float(y.min()), float(y.max())
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if np.clip(y - middle, -1, 1).sum() > 0 else (low, middle)
        return np.array([low])

    def gradients(self, y, score):
        residual = y - score
        return np.clip(residual, -1, 1), np.ones_like(residual)

    def value(self, y, score):
        size = np.abs(y - score[0])
        return float(np.mean(np.where(size < 1, size**2 / 2, size - 0.5)))


LOSSES = {
    "squared": SquaredLoss(),
    "log": LogLoss(),
    "softmax": SoftmaxLoss(4),
    "squared hinge": SquaredHingeLoss(),
    "huber": HuberLoss(),
}


def target(name, score, rng):
    """Something to learn from a score: numbers, two classes or four."""
    if name in ("squared", "huber"):
        return score + rng.standard_t(3, size=len(score))
    noisy = score + rng.logistic(size=len(score))
    return np.digitize(noisy, [-2.0, 0.0, 1.0]) if name == "softmax" else (noisy > 0.5).astype(float)


@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_are_those_of_the_value(name, spread):
    loss, rng = LOSSES[name], np.random.default_rng(7)
    y = target(name, rng.normal(size=40), rng)
    score = spread * rng.normal(size=(loss.n_outputs, 40))
    gradient, hessian = loss.gradients(y, score)
    assert gradient.shape == hessian.shape == score.shape
    assert (hessian >= 0).all()
    step = 1e-4
    for i in range(40):
        for k in range(loss.n_outputs):
            at = score[:, i : i + 1].repeat(3, axis=1)
            at[k] += [-step, 0.0, step]
            below, here, above = (loss.value(y[i : i + 1], at[:, [j]]) for j in range(3))
            assert -gradient[k, i] == pytest.approx((above - below) / (2 * step), abs=1e-6)
            if name not in ("squared hinge", "huber"):  # their second derivative jumps; theirs is tested below
                assert hessian[k, i] == pytest.approx((above - 2 * here + below) / step**2, abs=1e-5)


def test_the_squared_hinge_is_flat_beyond_its_margin():
    y, score = np.array([1.0, 1.0, 0.0, 0.0]), np.array([[0.5, 1.5, 0.5, -1.5]])
    gradient, hessian = SquaredHingeLoss().gradients(y, score)
    assert gradient.tolist() == [[0.5, 0.0, -1.5, 0.0]]
    assert hessian.tolist() == [[1.0, 0.0, 1.0, 0.0]]


@pytest.mark.parametrize("name", ["log", "softmax"])
def test_extreme_scores_neither_overflow_nor_lose_the_loss(name):
    loss = LOSSES[name]
    score = np.zeros((loss.n_outputs, 2))
    score[-1] = [800.0, -800.0]
    y = np.array([loss.n_outputs - 1, loss.n_outputs - 1]) if name == "softmax" else np.ones(2)
    with np.errstate(all="raise"):
        gradient, hessian = loss.gradients(y, score)
    expected = (800.0 + (np.log(3) if name == "softmax" else 0.0)) / 2
    assert loss.value(y, score) == pytest.approx(expected, rel=1e-12)
    assert gradient[-1].tolist() == [0.0, 1.0]
    assert np.isfinite(hessian).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("shift", [-1.0, 0.0, 1.0])
def test_the_constant_is_the_best_one(name, shift):
    loss, rng = LOSSES[name], np.random.default_rng(3)
    y = target(name, shift + rng.normal(size=300), rng)
    constant = loss.constant(y)
    assert constant.shape == (loss.n_outputs,)
    best = loss.value(y, constant[:, None].repeat(300, axis=1))
    for k in range(loss.n_outputs):
        for step in (-1.0, -0.01, 0.01, 1.0):
            other = constant.copy()
            other[k] += step
            assert loss.value(y, other[:, None].repeat(300, axis=1)) > best


@pytest.mark.parametrize("tradeoff", [0.0, 0.002])
@pytest.mark.parametrize("name", LOSSES)
def test_boosting_goes_downhill(name, tradeoff):
    loss, rng = LOSSES[name], np.random.default_rng(11)
    X = rng.normal(size=(800, 6))
    y = target(name, 2 * X[:, 0] * (X[:, 1] > 0) + X[:, 2], rng)
    backend = LocalBackend(bin_data(X), y, loss)
    pricing = ModelPricing(CostTable.per_feature([1.0, 1.0, 1.0, 1.0, 1.0, 0.0]), tradeoff)
    result = boost(backend, pricing, Settings(25, 0.1, TreeLimits(3, None, 20)), loss.n_outputs)
    before = loss.value(y, result.constant[:, None].repeat(800, axis=1))
    losses = [before, *result.losses]
    assert len(result.rounds) == 25
    assert (np.diff(losses) < 0).all()
    assert losses[-1] < 0.9 * before
    scores = result.constant[:, None].repeat(800, axis=1)
    for this in result.rounds:
        for output, table in zip(this.outputs, this.tables):
            scores[output] += run(table, X)
    assert loss.value(y, scores) == pytest.approx(losses[-1], rel=1e-12)


def run(table, X):
    """Value of the leaf that each row ends in, row by row as a plan's table says."""
    out = np.empty(len(X))
    for i, row in enumerate(X):
        node = 0
        while table["left"][node] != node:
            x = row[table["feature"][node]]
            node = table["left"][node] + int(x > table["threshold"][node])
        out[i] = table["value"][node]
    return out


def test_the_log_loss_of_a_row_is_accurate_at_any_score():
    """It is computed without `log1p`, which took a fifth of the time of a fit."""
    score = np.concatenate([[0.0], np.geomspace(1e-300, 700.0, 2000)])
    score = np.concatenate([-score, score])[None]
    for label in (0.0, 1.0):
        terms = LogLoss().evaluate(np.full(score.size, label), score)[0]
        away = score[0] if label == 0 else -score[0]
        np.testing.assert_allclose(terms, np.maximum(away, 0.0) + np.log1p(np.exp(-np.abs(away))), rtol=4e-16)

"""What must not change a model does not change a bit of it; what permutes the data permutes the model."""

import numpy as np
import pytest

from miserly.boosting import (
    LocalBackend,
    LogLoss,
    ModelPricing,
    Settings,
    SoftmaxLoss,
    SquaredLoss,
    TreeLimits,
    bin_data,
    boost,
)
from miserly.costs import CostTable
from miserly.kernels.threads import n_threads, threads

LOSSES = {"squared": SquaredLoss(), "log": LogLoss(), "softmax": SoftmaxLoss(3)}
TRADEOFF = {"squared": 0.01, "log": 0.001, "softmax": 0.001}
N_FEATURES = 9


def sample(loss, n_rows=2000, seed=0):
    """Continuous columns, some missing; the target depends on four of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_FEATURES))
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 4]) + X[:, 7] + rng.normal(size=n_rows)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, {"squared": score, "log": (score > 0).astype(float), "softmax": np.digitize(score, [-1, 1])}[loss]


def shared(order=range(N_FEATURES), factor=1.0, evaluation=0.0):
    """Three shared acquisitions, one of its own for each feature; the last feature is free."""
    needs = {f"x{f}": (f"own {f}", f"group {f // 3}") if f < N_FEATURES - 1 else () for f in order}
    prices = {f"own {f}": factor * (0.3 + 0.1 * f) for f in range(N_FEATURES)}
    prices |= {f"group {g}": factor * (1.7 - 0.4 * g) for g in range(3)}
    return CostTable(tuple(needs), needs, prices, evaluation * factor)


def fit(X, y, loss="squared", costs=None, tradeoff=None, limits=None, n_rounds=4):
    """Boost; returns the model as plain values, node by node: no two of them compare equal unless every bit does."""
    pricing = ModelPricing(costs or shared(), TRADEOFF[loss] if tradeoff is None else tradeoff)
    loss = LOSSES[loss]
    backend = LocalBackend(bin_data(X, sample=None), y, loss)
    settings = Settings(n_rounds, 0.3, limits or TreeLimits(3, None, 10))
    result = boost(backend, pricing, settings, loss.n_outputs)
    tables = [{k: v.tolist() for k, v in t.items()} for this in result.rounds for t in this.tables]
    splits = [split for this in result.rounds for tree in this.trees for split in tree.splits]
    return {"constant": result.constant.tolist(), "tables": tables, "splits": splits, "losses": result.losses}


@pytest.mark.parametrize("loss", LOSSES)
def test_one_thread_and_two_give_the_same_bits(loss):
    X, y = sample(loss)
    models = []
    for n in (1, 2):
        with threads(n) as running:
            assert running == min(n, n_threads(None))
            models.append(fit(X, y, loss))
    assert models[0] == models[1]
    assert any(split.price > 0 for split in models[0]["splits"])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_rows", [500, 3001])
def test_the_order_of_the_rows_does_not_matter(loss, n_rows):
    X, y = sample(loss, n_rows)
    order = np.random.default_rng(1).permutation(n_rows)
    one, other = fit(X, y, loss), fit(X[order], y[order], loss)
    assert one["constant"] == other["constant"]
    assert one["tables"] == other["tables"]
    assert one["splits"] == other["splits"]
    assert one["losses"] == pytest.approx(other["losses"], rel=1e-12)
    assert any(split.price > 0 for split in one["splits"])


@pytest.mark.parametrize("factor", [0.25, 2.0, 1024.0])
@pytest.mark.parametrize("evaluation", [0.0, 0.5])
def test_a_higher_price_and_a_lower_tradeoff_give_the_same_model(factor, evaluation):
    X, y = sample("squared")
    one = fit(X, y, costs=shared(evaluation=evaluation))
    assert one == fit(X, y, costs=shared(factor=factor, evaluation=evaluation), tradeoff=0.01 / factor)
    assert one != fit(X, y, costs=shared(factor=factor, evaluation=evaluation))


@pytest.mark.parametrize("loss", ["squared", "log"])
def test_permuted_features_permute_the_model(loss):
    X, y = sample(loss)
    order = np.random.default_rng(2).permutation(N_FEATURES)
    one, other = fit(X, y, loss), fit(X[:, order], y, loss, costs=shared(order))
    assert len(one["tables"]) == len(other["tables"])
    for a, b in zip(one["tables"], other["tables"]):
        inner = np.array(a["left"]) != np.arange(len(a["left"]))
        assert (np.array(a["feature"])[inner] == order[np.array(b["feature"])[inner]]).all()
        assert all(a[k] == b[k] for k in ("threshold", "left", "missing_right", "value"))
    assert [s.bought for s in one["splits"]] == [s.bought for s in other["splits"]]
    assert [s.price for s in one["splits"]] == [s.price for s in other["splits"]]


@pytest.mark.parametrize("limits", [TreeLimits(3, None, 10), TreeLimits(None, 10, 1)])
def test_no_tradeoff_equals_no_prices(limits):
    X, y = sample("squared")
    blind = fit(X, y, tradeoff=0.0, limits=limits)
    assert blind == fit(X, y, costs=shared(factor=0.0), tradeoff=7.0, limits=limits)
    assert blind != fit(X, y, limits=limits)
    assert len(blind["tables"]) == 4


def test_two_fits_agree_and_change_nothing_that_they_were_given():
    X, y = sample("softmax")
    before = X.tobytes(), y.tobytes()
    assert fit(X, y, "softmax") == fit(X, y, "softmax")
    assert before == (X.tobytes(), y.tobytes())

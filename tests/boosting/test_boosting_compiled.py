"""Rounds that are grown compiled against the split-by-split grower: the same trees, losses, purchases, to the bit."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from miserly.boosting import (
    LocalBackend,
    LogLoss,
    ModelPricing,
    RowPricing,
    Settings,
    SoftmaxLoss,
    SquaredLoss,
    TreeLimits,
    bin_data,
    boost,
)
from miserly.boosting import _rounds as rounds
from miserly.costs import CostTable
from miserly.kernels import tree_pricing, tree_values
from miserly.kernels.histograms import COUNT_BITS
from oracles import growing as oracle

LOSSES = {1: SquaredLoss, 2: LogLoss, 4: lambda: SoftmaxLoss(4)}


def sample(seed, n_rows, n_features, n_classes):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    X[:, 1] = rng.integers(0, 3, n_rows)
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n_rows)
    X[rng.random(X.shape) < 0.05 * (seed % 2)] = np.nan
    y = score if n_classes == 1 else np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)
    return bin_data(X, max_bins=63), y.astype(float)


def shared_costs(seed, n_features):
    """Features that share acquisitions, some of them free."""
    rng = np.random.default_rng(seed)
    names = [f"x{f}" for f in range(n_features)]
    needs = {name: tuple(f"a{a}" for a in np.flatnonzero(rng.random(6) < 0.3)) for name in names}
    return CostTable(tuple(names), needs, {f"a{a}": float(rng.integers(0, 5)) for a in range(6)}, 0.01)


def boosted(compiled, data, y, loss, costs, tradeoff, by_path, settings, repeat, subsample):
    backend = LocalBackend(data, y, loss, None, subsample, seed=3)
    backend.compiled = compiled
    pricing = RowPricing(costs, tradeoff, backend, repeat) if by_path else ModelPricing(costs, tradeoff, repeat)
    result = boost(backend, pricing, settings, loss.n_outputs, patient=subsample < 1)
    owned = backend.rows.owners.tolist() if by_path else (pricing.owned.tolist(), pricing.prices.tolist())
    return result, backend.rows.scores, owned


def agree(seed, n_rows, n_features, n_classes, tradeoff, by_path, settings, repeat=0.0, subsample=1.0):
    data, y = sample(seed, n_rows, n_features, n_classes)
    given = (data, y, LOSSES[n_classes](), shared_costs(seed, n_features), tradeoff, by_path, settings, repeat)
    (one, scores, owned), (other, other_scores, other_owned) = (boosted(c, *given, subsample) for c in (True, False))
    assert [this.outputs for this in one.rounds] == [this.outputs for this in other.rounds]
    assert [this.trees for this in one.rounds] == [this.trees for this in other.rounds]
    tables = [[{k: v.tolist() for k, v in t.items()} for r in b.rounds for t in r.tables] for b in (one, other)]
    assert tables[0] == tables[1]
    assert one.losses == other.losses
    np.testing.assert_array_equal(scores, other_scores)
    n_words = min(np.shape(owned)[-1], np.shape(other_owned)[-1]) if by_path else 0
    assert (
        np.array_equal(np.array(owned)[:, :n_words], np.array(other_owned)[:, :n_words])
        if by_path
        else owned == other_owned
    )
    return one


@pytest.mark.parametrize("by_path", [False, True])
@pytest.mark.parametrize("n_classes", [1, 2, 4])
def test_a_compiled_fit_has_the_bits_of_one_grown_split_by_split(n_classes, by_path):
    result = agree(1, 600, 12, n_classes, 2e-3, by_path, Settings(12, 0.2, TreeLimits(3, None, 5), lazy=True))
    assert len(result.rounds) > 3
    assert any(tree.bought for this in result.rounds for tree in this.trees)


@given(
    st.integers(0, 10_000),
    st.integers(3, 120),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([0.0, 1e-3, 0.01, 0.05]),
    st.booleans(),
    st.sampled_from([TreeLimits(3), TreeLimits(None, 6, 1), TreeLimits(1, None, 2), TreeLimits(None, None, 3)]),
    st.sampled_from([(0.0, 1.0, 1.0), (0.2, 0.6, 0.5)]),
)
@example(0, 3, 1, 0.0, False, TreeLimits(None, None, 3), (0.0, 1.0, 1.0))
def test_so_has_any_small_fit(seed, n_rows, n_classes, tradeoff, by_path, limits, draws):
    repeat, max_features, subsample = draws
    settings = Settings(3, 0.5, limits, max_features, seed, 0.1)
    agree(seed, n_rows, 3 + seed % 10, n_classes, tradeoff, by_path, settings, repeat, subsample)


@pytest.mark.parametrize("by_path", [False, True])
def test_a_tree_with_more_open_leaves_than_slots_is_grown_again_with_more(monkeypatch, by_path):
    monkeypatch.setattr(rounds, "FEW_SLOTS", 2)
    agree(2, 600, 9, 4, 1e-3, by_path, Settings(3, 0.2, TreeLimits(None, 30, 3)))


def test_values_are_whole_quanta_where_roots_are_updated():
    """Squared loss from 4096 rows on: the compiled grower rounds leaves as the other one does."""
    agree(3, 5000, 5, 1, 0.0, False, Settings(3, 0.3, TreeLimits(3)))


@given(st.lists(st.integers(-(2**23) + 1, 2**23 - 1), min_size=1, max_size=50), st.integers(1, 400))
def test_the_squared_error_is_that_of_fractions(gradients, times):
    gradients = gradients * times
    n, total = len(gradients), sum(gradients)
    exact = Fraction(sum(g * g for g in gradients)) - Fraction(total * total, n)
    found = tree_values.squared_error.py_func((total << COUNT_BITS) + n, sum(g * g for g in gradients))
    assert found == pytest.approx(float(exact), rel=1e-12, abs=0.0)


@given(st.integers(0, 1000), st.integers(1, 700), st.integers(1, 130))
def test_who_lacks_what_is_counted_as_numpy_does(seed, n_rows, n_acquisitions):
    rng = np.random.default_rng(seed)
    owns = rng.random((n_rows, n_acquisitions)) < rng.random(n_acquisitions)
    lacking = (~owns).sum(axis=0)
    lacking[rng.random(n_acquisitions) < 0.2] = 0  # bought by this tree: nobody below lacks it
    rows = np.flatnonzero(rng.random(n_rows) < 0.4).astype(np.uint32)
    out, planes = np.empty(n_acquisitions, np.int64), np.empty(tree_pricing.N_PLANES, np.uint64)
    tree_pricing.divide_lacking.py_func(oracle.words_of(owns), rows, n_rows, lacking, out, planes)
    np.testing.assert_array_equal(out, oracle.divide_lacking(owns, rows, lacking))


@given(st.floats(1e-285, 1e285), st.integers(1, 24))
def test_scales_are_powers_that_keep_sums_in_range(largest, bits):
    scale = tree_values.gradient_scale.py_func(largest, bits, True)
    quanta = Fraction(largest) * Fraction(scale)
    most = 2 ** min(tree_values.MOST_GRADIENT_BITS, tree_values.SUM_BITS - bits)
    assert most / 4 < quanta <= most
    fixed = Fraction(largest) * Fraction(tree_values.fixed_point_scale.py_func(largest, bits))
    assert 2 ** (61 - bits) <= fixed < 2 ** (62 - bits)

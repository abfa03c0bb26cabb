"""The grower against the rules: splits, gains, prices and purchases, tree after tree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miserly.boosting import Grower, LocalBackend, ModelPricing, TreeLimits
from oracles.agreement import MISSING, Given, binned, compare, own, table


@st.composite
def ways(draw):
    """How rows count and pay: weights (some zero), draws of rows, charge by path, a price for later uses."""
    weight = draw(st.sampled_from([None, None, "whole", "real"]))
    return {
        "weight": weight,
        "subsample": draw(st.sampled_from([1.0, 1.0, 0.5])),
        "path": draw(st.booleans()),
        "repeat": draw(st.sampled_from([0.0, 0.0, 0.25])),
        "outputs": draw(st.sampled_from([1, 1, 3])),
    }


def compare_ways(problem, way):
    bins, gradients, *market = problem
    n_rows = len(bins[0])
    rng = np.random.default_rng(n_rows)
    kinds = {"whole": rng.integers(0, 4, n_rows), "real": rng.random(n_rows) * (rng.random(n_rows) < 0.8)}
    weight = None if way["weight"] is None else kinds[way["weight"]].astype(float)
    if weight is not None:
        weight[0] += 1.0
    if way["outputs"] > 1:
        gradients = [np.stack([np.roll(g, k) for k in range(way["outputs"])]) for g in gradients]
    rules = {name: way[name] for name in ("subsample", "path", "repeat")}
    compare(bins, gradients, *market, weight=weight, **rules)


@st.composite
def problems(draw):
    n_rows, n_features = draw(st.sampled_from([60, 90, 30, 7, 2])), draw(st.sampled_from([5, 3, 7, 1]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    top = rng.integers(1, draw(st.sampled_from([6, 3, 30])), n_features)
    bins = np.array([rng.integers(0, k, n_rows) for k in top])
    bins[rng.random(bins.shape) < draw(st.sampled_from([0.0, 0.1, 0.6]))] = MISSING
    kind = draw(st.sampled_from(["normal", "signs", "signal", "few"]))
    signal = np.where(bins == MISSING, 2, bins).T @ rng.normal(size=n_features)
    noise = rng.normal(size=(draw(st.integers(1, 3)), n_rows))
    gradients = {
        "normal": noise,
        "signs": np.where(noise > 0, 1.0, -1.0),
        "signal": noise * 0.1 + signal,
        "few": rng.integers(-2, 3, noise.shape),
    }[kind]
    n_acquisitions = draw(st.integers(1, 5))
    needs = rng.random((n_features, n_acquisitions)) < draw(st.sampled_from([0.2, 0.5, 0.9]))
    prices = rng.choice([0.0, 0.5, 1.0, 3.0], n_acquisitions) if draw(st.booleans()) else rng.random(n_acquisitions)
    tradeoff = draw(st.sampled_from([0.003, 0.01, 0.03, 0.1, 0.3, 0.0, 1e-6, 10.0])) * float((gradients**2).mean())
    depth, leaves = draw(st.sampled_from([(None, 6), (3, None), (None, None), (4, 9), (2, 3), (None, 2), (1, None)]))
    return bins, gradients, needs, prices, tradeoff, TreeLimits(depth, leaves, draw(st.sampled_from([0, 1, 2, 5])))


@settings(max_examples=150, deadline=None)
@given(problems())
def test_every_split_is_the_best_that_the_rules_offer(problem):
    compare(*problem)


@settings(max_examples=150, deadline=None)
@given(problems(), ways())
def test_weights_draws_outputs_and_paths_keep_the_rules_too(problem, way):
    compare_ways(problem, way)


@pytest.mark.slow
@settings(max_examples=4000, deadline=None)
@given(problems(), ways())
def test_every_split_is_the_best_that_the_rules_offer_at_length(problem, way):
    compare(*problem)
    compare_ways(problem, way)


@pytest.mark.parametrize("seed", range(6))
def test_without_ties_the_trees_are_the_oracles(seed):
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, 12, (8, 300))
    bins[rng.random(bins.shape) < 0.1] = MISSING
    needs, prices = rng.random((8, 5)) < 0.4, rng.random(5)
    gradients = rng.normal(size=(4, 300)) + (bins[rng.integers(0, 8, 2)] > 5).sum(axis=0)
    trees, ties = compare(bins, gradients, needs, prices, [0.0, 0.01, 0.1][seed % 3], TreeLimits(None, 8, 5))
    assert ties == 0
    assert sum(len(tree.splits) for tree in trees) == 28 or seed % 3
    assert any(split.bought for tree in trees for split in tree.splits)


def test_ties_go_to_the_lowest_leaf_feature_and_bin_with_missing_left():
    bins = [[0, 1, 2, 3, 4, MISSING], [0, 1, 2, 3, 4, MISSING], [0, 0, 0, 0, 1, 1]]
    limits = TreeLimits(None, 3, 1)
    trees, ties = compare(bins, [[1, -1, -1, -1, 1, 1]], *own([0.0] * 3), 0.0, limits)
    assert ties == 0
    first, second = trees[0].splits
    assert (first.feature, first.cut, first.missing_right) == (0, 0, False)  # as good as cut 3 with missing right
    assert (second.node, second.feature, second.cut) == (2, 0, 3)  # as good as feature 1, and feature 2
    trees, _ = compare([[0, 0, 1, 1, 2, 2]], [[1, 1, -2, -2, 1, 1]], *own([0.0]), 0.0, TreeLimits(1, None, 1))
    assert trees[0].splits[0].cut == 0
    trees, _ = compare(
        [[0, 0, 1, 1, MISSING, MISSING]], [[1, 1, -2, -2, 1, 1]], *own([0.0]), 0.0, TreeLimits(1, None, 1)
    )
    assert (trees[0].splits[0].cut, trees[0].splits[0].missing_right) == (0, False)
    equal = [np.repeat([0, 1], 4), np.tile([0, 0, 1, 1], 2)]
    trees, _ = compare(equal, [[7, 7, 5, 5, -5, -5, -7, -7]], *own([0.0, 0.0]), 0.0, TreeLimits(None, 3, 1))
    assert [s.node for s in trees[0].splits] == [0, 1]


def test_a_gain_within_the_rounding_of_weighted_sums_is_none():
    """The oracle wanted a split of a nearly pure weighted node, whose squared error the engine knows to 1e-9 only."""
    weight = np.random.default_rng(1044).random(8)
    trees, _ = compare([np.arange(8) > 3], [np.ones(8)], *own([0.0]), 0.0, TreeLimits(1, None, 1), weight=weight)
    assert not trees[0].splits


@pytest.mark.parametrize("n_low", [3, 4, 5])
def test_a_node_without_missing_values_sends_them_to_its_larger_side(n_low):
    bins = [np.arange(8) >= n_low]
    trees, _ = compare(bins, [np.where(bins[0], 1.0, -1.0)], *own([0.0]), 0.0, TreeLimits(1, None, 1))
    assert trees[0].splits[0].missing_right == (n_low < 4)


def test_missing_values_are_parted_from_a_column_that_fills_all_its_bins():
    bins = np.concatenate([np.arange(255), np.full(60, MISSING)])
    gradient = np.where(bins == MISSING, 5.0, 0.0) + np.random.default_rng(0).normal(size=315) / 10
    trees, _ = compare([bins], [gradient], *own([0.0]), 0.0, TreeLimits(3, None, 5))
    split = trees[0].splits[0]
    assert (split.cut, split.missing_right) == (254, True)
    assert np.isinf(binned([bins]).threshold(0, 254))


@pytest.mark.parametrize("n_rows", [2**15, 2**20 + 1])
def test_sums_of_many_large_gradients_fit_their_integers(n_rows):
    sign = np.where(np.arange(n_rows) % 4 == 0, -1.0, 1.0)
    for gradient in (np.ones(n_rows), -np.ones(n_rows), sign):
        backend = LocalBackend(binned([sign > 0]), np.zeros(n_rows), Given([gradient]))
        backend.gradients()
        sums, quantum = backend.begin()
        largest = round(1 / quantum)
        assert (sums.n_rows, sums.lanes[0] >> 24) == (n_rows, int(gradient.sum()) * largest)
        assert sums.squares == n_rows * largest**2
    tree = Grower(backend, ModelPricing(table(*own([0.0])), 0.0), TreeLimits(1, None, 1)).grow()
    assert tree.score == pytest.approx(0.5 * sign.var(), rel=1e-12)

"""Prices in the grower: skipping is exact, a purchase re-prices every leaf, a tree that does not pay buys nothing."""

import numpy as np
import pytest

from miserly.boosting import LocalBackend, ModelPricing, Settings, SquaredLoss, TreeLimits, bin_data, boost
from oracles.agreement import Given, binned, compare, own, table


@pytest.mark.parametrize("offset", [-1e-6, -1e-11, 0.0, 1e-11, 1e-6])
def test_a_price_at_the_whole_squared_error_of_a_node_decides_exactly(offset):
    sign = np.repeat([-1.0, 1.0], 50)
    bins = [np.repeat([0, 1], 50), np.tile([0, 1], 50)]
    trees, _ = compare(bins, [sign], *own([0.5 * (1 + offset), 0.0]), 1.0, TreeLimits(2, None, 1))
    assert [s.feature for s in trees[0].splits] == ([0] if offset < 0 else [])


def test_a_purchase_in_one_leaf_makes_a_skipped_feature_affordable_in_another():
    part, half = np.repeat([0, 1], 80), np.tile(np.repeat([0, 1], 40), 2)
    gradient = np.where(part == 0, 10.0, 0.1) * np.where(half == 0, 1, -1) + np.where(part == 0, 30.0, -30.0)
    needs, prices = np.array([[False], [True], [True]]), np.array([1.0])
    trees, _ = compare([part, half, 1 - half], [gradient], needs, prices, 1.0, TreeLimits(3, None, 5))
    assert [(s.node, s.feature, s.price) for s in trees[0].splits] == [(0, 0, 0.0), (1, 1, 1.0), (2, 1, 0.0)]


def test_free_features_are_counted_however_little_error_is_left():
    """In the left half one row differs by one quantum: the node's squared error must not cancel to nothing."""
    n, quantum = 1000, 1.0 / (2**23 - 1)
    bins = np.array([np.repeat([0, 1], n), np.arange(2 * n) == 0])
    gradient = np.repeat([1.0, -1.0], n) - quantum * bins[1]
    compare(bins, [gradient], *own([0.0, 0.0]), 0.0, TreeLimits(None, None, 1))


UNIT = float(2**23 - 1) ** 2  # a hundred rows' gradients of ± 2²³ − 1 are quantised in ones: gains are exact


def boosted(price, evaluation, n_rounds=2):
    """One feature that explains all of the gradient: its gain is UNIT / 2 in every round."""
    sign = np.repeat([-1.0, 1.0], 50)
    pricing = ModelPricing(table(*own([price * UNIT]), evaluation * UNIT), 1.0)
    backend = LocalBackend(binned([sign > 0]), np.zeros(100), Given([sign * (2**23 - 1)] * n_rounds))
    return boost(backend, pricing, Settings(n_rounds, 0.1, TreeLimits(1, None, 1)), 1), pricing


def test_what_is_bought_stays_free_in_later_trees():
    result, pricing = boosted(0.25, 0.125)
    splits = [split for this in result.rounds for split in this.trees[0].splits]
    assert [(s.gain, s.price, s.bought) for s in splits] == [(UNIT / 2, UNIT / 4, (0,)), (UNIT / 2, 0.0, ())]
    assert pricing.prices.tolist() == [0.0]


@pytest.mark.parametrize(("evaluation", "n_kept"), [(0.249, 2), (0.25, 0), (0.3, 0), (0.6, 0)])
def test_a_tree_that_does_not_pay_its_evaluation_is_dropped_and_its_purchases_given_back(evaluation, n_kept):
    result, pricing = boosted(0.25, evaluation)
    assert len(result.rounds) == n_kept
    assert pricing.owned.tolist() == [n_kept > 0]
    assert pricing.prices.tolist() == [0.0 if n_kept else UNIT / 4]


@pytest.mark.parametrize("price", [0.5, 0.6])
def test_boosting_stops_when_no_split_pays(price):
    result, pricing = boosted(price, 0.0)
    assert (result.rounds, result.losses) == ((), ())
    assert not pricing.owned.any()


def pauses(lazy, n_rounds=40, price=0.02):
    """Boost on two features, one free; which rounds bought, and how often each round looked at the dear one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    y = np.sin(3 * X[:, 0]) + rng.normal(size=500)
    pricing = ModelPricing(table(np.array([[False], [True]]), [price]), 1.0)
    backend = LocalBackend(bin_data(X), y, SquaredLoss())
    counted = []
    count = backend.histograms
    backend.compiled = False
    backend.histograms = lambda node, features: (counted.append(1 in features), count(node, features))[1]
    looks = []
    result = boost(
        backend,
        pricing,
        Settings(n_rounds, 0.1, TreeLimits(3, None, 20), lazy=lazy),
        1,
        lambda *_: looks.append(any(counted)) or counted.clear(),
    )
    return result, looks


def test_a_lazy_shopper_looks_again_after_one_two_four_and_every_eight_rounds():
    _, looks = pauses(True, price=10.0)
    assert not any(looks)  # its price exceeds all the error there is: never counted
    result, looks = pauses(True, n_rounds=42, price=0.05)
    assert not any(split.bought for this in result.rounds for split in this.trees[0].splits)
    assert np.flatnonzero(looks).tolist() == [0, 2, 5, 10, 19, 28, 37]
    _, looks = pauses(False, n_rounds=42, price=0.05)
    assert all(looks)


def test_where_nothing_costs_anything_laziness_changes_nothing():
    lazy, eager = (pauses(lazy, price=0.0)[0] for lazy in (True, False))
    assert [this.trees for this in lazy.rounds] == [this.trees for this in eager.rounds]

"""Engine and oracle side by side on given bins and gradients."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from miserly.boosting import BinnedData, Grower, LocalBackend, ModelPricing, RowPricing
from miserly.costs import CostTable
from miserly.kernels.histograms import COUNT_BITS
from oracles import grower as oracle

MISSING = 255


class Given:
    """A loss whose gradients (of one output, or output × row) are given, round after round."""

    def __init__(self, gradients):
        self.n_outputs = len(np.atleast_2d(gradients[0]))
        self._gradients = iter(gradients)

    def constant(self, y, weight=None):
        return np.zeros(self.n_outputs)

    def gradients(self, y, score):
        g = np.atleast_2d(np.asarray(next(self._gradients), float))
        return g, np.ones_like(g)

    def value(self, y, score, weight=None):
        return 0.0


def binned(bins):
    bins = np.atleast_2d(np.asarray(bins, np.uint8))
    n_bins = np.array([max((int(b) for b in row if b != MISSING), default=-1) + 1 for row in bins], np.int32)
    cuts = np.full((len(bins), 256), np.inf)
    for line, k in zip(cuts, n_bins):
        line[: max(k - 1, 0)] = np.arange(max(k - 1, 0)) + 0.5
    data = BinnedData(np.zeros((-(-len(bins) // 8), bins.shape[1]), np.uint64), cuts, n_bins)
    for f, column in enumerate(bins):
        data.lane(f)[:] = column
    return data


def table(needs, prices, evaluation=0.0):
    acquired = [tuple(f"a{a}" for a in np.flatnonzero(line)) for line in needs]
    names = [f"x{f}" for f in range(len(needs))]
    return CostTable(tuple(names), dict(zip(names, acquired)), {f"a{a}": p for a, p in enumerate(prices)}, evaluation)


def own(feature_prices):
    """One acquisition per feature."""
    return np.eye(len(feature_prices), dtype=bool), np.array(feature_prices, float)


def check_pruning(tree, grown, expected, rows, market):
    """The tree is the part that pays of what was grown, renumbered; what is taken back is not owned."""
    number, kept = {0: 0}, set()
    for split in grown:
        if split.node in number and len(kept) < len(tree.splits) and tree.splits[len(kept)].node == number[split.node]:
            left = tree.splits[len(kept)].left
            assert left == 2 * len(kept) + 1
            assert dataclasses.replace(split, node=number[split.node], left=left) == tree.splits[len(kept)]
            kept.add(split.node)
            number |= {split.left: left, split.left + 1: left + 1}
    assert len(kept) == len(tree.splits)
    stays = oracle.pruned(expected.splits, kept)
    assert {s.node for s in stays} == kept
    market.owned[:] = [set(owned) for owned in expected.owned_before]
    inside = {0: np.arange(rows.bins.shape[1])}
    for split in stays:
        part = inside.pop(split.node)
        market.buy(split.bought, part)
        left = oracle.goes_left(rows, part, split.feature, split.cut, split.missing_right)
        inside |= {split.left: part[left], split.left + 1: part[~left]}
    assert {number[leaf] for leaf in inside} == set(tree.leaves)


def compare(bins, gradients, needs, prices, tradeoff, limits, weight=None, subsample=1.0, path=False, repeat=0.0):
    """Grow trees with both and require that they agree; returns the engine's trees and the number of ties."""
    data = binned(bins)
    loss = Given(gradients)
    backend = LocalBackend(data, np.zeros(data.n_rows), loss, weight, subsample, seed=7)
    whole = np.ones(data.n_rows, int) if weight is None else backend.rows.weights
    costs = table(needs, prices)
    if path:
        pricing = RowPricing(costs, tradeoff, backend, repeat)
        market = oracle.PathMarket(needs, prices, tradeoff, [set() for _ in whole], whole, repeat)
    else:
        pricing = ModelPricing(costs, tradeoff, repeat)
        market = oracle.Market(needs, prices, tradeoff, set(), repeat)
    grower = Grower(backend, pricing, limits)
    trees, ties = [], 0
    for number, _ in enumerate(gradients):
        backend.gradients(number)
        _, quantum = backend.begin(range(loss.n_outputs))
        here = backend.rows
        packed = here.packed[None].copy() if here.lanes is None else here.lanes[: loss.n_outputs].copy()
        packed[0] >>= COUNT_BITS
        counted = np.ones(data.n_rows, bool) if backend.rows.out is None else ~backend.rows.out
        slack = 0.0 if here.lanes is None else 1e-9
        rows = oracle.Rows(np.array(packed), quantum, data.bins, data.n_bins, whole, counted, slack)
        tree = grower.grow(range(loss.n_outputs))
        pricing.keep(tree.splits)
        grown = grower._splits
        expected = oracle.grow(rows, market, oracle.Limits(**dataclasses.asdict(limits)), follow=grown)
        assert len(grown) == len(expected.splits)
        for split, other in zip(grown, expected.splits):
            exact = (split.node, split.left, split.feature, split.cut, split.missing_right, split.bought)
            assert exact == (other.node, other.left, other.feature, other.cut, other.missing_right, other.bought)
            assert split.gain == pytest.approx(other.gain, rel=1e-9)
            assert split.price == pytest.approx(other.price, rel=1e-12)
        if path:
            check_pruning(tree, grown, expected, rows, market)
            for i, owned in enumerate(market.owned):
                bits = int.from_bytes(backend.rows.owners[i].tobytes(), "little")
                assert {a for a in range(len(prices)) if bits >> a & 1} == owned
        else:
            assert set(tree.leaves) == set(expected.leaves)
            assert set(np.flatnonzero(pricing.owned)) == market.owned
        trees.append(tree)
        ties += expected.ties
    return trees, ties

"""One cost-sensitive regression tree, grown split by split under the exact first-use rule, on any backend.

Every open leaf keeps its best raw gain per feature. The next split is the best of raw gain − present price over all
open leaves and features, so a purchase in one leaf re-prices all the others without recounting. A feature whose price
exceeds all the squared error left in a leaf cannot win there; it is counted only if a later purchase makes it cheaper.

Where rows pay for themselves, a cheap split that does not pay may lead to one that does, for a part of the rows: the
tree is grown through losses to its limits, then every split that does not pay together with all below it is taken back.

`kernels.growing` has the same rules compiled, for rows in this process; both give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from miserly.boosting._backend import BackendOfRows
from miserly.boosting._constraints import Constraints, best_monotone_cut
from miserly.boosting._nodes import Ahead, NodeSums, TreeSplit
from miserly.boosting._pricing import Pricing
from miserly.boosting._root_update import Known, UpdatedRoot, update_root
from miserly.boosting._trees import GrownTree, TreeLimits
from miserly.kernels import histograms as kernels
from miserly.kernels.growing import LEAST_GAIN, SLACK

MOST_REMEMBERED = 31  # nodes of the last tree whose histograms are kept for a root update: five levels
NO_TABLES = (np.empty(0), np.empty(0, np.int32), np.empty(0), np.empty(0, np.int32), np.empty(0, bool))


@dataclass(eq=False)
class _Leaf:
    """A leaf: its sums and, if it may be split, what features cost there, their best raw gains, and the histograms
    counted so far (lane × feature × bin)."""

    node: int
    depth: int
    sums: NodeSums | None
    bound: float
    open: bool
    prices: np.ndarray
    place: np.ndarray
    gains: np.ndarray
    cuts: np.ndarray
    missing_right: np.ndarray
    histograms: np.ndarray = field(default_factory=lambda: np.empty((1, 0, kernels.N_BINS), np.int64))
    best: tuple[float, int] = (-math.inf, -1)
    path: frozenset[int] = frozenset()


class Grower:
    """Grows trees on a backend's rows, at prices that outlive the tree."""

    def __init__(
        self, backend: BackendOfRows, pricing: Pricing, limits: TreeLimits, constraints: Constraints | None = None
    ) -> None:
        self._constraints = Constraints() if constraints is None else constraints
        self._backend, self._pricing, self._limits = backend, pricing, limits
        self._splittable = backend.data.n_bins > 0
        self._most_leaves = limits.most_leaves(backend.n_rows)
        self._min_rows = max(1, limits.min_samples_leaf)
        self._last: tuple[TreeSplit, ...] = ()
        self._most_nodes = MOST_REMEMBERED if backend.updates_roots else 0

    def grow(self, outputs: Sequence[int] = (0,), allowed: np.ndarray | None = None) -> GrownTree:
        """Grow one tree for the gradients of some outputs, with the features allowed; what it buys stays bought."""
        self._allowed = self._splittable if allowed is None else self._splittable & allowed
        updated = self._updated_root() if self._last else None
        sums, quantum = self._backend.begin(outputs)
        self._pricing.begin()
        self._scale = 0.5 * quantum * quantum / max(1, sums.weight)
        self._splits: list[TreeSplit] = []
        root = self._leaf(0, 0, sums)
        self._leaves: dict[int, _Leaf] = {0: root}
        self._nodes = {0: root}
        if root.open:
            wanted = self._wanted(root)
            if updated is not None:
                lines = wanted[updated.features]
                self._search(root, updated.features[lines], updated.histograms[None, lines])
                wanted[updated.features] = False
            self._count(root, wanted)
        least = 0.0 if self._pricing.same_for_all_nodes else -math.inf
        while len(self._leaves) < self._most_leaves:
            leaf = max(self._leaves.values(), key=lambda leaf: (leaf.best[0], -leaf.node))
            if not leaf.best[0] > least:
                break
            self._split(leaf)
        grown = GrownTree(self._splits, sorted(self._leaves))
        tree = grown if self._pricing.same_for_all_nodes else self._pruned(grown)
        self._last = tree.splits if tree is grown and self._most_nodes else ()
        return tree

    def _updated_root(self) -> UpdatedRoot | None:
        """The next root, from what was counted of the last tree's nodes."""
        known = {n: Known(leaf.place, leaf.histograms[0]) for n, leaf in self._nodes.items() if leaf.histograms.size}
        return update_root(self._backend, self._last, known, self._wanted(self._nodes[0]))

    def _pruned(self, tree: GrownTree) -> GrownTree:
        """The part of a tree that pays: the best of all trees that are left when whole branches are taken back."""
        worth: dict[int, float] = {}
        for split in reversed(tree.splits):
            below = worth.get(split.left, 0.0) + worth.get(split.left + 1, 0.0)
            worth[split.node] = max(0.0, split.gain - split.price + below)
        number = {0: 0}
        splits: list[TreeSplit] = []
        for split in tree.splits:
            if split.node in number and worth[split.node] > 0:
                left = 2 * len(splits) + 1
                splits.append(replace(split, node=number[split.node], left=left))
                number |= {split.left: left, split.left + 1: left + 1}
        if len(splits) == len(tree.splits):
            return tree
        self._backend.renumber(number)
        inner = {split.node for split in splits}
        return GrownTree(splits, sorted(set(number.values()) - inner))

    def _split(self, leaf: _Leaf) -> None:
        """Make a leaf's best split, pay for it, and look again wherever it changed something."""
        f = leaf.best[1]
        price = float(leaf.prices[f])
        bought = self._pricing.buy(leaf.node, f)
        split = TreeSplit(
            node=leaf.node,
            left=2 * len(self._splits) + 1,
            feature=f,
            cut=int(leaf.cuts[f]),
            missing_right=bool(leaf.missing_right[f]),
            gain=float(leaf.gains[f]),
            price=price,
            bought=bought.acquisitions,
            shares=bought.shares,
        )
        self._splits.append(split)
        last = len(self._leaves) + 1 >= self._most_leaves
        closed = last or self._too_deep(leaf.depth + 1)
        self._backend.apply(split, None if closed else lambda: self._ahead(leaf, split))
        self._pricing.divide(leaf.node, split.left)
        pair = (split.left, split.left + 1)
        children = [self._leaf(n, leaf.depth + 1, None if closed else self._backend.sums(n)) for n in pair]
        for child in children:
            child.path = leaf.path | {f}
        del self._leaves[leaf.node]
        self._leaves |= {child.node: child for child in children}
        if len(self._nodes) <= self._most_nodes:
            self._nodes |= {child.node: child for child in children}
        if not last and bought.acquisitions and self._pricing.same_for_all_nodes:
            self._reprice(children)
        if not closed:
            self._open(leaf, children)

    def _ahead(self, leaf: _Leaf, split: TreeSplit) -> Ahead:
        """What `_open` will ask: the children's errors together are the leaf's less the gain, which bounds prices."""
        counts = leaf.histograms[0, leaf.place[split.feature]] & kernels.COUNT_MASK
        n_left = counts[: split.cut + 1].sum() + (0 if split.missing_right else counts[kernels.MISSING])
        known = self._allowed & (leaf.place >= 0) & self._may_follow(leaf.path | {split.feature})
        if self._pricing.same_for_all_nodes:
            known &= self._pricing.prices_in(leaf.node) < leaf.bound - 0.999 * split.gain
        smaller = split.left + (2 * n_left > counts.sum())
        return Ahead(int(smaller), np.flatnonzero(known).astype(np.int32))

    def _too_deep(self, depth: int) -> bool:
        return self._limits.max_depth is not None and depth >= self._limits.max_depth

    def _reprice(self, new: Sequence[_Leaf]) -> None:
        """After a purchase: features that became affordable in an open leaf are counted there, all bests renewed."""
        for leaf in self._leaves.values():
            if leaf.open and leaf not in new:
                self._count(leaf, self._wanted(leaf) & (leaf.place < 0))

    def _open(self, parent: _Leaf, children: list[_Leaf]) -> None:
        """Count the smaller child; the larger one is the parent less that.

        What was too expensive for the parent is too expensive for its children if prices do not depend on the node: a
        split gains more than it pays, so their bounds fall by more than any price can. Otherwise it is counted now.
        """
        small, large = sorted(children, key=lambda child: child.sums.n_rows)  # type: ignore[union-attr]
        if not large.open:
            return
        want_large = self._wanted(large)
        want_small = self._wanted(small) if small.open else np.zeros_like(want_large)
        known = parent.place >= 0
        counted = np.flatnonzero(want_small | (want_large & known)).astype(np.int32)
        derived = np.flatnonzero(want_large & known).astype(np.int32)
        of_small = self._backend.histograms(small.node, counted)
        of_large = np.empty((len(of_small), len(derived), kernels.N_BINS), np.int64)
        places = parent.place[derived], np.searchsorted(counted, derived)
        for lane, (whole, part) in enumerate(zip(parent.histograms, of_small)):
            kernels.subtract(whole, places[0], part, places[1], of_large[lane])
        self._search(large, derived, of_large)
        if not known[want_large].all():
            self._count(large, want_large & ~known)
        if small.open:
            self._search(small, counted, of_small)

    def _count(self, leaf: _Leaf, features: np.ndarray) -> None:
        """Have the backend count these features in a leaf, and search them."""
        numbers = np.flatnonzero(features).astype(np.int32)
        counted = self._backend.histograms(leaf.node, numbers) if len(numbers) else leaf.histograms[:, :0]
        self._search(leaf, numbers, counted)

    def _search(self, leaf: _Leaf, features: np.ndarray, histograms: np.ndarray) -> None:
        """Find the best split of newly counted features, and the leaf's best at present prices."""
        if len(features):
            n_counted = leaf.histograms.shape[1]
            leaf.place[features] = n_counted + np.arange(len(features))
            leaf.histograms = np.concatenate([leaf.histograms, histograms], axis=1) if n_counted else histograms
            self._find(leaf, features, histograms)
        leaf.best = kernels.best_net(leaf.gains, leaf.prices, LEAST_GAIN * leaf.bound, leaf.bound)

    def _find(self, leaf: _Leaf, features: np.ndarray, histograms: np.ndarray) -> None:
        n_bins, sums, found = self._backend.data.n_bins, leaf.sums, (leaf.gains, leaf.cuts, leaf.missing_right)
        assert sums is not None
        if len(histograms) == 1:
            total = np.int64(sums.lanes[0])
            kernels.best_splits(histograms[0], features, n_bins, total, self._min_rows, self._scale, *found)
        else:
            totals = np.array(sums.lanes, np.int64)
            rules = (n_bins, totals, self._min_rows, self._scale)
            kernels.best_splits_of_lanes(histograms, sums.n_gradients, features, *rules, *found)
        for k, f in enumerate(features.tolist() if self._constraints.signs else ()):
            if sign := self._constraints.signs[f]:
                rules_of_one = (sums.lanes, self._min_rows, self._scale, sign)
                best = best_monotone_cut(histograms[:, k], int(n_bins[f]), *rules_of_one)
                leaf.gains[f], leaf.cuts[f], leaf.missing_right[f] = best

    def _may_follow(self, path: frozenset[int]) -> np.ndarray:
        return self._constraints.allowed_below(path, self._backend.data.n_features)

    def _leaf(self, node: int, depth: int, sums: NodeSums | None) -> _Leaf:
        """A leaf; one whose sums nobody needs is not split any more."""
        if sums is None or self._too_deep(depth) or sums.n_rows < 2 * self._min_rows:
            return _Leaf(node, depth, sums, 0.0, False, *NO_TABLES)
        n, bound = self._backend.data.n_features, self._scale * sums.squared_error * SLACK
        tables = (np.full(n, -1, np.int32), np.full(n, -np.inf), np.zeros(n, np.int32), np.zeros(n, bool))
        return _Leaf(node, depth, sums, bound, True, self._pricing.prices_in(node), *tables)

    def _wanted(self, leaf: _Leaf) -> np.ndarray:
        """Features that might pay in a leaf: a split cannot gain more than the squared error left there."""
        return self._allowed & (leaf.prices < leaf.bound) & self._may_follow(leaf.path)

"""One round of boosting: a tree for each output, kept if it pays for its evaluation.

`CompiledRounds` grows all of them in one call, on rows in this process; `SplitRounds` runs the split-by-split grower on
any backend. Both give the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from miserly.boosting._backend import FEWEST_ROWS, BackendOfRows, LocalBackend, row_bits
from miserly.boosting._constraints import bounded_values
from miserly.boosting._grower import Grower
from miserly.boosting._pricing import ModelPricing, Pricing
from miserly.boosting._trees import GrownTree, Round, Settings, tree_table
from miserly.kernels import growing
from miserly.kernels.compiling import call
from miserly.kernels.histograms import LANES, N_BINS
from miserly.kernels.tree_pricing import N_PLANES

FEW_SLOTS = 32  # to begin with; as many as a tree of five levels can need, twice as many whenever they do not suffice
COLUMNS = {"feature": np.int32, "threshold": float, "left": np.int32, "missing_right": bool, "value": float}


class Rounds(Protocol):
    """Grows rounds at the gradients that the backend has computed last."""

    def grow(self, number: int, among: np.ndarray | None = None) -> Round:
        """Round `number`, with some of the features (all if None)."""


def rounds_on(backend: BackendOfRows, pricing: Pricing, settings: Settings, n_outputs: int) -> Rounds:
    """The quickest way to grow rounds on a backend."""
    is_plain = pricing.compiled and settings.constraints is None
    if isinstance(backend, LocalBackend) and backend.compiled and is_plain:
        return CompiledRounds(backend, pricing, settings, n_outputs)
    return SplitRounds(backend, pricing, settings, n_outputs)


class SplitRounds:
    """Rounds grown split by split."""

    def __init__(self, backend: BackendOfRows, pricing: Pricing, settings: Settings, n_outputs: int) -> None:
        self._backend, self._pricing, self._settings, self._n_outputs = backend, pricing, settings, n_outputs
        self._grower = Grower(backend, pricing, settings.limits, settings.constraints)

    def grow(self, number: int, among: np.ndarray | None = None) -> Round:
        backend, settings = self._backend, self._settings
        outputs, tables, trees = [], [], []
        for output in range(self._n_outputs):
            tree = self._grower.grow((output,), _drawn(backend.data.n_bins > 0, settings, number, output, among))
            if tree.score <= self._pricing.evaluation:
                self._pricing.give_back()
                continue
            self._pricing.keep(tree.splits)
            sums = backend.leaf_sums(tree.leaves)[:, 0].tolist()
            steps = [settings.learning_rate * g / (h + settings.l2) if h > 0 else 0.0 for g, h in sums]
            if settings.constraints is not None and settings.constraints.signs:
                pairs, shrinkage = dict(zip(tree.leaves, map(tuple, sums))), (settings.learning_rate, settings.l2)
                steps = list(bounded_values(tree.splits, pairs, *shrinkage, settings.constraints).values())
            values = dict(zip(tree.leaves, backend.round_to_quanta(steps)))
            for leaf, value in values.items():
                backend.add(leaf, [value])
            outputs.append(output)
            tables.append(tree_table(backend.data, tree, values))
            trees.append(tree)
        return Round(tuple(outputs), tuple(tables), tuple(trees))


class CompiledRounds:
    """Rounds grown in one call each; all arrays that the kernel works on are made once."""

    def __init__(self, backend: LocalBackend, pricing: Pricing, settings: Settings, n_outputs: int) -> None:
        self._backend, self._pricing, self._settings = backend, pricing, settings
        self._by_path = not isinstance(pricing, ModelPricing)
        data, limits = backend.data, settings.limits
        n_acquisitions, most = len(pricing.price), limits.most_leaves(data.n_rows)
        n_bought = most * int(np.diff(pricing.needs[0]).max(initial=0)) if self._by_path else n_acquisitions
        shape = (n_outputs, 2 * most - 1)
        self._splittable = data.n_bins > 0
        self._bins = tuple(_read_only(values) for values in (data.words, data.n_bins, data.cuts))
        self._y = np.ascontiguousarray(np.ravel(backend.rows.y) if backend.steady else [], np.float64)
        self._outputs = np.arange(n_outputs)
        self._nodes = np.zeros(shape, growing.NODE)
        self._splits = np.zeros((n_outputs, most), growing.SPLIT)
        self._purchases = np.zeros((n_outputs, max(1, n_bought)), growing.PURCHASE)
        self._tables = tuple(np.zeros(shape, kind) for kind in COLUMNS.values())
        self._counts, self._scales = np.zeros((n_outputs, 5), np.int64), np.zeros(n_outputs)
        depth = -1 if limits.max_depth is None else limits.max_depth
        self._limits = (most, depth, max(1, limits.min_samples_leaf))
        in_quanta = backend.steady and data.n_rows >= FEWEST_ROWS
        self._flags = (backend.steady, in_quanta, False, row_bits(data.n_rows))
        self._shrinkage = (float(settings.learning_rate), float(settings.l2), pricing.evaluation)
        self._ownership()
        self._make_slots(min(most + 1, FEW_SLOTS))

    def _ownership(self) -> None:
        """What the model owns, or by path what each row owns, and how many rows lack each acquisition."""
        rows, n_acquisitions = self._backend.rows, len(self._pricing.price)
        n_words = -(-n_acquisitions // 64)
        self._owned = self._pricing.owned if isinstance(self._pricing, ModelPricing) else np.zeros(0, bool)
        if not self._by_path:
            self._lacking_at_root = np.zeros(0, np.int64)
            return
        if rows.owners.shape[1] < n_words:
            missing = np.zeros((rows.n_rows, n_words - rows.owners.shape[1]), np.uint64)
            rows.owners = np.concatenate([rows.owners, missing], axis=1)
        bits = ((rows.owners[:, a // 64] >> np.uint64(a % 64)) & np.uint64(1) for a in range(n_acquisitions))
        self._lacking_at_root = np.array([rows.n_rows - int(b.sum()) for b in bits], np.int64)

    def _make_slots(self, n_slots: int) -> None:
        """Arrays for this many open leaves. Pages that are never touched take no memory."""
        n_features, n_nodes = len(self._splittable), self._nodes.shape[1]
        padded = -(-n_features // LANES) * LANES
        self._histograms = np.empty((n_slots, padded, N_BINS), np.int64)
        self._found = np.zeros((n_slots, n_features), growing.CANDIDATE)
        masks = np.empty((2, n_features), bool)
        self._lists = np.empty(n_slots, np.int32), np.empty(n_slots + 1, np.int32), masks, np.empty(n_nodes, np.int32)
        planes, spare = np.empty(N_PLANES, np.uint64), np.empty((LANES, N_BINS), np.int64)
        self._scratch = planes, spare, np.empty((2, N_BINS)), np.empty(n_nodes)
        if isinstance(self._pricing, ModelPricing):
            self._prices, self._lacking = self._pricing.prices[None], np.empty((n_slots, 0), np.int64)
        else:
            self._prices = np.empty((n_slots, n_features))
            self._lacking = np.empty((n_slots, len(self._pricing.price)), np.int64)

    def grow(self, number: int, among: np.ndarray | None = None) -> Round:
        done = 0
        masks = [_drawn(self._splittable, self._settings, number, int(k), among) for k in self._outputs]
        allowed = np.array([self._splittable if mask is None else self._splittable & mask for mask in masks])
        while done < len(self._outputs):
            done += self._call(done, allowed)
            if done < len(self._outputs):
                self._make_slots(2 * len(self._histograms))
        trees = list(self._grown())
        if isinstance(self._pricing, ModelPricing):
            kept_last = bool(trees) and trees[-1][0] == self._outputs[-1]
            self._pricing.bought(trees[-1][2].bought if kept_last else [])
        if not trees:
            return Round()
        return Round(*zip(*trees))

    def _call(self, first: int, allowed: np.ndarray) -> int:
        backend, pricing = self._backend, self._pricing
        rows, gradient, hessian = backend.rows, backend.rows.gradient, backend.rows.hessian
        absent = np.empty(0, bool) if rows.absent is None else rows.absent
        some = slice(first, None)
        done: int = call(
            growing.grow_round,
            self._outputs[some], *self._bins, self._y, rows.scores, gradient, hessian, absent,
            self._flags, self._shrinkage, self._limits, (rows.order, rows.packed, *rows.spare),
            self._by_path, pricing.repeat, pricing.needs, pricing.needed_by, pricing.price, self._owned, self._prices,
            self._lacking, rows.owners, self._lacking_at_root, allowed[some], self._histograms, self._found,
            self._nodes[some], self._splits[some], self._purchases[some], tuple(t[some] for t in self._tables),
            self._counts[some], self._scales[some], self._lists, self._scratch,
        )  # fmt: skip
        return done

    def _grown(self) -> Iterator[tuple[int, dict[str, np.ndarray], GrownTree]]:
        """Of each tree that was kept: its output, its table, its record."""
        for output, (n_splits, n_purchases, *_) in enumerate(self._counts.tolist()):
            if n_splits != growing.NOT_KEPT:
                n = 2 * n_splits + 1
                table = {name: column[output, :n].copy() for name, column in zip(COLUMNS, self._tables)}
                splits = self._splits[output, :n_splits].copy()
                bought = self._purchases[output, :n_purchases].copy()
                yield output, table, GrownTree.from_records(splits, bought)


def _read_only(values: np.ndarray) -> np.ndarray:
    """A view that cannot be written: a mapped file is read-only too, and each kind is compiled for itself."""
    view = values.view()
    view.flags.writeable = False
    return view


def _drawn(
    splittable: np.ndarray, settings: Settings, number: int, output: int, among: np.ndarray | None
) -> np.ndarray | None:
    """The features that a tree may use, drawn from those that can be split at all; None for all."""
    if settings.max_features == 1.0:
        return among
    rng = np.random.default_rng([settings.seed, number, output])
    usable, drawn = np.flatnonzero(splittable), np.zeros(len(splittable), bool)
    n_drawn = min(len(usable), max(1, round(settings.max_features * len(usable))))
    drawn[usable[rng.choice(len(usable), n_drawn, replace=False)]] = True
    return drawn if among is None else drawn & among

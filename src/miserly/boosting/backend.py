"""Where the rows are. The grower decides; a backend counts, partitions and sums, here or on a cluster.

All sums are integers, so that they do not depend on the number of threads, the order of rows or their partition.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from miserly.boosting.binning import BinnedData
from miserly.boosting.losses import Loss
from miserly.kernels import histograms as kernels

FIXED_BITS = 62


@dataclass(frozen=True)
class Split:
    """A node cut in two: bins up to `cut` go left; `gain` is raw, `price` what was paid for it (both per row).

    `shares` says for each acquisition bought which part of all rows pays for it here.
    """

    node: int
    left: int
    feature: int
    cut: int
    missing_right: bool
    gain: float
    price: float
    bought: tuple[int, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class NodeSums:
    """Of a node's rows: the sum of each lane and that of the squared quantised gradients (by weight).

    Lanes are the gradients of one or more outputs, the first packed with the counts, and the weights, if any, last.
    """

    lanes: tuple[int, ...]
    squares: float
    weighted: bool = False

    @property
    def n_rows(self) -> int:
        return self.lanes[0] & kernels.COUNT_MASK

    @property
    def weight(self) -> int:
        return self.lanes[-1] if self.weighted else self.n_rows

    @property
    def n_gradients(self) -> int:
        return len(self.lanes) - self.weighted

    @property
    def spread(self) -> float:
        """The squared error around the mean: no split of the node can gain more. Exact where the squares are whole."""
        first, *others = self.lanes[: self.n_gradients]
        explained = (first >> kernels.COUNT_BITS) ** 2 + sum(g * g for g in others)
        if isinstance(self.squares, int):
            return (self.squares * self.n_rows - explained) / self.n_rows
        return self.squares - explained / max(self.weight, 1) + 1e-9 * self.squares


class Backend(Protocol):
    """What the grower, the shop and the boosting loop ask of the rows."""

    n_rows: int
    weight: int
    data: BinnedData

    def start(self) -> np.ndarray:
        """Set every score to the loss's best constant; returns it."""

    def gradients(self, number: int = 0) -> None:
        """Compute the gradients of all outputs at the present scores and choose the rows of round `number`."""

    def begin(self, outputs: Sequence[int] = (0,)) -> tuple[NodeSums, float]:
        """Quantise some outputs' gradients and put all rows in node 0; returns its sums and one quantum's size."""

    def histograms(self, nodes: Sequence[int], features: np.ndarray) -> np.ndarray:
        """Sums by bin: node × lane × feature × 256."""

    def apply(self, split: Split) -> tuple[NodeSums, NodeSums]:
        """Partition a node's rows; returns the sums of both children."""

    def lacking(self, node: int, acquisitions: Sequence[int]) -> tuple[int, list[int]]:
        """The weight of a node's rows, and of those that do not own each of some acquisitions."""

    def own(self, node: int, acquisitions: Sequence[int]) -> None:
        """A node's rows own these acquisitions from now on."""

    def disown(self, nodes: Container[int] | None = None) -> None:
        """Undo what was bought at these nodes of the tree, or at all of them."""

    def relabel(self, leaves: Mapping[int, Sequence[int]]) -> None:
        """Leaves get new numbers; where several get one, their rows are joined (they had a node in common)."""

    def leaf_sums(self, leaves: Sequence[int]) -> np.ndarray:
        """Sums of gradient and second derivative over the rows of each leaf: leaf × output × 2."""

    def add(self, leaf: int, values: Sequence[float]) -> None:
        """Add a leaf's values to the scores of its rows, one for each output of the tree."""

    def loss(self) -> float:
        """Mean loss at the present scores."""


class LocalBackend:
    """All rows in this process's memory.

    Rows that a round leaves out, and rows of weight zero, have a packed gradient of zero: they move with the others,
    so that their scores are known, but nothing counts them.
    """

    def __init__(
        self,
        data: BinnedData,
        y: np.ndarray,
        loss: Loss,
        weight: np.ndarray | None = None,
        subsample: float = 1.0,
        seed: int = 0,
    ) -> None:
        if data.n_rows > kernels.COUNT_MASK:
            raise ValueError(f"At most {kernels.COUNT_MASK} rows fit the count lane, got {data.n_rows}.")
        self.data = data
        self.n_rows = data.n_rows
        self._y, self._loss, self._given = y, loss, () if weight is None else (weight,)
        self._subsample, self._seed = subsample, seed
        self._weights: np.ndarray | None = None
        self._unit = 1.0
        if weight is not None:
            self._weights, self._unit = _quantised(weight)
        self.weight = self.n_rows if self._weights is None else int(self._weights.sum())
        self._scores = np.zeros((loss.n_outputs, self.n_rows))
        self._packed = np.empty(self.n_rows, np.int64)
        self._rows = np.empty(self.n_rows, np.uint32)
        self._spare = (np.empty(self.n_rows, np.uint32), np.empty(self.n_rows, np.int64))
        self._owned: dict[int, np.ndarray] = {}
        self._purchases: list[tuple[int, int, np.ndarray]] = []

    def start(self) -> np.ndarray:
        constant = self._loss.constant(self._y, *self._given)
        self._scores[:] = constant[:, None]
        return constant

    def resume(self, scores: np.ndarray, owned: Mapping[int, np.ndarray]) -> None:
        """Go on from an earlier fit: its scores, and which rows own each acquisition where rows pay for themselves."""
        self._scores[:] = scores
        self._owned = dict(owned)

    def gradients(self, number: int = 0) -> None:
        self._gradient, self._hessian = self._loss.gradients(self._y, self._scores)
        for weight in self._given:
            self._gradient, self._hessian = self._gradient * weight, self._hessian * weight
        self._out = self._left_out(number)

    def _left_out(self, number: int) -> np.ndarray | None:
        """The rows that this round does not look at, if there are any."""
        out = None if self._weights is None else self._weights == 0
        if self._subsample < 1.0:
            seed = np.random.SeedSequence([self._seed, number]).generate_state(1, np.uint64)[0]
            absent = ~kernels.sampled(self.n_rows, seed, self._subsample)
            out = absent if out is None else out | absent
        return out if out is not None and out.any() else None

    def begin(self, outputs: Sequence[int] = (0,)) -> tuple[NodeSums, float]:
        self._outputs = list(outputs)
        gradients = self._gradient[self._outputs]
        largest = float(np.abs(gradients).max())
        bits = min(23, 38 - math.ceil(math.log2(max(2, self.n_rows))))
        scale = ((1 << bits) - 1) / largest if largest > 0 else 1.0
        kernels.pack(gradients[0], scale, self._packed)
        if self._out is not None:
            self._packed[self._out] = 0
        self._lanes = self._other_lanes(gradients, scale)
        self._rows[:] = np.arange(self.n_rows, dtype=np.uint32)
        self._span = {0: (0, self.n_rows)}
        self._purchases.clear()
        if self._lanes is None:
            total, squares = kernels.sum_packed(self._packed)
            self._sums = {0: NodeSums((int(total),), int(squares))}
        else:
            self._sums = {0: self._sum_lanes(0)}
        return self._sums[0], self._unit / scale

    def _other_lanes(self, gradients: np.ndarray, scale: float) -> np.ndarray | None:
        """All lanes by row number, if there are more than one: further gradients, then weights."""
        weighted = self._weights is not None
        if len(gradients) == 1 and not weighted:
            return None
        lanes = np.empty((len(gradients) + weighted, self.n_rows), np.int64)
        lanes[0] = self._packed
        lanes[1 : len(gradients)] = np.rint(gradients[1:] * scale)
        if self._weights is not None:
            lanes[-1] = self._weights
        if self._out is not None:
            lanes[:, self._out] = 0
        return lanes

    def _sum_lanes(self, node: int) -> NodeSums:
        lanes = self._lanes
        assert lanes is not None
        sums = np.empty(len(lanes), np.int64)
        squares = kernels.sum_lanes(lanes, len(self._outputs), self._rows[slice(*self._span[node])], sums)
        return NodeSums(tuple(int(v) for v in sums), float(squares), self._weights is not None)

    def histograms(self, nodes: Sequence[int], features: np.ndarray) -> np.ndarray:
        lanes = 1 if self._lanes is None else len(self._lanes)
        out = np.empty((len(nodes), lanes, len(features), kernels.N_BINS), np.int64)
        for node, histogram in zip(nodes, out):
            first, last = self._span[node]
            rows, packed = self._rows[first:last], self._packed[first:last]
            if self._out is not None:
                rows, packed = rows[packed != 0], packed[packed != 0]
            for lane in range(lanes):
                values = packed if lane == 0 else self._lanes[lane][rows]  # type: ignore[index]
                if len(rows) == self.n_rows:
                    kernels.count_all(self.data.words, values, features, histogram[lane])
                else:
                    kernels.count_rows(self.data.words, rows, values, features, histogram[lane])
        return out

    def apply(self, split: Split) -> tuple[NodeSums, NodeSums]:
        first, last = self._span.pop(split.node)
        n_left, total, squares = kernels.partition(
            self.data.words[split.feature // kernels.LANES],
            split.feature % kernels.LANES,
            self._rows[first:last],
            self._packed[first:last],
            split.cut,
            split.missing_right,
            *self._spare,
        )
        left, right = split.left, split.left + 1
        self._span |= {left: (first, first + n_left), right: (first + n_left, last)}
        whole = self._sums.pop(split.node)
        if self._lanes is None:
            self._sums[left] = NodeSums((int(total),), int(squares))
            self._sums[right] = NodeSums((whole.lanes[0] - int(total),), whole.squares - int(squares))
        else:
            self._sums |= {left: self._sum_lanes(left), right: self._sum_lanes(right)}
        return self._sums[left], self._sums[right]

    def lacking(self, node: int, acquisitions: Sequence[int]) -> tuple[int, list[int]]:
        rows = self._rows[slice(*self._span[node])]
        weight = len(rows) if self._weights is None else int(self._weights[rows].sum())
        return weight, [self._without(a, rows) if a in self._owned else weight for a in acquisitions]

    def _without(self, acquisition: int, rows: np.ndarray) -> int:
        owned = self._owned[acquisition]
        if self._weights is None:
            return int(kernels.count_without(owned, rows))
        return int(kernels.weigh_without(owned, self._weights, rows))

    def own(self, node: int, acquisitions: Sequence[int]) -> None:
        rows = self._rows[slice(*self._span[node])]
        for a in acquisitions:
            owned = self._owned.setdefault(a, np.zeros(self.n_rows, bool))
            fresh = rows[~owned[rows]]
            owned[fresh] = True
            self._purchases.append((node, a, fresh))

    def disown(self, nodes: Container[int] | None = None) -> None:
        for node, a, rows in self._purchases:
            if nodes is None or node in nodes:
                self._owned[a][rows] = False

    def relabel(self, leaves: Mapping[int, Sequence[int]]) -> None:
        spans = {new: [self._span[leaf] for leaf in old] for new, old in leaves.items()}
        self._span = {new: (min(a for a, _ in parts), max(b for _, b in parts)) for new, parts in spans.items()}

    def leaf_sums(self, leaves: Sequence[int]) -> np.ndarray:
        out = np.empty((len(leaves), len(self._outputs), 2))
        rows = [self._counted(leaf) for leaf in leaves]
        for k, output in enumerate(self._outputs):
            for j, values in enumerate((self._gradient[output], self._hessian[output])):
                scale = _fixed_point(values, self.n_rows)
                for i, those in enumerate(rows):
                    out[i, k, j] = kernels.fixed_sum(values, those, scale) / scale
        return out

    def _counted(self, node: int) -> np.ndarray:
        """The rows of a node that this round looks at."""
        span = slice(*self._span[node])
        return self._rows[span] if self._out is None else self._rows[span][self._packed[span] != 0]

    def add(self, leaf: int, values: Sequence[float]) -> None:
        for output, value in zip(self._outputs, values):
            kernels.add_at(self._scores[output], self._rows[slice(*self._span[leaf])], value)

    def loss(self) -> float:
        return self._loss.value(self._y, self._scores, *self._given)


def _fixed_point(values: np.ndarray, n_rows: int) -> float:
    """The power of two that turns values into integers whose sum over all rows still fits 62 bits."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return 1.0
    return 2.0 ** (FIXED_BITS - math.ceil(math.log2(max(2, n_rows))) - math.frexp(largest)[1])


def _quantised(weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights as integers whose sum is exact as a float too, none that is above zero lost; and their unit's inverse."""
    bits = min(30, 52 - math.ceil(math.log2(max(2, len(weight)))))
    unit = ((1 << bits) - 1) / float(weight.max())
    return np.where(weight > 0, np.maximum(1, np.rint(weight * unit)), 0).astype(np.int64), unit

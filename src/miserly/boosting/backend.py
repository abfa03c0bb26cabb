"""Where the rows are. The grower decides; a backend counts, partitions and sums, here or on a cluster.

All sums are integers, so that they do not depend on the number of threads, the order of rows or their partition.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from miserly.boosting.binning import BinnedData
from miserly.boosting.losses import Loss
from miserly.kernels import histograms as kernels

FIXED_BITS = 62


@dataclass(frozen=True)
class Split:
    """A node cut in two: bins up to `cut` go left; `gain` is raw, `price` what was paid for it (both per row)."""

    node: int
    left: int
    feature: int
    cut: int
    missing_right: bool
    gain: float
    price: float
    bought: tuple[int, ...]


@dataclass(frozen=True)
class NodeSums:
    """Of a node's rows: the packed sum of gradients and counts, and the sum of squared quantised gradients."""

    total: int
    squares: int

    @property
    def n_rows(self) -> int:
        return self.total & kernels.COUNT_MASK

    @property
    def gradient(self) -> int:
        return self.total >> kernels.COUNT_BITS

    def __sub__(self, other: NodeSums) -> NodeSums:
        return NodeSums(self.total - other.total, self.squares - other.squares)


class Backend(Protocol):
    """What the grower and the boosting loop ask of the rows."""

    n_rows: int
    data: BinnedData

    def start(self) -> np.ndarray:
        """Set every score to the loss's best constant; returns it."""

    def gradients(self) -> None:
        """Compute the gradients of all outputs at the present scores, for a new round."""

    def begin(self, output: int) -> tuple[NodeSums, float]:
        """Quantise one output's gradients and put all rows in node 0; returns its sums and one quantum's size."""

    def histograms(self, nodes: Sequence[int], features: np.ndarray) -> np.ndarray:
        """Packed sums by bin: node × feature × 256."""

    def apply(self, split: Split) -> NodeSums:
        """Partition a node's rows; returns the sums of the left child."""

    def leaf_sums(self, leaves: Sequence[int]) -> list[tuple[float, float]]:
        """Sums of gradient and second derivative over the rows of each leaf."""

    def add(self, values: Mapping[int, float]) -> None:
        """Add each leaf's value to the scores of its rows."""

    def loss(self) -> float:
        """Mean loss at the present scores."""


class LocalBackend:
    """All rows in this process's memory."""

    def __init__(self, data: BinnedData, y: np.ndarray, loss: Loss) -> None:
        if data.n_rows > kernels.COUNT_MASK:
            raise ValueError(f"At most {kernels.COUNT_MASK} rows fit the count lane, got {data.n_rows}.")
        self.data = data
        self.n_rows = data.n_rows
        self._y, self._loss = y, loss
        self._scores = np.zeros((loss.n_outputs, self.n_rows))
        self._packed = np.empty(self.n_rows, np.int64)
        self._rows = np.empty(self.n_rows, np.uint32)
        self._spare = (np.empty(self.n_rows, np.uint32), np.empty(self.n_rows, np.int64))

    def start(self) -> np.ndarray:
        constant = self._loss.constant(self._y)
        self._scores[:] = constant[:, None]
        return constant

    def gradients(self) -> None:
        self._gradient, self._hessian = self._loss.gradients(self._y, self._scores)

    def begin(self, output: int) -> tuple[NodeSums, float]:
        self._output = output
        gradient = self._gradient[output]
        largest = float(np.abs(gradient).max())
        bits = min(23, 38 - math.ceil(math.log2(max(2, self.n_rows))))
        scale = ((1 << bits) - 1) / largest if largest > 0 else 1.0
        kernels.pack(gradient, scale, self._packed)
        self._rows[:] = np.arange(self.n_rows, dtype=np.uint32)
        self._span = {0: (0, self.n_rows)}
        total, squares = kernels.sum_packed(self._packed)
        return NodeSums(int(total), int(squares)), 1.0 / scale

    def histograms(self, nodes: Sequence[int], features: np.ndarray) -> np.ndarray:
        out = np.empty((len(nodes), len(features), kernels.N_BINS), np.int64)
        for node, histogram in zip(nodes, out):
            first, last = self._span[node]
            if last - first == self.n_rows:
                kernels.count_all(self.data.words, self._packed, features, histogram)
            else:
                rows, packed = self._rows[first:last], self._packed[first:last]
                kernels.count_rows(self.data.words, rows, packed, features, histogram)
        return out

    def apply(self, split: Split) -> NodeSums:
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
        self._span[split.left] = (first, first + n_left)
        self._span[split.left + 1] = (first + n_left, last)
        return NodeSums(int(total), int(squares))

    def leaf_sums(self, leaves: Sequence[int]) -> list[tuple[float, float]]:
        gradient, hessian = self._gradient[self._output], self._hessian[self._output]
        scales = [_fixed_point(gradient, self.n_rows), _fixed_point(hessian, self.n_rows)]
        sums = []
        for leaf in leaves:
            rows = self._rows[slice(*self._span[leaf])]
            g, h = (kernels.fixed_sum(v, rows, s) / s for v, s in zip((gradient, hessian), scales))
            sums.append((g, h))
        return sums

    def add(self, values: Mapping[int, float]) -> None:
        for leaf, value in values.items():
            kernels.add_at(self._scores[self._output], self._rows[slice(*self._span[leaf])], value)

    def loss(self) -> float:
        return self._loss.value(self._y, self._scores)


def _fixed_point(values: np.ndarray, n_rows: int) -> float:
    """The power of two that turns values into integers whose sum over all rows still fits 62 bits."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return 1.0
    return 2.0 ** (FIXED_BITS - math.ceil(math.log2(max(2, n_rows))) - math.frexp(largest)[1])

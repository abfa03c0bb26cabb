"""Where the rows are. The grower decides; a backend counts, partitions and sums, in this process or on a cluster.

All sums are integers, so that they do not depend on the number of threads, the order of rows or their partition.
"""

from __future__ import annotations

import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from miserly.boosting._binning import BinnedData
from miserly.boosting._exact import mean
from miserly.boosting._losses import Loss, SummedLoss, is_steady
from miserly.boosting._nodes import Ahead, NodeSums, TreeSplit
from miserly.boosting._rows import Table, TrainingRows
from miserly.kernels import histograms as kernels
from miserly.kernels import tree_values
from miserly.kernels.threads import n_threads

FEWEST_ROWS = 4096  # with fewer, a root is counted as quickly as it is updated from the last tree
FEWEST_CELLS = 1 << 20  # rows × features; with fewer, a root update does not beat compiled growth
SHARED_CELLS = 1 << 23  # with fewer, a second thread does not: from one split to the next it costs as much as it counts
MOST_WEIGHT_BITS = 30  # of one weight: as fine as a float32, and the sum of all rows' weights stays an exact float


class BackendOfRows(ABC):
    """What the grower, the pricing and the boosting loop need from the rows, wherever they are.

    The base class has what does not depend on that: how integer sums are scaled and read.

    Attributes
    ----------
    n_rows : int
        Rows of the training data.
    weight : int
        The sum of their weights, in units; the number of rows where none are given.
    data : BinnedData
        The bins; a remote backend knows the cuts only.
    updates_roots : bool
        Whether the next tree's root can be made from the last tree.
    compiled : bool
        Whether whole trees are grown compiled, without a call for each split.
    """

    n_rows: int
    weight: int
    data: BinnedData
    updates_roots = False
    compiled = False
    _unit = 1.0
    _steady = False
    _in_quanta = False
    _subsample = 1.0
    _seed = 0

    @abstractmethod
    def start(self) -> np.ndarray:
        """Set every score to the loss's best constant; returns it."""

    @abstractmethod
    def loss(self) -> float:
        """Mean loss at the present scores."""

    @abstractmethod
    def gradients(self, number: int = 0) -> None:
        """Compute the gradients of all outputs at the present scores and choose the rows of round `number`."""

    @abstractmethod
    def _largest(self) -> np.ndarray:
        """The largest gradient of each output, and the largest hessian: 2 × output."""

    @abstractmethod
    def histograms(self, node: int, features: np.ndarray) -> np.ndarray:
        """Sums by bin of a node: lane × feature × 256."""

    @abstractmethod
    def apply(self, split: TreeSplit, ahead: Callable[[], Ahead] | None = None) -> None:
        """Partition a node's rows. A backend that is far away may count at once what comes `ahead`."""

    @abstractmethod
    def sums(self, node: int) -> NodeSums:
        """The sums of a node that came from a split."""

    @abstractmethod
    def lacking(self, node: int, acquisitions: Sequence[int]) -> tuple[int, list[int]]:
        """The weight of a node's rows, and of those that do not own each of some acquisitions."""

    @abstractmethod
    def own(self, purchases: Sequence[tuple[int, Sequence[int]]]) -> None:
        """The rows of some nodes own some acquisitions from now on."""

    @abstractmethod
    def renumber(self, kept: Mapping[int, int]) -> None:
        """Some nodes, inner ones too, get new numbers; the others are forgotten."""

    @abstractmethod
    def add(self, leaf: int, values: Sequence[float]) -> None:
        """Add a leaf's values to the scores of its rows, one for each output of the tree."""

    @abstractmethod
    def replay(self, constant: np.ndarray, trees: Sequence[tuple[int, Table]], needs: Sequence[Sequence[int]]) -> None:
        """Go on after some trees (output and table) grown on these bins; rows own what their paths need, if `needs`."""

    @abstractmethod
    def _begin(self, outputs: list[int], scale: float) -> NodeSums:
        """Quantise some outputs' gradients and put all rows in node 0; returns its sums."""

    @abstractmethod
    def _fixed_sums(self, leaves: Sequence[int], scales: np.ndarray) -> np.ndarray:
        """Fixed-point sums of gradient and hessian over the rows of each leaf: leaf × output × 2."""

    def begin(self, outputs: Sequence[int] = (0,)) -> tuple[NodeSums, float]:
        """Quantise some outputs' gradients and put all rows in node 0; returns its sums and one quantum's size."""
        self._outputs = list(outputs)
        self._scale = self._next_scale()
        return self._begin(self._outputs, self._scale), self._unit / self._scale

    def _next_scale(self) -> float:
        largest = float(self._largest()[0, self._outputs].max())
        scale: float = tree_values.gradient_scale.py_func(largest, row_bits(self.n_rows), self._steady)
        return scale

    def leaf_sums(self, leaves: Sequence[int]) -> np.ndarray:
        """Sums of gradient and hessian over the rows of each leaf: leaf × output × 2."""
        fixed_point, bits = tree_values.fixed_point_scale.py_func, row_bits(self.n_rows)
        largest = self._largest()
        scales = np.array([[fixed_point(v, bits) for v in largest[:, k].tolist()] for k in self._outputs])
        sums: np.ndarray = self._fixed_sums(leaves, scales) / scales
        return sums

    def round_to_quanta(self, values: Sequence[float]) -> list[float]:
        """A tree's leaf values as whole numbers of quanta, if only leaves move gradients, it saves time, and values
        hardly change by it; else as they are."""
        quanta = [value * self._scale for value in values]
        is_fine = statistics.median(abs(q) for q in quanta) >= tree_values.FEWEST_QUANTA
        self._in_quanta = self._steady and self.n_rows >= FEWEST_ROWS and is_fine
        return [round(q) / self._scale for q in quanta] if self._in_quanta else list(values)

    def leaf_shifts(self) -> Mapping[int, int]:
        """How many quanta each leaf of the last tree takes from its rows' gradients, if nothing else will have changed
        them at the next `begin`; or nothing."""
        return {}

    def shifted(self, shifts: Mapping[int, int], features: np.ndarray) -> np.ndarray:
        """What such shifts of some nodes take from the sums by bin: feature × 256."""
        raise NotImplementedError

    def _draw_seed(self, number: int) -> int:
        """The seed by which the rows of a round are chosen."""
        return int(np.random.SeedSequence([self._seed, number]).generate_state(1, np.uint64)[0])


class LocalBackend(BackendOfRows):
    """All rows in this process's memory.

    Parameters
    ----------
    data : BinnedData
        The features in bins.
    y : ndarray of shape (n_rows,) or (n_outputs, n_rows)
        The target, as the loss takes it.
    loss : Loss
        What boosting minimises.
    weight : ndarray of shape (n_rows,) or None, default=None
        Row weights, zero or more.
    subsample : float, default=1.0
        The share of rows that each round looks at, in (0, 1].
    seed : int, default=0
        Chooses them.
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
        check_row_count(data.n_rows)
        self.data, self.n_rows = data, data.n_rows
        self.rows = TrainingRows(data, y, loss, weight)
        self.weight = self.n_rows
        self._steady = is_steady(loss, weight is not None)
        self._shifts: dict[int, int] = {}
        self._y, self._loss, self._given = y, loss, () if weight is None else (weight,)
        self._subsample, self._seed = subsample, seed
        self.updates_roots = self._steady and self.n_rows >= FEWEST_ROWS and subsample == 1.0
        cells = data.n_rows * data.n_features
        shared = n_threads(None) > 1 and cells >= SHARED_CELLS
        self.compiled = weight is None and not shared and not (self.updates_roots and cells >= FEWEST_CELLS)
        if weight is not None:
            self._unit = weight_unit(float(weight.max()), len(weight))
            self.weight = self.rows.weigh(self._unit)

    @property
    def steady(self) -> bool:
        """Whether leaves are all that moves gradients."""
        return self._steady

    def start(self) -> np.ndarray:
        constant = self._loss.constant(self._y, *self._given)
        self.rows.start(constant)
        return constant

    def loss(self) -> float:
        if isinstance(self._loss, SummedLoss):
            return mean(*self.rows.evaluate())
        return self._loss.value(self._y, self.rows.scores, *self._given)

    def gradients(self, number: int = 0) -> None:
        self.rows.gradients()
        self._largest_now: np.ndarray | None = None
        if self._subsample < 1.0:
            self.rows.draw(self._draw_seed(number), self._subsample)

    def _largest(self) -> np.ndarray:
        if self._largest_now is None:
            self._largest_now = self.rows.largest()
        return self._largest_now

    def _begin(self, outputs: list[int], scale: float) -> NodeSums:
        self._shifts = {}
        return self.rows.begin(outputs, scale)

    def histograms(self, node: int, features: np.ndarray) -> np.ndarray:
        return self.rows.histograms(node, features)

    def apply(self, split: TreeSplit, ahead: Callable[[], Ahead] | None = None) -> None:
        self.rows.apply(split)

    def sums(self, node: int) -> NodeSums:
        return self.rows.sums(node)

    def lacking(self, node: int, acquisitions: Sequence[int]) -> tuple[int, list[int]]:
        weight, *lacking = self.rows.lacking(node, acquisitions).tolist()
        return weight, lacking

    def own(self, purchases: Sequence[tuple[int, Sequence[int]]]) -> None:
        self.rows.own(purchases)

    def renumber(self, kept: Mapping[int, int]) -> None:
        self.rows.renumber(kept)

    def _fixed_sums(self, leaves: Sequence[int], scales: np.ndarray) -> np.ndarray:
        return self.rows.leaf_sums(leaves, scales)

    def add(self, leaf: int, values: Sequence[float]) -> None:
        self.rows.add(leaf, values)
        if self._in_quanta:
            self._shifts[leaf] = round(values[0] * self._scale)

    def leaf_shifts(self) -> Mapping[int, int]:
        is_all = self.updates_roots and self.rows.exact and self._scale == self._next_scale()
        return self._shifts if self._shifts and is_all else {}

    def shifted(self, shifts: Mapping[int, int], features: np.ndarray) -> np.ndarray:
        return self.rows.shifted(shifts, features)

    def replay(self, constant: np.ndarray, trees: Sequence[tuple[int, Table]], needs: Sequence[Sequence[int]]) -> None:
        self.rows.replay(constant, trees, needs)

    def resume(self, scores: np.ndarray, owners: np.ndarray | None = None) -> None:
        """Go on from an earlier fit: its scores, and what each row owns where rows pay for themselves (row × word of
        64 acquisitions)."""
        self.rows.resume(scores, owners)


def check_row_count(n_rows: int) -> None:
    """Refuse more rows than can be counted."""
    if n_rows > kernels.COUNT_MASK:
        raise ValueError(f"At most {kernels.COUNT_MASK} rows fit the count lane, got {n_rows}.")


def row_bits(n_rows: int) -> int:
    """The bits that a sum over this many rows has more than one of its numbers."""
    return math.ceil(math.log2(max(2, n_rows)))


def weight_unit(largest: float, n_rows: int) -> float:
    """How many units a weight of one is, so that the sum of all is exact as a float too."""
    bits = min(MOST_WEIGHT_BITS, 52 - row_bits(n_rows))
    return ((1 << bits) - 1) / largest

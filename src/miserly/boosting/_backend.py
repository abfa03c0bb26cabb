"""Where the rows are. The grower decides; a backend counts, partitions and sums, here or on a cluster.

All sums are integers, so that they do not depend on the number of threads, the order of rows or their partition.
"""

from __future__ import annotations

import math
import statistics
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from miserly.boosting._binning import BinnedData
from miserly.boosting._losses import Loss, is_steady
from miserly.boosting._nodes import Ahead, NodeSums, TreeSplit
from miserly.boosting._rows import Table, TrainingRows
from miserly.kernels import histograms as kernels

FIXED_BITS = 62
MOST_BITS = 23
FEWEST_QUANTA = 256  # in the median of a tree's values, if they are rounded to quanta
FEWEST_ROWS = 4096  # fewer are counted as quickly as a root is moved


class Backend(Protocol):
    """What the grower, the shop and the boosting loop ask of the rows."""

    n_rows: int
    weight: int
    data: BinnedData
    moves_roots: bool

    def start(self) -> np.ndarray:
        """Set every score to the loss's best constant; returns it."""

    def gradients(self, number: int = 0) -> None:
        """Compute the gradients of all outputs at the present scores and choose the rows of round `number`."""

    def begin(self, outputs: Sequence[int] = (0,)) -> tuple[NodeSums, float]:
        """Quantise some outputs' gradients and put all rows in node 0; returns its sums and one quantum's size."""

    def histograms(self, nodes: Sequence[int], features: np.ndarray) -> np.ndarray:
        """Sums by bin: node × lane × feature × 256."""

    def apply(self, split: TreeSplit, ahead: Callable[[], Ahead] | None = None) -> None:
        """Partition a node's rows. A backend that is far away may count at once what comes `ahead`."""

    def sums(self, node: int) -> NodeSums:
        """The sums of a node that came from a split."""

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

    def settle(self, values: Sequence[float]) -> list[float]:
        """The values of a tree's leaves as they will be added."""

    def add(self, leaf: int, values: Sequence[float]) -> None:
        """Add a leaf's values to the scores of its rows, one for each output of the tree."""

    def moves(self) -> Mapping[int, int]:
        """How many quanta each leaf of the last tree takes from its rows' gradients, if nothing else will have changed
        them at the next `begin`; or nothing."""

    def moved(self, moves: Mapping[int, int], features: np.ndarray) -> np.ndarray:
        """What such moves of some nodes take from the sums by bin: feature × 256."""

    def loss(self) -> float:
        """Mean loss at the present scores."""


class BackendOfRows(ABC):
    """The part of a backend that does not depend on where the rows are: how their integer sums are scaled and read.

    `_ask` has every `TrainingRows` there is do something and adds up what they say (or takes the largest).
    """

    n_rows: int
    weight: int
    data: BinnedData
    moves_roots = False
    _unit = 1.0
    _steady = False
    _settled = False
    _subsample = 1.0
    _seed = 0

    @abstractmethod
    def _ask(self, what: str, *arguments: Any) -> Any:
        """The joint answer of all rows."""

    def _tell(self, what: str, *arguments: Any) -> None:
        """The same, where no answer is needed."""
        self._ask(what, *arguments)

    def replay(self, constant: np.ndarray, trees: Sequence[tuple[int, Table]], needs: Sequence[Sequence[int]]) -> None:
        """Go on after some trees (output and table) grown on these bins; rows own what their paths need, if `needs`."""
        self._tell("replay", constant, list(trees), needs)

    def gradients(self, number: int = 0) -> None:
        self._largest = self._ask("gradients")
        self._draw(number)

    def _draw(self, number: int) -> None:
        if self._subsample < 1.0:
            seed = np.random.SeedSequence([self._seed, number]).generate_state(1, np.uint64)[0]
            self._tell("draw", int(seed), self._subsample)

    def begin(self, outputs: Sequence[int] = (0,)) -> tuple[NodeSums, float]:
        self._outputs = list(outputs)
        self._scale = self._next_scale()
        return self._begin(self._outputs, self._scale), self._unit / self._scale

    def _next_scale(self) -> float:
        """How many quanta a gradient of one is. Where only leaves move gradients it stays the same for long."""
        largest = float(self._largest[0, self._outputs].max())
        bits = min(MOST_BITS, 38 - math.ceil(math.log2(max(2, self.n_rows))))
        if largest == 0.0:
            return 1.0
        if self._steady:
            return 2.0 ** (bits - 2 * math.ceil(math.log2(max(largest, sys.float_info.min)) / 2))
        return float((1 << bits) - 1) / largest

    def settle(self, values: Sequence[float]) -> list[float]:
        """Whole numbers of quanta, if only leaves move gradients, it saves time, and values hardly change by it."""
        quanta = [value * self._scale for value in values]
        is_fine = statistics.median(abs(q) for q in quanta) >= FEWEST_QUANTA
        self._settled = self._steady and self.n_rows >= FEWEST_ROWS and is_fine
        return [round(q) / self._scale for q in quanta] if self._settled else list(values)

    def moves(self) -> Mapping[int, int]:
        return {}

    def moved(self, moves: Mapping[int, int], features: np.ndarray) -> np.ndarray:
        sums: np.ndarray = self._ask("moved", moves, features)
        return sums

    def _begin(self, outputs: list[int], scale: float) -> NodeSums:
        sums: NodeSums = self._ask("begin", outputs, scale)
        return sums

    def histograms(self, nodes: Sequence[int], features: np.ndarray) -> np.ndarray:
        counted: np.ndarray = self._ask("histograms", list(nodes), features)
        return counted

    def apply(self, split: TreeSplit, ahead: Callable[[], Ahead] | None = None) -> None:
        self._tell("apply", split)

    def sums(self, node: int) -> NodeSums:
        found: NodeSums = self._ask("sums", node)
        return found

    def lacking(self, node: int, acquisitions: Sequence[int]) -> tuple[int, list[int]]:
        weight, *lacking = self._ask("lacking", node, list(acquisitions)).tolist()
        return weight, lacking

    def own(self, node: int, acquisitions: Sequence[int]) -> None:
        self._tell("own", node, list(acquisitions))

    def disown(self, nodes: Container[int] | None = None) -> None:
        self._tell("disown", nodes)

    def relabel(self, leaves: Mapping[int, Sequence[int]]) -> None:
        self._tell("relabel", leaves)

    def leaf_sums(self, leaves: Sequence[int]) -> np.ndarray:
        scales = np.array([[_fixed_point(v, self.n_rows) for v in self._largest[:, k]] for k in self._outputs])
        sums: np.ndarray = self._ask("leaf_sums", list(leaves), scales) / scales
        return sums

    def add(self, leaf: int, values: Sequence[float]) -> None:
        self._tell("add", leaf, list(values))


class LocalBackend(BackendOfRows):
    """All rows in this process's memory."""

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
        self._moves: dict[int, int] = {}
        self._y, self._loss, self._given = y, loss, () if weight is None else (weight,)
        self._subsample, self._seed = subsample, seed
        self.moves_roots = self._steady and self.n_rows >= FEWEST_ROWS and subsample == 1.0
        if weight is not None:
            self._unit = weight_unit(float(weight.max()), len(weight))
            self.weight = self.rows.weigh(self._unit)

    def _ask(self, what: str, *arguments: Any) -> Any:
        return getattr(self.rows, what)(*arguments)

    def start(self) -> np.ndarray:
        constant = self._loss.constant(self._y, *self._given)
        self.rows.start(constant)
        return constant

    def _begin(self, outputs: list[int], scale: float) -> NodeSums:
        self._moves = {}
        return super()._begin(outputs, scale)

    def add(self, leaf: int, values: Sequence[float]) -> None:
        super().add(leaf, values)
        if self._settled:
            self._moves[leaf] = round(values[0] * self._scale)

    def moves(self) -> Mapping[int, int]:
        is_all = self.moves_roots and self.rows.exact and self._scale == self._next_scale()
        return self._moves if self._moves and is_all else {}

    def resume(self, scores: np.ndarray, owned: Mapping[int, np.ndarray]) -> None:
        """Go on from an earlier fit: its scores, and which rows own each acquisition where rows pay for themselves."""
        self.rows.scores[:] = scores
        self.rows.owned = dict(owned)

    def loss(self) -> float:
        return self._loss.value(self._y, self.rows.scores, *self._given)


def check_row_count(n_rows: int) -> None:
    """Refuse more rows than can be counted."""
    if n_rows > kernels.COUNT_MASK:
        raise ValueError(f"At most {kernels.COUNT_MASK} rows fit the count lane, got {n_rows}.")


def weight_unit(largest: float, n_rows: int) -> float:
    """How many units a weight of one is, so that the sum of all is exact as a float too."""
    bits = min(30, 52 - math.ceil(math.log2(max(2, n_rows))))
    return ((1 << bits) - 1) / largest


def _fixed_point(largest: float, n_rows: int) -> float:
    """The power of two that turns values into integers whose sum over all rows still fits 62 bits."""
    if largest == 0.0:
        return 1.0
    return 2.0 ** (FIXED_BITS - math.ceil(math.log2(max(2, n_rows))) - math.frexp(largest)[1])

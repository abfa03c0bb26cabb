"""Some rows, or all of them: their bins, scores, gradients, and the node each is in.

Whatever is said about them is an integer, an exact sum, or a largest value: what the rows of several places say can be
joined without a trace of how they were parted. What depends on all rows (scales) is given.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np

from miserly.boosting._binned_traversal import traverse_binned
from miserly.boosting._binning import BinnedData, hashes
from miserly.boosting._exact import sums_of_mean
from miserly.boosting._losses import Loss, SummedLoss, is_steady
from miserly.boosting._nodes import NodeSums, TreeSplit
from miserly.kernels import histograms as kernels

Table = Mapping[str, np.ndarray]


class TrainingRows:
    """The rows from number `first` on.

    Rows that a round leaves out, and rows of weight zero, have a packed gradient of zero: they move with the others,
    so that their scores are known, but nothing counts them.
    """

    def __init__(
        self, data: BinnedData, y: np.ndarray, loss: Loss, weight: np.ndarray | None = None, first: int = 0
    ) -> None:
        self.data, self.n_rows, self._first = data, data.n_rows, first
        self._y, self._loss, self._given = y, loss, weight
        self.weights: np.ndarray | None = None
        self.scores = np.zeros((loss.n_outputs, self.n_rows))
        self.packed = np.empty(self.n_rows, np.int64)
        self._rows = np.empty(self.n_rows, np.uint32)
        self._spare = (np.empty(self.n_rows, np.uint32), np.empty(self.n_rows, np.int64))
        self.owned: dict[int, np.ndarray] = {}
        self._purchases: list[tuple[int, int, np.ndarray]] = []
        self._absent: np.ndarray | None = None
        self.exact = False

    def weigh(self, unit: float) -> int:
        """Weights as integers, none that is above zero lost; returns their sum."""
        assert self._given is not None
        whole = np.where(self._given > 0, np.maximum(1, np.rint(self._given * unit)), 0).astype(np.int64)
        self.weights = whole
        return int(whole.sum())

    def start(self, constant: np.ndarray) -> None:
        """All scores are the constant, and nothing is owned."""
        self.scores[:] = constant[:, None]
        self.owned = {}

    def constant_sums(self) -> np.ndarray:
        """What the best constant is made from: for each mean its exact sums."""
        assert isinstance(self._loss, SummedLoss)
        return np.array([sums_of_mean(values, self._given) for values in self._loss.averaged(self._y)], object)

    def loss_sums(self) -> np.ndarray:
        """What the mean loss is made from, as exact sums."""
        assert isinstance(self._loss, SummedLoss)
        return np.array(sums_of_mean(*self._loss.terms(self._y, self.scores, self._given)), object)

    def replay(self, constant: np.ndarray, trees: Sequence[tuple[int, Table]], needs: Sequence[Sequence[int]]) -> None:
        """The scores after some trees (output and table), and who owns what on the way if features need anything."""
        self.start(constant)
        for output, table in trees:
            for node, rows in traverse_binned(self.data, table):
                if table["left"][node] == node:
                    kernels.add_at(self.scores[output], rows, table["value"][node])
                elif needs:
                    for a in needs[table["feature"][node]]:
                        self.owned.setdefault(a, np.zeros(self.n_rows, bool))[rows] = True

    def gradients(self) -> np.ndarray:
        """Gradients of all outputs at the present scores; returns the largest of each, and of second derivatives."""
        self._gradient, self._hessian = self._loss.gradients(self._y, self.scores)
        if self._given is not None:
            self._gradient, self._hessian = self._gradient * self._given, self._hessian * self._given
        return np.array([np.abs(values).max(axis=1, initial=0.0) for values in (self._gradient, self._hessian)])

    def draw(self, seed: int, share: float) -> None:
        """Choose the rows that the round looks at, by a hash of their numbers."""
        h = hashes(self._first + 1, self._first + 1 + self.n_rows, seed)
        self._absent = (h >> np.uint64(11)) * 2.0**-53 >= share

    def begin(self, outputs: Sequence[int], scale: float) -> NodeSums:
        """Quantise some outputs' gradients and put all rows in node 0."""
        self._outputs = list(outputs)
        gradients = self._gradient[self._outputs]
        self.out = self._left_out()
        if is_steady(self._loss, self._given is not None):
            self.exact = kernels.pack_difference(np.ravel(self._y), self.scores[0], scale, self.packed)
        else:
            kernels.pack(gradients[0], scale, self.packed)
        if self.out is not None:
            self.packed[self.out] = 0
        self.lanes = self._other_lanes(gradients, scale)
        self._rows[:] = np.arange(self.n_rows, dtype=np.uint32)
        self._span = {0: (0, self.n_rows)}
        self._purchases.clear()
        if self.lanes is None:
            total, squares = kernels.sum_packed(self.packed)
            self._sums = {0: NodeSums((int(total),), int(squares))}
        else:
            self._sums = {0: self._sum_lanes(0)}
        return self._sums[0]

    def _left_out(self) -> np.ndarray | None:
        """The rows that this round does not look at, if there are any."""
        out = None if self.weights is None else self.weights == 0
        if self._absent is not None:
            out = self._absent if out is None else out | self._absent
        return out if out is not None and out.any() else None

    def _other_lanes(self, gradients: np.ndarray, scale: float) -> np.ndarray | None:
        """All lanes by row number, if there are more than one: further gradients, then weights."""
        weighted = self.weights is not None
        if len(gradients) == 1 and not weighted:
            return None
        lanes = np.empty((len(gradients) + weighted, self.n_rows), np.int64)
        lanes[0] = self.packed
        lanes[1 : len(gradients)] = np.rint(gradients[1:] * scale)
        if self.weights is not None:
            lanes[-1] = self.weights
        if self.out is not None:
            lanes[:, self.out] = 0
        return lanes

    def _sum_lanes(self, node: int) -> NodeSums:
        lanes = self.lanes
        assert lanes is not None
        sums = np.empty(len(lanes), np.int64)
        squares = kernels.sum_lanes(lanes, len(self._outputs), self._rows[slice(*self._span[node])], sums)
        return NodeSums(tuple(int(v) for v in sums), float(squares), self.weights is not None)

    def histograms(self, nodes: Sequence[int], features: np.ndarray) -> np.ndarray:
        """Sums by bin: node × lane × feature × 256."""
        lanes = 1 if self.lanes is None else len(self.lanes)
        out = np.empty((len(nodes), lanes, len(features), kernels.N_BINS), np.int64)
        for node, histogram in zip(nodes, out):
            first, last = self._span[node]
            rows, packed = self._rows[first:last], self.packed[first:last]
            if self.out is not None:
                rows, packed = rows[packed != 0], packed[packed != 0]
            for lane in range(lanes):
                values = packed if lane == 0 else self.lanes[lane][rows]  # type: ignore[index]
                if len(rows) == self.n_rows:
                    kernels.count_all(self.data.words, values, features, histogram[lane])
                else:
                    kernels.count_rows(self.data.words, rows, values, features, histogram[lane])
        return out

    def moved(self, moves: Mapping[int, int], features: np.ndarray) -> np.ndarray:
        """What is taken from the sums by bin if every row of some nodes loses so many quanta: feature × 256."""
        taken = np.zeros(self.n_rows, np.int64)
        for node, by in moves.items():
            taken[self._rows[slice(*self._span[node])]] = by << kernels.COUNT_BITS
        rows = np.flatnonzero(taken).astype(np.uint32)
        out = np.empty((len(features), kernels.N_BINS), np.int64)
        kernels.count_rows(self.data.words, rows, taken[rows], features, out)
        return out

    def apply(self, split: TreeSplit) -> None:
        """Partition a node's rows."""
        first, last = self._span.pop(split.node)
        n_left, total, squares = kernels.partition(
            self.data.words[split.feature // kernels.LANES],
            split.feature % kernels.LANES,
            self._rows[first:last],
            self.packed[first:last],
            split.cut,
            split.missing_right,
            *self._spare,
        )
        left, right = split.left, split.left + 1
        self._span |= {left: (first, first + n_left), right: (first + n_left, last)}
        whole = self._sums.pop(split.node)
        if self.lanes is None:
            self._sums[left] = NodeSums((int(total),), int(squares))
            self._sums[right] = NodeSums((whole.lanes[0] - int(total),), whole.squares - int(squares))
        else:
            self._sums |= {left: self._sum_lanes(left), right: self._sum_lanes(right)}

    def sums(self, node: int) -> NodeSums:
        """The sums of a node."""
        return self._sums[node]

    def lacking(self, node: int, acquisitions: Sequence[int]) -> np.ndarray:
        """The weight of a node's rows, then of those that do not own each of some acquisitions."""
        rows = self._rows[slice(*self._span[node])]
        weight = len(rows) if self.weights is None else int(self.weights[rows].sum())
        return np.array([weight, *(self._without(a, rows) if a in self.owned else weight for a in acquisitions)])

    def _without(self, acquisition: int, rows: np.ndarray) -> int:
        owned = self.owned[acquisition]
        if self.weights is None:
            return int(kernels.count_without(owned, rows))
        return int(kernels.weigh_without(owned, self.weights, rows))

    def own(self, node: int, acquisitions: Sequence[int]) -> None:
        """A node's rows own these acquisitions from now on."""
        rows = self._rows[slice(*self._span[node])]
        for a in acquisitions:
            owned = self.owned.setdefault(a, np.zeros(self.n_rows, bool))
            fresh = rows[~owned[rows]]
            owned[fresh] = True
            self._purchases.append((node, a, fresh))

    def disown(self, nodes: Container[int] | None) -> None:
        """Undo what was bought at these nodes of the tree, or at all of them."""
        for node, a, rows in self._purchases:
            if nodes is None or node in nodes:
                self.owned[a][rows] = False

    def relabel(self, leaves: Mapping[int, Sequence[int]]) -> None:
        """Leaves get new numbers; where several get one, their rows are joined."""
        spans = {new: [self._span[leaf] for leaf in old] for new, old in leaves.items()}
        self._span = {new: (min(a for a, _ in parts), max(b for _, b in parts)) for new, parts in spans.items()}

    def leaf_sums(self, leaves: Sequence[int], scales: np.ndarray) -> np.ndarray:
        """Fixed-point sums of gradient and second derivative over the counted rows of each leaf."""
        out = np.empty((len(leaves), len(self._outputs), 2), np.int64)
        rows = [self._counted(leaf) for leaf in leaves]
        for k, output in enumerate(self._outputs):
            for j, values in enumerate((self._gradient[output], self._hessian[output])):
                for i, those in enumerate(rows):
                    out[i, k, j] = kernels.fixed_sum(values, those, scales[k, j])
        return out

    def _counted(self, node: int) -> np.ndarray:
        """The rows of a node that this round looks at."""
        span = slice(*self._span[node])
        return self._rows[span] if self.out is None else self._rows[span][self.packed[span] != 0]

    def add(self, leaf: int, values: Sequence[float]) -> None:
        """Add a leaf's values to the scores of its rows."""
        for output, value in zip(self._outputs, values):
            kernels.add_at(self.scores[output], self._rows[slice(*self._span[leaf])], value)

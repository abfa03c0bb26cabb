"""Some rows, or all of them: their bins, scores, gradients, and the node each is in.

Whatever is said about them is an integer, an exact sum, or a largest value: what the rows of several places say can be
joined without a trace of how they were divided. What depends on all rows (scales) is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from miserly.boosting._binned_traversal import traverse_binned
from miserly.boosting._binning import BinnedData, hashes
from miserly.boosting._exact import sums_of_mean
from miserly.boosting._losses import Loss, SummedLoss, is_steady
from miserly.boosting._nodes import NodeSums, TreeSplit
from miserly.boosting._trees import Table
from miserly.kernels import histograms as kernels


class TrainingRows:
    """The rows from number `first` on.

    Rows that a round leaves out, and rows of weight zero, have a packed gradient of zero: they move with the others,
    so that their scores are known, but nothing counts them.
    """

    def __init__(
        self, data: BinnedData, y: np.ndarray, loss: Loss, weight: np.ndarray | None = None, first: int = 0
    ) -> None:
        self.data, self.n_rows, self._first = data, data.n_rows, first
        self.y, self._loss, self._given = y, loss, weight
        self.weights: np.ndarray | None = None
        self.scores = np.zeros((loss.n_outputs, self.n_rows))
        self.packed = np.empty(self.n_rows, np.int64)
        self.order = np.empty(self.n_rows, np.uint32)
        self.spare = (np.empty(self.n_rows, np.uint32), np.empty(self.n_rows, np.int64))
        self.owners = np.zeros((self.n_rows, 0), np.uint64)
        self.absent: np.ndarray | None = None
        self.exact = False
        self._has_gradients = False

    def weigh(self, unit: float) -> int:
        """Weights as integers, none that is above zero lost; returns their sum."""
        assert self._given is not None
        whole = np.where(self._given > 0, np.maximum(1, np.rint(self._given * unit)), 0).astype(np.int64)
        self.weights = whole
        return int(whole.sum())

    def start(self, constant: np.ndarray) -> None:
        """All scores are the constant, and nothing is owned."""
        self.scores[:] = constant[:, None]
        self.owners = np.zeros((self.n_rows, 0), np.uint64)
        self._has_gradients = False

    def constant_sums(self) -> np.ndarray:
        """What the best constant is made from: for each mean its exact sums."""
        assert isinstance(self._loss, SummedLoss)
        return np.array([sums_of_mean(values, self._given) for values in self._loss.averaged(self.y)], object)

    def loss_sums(self) -> np.ndarray:
        """What the mean loss is made from, as exact sums."""
        return np.array(sums_of_mean(*self.evaluate()), object)

    def replay(self, constant: np.ndarray, trees: Sequence[tuple[int, Table]], needs: Sequence[Sequence[int]]) -> None:
        """The scores after some trees (output and table), and who owns what on the way if features need anything."""
        self.start(constant)
        for output, table in trees:
            for node, rows in traverse_binned(self.data, table):
                if table["left"][node] == node:
                    kernels.add_at(self.scores[output], rows, table["value"][node])
                elif needs:
                    self._set_owners(rows, needs[table["feature"][node]])

    def evaluate(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The loss of each row (or query) and its weight; the gradients of the next round come with it."""
        assert isinstance(self._loss, SummedLoss)
        terms, weight, gradient, hessian = self._loss.evaluate(self.y, self.scores, self._given)
        self._set_gradients(gradient, hessian)
        self._has_gradients = True
        return terms, weight

    def resume(self, scores: np.ndarray, owners: np.ndarray | None = None) -> None:
        """Scores of an earlier fit, and what each row owns."""
        self.scores[:] = scores
        self.owners = np.zeros((self.n_rows, 0), np.uint64) if owners is None else owners
        self._has_gradients = False

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        """Gradients and hessians of all outputs at the present scores; those that came with the loss are used once."""
        if not self._has_gradients:
            self._set_gradients(*self._loss.gradients(self.y, self.scores))
        self._has_gradients = False
        return self.gradient, self.hessian

    def _set_gradients(self, gradient: np.ndarray, hessian: np.ndarray) -> None:
        if self._given is not None:
            gradient, hessian = gradient * self._given, hessian * self._given
        self.gradient = np.ascontiguousarray(gradient, np.float64)
        self.hessian = np.ascontiguousarray(hessian, np.float64)

    def largest(self) -> np.ndarray:
        """The largest gradient of each output, and the largest hessian."""
        return np.array([np.abs(values).max(axis=1, initial=0.0) for values in (self.gradient, self.hessian)])

    def draw(self, seed: int, share: float) -> None:
        """Choose the rows that the round looks at, by a hash of their numbers."""
        h = hashes(self._first + 1, self._first + 1 + self.n_rows, seed)
        self.absent = (h >> np.uint64(11)) * 2.0**-53 >= share

    def begin(self, outputs: Sequence[int], scale: float) -> NodeSums:
        """Quantise some outputs' gradients and put all rows in node 0."""
        self._outputs = list(outputs)
        gradients = self.gradient[self._outputs]
        self.out = self._left_out()
        if is_steady(self._loss, self._given is not None):
            self.exact = kernels.pack_differences(np.ravel(self.y), self.scores[0], scale, self.packed)
        else:
            kernels.pack_gradients(gradients[0], scale, self.packed)
        if self.out is not None:
            self.packed[self.out] = 0
        self.lanes = self._other_lanes(gradients, scale)
        self.order[:] = np.arange(self.n_rows, dtype=np.uint32)
        self._span = {0: (0, self.n_rows)}
        if self.lanes is None:
            total, squares = kernels.sum_all_packed(self.packed)
            self._sums = {0: NodeSums((int(total),), int(squares))}
        else:
            self._sums = {0: self._sum_lanes(0)}
        return self._sums[0]

    def _left_out(self) -> np.ndarray | None:
        """The rows that this round does not look at, if there are any."""
        out = None if self.weights is None else self.weights == 0
        if self.absent is not None:
            out = self.absent if out is None else out | self.absent
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
        squares = kernels.sum_lanes(lanes, len(self._outputs), self.order[slice(*self._span[node])], sums)
        return NodeSums(tuple(int(v) for v in sums), float(squares), self.weights is not None)

    def histograms(self, node: int, features: np.ndarray) -> np.ndarray:
        """Sums by bin of a node: lane × feature × 256."""
        n_lanes = 1 if self.lanes is None else len(self.lanes)
        out = np.empty((n_lanes, len(features), kernels.N_BINS), np.int64)
        first, last = self._span[node]
        rows, packed = self.order[first:last], self.packed[first:last]
        if self.out is not None:
            rows, packed = rows[packed != 0], packed[packed != 0]
        for lane, histogram in enumerate(out):
            values = packed if self.lanes is None or lane == 0 else self.lanes[lane][rows]
            if len(rows) == self.n_rows:
                kernels.count_all(self.data.words, values, features, histogram)
            else:
                kernels.count_rows(self.data.words, rows, values, features, histogram)
        return out

    def shifted(self, shifts: Mapping[int, int], features: np.ndarray) -> np.ndarray:
        """What is taken from the sums by bin if every row of some nodes loses this many quanta: feature × 256."""
        taken = np.zeros(self.n_rows, np.int64)
        for node, by in shifts.items():
            taken[self.order[slice(*self._span[node])]] = by << kernels.COUNT_BITS
        rows = np.flatnonzero(taken).astype(np.uint32)
        out = np.empty((len(features), kernels.N_BINS), np.int64)
        kernels.count_rows(self.data.words, rows, taken[rows], features, out)
        return out

    def apply(self, split: TreeSplit) -> None:
        """Partition a node's rows."""
        first, last = self._span[split.node]
        n_left, total, squares = kernels.partition_rows(
            self.data.words[split.feature // kernels.LANES],
            split.feature % kernels.LANES,
            self.order[first:last],
            self.packed[first:last],
            split.cut,
            split.missing_right,
            *self.spare,
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
        rows = self.order[slice(*self._span[node])]
        weights = None if self.weights is None else self.weights[rows]
        whole = len(rows) if weights is None else int(weights.sum())
        return np.array([whole, *(whole - self._owning(a, rows, weights) for a in acquisitions)])

    def _owning(self, acquisition: int, rows: np.ndarray, weights: np.ndarray | None) -> int:
        """The weight of those of some rows that own an acquisition."""
        owns = self.owns(rows, acquisition)
        return int(np.count_nonzero(owns)) if weights is None else int(weights[owns].sum())

    def in_node(self, node: int) -> np.ndarray:
        """The rows of a node."""
        return self.order[slice(*self._span[node])]

    def owns(self, rows: np.ndarray, acquisition: int) -> np.ndarray:
        """Which of some rows own an acquisition."""
        word, bit = acquisition // 64, np.uint64(1 << acquisition % 64)
        if word >= self.owners.shape[1]:
            return np.zeros(len(rows), bool)
        return np.asarray((self.owners[rows, word] & bit) != 0)

    def own(self, purchases: Sequence[tuple[int, Sequence[int]]]) -> None:
        """The rows of some nodes own some acquisitions from now on."""
        for node, acquisitions in purchases:
            self._set_owners(self.order[slice(*self._span[node])], acquisitions)

    def _set_owners(self, rows: np.ndarray, acquisitions: Sequence[int]) -> None:
        n_words = max(acquisitions, default=-1) // 64 + 1
        if n_words > self.owners.shape[1]:
            more = np.zeros((self.n_rows, n_words - self.owners.shape[1]), np.uint64)
            self.owners = np.concatenate([self.owners, more], axis=1)
        for a in acquisitions:
            self.owners[rows, a // 64] |= np.uint64(1 << a % 64)

    def renumber(self, kept: Mapping[int, int]) -> None:
        """Some nodes, inner ones too, get new numbers; the others are forgotten."""
        self._span = {new: self._span[old] for old, new in kept.items()}

    def leaf_sums(self, leaves: Sequence[int], scales: np.ndarray) -> np.ndarray:
        """Fixed-point sums of gradient and second derivative over the counted rows of each leaf."""
        out = np.empty((len(leaves), len(self._outputs), 2), np.int64)
        rows = [self._counted(leaf) for leaf in leaves]
        for k, output in enumerate(self._outputs):
            for j, values in enumerate((self.gradient[output], self.hessian[output])):
                for i, those in enumerate(rows):
                    out[i, k, j] = kernels.fixed_sum(values, those, scales[k, j])
        return out

    def _counted(self, node: int) -> np.ndarray:
        """The rows of a node that this round looks at."""
        span = slice(*self._span[node])
        return self.order[span] if self.out is None else self.order[span][self.packed[span] != 0]

    def add(self, leaf: int, values: Sequence[float]) -> None:
        """Add a leaf's values to the scores of its rows."""
        self._has_gradients = False
        for output, value in zip(self._outputs, values):
            kernels.add_at(self.scores[output], self.order[slice(*self._span[leaf])], value)

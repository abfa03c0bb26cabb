"""Boosted trees on states: sums of trees with several outputs, grown without any price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from miserly._typing import Array, Floats
from miserly.boosting import BinnedData, LocalBackend, Loss, ModelPricing, Round, Settings, TreeLimits, boost
from miserly.costs import CostTable
from miserly.kernels import trees as kernels
from miserly.plan import Node, Trees, stack_trees

TreeArrays = dict[str, Array]
PATIENCE = 25  # rounds without a lower loss on held-out rows


@dataclass(frozen=True)
class Forest:
    """Trees, which output each adds to, and the constant of each output."""

    tables: tuple[TreeArrays, ...]
    outputs: tuple[int, ...]
    constant: Floats
    ends: tuple[int, ...] = ()  # how many trees there are after each round

    @cached_property
    def trees(self) -> Trees:
        return stack_trees(self.tables)

    def scores(self, X: Floats) -> Floats:
        """Rows × outputs."""
        scores = np.tile(self.constant, (len(X), 1))
        self.add(X, scores, 0, len(self.tables))
        return scores

    def add(self, X: Floats, scores: Floats, first: int, end: int) -> None:
        """Add some of the trees to the scores of all rows."""
        if end > first:
            n, keep = end - first, np.full(len(self.tables), -1, np.int32)
            edges = (np.arange(n + 1, dtype=np.int32), np.array(self.outputs[first:end], np.int32), np.ones(n))
            kept = (keep, np.zeros((1, 1)), np.zeros((1, 1), np.bool_))
            learners, rows = np.arange(first, end, dtype=np.int32), np.arange(len(X))
            kernels.add_trees(X, rows, self.trees.table, self.trees.used, learners, *edges, *kept, scores)

    def up_to(self, n_rounds: int) -> Forest:
        """The first rounds only."""
        end = self.ends[n_rounds - 1] if n_rounds else 0
        return Forest(self.tables[:end], self.outputs[:end], self.constant, self.ends[:n_rounds])

    def node(self) -> tuple[Node, ...]:
        """The sum as the one node of a plan."""
        weights = np.zeros((len(self.tables), len(self.constant)))
        weights[np.arange(len(self.tables)), list(self.outputs)] = 1.0
        learners = np.arange(len(self.tables), dtype=np.int32)
        return (Node(learners, weights, np.zeros(len(self.constant)), tuple(range(len(self.constant)))),)


@dataclass(frozen=True)
class Growth:
    """How a forest is grown."""

    n_estimators: int
    learning_rate: float
    max_leaf_nodes: int
    min_samples_leaf: int
    l2: float = 1.0

    def grow(
        self,
        data: BinnedData,
        y: Floats,
        loss: Loss,
        weight: Floats | None = None,
        watch: Callable[[Round, Floats], bool] | None = None,
    ) -> Forest:
        """Boost trees for the loss; `watch` sees each round and may end it."""
        limits = TreeLimits(None, self.max_leaf_nodes, self.min_samples_leaf)
        settings = Settings(self.n_estimators, self.learning_rate, limits, l2=self.l2)
        nothing = CostTable.uniform(0.0).bind(data.n_features)
        backend = LocalBackend(data, y, loss, weight)
        boosted = boost(backend, ModelPricing(nothing, 0.0), settings, loss.n_outputs, watch)
        tables = [table for this in boosted.rounds for table in this.tables]
        outputs = [output for this in boosted.rounds for output in this.outputs]
        ends = np.cumsum([len(this.outputs) for this in boosted.rounds]).tolist()
        return Forest(tuple(tables), tuple(outputs), boosted.constant, tuple(ends))


class HeldOut:
    """Follows the loss of rows that are not trained on; ends boosting when it has not fallen for some rounds."""

    def __init__(self, X: Floats, y: Floats, loss: Loss) -> None:
        self._X, self._y, self._loss = X, y, loss
        self._scores: Floats | None = None
        self.losses: list[float] = []

    def __call__(self, this: Round, constant: Floats) -> bool:
        if self._scores is None:
            self._scores = np.tile(constant, (len(self._X), 1))
        forest = Forest(this.tables, this.outputs, constant)
        forest.add(self._X, self._scores, 0, len(this.tables))
        self.losses.append(self._loss.value(self._y, np.ascontiguousarray(self._scores.T)))
        return len(self.losses) - int(np.argmin(self.losses)) > PATIENCE


def side_by_side(forests: Sequence[Forest]) -> Forest:
    """Forests of one output each as one of several."""
    tables = [table for forest in forests for table in forest.tables]
    outputs = [k for k, forest in enumerate(forests) for _ in forest.tables]
    constant = np.array([forest.constant[0] for forest in forests], np.float64)
    return Forest(tuple(tables), tuple(outputs), constant)

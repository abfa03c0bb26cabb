"""Scores of rows that boosting does not see, round by round, and what they say about going on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from miserly.boosting import BinnedDataset, Boosted, Round, traverse_binned
from miserly.estimators._base import dense_blocks
from miserly.kernels.trees import add_tree
from miserly.plan import stack_trees

FEW_ROWS = 4096  # up to this many, a walk row by row is over before the trees are stacked for blocks of rows
COLUMNS = ("feature", "threshold", "left", "missing_right", "value")


class Validation:
    """Follows a figure on validation data (lower is better) and says when it has not fallen for `patience` rounds."""

    def __init__(
        self, X: Any, y: np.ndarray, measure: Callable[[np.ndarray], float], patience: int | None = None
    ) -> None:
        self.y, self._measure, self._patience = y, measure, patience
        self._binned = X.data if isinstance(X, BinnedDataset) else None
        blocks = dense_blocks(X) if self._binned is None else ()
        self._blocks = [(rows, np.ascontiguousarray(block)) for rows, block in blocks]
        self._scores: np.ndarray | None = None
        self.losses: list[float] = []
        self.best = 0

    def __call__(self, this: Round, constant: np.ndarray) -> bool:
        if self._scores is None:
            self._scores = self._start(constant)
        self._add(this, self._scores)
        self.losses.append(self._measure(self._scores))
        if self.losses[-1] <= min(self.losses):
            self.best = len(self.losses)
        return self._patience is not None and len(self.losses) - self.best >= self._patience

    def scores_after(self, boosted: Boosted) -> np.ndarray:
        """The scores of all rows after all rounds: output × row."""
        scores = self._start(boosted.constant)
        for this in boosted.rounds:
            self._add(this, scores)
        return scores

    def _start(self, constant: np.ndarray) -> np.ndarray:
        return np.repeat(constant[:, None], len(self.y), axis=1)

    def _add(self, this: Round, scores: np.ndarray) -> None:
        for rows, block in self._blocks:
            add_round(this, block, scores[:, rows])
        if self._binned is not None:
            for output, table in zip(this.outputs, this.tables):
                for node, reached in traverse_binned(self._binned, table):
                    if table["left"][node] == node:
                        scores[output, reached] += table["value"][node]


def add_round(this: Round, X: np.ndarray, scores: np.ndarray) -> None:
    """Add a round's trees to the scores (output × row) of some rows."""
    if len(X) <= FEW_ROWS:
        for output, table in zip(this.outputs, this.tables):
            feature, threshold, left, missing_right, value = (table[name] for name in COLUMNS)
            add_tree(X, feature, threshold, left, missing_right, value, scores[output])
        return
    trees = stack_trees(this.tables)
    for t, output in enumerate(this.outputs):
        scores[output] += trees.evaluate(X, t)

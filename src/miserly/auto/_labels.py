"""Labels that believe the best model in part: on few rows, figures of candidates differ by luck more than by worth.

One row that a candidate gets wrong says little about the others like it; the probabilities of the best model say more,
but may be biased. Half of each label is replaced by them at `AS_MANY` rows, more on fewer rows, less on more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from miserly._typing import Floats
from miserly.auto._task import LEAST_PROBABILITY, Rows, Task
from miserly.plan import least_expected

AS_MANY = 2000  # rows whose luck weighs as much as the bias of the best model


@dataclass(frozen=True, eq=False)
class SoftLabels:
    """The labels of some rows and the out-of-fold predictions of the best model for them (rows × columns); `mistakes`
    as in `Rows`."""

    task: Task
    y: Floats
    teacher: Floats
    mistakes: Floats | None = None

    @property
    def believed(self) -> float:
        """The share of a label that the best model decides."""
        if self.task.train.logged is not None:  # the best model has not seen what was not logged
            return 0.0
        return AS_MANY / (AS_MANY + len(self.y))

    @cached_property
    def expected(self) -> Floats:
        """The share of each class in each row, or the expected number."""
        believed = self.believed
        if not self.task.n_classes:
            return (1.0 - believed) * self.y + believed * self.teacher[:, 0]
        shares = believed * self.teacher
        shares[np.arange(len(self.y)), self.y.astype(np.intp)] += 1.0 - believed
        return shares

    def row_loss(self, output: Floats, kind: str) -> Floats:
        """The expected loss of each row: 0/1 errors, what mistakes cost, log loss, or squared errors."""
        if not self.task.n_classes:
            return np.square(output[:, 0] - self.expected)
        if kind == "log":
            return -(self.expected * np.log(np.clip(output, LEAST_PROBABILITY, 1.0))).sum(axis=1)
        if kind == "mistakes":
            assert self.task.error_costs is not None
            predicted = least_expected(output, self.task.error_costs)
            of_class = self.task.error_costs[:, predicted].T
            if self.mistakes is None:
                return (self.expected * of_class).sum(axis=1)
            own = self.mistakes[np.arange(len(output)), predicted]
            return (1.0 - self.believed) * own + self.believed * (self.teacher * of_class).sum(axis=1)
        return 1.0 - self.expected[np.arange(len(output)), output.argmax(axis=1)]

    def quality(self, output: Floats) -> float | None:
        """The metric (higher is better) as these labels have it; None for metrics that need labels as they are.

        It is moved so that the best model has the figure that its own mistakes give it.
        """
        soft = self._soft_quality(output)
        return None if soft is None else soft + self._moved

    @cached_property
    def _moved(self) -> float:
        soft = self._soft_quality(self.teacher)
        assert soft is not None
        rows = Rows(np.zeros((len(self.y), 0)), self.y, mistakes=self.mistakes)
        return self.task.quality(rows, self.teacher) - soft

    def _soft_quality(self, output: Floats) -> float | None:
        name = self.task.metric.name
        if name == "auc":
            return None if self.task.n_classes != 2 else soft_auc(self.expected[:, 1], output[:, 1])
        kind = {"accuracy": "error", "logloss": "log", "mistakes": "mistakes", "mse": "squared"}.get(name)
        return None if kind is None else -float(self.row_loss(output, kind).mean())


def soft_auc(shares: Floats, score: Floats) -> float:
    """The area under the ROC curve where a row is positive to some share, and negative to the rest."""
    _, place = np.unique(score, return_inverse=True)
    positive, negative = np.bincount(place, shares), np.bincount(place, 1.0 - shares)
    below = np.cumsum(negative) - negative
    return float((positive * (below + negative / 2)).sum() / max(positive.sum() * negative.sum(), 1e-300))

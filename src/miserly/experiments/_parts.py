"""Data as the papers' protocols see them: parts that share no row, how often a row counts, and what is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from miserly.costs import CostTable
from miserly.metrics import Metric

RELEVANT, COPIES = 3, 10


class DataPart(NamedTuple):
    """Rows of one purpose. `copies` says how often a row counts: in the loss, in the metric and in the mean cost."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray | None = None
    copies: np.ndarray | None = None


class DataSplit(NamedTuple):
    """Three parts that share no row (no query)."""

    train: DataPart
    validation: DataPart
    test: DataPart


@dataclass(frozen=True)
class LearningProblem:
    """One split of a data set, read when it is first asked for.

    `stand_in` says in place of what it is used, if it is not what the paper had; `is_real` tells measured data from
    drawn ones. `overlap` is rows in test / rows not in test where splits of one data set overlap. `most_trees` and
    `most_levels` bound boosting and trees of classifiers where the papers' sizes would be far too many for the rows.
    """

    name: str
    split_number: int
    metric: Metric
    costs: CostTable
    read: Callable[[], DataSplit]
    stand_in: str = ""
    is_real: bool = True
    overlap: float = 0.0
    tiers: tuple[float, ...] | None = None
    min_samples_leaf: int = 20
    most_trees: int | None = None
    most_levels: int | None = None

    @property
    def key(self) -> str:
        """Names the split among all that are kept."""
        return f"{self.name} #{self.split_number}"

    @cached_property
    def split(self) -> DataSplit:
        """The rows."""
        return self.read()

    @property
    def is_ranking(self) -> bool:
        """Whether rows are documents of queries."""
        return self.metric.grouped

    @property
    def is_graded(self) -> bool:
        """Whether documents have more than two grades."""
        return self.metric.name.startswith("ndcg")


def graded(part: DataPart) -> DataPart:
    """Greedy Miser's protocol: grades as they are, documents of grade 0 ten times."""
    return part._replace(copies=np.where(part.y == 0, COPIES, 1))


def binary(part: DataPart, least: float = RELEVANT) -> DataPart:
    """The protocol of Cronus, CSCC and AFR: relevant or not, and the irrelevant ten times, in the test data too."""
    relevant = part.y >= least
    return part._replace(y=relevant.astype(np.float64), copies=np.where(relevant, 1, COPIES))

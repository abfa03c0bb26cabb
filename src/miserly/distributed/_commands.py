"""What the client asks of the rows of all workers. A command says how rows carry it out and how two replies are joined.

Replies are integers, exact sums or largest values, so that they do not depend on how rows are divided among workers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from miserly.boosting import NodeSums, Table, TrainingRows, TreeSplit


class Command(ABC):
    """Something that all rows do; by default the reply is the sum of theirs."""

    @abstractmethod
    def run(self, rows: TrainingRows) -> Any:
        """The reply of the rows of one partition."""

    def join(self, one: Any, other: Any) -> Any:
        """The reply of two parts of the rows."""
        return one + other

    def join_all(self, replies: Sequence[Any]) -> Any:
        """The reply of several parts."""
        return reduce(self.join, replies)


class Order(Command):
    """A command without a reply."""

    def join(self, one: None, other: None) -> None:
        return None


@dataclass(frozen=True)
class Weigh(Command):
    """Weights as integers; replies with their sum."""

    unit: float

    def run(self, rows: TrainingRows) -> int:
        return rows.weigh(self.unit)


@dataclass(frozen=True)
class SumForConstant(Command):
    """What the best constant is made from."""

    def run(self, rows: TrainingRows) -> np.ndarray:
        return rows.constant_sums()


@dataclass(frozen=True)
class Start(Order):
    """All scores are a constant."""

    constant: np.ndarray

    def run(self, rows: TrainingRows) -> None:
        rows.start(self.constant)


@dataclass(frozen=True)
class Replay(Order):
    """Scores after some trees."""

    constant: np.ndarray
    trees: list[tuple[int, Table]]
    needs: Sequence[Sequence[int]]

    def run(self, rows: TrainingRows) -> None:
        rows.replay(self.constant, self.trees, self.needs)


@dataclass(frozen=True)
class SumLoss(Command):
    """What the mean loss is made from."""

    def run(self, rows: TrainingRows) -> np.ndarray:
        return rows.loss_sums()


@dataclass(frozen=True)
class ComputeGradients(Command):
    """Gradients at the present scores; replies with the largest of each output."""

    def run(self, rows: TrainingRows) -> np.ndarray:
        rows.gradients()
        return rows.largest()

    def join(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.maximum(one, other)


@dataclass(frozen=True)
class Draw(Order):
    """Choose the rows of a round."""

    seed: int
    share: float

    def run(self, rows: TrainingRows) -> None:
        rows.draw(self.seed, self.share)


@dataclass(frozen=True)
class Begin(Command):
    """Quantise gradients and put all rows in node 0; replies with its sums."""

    outputs: list[int]
    scale: float

    def run(self, rows: TrainingRows) -> NodeSums:
        return rows.begin(self.outputs, self.scale)


@dataclass(frozen=True)
class CountHistograms(Command):
    """Sums by bin of a node."""

    node: int
    features: np.ndarray

    def run(self, rows: TrainingRows) -> np.ndarray:
        return rows.histograms(self.node, self.features)


@dataclass(frozen=True)
class ApplySplit(Order):
    """Partition a node's rows."""

    split: TreeSplit

    def run(self, rows: TrainingRows) -> None:
        rows.apply(self.split)


@dataclass(frozen=True)
class SumNode(Command):
    """The sums of a node."""

    node: int

    def run(self, rows: TrainingRows) -> NodeSums:
        return rows.sums(self.node)


@dataclass(frozen=True)
class CountLacking(Command):
    """The weight of a node's rows, and of those that lack each of some acquisitions."""

    node: int
    acquisitions: list[int]

    def run(self, rows: TrainingRows) -> np.ndarray:
        return rows.lacking(self.node, self.acquisitions)


@dataclass(frozen=True)
class Own(Order):
    """Rows of some nodes own some acquisitions."""

    purchases: list[tuple[int, Sequence[int]]]

    def run(self, rows: TrainingRows) -> None:
        rows.own(self.purchases)


@dataclass(frozen=True)
class Renumber(Order):
    """Nodes that stay get new numbers."""

    kept: Mapping[int, int]

    def run(self, rows: TrainingRows) -> None:
        rows.renumber(self.kept)


@dataclass(frozen=True)
class SumLeaves(Command):
    """Fixed-point sums of gradient and hessian over the rows of each leaf."""

    leaves: list[int]
    scales: np.ndarray

    def run(self, rows: TrainingRows) -> np.ndarray:
        return rows.leaf_sums(self.leaves, self.scales)


@dataclass(frozen=True)
class AddLeaf(Order):
    """Add a leaf's values to the scores of its rows."""

    leaf: int
    values: list[float]

    def run(self, rows: TrainingRows) -> None:
        rows.add(self.leaf, self.values)

"""What an estimator predicts: how labels become numbers, how scores become predictions, and what measures them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from miserly._typing import Floats
from miserly.metrics import Metric
from miserly.plan import labels, probabilities
from miserly.solvers import discriminant, platt

Link = Literal["identity", "logistic", "softmax"]


@dataclass(frozen=True)
class Reading:
    """How raw scores become what the plan's link reads: scores @ matrix + offset; `prior` if nothing is known."""

    link: Link
    matrix: Floats
    offset: Floats
    prior: Floats


class Target(ABC):
    """The kind of label: numbers or classes."""

    numeric: bool
    default_metric: str
    classes: np.ndarray | None

    @abstractmethod
    def encode(self, y: np.ndarray) -> Floats:
        """What is fitted, row × output."""

    @abstractmethod
    def decode(self, targets: Floats) -> np.ndarray:
        """The labels again."""

    @abstractmethod
    def unit(self, targets: Floats, share: Floats) -> tuple[float, float]:
        """Mean and standard deviation of numbers under row weights that add up to one; 0 and 1 for classes."""

    @abstractmethod
    def read(self, scores: Floats, targets: Floats, counts: Floats) -> Reading:
        """How the scores of the training rows, which count as `counts`, are to be read."""

    @abstractmethod
    def outputs(self, metric: Metric, z: Floats, link: Link) -> Any:
        """What a metric looks at, from what the plan's link reads."""

    def measure(self, metric: Metric, y: np.ndarray, scores: Floats, reading: Reading, qid: Any = None) -> float:
        """A metric of raw scores; the larger, the better."""
        z = scores @ reading.matrix + reading.offset
        figure = metric(y, self.outputs(metric, z, reading.link), qid=qid, classes=self.classes)
        return figure if metric.greater_is_better else -figure


class NumberTarget(Target):
    """Labels that are numbers."""

    numeric, default_metric, classes = True, "mse", None

    def encode(self, y: np.ndarray) -> Floats:
        return y.astype(np.float64)[:, None]

    def decode(self, targets: Floats) -> np.ndarray:
        return targets[:, 0]

    def unit(self, targets: Floats, share: Floats) -> tuple[float, float]:
        mean = float(share @ targets[:, 0])
        return mean, float(np.sqrt(share @ (targets[:, 0] - mean) ** 2)) or 1.0

    def read(self, scores: Floats, targets: Floats, counts: Floats) -> Reading:
        """Scores are the predictions."""
        return Reading("identity", np.eye(1), np.zeros(1), counts @ targets / counts.sum())

    def outputs(self, metric: Metric, z: Floats, link: Link) -> Any:
        return z[:, 0]


class ClassTarget(Target):
    """Labels that are classes: ±1 for each against the rest; for two, one column, +1 for the second."""

    numeric, default_metric = False, "accuracy"
    classes: np.ndarray

    def __init__(self, classes: np.ndarray) -> None:
        self.classes = classes

    def encode(self, y: np.ndarray) -> Floats:
        against = self.classes[1:] if len(self.classes) == 2 else self.classes
        return np.where(y[:, None] == against, 1.0, -1.0)

    def decode(self, targets: Floats) -> np.ndarray:
        codes = (targets[:, 0] > 0).astype(np.intp) if targets.shape[1] == 1 else targets.argmax(axis=1)
        return self.classes[codes]

    def unit(self, targets: Floats, share: Floats) -> tuple[float, float]:
        return 0.0, 1.0

    def read(self, scores: Floats, targets: Floats, counts: Floats) -> Reading:
        """Two classes by Platt's scaling, several by discriminant analysis of the scores."""
        member, total = targets > 0, float(counts.sum())
        of_class = counts @ member
        if targets.shape[1] == 1:
            scale, shift = platt(scores[:, 0], member[:, 0], counts)
            prior = np.log((of_class + 1.0) / (total - of_class + 1.0))
            return Reading("logistic", np.array([[scale]]), np.array([shift]), prior)
        matrix, offset = discriminant(scores, member, counts)
        return Reading("softmax", matrix, offset, np.log((of_class + 1.0) / (total + len(of_class))))

    def outputs(self, metric: Metric, z: Floats, link: Link) -> Any:
        if metric.input == "proba":
            return probabilities(link, z, len(self.classes))
        if metric.input == "value":
            return labels(link, z, self.classes)
        return z if z.shape[1] > 1 else z[:, 0]

"""What boosting minimises. A loss of your own needs the three methods of `Loss`."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from miserly.boosting._exact import mean
from miserly.kernels import links as kernels

Weight = np.ndarray | None


class Loss(Protocol):
    """Mean loss over rows; scores and gradients are output × row, one tree per output and round.

    `constant` and `value` are given `weight` only where rows have weights; gradients are weighted by the caller.
    """

    n_outputs: int

    def constant(self, y: np.ndarray, weight: Weight = None) -> np.ndarray:
        """The best constant score of each output."""

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Negative gradient and (diagonal) second derivative of each row's loss."""

    def value(self, y: np.ndarray, score: np.ndarray, weight: Weight = None) -> float:
        """Mean loss."""


class SummedLoss:
    """A loss that is made from sums, so that it can be had from rows in several places.

    Its best constant is made from the means of what `averaged` gives, its value is the mean of its `terms`.
    """

    n_outputs = 1

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Negative gradient and second derivative of each row's loss."""
        raise NotImplementedError

    def averaged(self, y: np.ndarray) -> list[np.ndarray]:
        """The numbers of each row whose means the constant is made from."""
        raise NotImplementedError

    def constant_of(self, means: list[float], n_rows: int) -> np.ndarray:
        """The best constant score of each output."""
        return np.array(means)

    def terms(self, y: np.ndarray, score: np.ndarray, weight: Weight = None) -> tuple[np.ndarray, Weight]:
        """The loss of each row, and its weight."""
        raise NotImplementedError

    def evaluate(
        self, y: np.ndarray, score: np.ndarray, weight: Weight = None
    ) -> tuple[np.ndarray, Weight, np.ndarray, np.ndarray]:
        """`terms` and `gradients` at once: a round needs both at the same scores."""
        return *self.terms(y, score, weight), *self.gradients(y, score)

    def on(self, qid: np.ndarray | None) -> SummedLoss:
        """The same loss for other rows."""
        return self

    def constant(self, y: np.ndarray, weight: Weight = None) -> np.ndarray:
        return self.constant_of([mean(values, weight) for values in self.averaged(y)], len(y))

    def value(self, y: np.ndarray, score: np.ndarray, weight: Weight = None) -> float:
        return mean(*self.terms(y, score, weight))


class SquaredLoss(SummedLoss):
    """½(y − f)², of one column or, summed, of several (output × row)."""

    def __init__(self, n_outputs: int = 1) -> None:
        self.n_outputs = n_outputs

    def averaged(self, y: np.ndarray) -> list[np.ndarray]:
        return list(np.atleast_2d(y))

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return y - score, np.ones_like(score)

    def terms(self, y: np.ndarray, score: np.ndarray, weight: Weight = None) -> tuple[np.ndarray, Weight]:
        return 0.5 * ((y - score) ** 2).sum(axis=0), weight


def is_steady(loss: Loss, weighted: bool) -> bool:
    """Whether a row's gradient falls by just what its score rises, so that leaves are all that moves gradients."""
    return isinstance(loss, SquaredLoss) and loss.n_outputs == 1 and not weighted


class LogLoss(SummedLoss):
    """log(1 + exp(−±f)), y in {0, 1}."""

    def averaged(self, y: np.ndarray) -> list[np.ndarray]:
        return [y > 0]

    def constant_of(self, means: list[float], n_rows: int) -> np.ndarray:
        half_a_row = 0.5 / n_rows
        positive = min(max(means[0], half_a_row), 1.0 - half_a_row)
        return np.array([math.log(positive / (1.0 - positive))])

    def evaluate(
        self, y: np.ndarray, score: np.ndarray, weight: Weight = None
    ) -> tuple[np.ndarray, Weight, np.ndarray, np.ndarray]:
        terms, gradient, hessian = np.empty(len(y)), np.empty_like(score), np.empty_like(score)
        kernels.logistic_loss(y, score, terms, gradient, hessian)
        return terms, weight, gradient, hessian

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.evaluate(y, score)[2:]

    def terms(self, y: np.ndarray, score: np.ndarray, weight: Weight = None) -> tuple[np.ndarray, Weight]:
        return self.evaluate(y, score, weight)[:2]


class SoftmaxLoss(SummedLoss):
    """Multi-class log-loss, y in 0 … K−1."""

    def __init__(self, n_classes: int) -> None:
        self.n_outputs = n_classes

    def averaged(self, y: np.ndarray) -> list[np.ndarray]:
        return [y == k for k in range(self.n_outputs)]

    def constant_of(self, means: list[float], n_rows: int) -> np.ndarray:
        return np.log(np.maximum(means, 1e-12))

    def evaluate(
        self, y: np.ndarray, score: np.ndarray, weight: Weight = None
    ) -> tuple[np.ndarray, Weight, np.ndarray, np.ndarray]:
        terms, gradient, hessian = np.empty(len(y)), np.empty_like(score), np.empty_like(score)
        kernels.softmax_loss(y, score, terms, gradient, hessian)
        return terms, weight, gradient, hessian

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.evaluate(y, score)[2:]

    def terms(self, y: np.ndarray, score: np.ndarray, weight: Weight = None) -> tuple[np.ndarray, Weight]:
        return self.evaluate(y, score, weight)[:2]


class SquaredHingeLoss(SummedLoss):
    """½max(0, 1 − sf)², s = ±1: for y in {0, 1}, or of each class against the rest, summed, for y in 0 … K−1."""

    def __init__(self, n_classes: int = 2) -> None:
        self.n_outputs = 1 if n_classes == 2 else n_classes

    def averaged(self, y: np.ndarray) -> list[np.ndarray]:
        return list(self._signs(y))

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sign = self._signs(y)
        slack = np.maximum(0.0, 1.0 - sign * score)
        return sign * slack, (slack > 0).astype(np.float64)

    def terms(self, y: np.ndarray, score: np.ndarray, weight: Weight = None) -> tuple[np.ndarray, Weight]:
        slack = np.maximum(0.0, 1.0 - self._signs(y) * score)
        return 0.5 * (slack**2).sum(axis=0), weight

    def _signs(self, y: np.ndarray) -> np.ndarray:
        positive = [1] if self.n_outputs == 1 else range(self.n_outputs)
        return np.array([np.where(y == k, 1.0, -1.0) for k in positive])

"""What boosting minimises. A loss of your own needs the three methods of `Loss`."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

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


class SquaredLoss:
    """½(y − f)²."""

    n_outputs = 1

    def constant(self, y: np.ndarray, weight: Weight = None) -> np.ndarray:
        return np.array([_mean(y, weight)])

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return y - score, np.ones_like(score)

    def value(self, y: np.ndarray, score: np.ndarray, weight: Weight = None) -> float:
        return 0.5 * float(np.average((y - score[0]) ** 2, weights=weight))


class LogLoss:
    """log(1 + exp(−±f)), y in {0, 1}."""

    n_outputs = 1

    def constant(self, y: np.ndarray, weight: Weight = None) -> np.ndarray:
        half_a_row = 0.5 / len(y)
        positive = min(max(_mean(y > 0, weight), half_a_row), 1.0 - half_a_row)
        return np.array([math.log(positive / (1.0 - positive))])

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient, hessian = np.empty_like(score), np.empty_like(score)
        kernels.logistic_gradients(y, score[0], gradient[0], hessian[0])
        return gradient, hessian

    def value(self, y: np.ndarray, score: np.ndarray, weight: Weight = None) -> float:
        out = np.empty(len(y))
        kernels.logistic_losses(y, score[0], out)
        return float(np.average(out, weights=weight))


class SoftmaxLoss:
    """Multi-class log-loss, y in 0 … K−1."""

    def __init__(self, n_classes: int) -> None:
        self.n_outputs = n_classes

    def constant(self, y: np.ndarray, weight: Weight = None) -> np.ndarray:
        return np.log(np.maximum([_mean(y == k, weight) for k in range(self.n_outputs)], 1e-12))

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient, hessian = np.empty_like(score), np.empty_like(score)
        kernels.softmax_gradients(y.astype(np.intp), score, gradient, hessian)
        return gradient, hessian

    def value(self, y: np.ndarray, score: np.ndarray, weight: Weight = None) -> float:
        out = np.empty(len(y))
        kernels.softmax_losses(y.astype(np.intp), score, out)
        return float(np.average(out, weights=weight))


class SquaredHingeLoss:
    """½max(0, 1 − sf)², s = ±1: for y in {0, 1}, or of each class against the rest, summed, for y in 0 … K−1."""

    def __init__(self, n_classes: int = 2) -> None:
        self.n_outputs = 1 if n_classes == 2 else n_classes

    def constant(self, y: np.ndarray, weight: Weight = None) -> np.ndarray:
        return np.array([_mean(sign, weight) for sign in self._signs(y)])

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sign = self._signs(y)
        slack = np.maximum(0.0, 1.0 - sign * score)
        return sign * slack, (slack > 0).astype(np.float64)

    def value(self, y: np.ndarray, score: np.ndarray, weight: Weight = None) -> float:
        slack = np.maximum(0.0, 1.0 - self._signs(y) * score)
        return 0.5 * float(np.average((slack**2).sum(axis=0), weights=weight))

    def _signs(self, y: np.ndarray) -> np.ndarray:
        positive = [1] if self.n_outputs == 1 else range(self.n_outputs)
        return np.array([np.where(y == k, 1.0, -1.0) for k in positive])


def _mean(values: np.ndarray, weight: Weight) -> float:
    """A mean whose bits do not depend on the order of the rows."""
    if weight is None:
        return math.fsum(values) / len(values)
    return math.fsum(weight * values) / math.fsum(weight)

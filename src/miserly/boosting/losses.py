"""What boosting minimises. A loss of your own needs the three methods of `Loss`."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from miserly.kernels import links as kernels


class Loss(Protocol):
    """Mean loss over rows; scores and gradients are output × row, one tree per output and round."""

    n_outputs: int

    def constant(self, y: np.ndarray) -> np.ndarray:
        """The best constant score of each output."""

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Negative gradient and (diagonal) second derivative of each row's loss."""

    def value(self, y: np.ndarray, score: np.ndarray) -> float:
        """Mean loss."""


class SquaredLoss:
    """½(y − f)²."""

    n_outputs = 1

    def constant(self, y: np.ndarray) -> np.ndarray:
        return np.array([math.fsum(y) / len(y)])

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return y - score, np.ones_like(score)

    def value(self, y: np.ndarray, score: np.ndarray) -> float:
        return 0.5 * float(np.mean((y - score[0]) ** 2))


class LogLoss:
    """log(1 + exp(−±f)), y in {0, 1}."""

    n_outputs = 1

    def constant(self, y: np.ndarray) -> np.ndarray:
        positive = min(max(float(np.count_nonzero(y)), 0.5), len(y) - 0.5)
        return np.array([math.log(positive / (len(y) - positive))])

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient, hessian = np.empty_like(score), np.empty_like(score)
        kernels.logistic_gradients(y, score[0], gradient[0], hessian[0])
        return gradient, hessian

    def value(self, y: np.ndarray, score: np.ndarray) -> float:
        out = np.empty(len(y))
        kernels.logistic_losses(y, score[0], out)
        return float(out.mean())


class SoftmaxLoss:
    """Multi-class log-loss, y in 0 … K−1."""

    def __init__(self, n_classes: int) -> None:
        self.n_outputs = n_classes

    def constant(self, y: np.ndarray) -> np.ndarray:
        shares = np.bincount(y.astype(np.intp), minlength=self.n_outputs) / len(y)
        return np.log(np.maximum(shares, 1e-12))

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient, hessian = np.empty_like(score), np.empty_like(score)
        kernels.softmax_gradients(y.astype(np.intp), score, gradient, hessian)
        return gradient, hessian

    def value(self, y: np.ndarray, score: np.ndarray) -> float:
        out = np.empty(len(y))
        kernels.softmax_losses(y.astype(np.intp), score, out)
        return float(out.mean())


class SquaredHingeLoss:
    """½max(0, 1 − sf)² with s = ±1 for y in {1, 0}."""

    n_outputs = 1

    def constant(self, y: np.ndarray) -> np.ndarray:
        return np.array([2.0 * np.count_nonzero(y) / len(y) - 1.0])

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sign = np.where(y > 0, 1.0, -1.0)
        slack = np.maximum(0.0, 1.0 - sign * score)
        return sign * slack, (slack > 0).astype(np.float64)

    def value(self, y: np.ndarray, score: np.ndarray) -> float:
        sign = np.where(y > 0, 1.0, -1.0)
        return 0.5 * float(np.mean(np.maximum(0.0, 1.0 - sign * score[0]) ** 2))

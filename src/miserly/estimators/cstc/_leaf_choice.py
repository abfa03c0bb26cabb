"""Which columns a leaf predicts with: least squares by gain less price, as ASTC selects, then swaps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from miserly._typing import Floats
from miserly.estimators._base import Learners

MOST_COLUMNS = 40  # columns that a leaf may add: beyond that greedy choice costs more than it gives
LEAST_REST = 1e-8  # of a column's square: what is less is a sum of others, but for rounding
RIDGE = 1e-9


@dataclass(frozen=True)
class Residuals:
    """What some columns leave of the squares and products of all others and of the targets, and of the loss."""

    columns: list[int]
    A: Floats
    b: Floats
    error: float

    def without(self, j: int) -> Residuals:
        """What one more column leaves (a sweep of the matrix)."""
        pivot, line, gain = self.A[j, j], self.A[j], self.b[j]
        A = self.A - np.multiply.outer(line, line / pivot)
        A[j], A[:, j] = 0.0, 0.0
        b = self.b - np.multiply.outer(line, gain / pivot)
        b[j] = 0.0
        return Residuals([*self.columns, j], A, b, max(self.error - 0.5 * float(gain @ gain) / float(pivot), 0.0))


class LeafChoice:
    """Least squares on some columns of a leaf: A and b around the means, prices times λ and the leaf's share."""

    def __init__(self, A: Floats, b: Floats, total: float, learners: Learners, price: float, n_rows: int) -> None:
        self.nothing, self.learners, self.price = Residuals([], A, b, total), learners, price
        squares = np.diag(A)
        self.least = np.maximum(LEAST_REST * squares, 1e-10 * max(float(squares.max(initial=0.0)), 1e-300))
        # of all columns, chance makes the best look this many times the error's variance
        self.penalty = 2.0 * max(1.0, math.log(max(1, len(A)))) / max(n_rows, 1)

    def best(self, paid: list[int]) -> tuple[list[int], float]:
        """The columns chosen beside those that are paid, and the objective."""
        chosen = self._swapped(self._forward(self._left_by(paid)), set(paid))
        return chosen.columns, self._value(chosen)

    def value(self, columns: list[int]) -> float:
        """Loss and cost of some columns."""
        return self._value(self._left_by(columns))

    def _left_by(self, columns: list[int]) -> Residuals:
        """What some columns leave; those that say nothing new are paid for all the same."""
        left = self.nothing
        for j in columns:
            new = left.A[j, j] > self.least[j]
            left = left.without(j) if new else Residuals([*left.columns, j], left.A, left.b, left.error)
        return left

    def _value(self, left: Residuals) -> float:
        return left.error + self.price * self.learners.price(left.columns)

    def _penalised(self, left: Residuals) -> float:
        """A column must also earn its coefficient."""
        return self._value(left) + left.error * self.penalty * len(left.columns)

    def _forward(self, left: Residuals) -> Residuals:
        """Add what lowers loss and cost most, while its coefficient is worth having."""
        while len(left.columns) < MOST_COLUMNS and (best := self._next(left)) is not None:
            left = left.without(best)
        return left

    def _swapped(self, left: Residuals, fixed: set[int]) -> Residuals:
        """Give up one column, and take the best other ones or none, while that is better."""
        best, improved = left, True
        value = self._penalised(best)
        while improved:
            improved = False
            for j in [c for c in best.columns if c not in fixed]:
                rest = self._left_by([c for c in best.columns if c != j])
                for other in (rest, self._forward(rest)):
                    if (found := self._penalised(other)) < value - 1e-12 * self.nothing.error:
                        best, value, improved = other, found, True
                if improved:
                    break
        return best

    def _next(self, left: Residuals) -> int | None:
        """The column whose gain is most above its price."""
        squares = np.diag(left.A)
        usable = squares > self.least
        usable[left.columns] = False
        gains = np.zeros(len(squares))
        gains[usable] = 0.5 * (left.b[usable] ** 2).sum(axis=1) / squares[usable]
        enough = self.penalty * np.maximum(left.error - gains, 0.0) + 1e-12 * self.nothing.error
        useful = np.flatnonzero(gains > enough)
        before = self.learners.price(left.columns)
        best, most = None, 0.0
        for j in useful[np.argsort(-gains[useful], kind="stable")].tolist():
            if gains[j] <= most:
                break
            net = gains[j] - self.price * (self.learners.price([*left.columns, j]) - before)
            if net > most:
                best, most = j, net
        return best

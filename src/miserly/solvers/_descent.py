"""Descent with a metric of its own: L-BFGS that starts from a given inverse curvature instead of the identity.

The node problems of trees and cascades are a quadratic plus a bounded part that curves both ways. Knowing the
quadratic, a handful of steps does what plain L-BFGS needs dozens for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from miserly._typing import Floats

Metric = Callable[[Floats], Floats]
MEMORY = 20
ARMIJO = 1e-4
SMALLEST_STEP = 1e-8
POSITIVE = 1e-10
SMALL = 1e-3


class Memory:
    """The last moves, and how the gradient changed with each."""

    def __init__(self) -> None:
        self.moves: list[Floats] = []
        self.gradient_changes: list[Floats] = []

    def learn(self, move: Floats, gradient_change: Floats) -> None:
        """One more pair; the oldest is forgotten, and what curves downwards is not learnt."""
        if move @ gradient_change > POSITIVE * np.sqrt(float(move @ move) * float(gradient_change @ gradient_change)):
            self.moves, self.gradient_changes = (
                [*self.moves, move][-MEMORY:],
                [*self.gradient_changes, gradient_change][-MEMORY:],
            )

    def forget(self) -> None:
        """Start again."""
        self.moves, self.gradient_changes = [], []

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """The same for some of the parameters alone."""
        pairs = list(zip(self.moves, self.gradient_changes))
        self.forget()
        for move, gradient_change in pairs:
            self.learn(move[kept], gradient_change[kept])

    def direction(self, slope: Floats, metric: Metric) -> tuple[Floats, float]:
        """The way down and the slope along it; all is forgotten if what was learnt leads upwards."""
        direction = -self._quasi_newton(slope, metric)
        derivative = float(slope @ direction)
        if derivative >= 0.0:
            self.forget()
            direction = -metric(slope)
            derivative = float(slope @ direction)
        return direction, derivative

    def _quasi_newton(self, slope: Floats, metric: Metric) -> Floats:
        """The inverse curvature, as far as it is known, times the slope: two loops over the memory."""
        q, shares = slope.copy(), []
        for move, gradient_change in zip(reversed(self.moves), reversed(self.gradient_changes)):
            share = float(move @ q) / float(move @ gradient_change)
            q -= share * gradient_change
            shares.append(share)
        q = metric(q)
        for move, gradient_change, share in zip(self.moves, self.gradient_changes, reversed(shares)):
            q += move * (share - float(gradient_change @ q) / float(move @ gradient_change))
        return q


def line_search(
    along: Callable[[float], float], value: float, derivative: float, step: float = 1.0
) -> tuple[float, float]:
    """A step that keeps a part of what the slope predicts, and the value there; step 0 if there is none."""
    while step > SMALLEST_STEP:
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is no step
            found = along(step)
        if found <= value + ARMIJO * step * derivative:
            return step, found
        step *= min(0.5, max(0.1, -derivative * step / (2.0 * (found - value - step * derivative))))
    return 0.0, value


def descend(
    function: Callable[[Floats], tuple[float, Floats]], at: Floats, metric: Metric, max_steps: int, tol: float
) -> tuple[Floats, float, int]:
    """Where the descent ended, the value there, and how often the function was asked; the value never rises.

    `metric` applies a positive definite approximation of the inverse Hessian. It ends when a step predicts less than
    `tol`.
    """
    value, slope = function(at)
    memory, asked = Memory(), 1
    for _ in range(max_steps):
        direction, derivative = memory.direction(slope, metric)
        if -derivative <= tol:
            break
        slopes: list[Floats] = []

        def along(step: float, at: Floats = at, direction: Floats = direction, seen: list[Floats] = slopes) -> float:
            found, there = function(at + step * direction)
            seen.append(there)
            return found

        step, value = line_search(along, value, derivative)
        asked += len(slopes)
        if not step:
            break
        memory.learn(step * direction, slopes[-1] - slope)
        at, slope = at + step * direction, slopes[-1]
    return at, value, asked


def repeat_until_converged(
    improve: Callable[[], None], objective: Callable[[], float], max_rounds: int, tol: float
) -> list[float]:
    """Improve until the objective falls by less than `tol` of itself; its values on the way."""
    values = [objective()]
    for _ in range(max_rounds):
        improve()
        values.append(objective())
        if values[-2] - values[-1] <= tol * abs(values[-2]):
            break
    return values


def drop_small(
    value: Callable[[Floats], float], at: Floats, n_groups: int, width: int = 1
) -> tuple[Floats, NDArray[np.bool_]]:
    """Leave out small groups of weights where the function does not mind, together or one by one.

    The list begins with `n_groups` groups of `width` weights. Gives the shorter list, and which groups are left.
    """
    kept = np.ones(n_groups, bool)
    size = np.linalg.norm(_groups(at, n_groups, width), axis=1)
    small = np.flatnonzero(size <= SMALL * size.max(initial=0.0))
    if not len(small) or len(small) == n_groups:
        return at, kept
    now = value(at)
    for those in (small, *np.split(small, len(small))):
        without = at.copy()
        _groups(without, n_groups, width)[those] = 0.0
        if (found := value(without)) <= now:
            at, now = without, found
            kept[those] = False
            if len(those) == len(small):
                break
    return np.concatenate([_groups(at, n_groups, width)[kept].ravel(), at[n_groups * width :]]), kept


def _groups(at: Floats, n_groups: int, width: int) -> Floats:
    return at[: n_groups * width].reshape(n_groups, width)

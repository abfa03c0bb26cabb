"""Descent with a metric of its own: L-BFGS that starts from a given inverse curvature instead of the identity.

The node problems of trees and cascades are a quadratic plus a bounded part that bends both ways. Knowing the quadratic,
a handful of steps does what plain L-BFGS needs dozens for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MEMORY = 20
ARMIJO = 1e-4
SMALLEST_STEP = 1e-8


def descend(
    function: Callable[[Floats], tuple[float, Floats]],
    at: Floats,
    metric: Callable[[Floats], Floats],
    max_steps: int,
    tol: float,
) -> tuple[Floats, float, int]:
    """Where the descent ended, the value there, and how often the function was asked; the value never rises.

    `metric` applies a positive definite approximation of the inverse Hessian. It ends when a step promises less than
    `tol`.
    """
    value, slope = function(at)
    moves: list[Floats] = []
    turns: list[Floats] = []
    asked = 1
    for _ in range(max_steps):
        direction = -_two_loops(slope, moves, turns, metric)
        promise = float(slope @ direction)
        if promise >= 0.0:
            moves, turns = [], []
            direction = -metric(slope)
            promise = float(slope @ direction)
        if -promise <= tol:
            break
        step = 1.0
        while step > SMALLEST_STEP:
            new_value, new_slope = function(at + step * direction)
            asked += 1
            if new_value <= value + ARMIJO * step * promise:
                break
            step *= min(0.5, max(0.1, -promise * step / (2.0 * (new_value - value - step * promise))))
        else:
            break
        move, turn = step * direction, new_slope - slope
        if move @ turn > 1e-10 * np.sqrt(float(move @ move) * float(turn @ turn)):
            moves, turns = [*moves, move][-MEMORY:], [*turns, turn][-MEMORY:]
        at, value, slope = at + move, new_value, new_slope
    return at, value, asked


def _two_loops(slope: Floats, moves: list[Floats], turns: list[Floats], metric: Callable[[Floats], Floats]) -> Floats:
    """The quasi-Newton direction from the last moves and the turns of the slope that they made."""
    q, shares = slope.copy(), []
    for move, turn in zip(reversed(moves), reversed(turns)):
        share = float(move @ q) / float(move @ turn)
        q -= share * turn
        shares.append(share)
    q = metric(q)
    for move, turn, share in zip(moves, turns, reversed(shares)):
        q += move * (share - float(turn @ q) / float(move @ turn))
    return q

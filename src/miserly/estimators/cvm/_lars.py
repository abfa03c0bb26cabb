"""Least angle regression on a quadratic that is known by its columns: ½ αᵀQα − qᵀα.

With Q = ΩᵀΩ and q = Ωᵀt this is the path of ‖Ωα − t‖² (thesis 4.9); asking for one column of Q per step, it never holds
more of Q than the columns that are in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy import linalg

from miserly._typing import Floats

DEPENDENT = 1e-10


def least_angle(
    q: Floats, diagonal: Floats, column: Callable[[int], Floats], max_steps: int
) -> Iterator[tuple[int, Floats]]:
    """The coordinate that enters at each step, and α at the end of the step (all of it, a view that will change).

    No coordinate ever leaves (LAR, not the lasso). Coordinates whose columns depend on those in use are passed over.
    """
    alpha, correlation = np.zeros(len(q)), q.copy()
    columns = np.empty((len(q), 0), order="F")
    factor = np.empty((0, 0))
    active: list[int] = []
    open_ = diagonal > 0
    while len(active) < max_steps and open_.any():
        new = int(np.argmax(np.where(open_, np.abs(correlation), -1.0)))
        size = abs(correlation[new])
        if size <= 1e-14 * np.abs(q).max():
            return
        open_[new] = False
        fresh = column(new)
        line = linalg.solve_triangular(factor, fresh[active], lower=True) if active else np.empty(0)
        rest = diagonal[new] - line @ line
        if rest <= DEPENDENT * diagonal[new]:
            continue
        factor = np.block([[factor, np.zeros((len(active), 1))], [line, np.sqrt(rest)]])
        columns = np.column_stack([columns, fresh])
        active.append(new)
        signs = np.sign(correlation[active])
        direction = linalg.cho_solve((factor, True), signs)
        along = columns @ direction
        step = _next_meeting(size, correlation[open_], along[open_])
        alpha[active] += step * direction
        correlation -= step * along
        yield new, alpha


def _next_meeting(size: float, correlation: Floats, along: Floats) -> float:
    """How far until a coordinate outside is as correlated as those inside, which shrink from `size` at rate 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.concatenate([(size - correlation) / (1.0 - along), (size + correlation) / (1.0 + along)])
    steps = steps[(steps > 1e-14 * size) & (steps < size)]
    return float(steps.min(initial=size))

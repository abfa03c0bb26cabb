"""One row of a plan that is a sum of trees without gates: what many rows, budgets and gates need is left out.

A server asks for one row at a time, and the batch spends most of its time on getting ready. The bits are those of the
batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from miserly._typing import Floats
from miserly.kernels import trees as kernels
from miserly.plan._dictionary import Trees
from miserly.plan._node import EXIT

if TYPE_CHECKING:
    from miserly.plan._plan import Plan


class OneRow:
    """A plan ready for one row at a time; `of` is None for plans that need more than a sum."""

    def __init__(self, plan: Plan) -> None:
        program = plan.tables.program("all")
        step = program.steps[plan.roots[0]]
        self._program, self._n_features, self._n_outputs = program, len(plan.costs.features), plan.n_outputs
        self._start = program.no_scores[0].copy()
        self._start[list(step.head.outputs)] += step.head.bias
        self._sum = (program.trees, step.learners, step.pointer, step.column, step.weight, program.keep)

    @classmethod
    def of(cls, plan: Plan) -> OneRow | None:
        """The plan made ready, if all rows go through it in the same way."""
        if not isinstance(plan.dictionary, Trees) or plan.unavailable or plan.means is not None:
            return None
        if len(plan.roots) != 1 or not all(node.is_sum and node.gate.kind == "open" for node in plan.nodes):
            return None
        program = plan.tables.program("all")
        step = program.steps.get(plan.roots[0])
        whole = len(program.steps) == 1 and step is not None and step.node.passed == EXIT
        return cls(plan) if whole and not program.calibrated else None

    def scores(self, X: Any) -> Floats | None:
        """The scores of a matrix of one row; None if it is anything else."""
        if type(X) is not np.ndarray or X.shape != (1, self._n_features) or X.dtype != np.float64:
            return None
        if not X.flags.c_contiguous:
            return None
        score: Floats = self._start.copy()
        kernels.add_trees_to_row(X[0], *self._sum, *self._program.kept(), score)
        return score[None, : self._n_outputs]

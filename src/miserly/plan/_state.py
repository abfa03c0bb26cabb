"""The scores of rows on their way through a plan, one row or many: what a node does besides adding its learners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from miserly._typing import Floats, Rows
from miserly.plan import _links as links
from miserly.plan._gates import passes
from miserly.plan._node import Node
from miserly.plan._rule import rule_inputs, rule_value

if TYPE_CHECKING:
    from miserly.plan._program import Program


class State:
    """Scores so far, then space for a node's own outputs and for its routing score; and how scores are calibrated."""

    def __init__(self, program: Program, n_rows: int) -> None:
        self.plan, self.calibrated = program.plan, program.calibrated
        self.n_outputs = program.n_outputs
        self.columns: Floats = np.tile(program.no_scores, (n_rows, 1)) if n_rows != 1 else program.no_scores.copy()
        if self.calibrated:
            self.scale: Floats = np.ones((n_rows, self.n_outputs))
            self.offset: Floats = np.zeros((n_rows, self.n_outputs))

    def begin(self, node: Node, rows: Rows) -> None:
        """Set what the node's learners will be added to."""
        if node.routing is not None:
            self.columns[rows, 2 * self.n_outputs] = node.routing_bias
        if not node.is_direct:
            self.columns[_at(rows, node, self.n_outputs)] = node.bias
        elif node.combine == "replace":
            self.columns[_at(rows, node)] = node.bias
        elif node.has_bias:
            self.columns[_at(rows, node)] += node.bias

    def finish(self, node: Node, rows: Rows) -> None:
        """Join the node's own outputs with the score so far, and take over its calibration."""
        if node.is_direct and not self.calibrated:
            return
        at = _at(rows, node)
        if not node.is_direct:
            own = self.columns[_at(rows, node, self.n_outputs)]
            own = links.sigmoid(own) if node.activation == "logistic" else own
            score = self.columns[at]
            self.columns[at] = {"replace": own, "add": score + own, "multiply": score * own}[node.combine]
        if self.calibrated:
            self.scale[at] = 1.0 if node.scale is None else node.scale
            self.offset[at] = 0.0 if node.offset is None else node.offset

    def score(self) -> Floats:
        """Raw scores of all rows."""
        return self.columns[:, : self.n_outputs].copy()

    def read(self, score: Floats, rows: Rows | slice = slice(None)) -> Floats:
        """Scores as calibrated where their rows stand."""
        return score * self.scale[rows] + self.offset[rows] if self.calibrated else score

    def gate_score(self, node: Node, rows: Rows) -> Floats:
        """What the node's gate looks at."""
        column = 2 * self.n_outputs if node.routing is not None else node.outputs[0]
        return np.asarray(self.columns[rows, column])

    def passed(self, node: Node, rows: Rows, query: NDArray[np.intp], X: Floats) -> NDArray[np.bool_]:
        """Which rows the node's gate lets pass; X has the values of all rows."""
        if node.gate.kind == "open":
            return np.ones(len(rows), bool)
        if node.rule is not None:
            z = self.read(self.columns[rows, : self.n_outputs], rows)
            return rule_value(node.rule, rule_inputs(self.plan, X[rows], z)) > node.gate.value
        confidence = None
        if node.gate.kind == "confidence":
            z = self.read(self.columns[rows, : self.n_outputs], rows)
            p = self.plan.probabilities(np.ascontiguousarray(z))
            confidence = p.max(axis=1) if len(p) != 1 else p.max(keepdims=True)[0]
        return passes(node.gate, self.gate_score(node, rows), confidence, query)


def _at(rows: Rows, node: Node, first: int = 0) -> tuple[Any, ...]:
    """Where the node's outputs of some rows are; outputs one after the other, as most are, are found much quicker."""
    low, outputs = node.outputs[0], node.outputs
    if outputs == tuple(range(low, low + len(outputs))):
        return rows, slice(first + low, first + low + len(outputs))
    return np.ix_(rows, first + np.array(outputs))

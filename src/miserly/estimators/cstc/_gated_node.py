"""One node with a gate, all others fixed: value, gradient and descent.

    S(β, b, θ) = Σ_i ω_i p_i [ (c₀ + c₁ s_i) ℓ_i + s_i U_i + (1 − s_i) V_i ]
                 + ρ Σ_t ½(‖β_t‖²/γ_t + γ_t) + Σ_l p̄^l C^l(β)

p is the probability of reaching the node, U and V the expected losses beyond its two sides, r^l those of leaving by
terminal l given a side: none of them depends on the node. p̄^l = Σ_i share_i p_i (s_i or 1 − s_i) r_i^l does, through
s_i = σ(τ(h_iᵀβu − θ)). C^l is the quadratic that touches the path's cost from above (λ is in the prices).
(c₀, c₁) say how often the node's own loss counts: once when reached, or where rows leave, and for levels skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from miserly._typing import Floats
from miserly.solvers import EXIT, descend, drop_small, soft_gate

if TYPE_CHECKING:
    from miserly.estimators.cstc._soft_graph import SoftGraph

NEGLIGIBLE = 1e-10
STEPS = 8


class GatedNode:
    """The problem of node k of a graph; `improve` changes that node in place. Parameters are β, b and θ in one list."""

    def __init__(self, whole: SoftGraph, k: int) -> None:
        task, node, graph, traversal = whole.task, whole.nodes[k], whole.graph, whole.traversal
        self.whole, self.k, self.node = whole, k, node
        self.columns, self.n_outputs = node.columns, task.targets.shape[1]
        reach = traversal.reach(k)
        weight = np.maximum(task.omega, task.share) * reach
        rows = np.flatnonzero(weight > NEGLIGIBLE * weight.max(initial=0.0))
        self.Z, self.Y = whole.window(self.columns, rows), task.targets[rows]
        self.loss_weight, self.cost_weight = (task.omega * reach)[rows], (task.share * reach)[rows]
        self.above, self.below = (
            traversal.loss_given(k, side, whole.loss, task.at_exit, rows).astype(np.float64) for side in (True, False)
        )
        exits = (graph.up[k] == EXIT, graph.low[k] == EXIT)
        reached, left = (0.0, 1.0) if task.at_exit else (1.0, float(graph.skipped(k)))
        self.own = (reached + left * exits[1], left * (float(exits[0]) - float(exits[1])))
        (up, self.R_up), (low, self.R_low) = (traversal.leave_given(k, side, rows) for side in (True, False))
        self.n_up = len(up)
        paths = [graph.terminals[terminal][0] for terminal in (*up, *low)]
        self.base = np.column_stack([whole.path_squares(end, without=k) for end in paths])
        self.steepness, self.direction = node.steepness, node.direction
        self.at = np.concatenate([node.beta[self.columns].ravel(), node.bias, [node.threshold]])
        self.majorise(self.at)

    # ---- value and gradient -----------------------------------------------------------------------------------

    def parts(self, v: Floats) -> tuple[Floats, Floats, float]:
        """β, b and θ from the list."""
        size = len(self.columns) * self.n_outputs
        return v[:size].reshape(-1, self.n_outputs), v[size:-1], float(v[-1])

    def majorise(self, v: Floats) -> None:
        """Auxiliary variables for these parameters: from here on S touches the objective there."""
        beta, norm = self.parts(v)[0], self.whole.task.norm
        self._square = (beta**2).sum(axis=1)
        paths = self._paths(self._square)
        self._cost = np.asarray(norm.value(paths))
        self._slopes = norm.slopes(paths)[self.columns]
        size = np.sqrt(self._square)
        self._shrink = np.divide(self.whole.task.rho, size, out=np.zeros_like(size), where=size > 0)
        self._least = 0.5 * self.whole.task.rho * float(size.sum())

    def surrogate(self, v: Floats) -> tuple[float, Floats]:
        """S and its gradient."""
        beta = self.parts(v)[0]
        square = (beta**2).sum(axis=1)
        cost = self._cost + 0.5 * (square - self._square) @ self._slopes
        value, slope, mean = self._expected(v, cost)
        value += self._least + 0.5 * float(self._shrink @ square)
        slope[: beta.size] += ((self._shrink + self._slopes @ mean)[:, None] * beta).ravel()
        return value, slope

    def value(self, v: Floats) -> float:
        """The part of the objective itself that depends on this node."""
        square = (self.parts(v)[0] ** 2).sum(axis=1)
        cost = np.asarray(self.whole.task.norm.value(self._paths(square)))
        return self._expected(v, cost)[0] + self.whole.task.rho * float(np.sqrt(square).sum())

    def _paths(self, square: Floats) -> Floats:
        paths = self.base.copy()
        paths[self.columns] += square[:, None]
        return paths

    def _expected(self, v: Floats, cost: Floats) -> tuple[float, Floats, Floats]:
        """Expected loss and cost for given costs of the paths, the gradient with these fixed, and p̄^l."""
        beta, bias, threshold = self.parts(v)
        scores = self.Z.scores(beta)
        s = soft_gate(scores @ self.direction, threshold, self.steepness)
        node_loss = self.whole.task.loss
        loss, rest = node_loss.values(scores + bias, self.Y), node_loss.slopes(scores + bias, self.Y)
        c0, c1 = self.own
        cost_up, cost_low = cost[: self.n_up] @ self.R_up, cost[self.n_up :] @ self.R_low
        here = c0 + c1 * s
        value = float(self.loss_weight @ (here * loss + s * self.above + (1.0 - s) * self.below))
        value += float(self.cost_weight @ (s * cost_up + (1.0 - s) * cost_low))
        a = self.loss_weight * (c1 * loss + self.above - self.below) + self.cost_weight * (cost_up - cost_low)
        a *= self.steepness * s * (1.0 - s)
        residual = (self.loss_weight * here)[:, None] * rest
        slope = np.concatenate(
            [self.Z.sums(residual + np.outer(a, self.direction)).ravel(), residual.sum(axis=0), [-a.sum()]]
        )
        mean = np.concatenate([self.R_up @ (self.cost_weight * s), self.R_low @ (self.cost_weight * (1.0 - s))])
        self._gate_curvature = np.abs((1.0 - 2.0 * s) * a) * self.steepness
        self._here = node_loss.curvature * self.loss_weight * here
        return value, slope, mean

    # ---- descent ----------------------------------------------------------------------------------------------

    def improve(self, rounds: int) -> None:
        """Touch, descend, drop what has become nothing; a few times. The objective never rises."""
        gram = None
        value = self.value(self.at)
        for _ in range(rounds):
            start = self.surrogate(self.at)[0]
            if gram is None:
                gram, centre, totals = self._curvature()
            metric = self._metric(gram, centre, totals)
            self.at, end, _ = descend(self.surrogate, self.at, metric, STEPS, tol=1e-7 * abs(value))
            if self._drop():
                gram = None
            elif start - end <= 1e-6 * abs(value):
                break
            self.majorise(self.at)
        beta, bias, threshold = self.parts(self.at)
        self.node.beta[:] = 0.0
        self.node.beta[self.columns] = beta
        self.node.bias, self.node.threshold = bias.copy(), threshold

    def _curvature(self) -> tuple[Floats, Floats, tuple[float, float]]:
        """The curvature of the loss in the weights, with the gate's as if it curved upwards everywhere."""
        total = float(self._here.sum())
        centre = self.Z.sums(self._here) / total if total > 0 else np.zeros(len(self.columns))
        gram = self.Z.around(centre).gram(self._here + self._gate_curvature / self.n_outputs)
        return gram, centre, (total, float(self._gate_curvature.sum()))

    def _metric(self, gram: Floats, centre: Floats, totals: tuple[float, float]) -> Callable[[Floats], Floats]:
        """Applies the inverse of that curvature with the penalties of now; intercept and threshold have their own."""
        mean = np.concatenate([self.R_up @ (self.cost_weight * 0.5), self.R_low @ (self.cost_weight * 0.5)])
        M = gram.copy()
        M[np.diag_indices(len(M))] += self._shrink + self._slopes @ mean
        M[np.diag_indices(len(M))] *= 1.0 + 1e-9
        M[np.diag_indices(len(M))] += 1e-12 * np.trace(gram) / len(M) + 1e-300
        factor = linalg.cho_factor(M, check_finite=False)
        total, gate_curvature = max(totals[0], 1e-300), max(totals[1], 1e-6 * totals[0], 1e-300)

        def apply(slope: Floats) -> Floats:
            beta, bias, threshold = self.parts(slope)
            to_beta = linalg.cho_solve(factor, beta - np.outer(centre, bias), check_finite=False)
            return np.concatenate([to_beta.ravel(), bias / total - centre @ to_beta, [threshold / gate_curvature]])

        return apply

    def _drop(self) -> bool:
        """Leave out small weights; they do not come back."""
        self.at, kept = drop_small(self.value, self.at, len(self.columns), self.n_outputs)
        self.columns, self.Z = self.columns[kept], self.Z.part(columns=kept)
        return not kept.all()

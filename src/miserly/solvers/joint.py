"""All nodes of a soft graph at once: value and gradient in one pass over the rows, and descent.

The scores of all nodes are one matrix product, and so is the gradient; what lies between (gates, probabilities down,
expected losses and costs up) is done for a block of rows at a time, so that nothing of the size rows × nodes is kept.
The metric is, for each node, the Gram matrix that its initialisation made, with the curvature that the penalties have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from miserly.solvers.descent import descend
from miserly.solvers.traversal import EXIT, soft_gate

if TYPE_CHECKING:
    from miserly.solvers.soft_graph import SoftGraph

Floats = NDArray[np.float64]
BLOCK_ROWS = 4096
STEPS = 10
DROP_EVERY = 3
SMALL = (0.03, 0.003)


class Joint:
    """The parameters of all nodes in one list: for each node its weights, its intercepts and its threshold."""

    def __init__(self, whole: SoftGraph) -> None:
        self.whole, self.task, self.graph = whole, whole.task, whole.graph
        self.n_outputs = whole.task.targets.shape[1]
        self.ends = np.array([node for node, _ in self.graph.terminals])
        self.on_path = np.array([[k in self.graph.path(end) for end in self.ends] for k in range(len(self.graph))])
        self.steepness = np.array([node.steepness for node in whole.nodes])
        self.direction = np.array([node.direction for node in whole.nodes])
        self._use([node.columns for node in whole.nodes])
        everyone = np.arange(whole.task.design.n_rows)
        self.H = np.ascontiguousarray(whole.block(self.used, everyone))
        self.curve: list[Floats] = [np.zeros(0)] * len(self.graph)
        self._last = (np.zeros(0), np.zeros(0))
        self.n_asked = 0

    def _use(self, columns: list[NDArray[np.intp]]) -> None:
        """The columns of each node, and where their weights stand in the list and in the table of all."""
        self.columns = columns
        if not hasattr(self, "used"):
            self.used = np.unique(np.concatenate(columns))
        self.norm = self.task.norm.of_columns(self.used)
        self.places = [np.searchsorted(self.used, c) for c in columns]
        sizes = [(len(c) + 1) * self.n_outputs + 1 for c in columns]
        self.splits = np.cumsum(sizes)[:-1]

    # ---- the list ---------------------------------------------------------------------------------------------

    def read(self) -> Floats:
        """The parameters as the nodes have them."""
        return np.concatenate(
            [
                np.concatenate([node.beta[c].ravel(), node.bias, [node.threshold]])
                for node, c in zip(self.whole.nodes, self.columns)
            ]
        )

    def write(self, v: Floats) -> None:
        """Give the nodes these parameters."""
        for k, (node, (beta, bias, threshold)) in enumerate(zip(self.whole.nodes, self.parts(v))):
            node.beta[:] = 0.0
            node.beta[self.columns[k]] = beta
            node.bias, node.threshold = bias.copy(), threshold
            self.whole.refresh(k)

    def parts(self, v: Floats) -> list[tuple[Floats, Floats, float]]:
        """β, b and θ of each node."""
        K = self.n_outputs
        return [(p[: -K - 1].reshape(-1, K), p[-K - 1 : -1], float(p[-1])) for p in np.split(v, self.splits)]

    def _squares(self, parts: list[tuple[Floats, Floats, float]]) -> Floats:
        """Σ ‖β_t‖² over each terminal's path: column × terminal."""
        squares = np.zeros((len(self.used), len(self.graph)))
        for k, (beta, _, _) in enumerate(parts):
            squares[self.places[k], k] = (beta**2).sum(axis=1)
        return squares @ self.on_path

    # ---- value and gradient -----------------------------------------------------------------------------------

    def objective(self, v: Floats) -> tuple[float, Floats]:
        """The objective and its gradient, in which weights that are zero have no part: they stay zero."""
        parts = self.parts(v)
        paths = self._squares(parts)
        sizes = [np.linalg.norm(beta, axis=1) for beta, _, _ in parts]
        shrink = [np.divide(self.task.rho, s, out=np.zeros_like(s), where=s > 0) for s in sizes]
        value, slope = self._whole(parts, np.asarray(self.norm.value(paths)), self.norm.slopes(paths), shrink)
        self._last = (v.copy(), slope)
        return value + self.task.rho * sum(float(s.sum()) for s in sizes), slope

    def _whole(
        self, parts: list[tuple[Floats, Floats, float]], cost: Floats, slopes: Floats, shrink: list[Floats]
    ) -> tuple[float, Floats]:
        """Expected loss and cost, with the gradient of these and of the quadratic penalties."""
        K, n_nodes = self.n_outputs, len(self.graph)
        self.n_asked += 1
        table = np.zeros((len(self.used), n_nodes, K))
        for k, (beta, _, _) in enumerate(parts):
            table[self.places[k], k] = beta
        W = table.reshape(len(self.used), -1)
        sums = _Sums(n_nodes, K, len(self.ends), len(self.used))
        for first in range(0, len(self.H), BLOCK_ROWS):
            rows = slice(first, first + BLOCK_ROWS)
            self._rows(rows, self.H[rows] @ W, parts, cost, sums)
        G = sums.weights.reshape(len(self.used), n_nodes, K)
        slope = []
        for k, (beta, _, _) in enumerate(parts):
            on = self.on_path[k]
            self.curve[k] = shrink[k] + slopes[np.ix_(self.places[k], on)] @ sums.leave[on]
            own = (G[self.places[k], k] + self.curve[k][:, None] * beta) * beta.any(axis=1, keepdims=True)
            slope.append(np.concatenate([own.ravel(), sums.bias[k], [sums.threshold[k]]]))
        self.bend, self.mass = sums.bend, sums.mass
        return sums.value, np.concatenate(slope)

    def _rows(
        self, rows: slice, scores: Floats, parts: list[tuple[Floats, Floats, float]], cost: Floats, sums: _Sums
    ) -> None:
        """Add up what a block of rows gives: down for the probabilities, up for what is expected below."""
        graph, task, K, n_nodes = self.graph, self.task, self.n_outputs, len(self.graph)
        omega, share, Y = task.omega[rows], task.share[rows], task.targets[rows]
        scores = scores.reshape(len(Y), n_nodes, K)
        s = np.zeros((n_nodes, len(Y)))
        p: list[Floats] = [np.ones(len(Y))] * n_nodes
        for k in graph.inner:
            s[k] = soft_gate(scores[:, k] @ self.direction[k], parts[k][2], self.steepness[k])
            for way, part in ((graph.up[k], s[k]), (graph.low[k], 1.0 - s[k])):
                if way != EXIT:
                    p[way] = p[k] * part
        losses: list[Floats] = [np.zeros(0)] * n_nodes
        costs: list[Floats] = [np.zeros(0)] * n_nodes
        for k in range(n_nodes - 1, -1, -1):
            rest = scores[:, k] + parts[k][1] - Y
            loss = 0.5 * np.einsum("ij,ij->i", rest, rest)
            here: Floats | float = 1.0
            a = None
            if graph.is_leaf(k):
                terminal = graph.terminal_number[k, None]
                losses[k], costs[k] = loss, np.full(len(Y), cost[terminal])
                sums.leave[terminal] += share @ p[k]
            else:
                below = self._below(k, loss, losses, costs, cost)
                (loss_up, cost_up), (loss_low, cost_low) = below
                for side, way, part in ((True, graph.up[k], s[k]), (False, graph.low[k], 1.0 - s[k])):
                    if way == EXIT:
                        sums.leave[graph.terminal_number[k, side]] += share @ (p[k] * part)
                if task.at_exit:
                    here = (graph.up[k] == EXIT) * s[k] + (graph.low[k] == EXIT) * (1.0 - s[k])
                losses[k] = s[k] * loss_up + (1.0 - s[k]) * loss_low + (0.0 if task.at_exit else loss)
                costs[k] = s[k] * cost_up + (1.0 - s[k]) * cost_low
                a = omega * (loss_up - loss_low) + share * (cost_up - cost_low)
                a *= p[k] * self.steepness[k] * s[k] * (1.0 - s[k])
                sums.threshold[k] -= a.sum()
                sums.bend[k] += self.steepness[k] * float(np.abs((1.0 - 2.0 * s[k]) * a).sum())
            weight = omega * p[k] * here
            pull = weight[:, None] * rest
            sums.mass[k] += weight.sum()
            sums.bias[k] += pull.sum(axis=0)
            scores[:, k] = pull if a is None else pull + np.outer(a, self.direction[k])
        sums.value += float(omega @ losses[0] + share @ costs[0])
        sums.weights += self.H[rows].T @ scores.reshape(len(Y), -1)

    def _below(
        self, k: int, loss: Floats, losses: list[Floats], costs: list[Floats], cost: Floats
    ) -> list[tuple[Floats | float, Floats | float]]:
        """What is expected beyond the two sides of node k: losses and costs."""
        found: list[tuple[Floats | float, Floats | float]] = []
        for side, way in ((True, self.graph.up[k]), (False, self.graph.low[k])):
            if way != EXIT:
                found.append((losses[way], costs[way]))
            else:
                found.append((loss if self.task.at_exit else 0.0, float(cost[self.graph.terminal_number[k, side]])))
        return found

    # ---- descent ----------------------------------------------------------------------------------------------

    def optimise(self, max_rounds: int, tol: float) -> list[float]:
        """Rounds of a few steps until one lowers the objective by less than `tol` of itself; its values on the way."""
        v = self.read()
        values = [self.objective(v)[0]]
        for number in range(1, max_rounds + 1):
            v, value, _ = descend(self.objective, v, self.metric(), STEPS, 0.01 * tol * abs(values[-1]))
            ends = number == max_rounds or values[-1] - value <= tol * abs(values[-1])
            if ends or number % DROP_EVERY == 0:
                v, value = self._drop(v, value)
            else:
                self._slope_at(v)
            values.append(value)
            if ends:
                break
        self.write(v)
        return values

    def _drop(self, v: Floats, value: float) -> tuple[Floats, float]:
        """Set to zero what is best there, given the rest; fewer of them while the objective would rise.

        A weight goes if the pull of the smooth part on it, taken at zero, is not more than the penalties hold against.
        """
        slope = self.parts(self._slope_at(v))
        held, size = [], []
        for k, ((beta, _, _), (pull, _, _)) in enumerate(zip(self.parts(v), slope)):
            length = np.linalg.norm(beta, axis=1)
            curve, own = self.curve[k], np.diag(self.whole.nodes[k].gram_of(self.columns[k])[0])
            at_zero = np.linalg.norm(pull - (curve + own)[:, None] * beta, axis=1)
            held.append((length > 0) & (at_zero <= curve * length))
            size.append(length / max(float(length.max(initial=0.0)), 1e-300))
        for share in SMALL:
            without = v.copy()
            for k, (beta, _, _) in enumerate(self.parts(without)):
                gone = held[k] & (size[k] <= share)
                beta[gone] = 0.0 if not gone[size[k] > 0].all() else beta[gone]
            if np.array_equal(without, v):
                break
            if self.objective(without)[0] <= value:
                return self._without_zeros(without)
        self._slope_at(v)
        return v, value

    def _slope_at(self, v: Floats) -> Floats:
        """The gradient there, known if it was the last to be asked for."""
        return self._last[1] if np.array_equal(self._last[0], v) else self.objective(v)[1]

    def _without_zeros(self, v: Floats) -> tuple[Floats, float]:
        """The list without the weights that are zero: from now on they do not exist."""
        parts, columns = [], []
        for k, (beta, bias, threshold) in enumerate(self.parts(v)):
            alive = beta.any(axis=1)
            parts.append(np.concatenate([beta[alive].ravel(), bias, [threshold]]))
            columns.append(self.columns[k][alive])
        self._use(columns)
        shorter = np.concatenate(parts)
        return shorter, self.objective(shorter)[0]

    def metric(self) -> Callable[[Floats], Floats]:
        """Applies the inverse of the nodes' curvatures, as they are where the function was asked last."""
        factors = []
        for k, node in enumerate(self.whole.nodes):
            gram, centre = node.gram_of(self.columns[k])
            mass, bend = self.mass[k] + 1e-9 * node.mass, self.bend[k] + 1e-9 * node.mass
            M = gram * ((mass + bend / self.n_outputs) / node.mass)
            M[np.diag_indices(len(M))] += self.curve[k]
            M[np.diag_indices(len(M))] += 1e-9 * np.trace(M) / max(len(M), 1)
            factors.append((linalg.cho_factor(M, check_finite=False), centre, mass, max(bend, 1e-3 * mass)))

        def apply(slope: Floats) -> Floats:
            moved = []
            for (factor, centre, mass, bend), (beta, bias, threshold) in zip(factors, self.parts(slope)):
                to_beta = linalg.cho_solve(factor, beta - np.outer(centre, bias), check_finite=False)
                moved.append(np.concatenate([to_beta.ravel(), bias / mass - centre @ to_beta, [threshold / bend]]))
            return np.concatenate(moved)

        return apply


class _Sums:
    """What is added up over the rows."""

    def __init__(self, n_nodes: int, n_outputs: int, n_terminals: int, n_columns: int) -> None:
        self.value = 0.0
        self.weights = np.zeros((n_columns, n_nodes * n_outputs))
        self.bias, self.threshold = np.zeros((n_nodes, n_outputs)), np.zeros(n_nodes)
        self.leave = np.zeros(n_terminals)
        self.bend, self.mass = np.zeros(n_nodes), np.zeros(n_nodes)

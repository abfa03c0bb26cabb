"""All nodes of a soft graph at once: value, gradient and descent.

The scores of all nodes are one matrix product, and so is the gradient; what lies between (gates, probabilities down,
expected losses and costs up) is one loop over the rows. Scores are linear in the parameters, so once those of a
direction are known, a step along it is judged without looking at the data again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from miserly._typing import Floats
from miserly.estimators.cstc._curvature import loss_curvature, metric
from miserly.kernels.graphs import through_gates
from miserly.solvers import Memory, Metric, line_search

if TYPE_CHECKING:
    from miserly.estimators.cstc._soft_graph import SoftGraph

STEPS = 10
DROP_EVERY = 5
EARLY, RENEWED = 4, 4
SMALL = (0.03, 0.003)
LONGER = 4.0  # times the last step, at most 1, is the first one tried: steep gates allow short steps only


class Joint:
    """The parameters of all nodes in one list: for each node its weights, its intercepts and its threshold."""

    def __init__(self, whole: SoftGraph) -> None:
        self.whole, self.task, self.graph = whole, whole.task, whole.graph
        self.n_outputs = whole.task.targets.shape[1]
        n_rows, n_nodes, n_ends = whole.task.design.n_rows, len(self.graph), len(self.graph.terminals)
        self.on_path = np.array(
            [[k in self.graph.path(end) for end, _ in self.graph.terminals] for k in range(n_nodes)]
        )
        self.steepness = np.array([node.steepness for node in whole.nodes])
        self.direction = np.array([node.direction for node in whole.nodes])
        skipped = np.array([0.0 if self.task.at_exit else self.graph.skipped(k) for k in range(n_nodes)])
        self._ways = (np.array(self.graph.up), np.array(self.graph.low), self._exits(), skipped)
        self.used = np.unique(np.concatenate([node.columns for node in whole.nodes]))
        self.norm = self.task.norm.of_columns(self.used)
        self._use([node.columns for node in whole.nodes])
        self.H = whole.window(self.used)
        self.scores = np.zeros((n_rows, n_nodes, self.n_outputs))
        self.gradient, self.gate_curvature = np.zeros_like(self.scores), np.zeros((n_rows, n_nodes))
        self.leave, self.mass = np.zeros(n_ends), np.zeros(n_nodes)
        self.to_bias, self.to_threshold = np.zeros((n_nodes, self.n_outputs)), np.zeros(n_nodes)
        self.curve = np.zeros((len(self.used), n_nodes))
        self.n_steps, self.last_step = 0, 1.0

    def _exits(self) -> NDArray[np.intp]:
        """The numbers of the terminals: node × side, a leaf's in the first column."""
        exits = np.full((len(self.graph), 2), -1)
        for number, (k, side) in enumerate(self.graph.terminals):
            exits[k, int(side is False)] = number
        return exits

    def _use(self, columns: list[NDArray[np.intp]]) -> None:
        """The columns of each node, and where their weights stand in the list and in the table of all."""
        self.columns, K, n_nodes = columns, self.n_outputs, len(self.graph)
        self.places = [np.searchsorted(self.used, c) for c in columns]
        ends = np.cumsum([(len(c) + 1) * K + 1 for c in columns])
        self.slices = [slice(int(end) - (len(c) + 1) * K - 1, int(end)) for c, end in zip(columns, ends)]
        self._thresholds = ends - 1
        self._intercepts = (ends[:, None] - 1 - K + np.arange(K)).ravel()
        weights = [np.arange(part.start, part.stop - K - 1) for part in self.slices]
        cells = [((p[:, None] * n_nodes + k) * K + np.arange(K)).ravel() for k, p in enumerate(self.places)]
        self._weights, self._cells = np.concatenate(weights), np.concatenate(cells)
        self._loss_curvature: list[Floats] = []

    @property
    def loss_curvature(self) -> list[Floats]:
        """Of each node's loss, for rows that weigh one together."""
        if not self._loss_curvature:
            self._loss_curvature = [loss_curvature(node, c) for node, c in zip(self.whole.nodes, self.columns)]
        return self._loss_curvature

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
        K, each = self.n_outputs, [v[part] for part in self.slices]
        return [(p[: -K - 1].reshape(-1, K), p[-K - 1 : -1], float(p[-1])) for p in each]

    def _table(self, v: Floats) -> Floats:
        """The weights in the list as column × node × output."""
        table = np.zeros((len(self.used), len(self.graph), self.n_outputs))
        table.reshape(-1)[self._cells] = v[self._weights]
        return table

    # ---- value and gradient -----------------------------------------------------------------------------------

    def objective(self, v: Floats) -> tuple[float, Floats]:
        """The objective and its gradient, in which weights that are zero have no part: they stay zero."""
        self.scores = self._scores(v)
        value = self._value(v, self.scores, 0.0)
        return value, self._slope(v)

    def _scores(self, v: Floats) -> Floats:
        """What the weights in the list make of the rows: row × node × output."""
        return self.H.scores(self._table(v).reshape(len(self.used), -1)).reshape(self.scores.shape)

    def _value(self, v: Floats, moves: Floats, step: float) -> float:
        """The objective at v, whose scores are the known ones and a step along `moves`."""
        task, table = self.task, self._table(v)
        squares = np.einsum("tko,tko->tk", table, table)
        self._paths = squares @ self.on_path
        through = through_gates(
            self.scores,
            moves,
            step,
            task.targets,
            task.omega,
            task.share,
            *self._ways,
            self.direction,
            self.steepness,
            v[self._intercepts].reshape(-1, self.n_outputs),
            v[self._thresholds],
            self.norm.value(self._paths),
            task.at_exit,
            task.loss.name == "logistic",
            self.gradient,
            self.gate_curvature,
            self.leave,
            self.mass,
            self.to_bias,
            self.to_threshold,
        )
        return through + task.rho * float(np.sqrt(squares).sum())

    def _slope(self, v: Floats) -> Floats:
        """The gradient at v, where the value was asked last."""
        table = self._table(v)
        size = np.sqrt(np.einsum("tko,tko->tk", table, table))
        self.curve = np.divide(self.task.rho, size, out=np.zeros_like(size), where=size > 0)
        self.curve += self.norm.slopes(self._paths) @ (self.on_path * self.leave).T
        weight_gradient = self.H.sums(self.gradient.reshape(len(self.gradient), -1)).reshape(table.shape)
        weight_gradient = np.where(size[:, :, None] > 0, weight_gradient + self.curve[:, :, None] * table, 0.0)
        slope = np.empty_like(v)
        slope[self._weights] = weight_gradient.reshape(-1)[self._cells]
        slope[self._intercepts], slope[self._thresholds] = self.to_bias.ravel(), self.to_threshold
        return slope

    # ---- descent ----------------------------------------------------------------------------------------------

    def optimise(self, max_rounds: int, tol: float, after: Callable[[SoftGraph], bool] | None = None) -> list[float]:
        """Rounds of a few steps until one lowers the objective by less than `tol` of itself; its values on the way.

        `after` is shown the graph after each round but the last, and says whether to stop.
        """
        v, memory = self.read(), Memory()
        value, slope = self.objective(v)
        values = [value]
        for number in range(1, max_rounds + 1):
            v, value, slope = self._steps(v, value, slope, memory, 0.01 * tol * abs(value))
            ends = number == max_rounds or values[-1] - value <= tol * abs(values[-1])
            if ends or number % DROP_EVERY == 0:
                v, value, slope = self._drop(v, value, slope, memory)
            values.append(value)
            if ends:
                break
            if after is not None:
                self.write(v)
                if after(self.whole):
                    break
        self.write(v)
        return values

    def _steps(
        self, v: Floats, value: float, slope: Floats, memory: Memory, tol: float
    ) -> tuple[Floats, float, Floats]:
        """A round; it ends early when a step predicts less than `tol`. The metric is renewed on the way."""
        inverse: Metric | None = None
        for _ in range(STEPS):
            if inverse is None or self.n_steps < EARLY or self.n_steps % RENEWED == 0:
                inverse = metric(self)
            self.n_steps += 1
            direction, derivative = memory.direction(slope, inverse)
            if -derivative <= tol:
                break
            moves = self._scores(direction)
            step = 0.0
            if np.isfinite(direction).all():
                first = min(1.0, LONGER * self.last_step)
                step, value = line_search(self._along(v, direction, moves), value, derivative, first)
                self.last_step = step or 1.0
            if not step:
                memory.forget()
                return v, *self.objective(v)
            v = v + step * direction
            self.scores += step * moves
            before, slope = slope, self._slope(v)
            memory.learn(step * direction, slope - before)
        return v, value, slope

    def _along(self, v: Floats, direction: Floats, moves: Floats) -> Callable[[float], float]:
        """The value after a step along a direction, whose scores are `moves`."""
        return lambda step: self._value(v + step * direction, moves, step)

    def _drop(self, v: Floats, value: float, slope: Floats, memory: Memory) -> tuple[Floats, float, Floats]:
        """Set to zero what is best there, given the rest; fewer of them while the objective would rise.

        A weight goes if the gradient of the smooth part, taken at zero, is not larger than the penalties.
        """
        held, size = [], []
        for k, ((beta, _, _), (gradient, _, _)) in enumerate(zip(self.parts(v), self.parts(slope))):
            length = np.linalg.norm(beta, axis=1)
            own = self.task.loss.curvature * np.diag(self.whole.nodes[k].gram_of(self.columns[k])[0])
            curve = self.curve[self.places[k], k]
            at_zero = np.linalg.norm(gradient - (curve + own)[:, None] * beta, axis=1)
            held.append((length > 0) & (at_zero <= curve * length))
            size.append(length / max(float(length.max(initial=0.0)), 1e-300))
        tried = False
        for share in SMALL:
            without = v.copy()
            for k, (beta, _, _) in enumerate(self.parts(without)):
                gone = held[k] & (size[k] <= share)
                beta[gone] = 0.0 if not gone[size[k] > 0].all() else beta[gone]
            if np.array_equal(without, v):
                break
            tried = True
            found, there = self.objective(without)
            if found <= value:
                kept = self._forget_zeros(without)
                memory.keep(kept)
                return without[kept], found, there[kept]
        return (v, *self.objective(v)) if tried else (v, value, slope)

    def _forget_zeros(self, v: Floats) -> NDArray[np.bool_]:
        """From now on weights that are zero do not exist; tells which places of the list remain."""
        alive = [beta.any(axis=1) for beta, _, _ in self.parts(v)]
        rest = np.ones(self.n_outputs + 1, bool)
        kept = np.concatenate([np.append(np.repeat(those, self.n_outputs), rest) for those in alive])
        self._use([columns[those] for columns, those in zip(self.columns, alive)])
        return kept

"""Trees and cascades of linear classifiers with soft gates: CSTC and CSCC in one objective.

    Σ_k [ Σ_i ω_i w_i^k ℓ(y_i, f^k(x_i)) + ρ Σ_t ‖β_t^k‖ ] + λ Σ_l p̄^l [ Σ_t e_t √Q_t^l + Σ_a c_a √(Σ_t N_at Q_t^l) ]

ℓ is ½‖y − f‖², or the logistic loss of ±1 (`_node_losses`). f^k = H β^k + b^k; Q_t^l sums ‖β_t^j‖² over the nodes j of
the path to terminal l; w^k is the probability of reaching node k (CSTC), or of leaving there (CSCC, `at_exit`). A gate
looks at one direction u^k of the outputs: with one output that is the score itself, with several the direction in
which the node's scores vary most (ours; the papers have one output).

Nodes are found from the top down, each as if it were the last; then each is improved with the others fixed.
Zeros stay zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from miserly._typing import Floats
from miserly.estimators.cstc._gated_node import GatedNode
from miserly.estimators.cstc._joint import Joint
from miserly.estimators.cstc._node_losses import SQUARED, TOUCH_TOL, TOUCHES, NodeLoss
from miserly.solvers import (
    AcquisitionNorm,
    Asked,
    Design,
    GateGraph,
    Held,
    MixedNorm,
    Traversal,
    Window,
    centred_gram,
    repeat_until_converged,
    soft_gate,
)

NEGLIGIBLE = 1e-10
LARGE = 1 << 26
SHARPNESS = 12.0
LEAF_ROUNDS = 25
LEAF_TOUCHES = 5  # of the parabola and the logistic loss in a round: the next round goes on from there
MANY_NODES = 31
MANY_ROWS = 10_000
FORGOTTEN = 1e-4


@dataclass(frozen=True)
class GraphTask:
    """The data of a fit: design, targets (row × output), row weights of the loss and of the cost (each adds up to one).

    `norm` has λ in its prices. `min_rows` is the share of the cost weights that a node must get.
    Without a `steepness` that of a gate is `sharpness` over the deviation of its scores.
    """

    design: Design
    targets: Floats
    omega: Floats
    share: Floats
    norm: AcquisitionNorm
    rho: float = 0.0
    at_exit: bool = False
    min_rows: float = 0.0
    steepness: float | None = None
    reweight: bool = True
    sharpness: float = SHARPNESS
    loss: NodeLoss = SQUARED


@dataclass
class Classifier:
    """One node: weights of standardised columns (column × output), intercept, and its gate.

    `gram`, `centre` and `mass` are what its initialisation saw of the columns `known` (the weighted squares and means,
    and the weight of all rows): the scale of its parameters, later on. A `gate` is weights that the gate looks at in
    place of the node's own.
    """

    beta: Floats
    bias: Floats
    direction: Floats
    threshold: float = 0.0
    steepness: float = 1.0
    known: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    gram: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    centre: Floats = field(default_factory=lambda: np.zeros(0))
    mass: float = 1.0
    gate: Floats | None = None

    @property
    def columns(self) -> NDArray[np.intp]:
        """The columns in use."""
        return np.flatnonzero(self.beta.any(axis=1))

    def gram_of(self, columns: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """The Gram matrix and the means of some of the columns that it knows."""
        at = np.searchsorted(self.known, columns)
        return self.gram[np.ix_(at, at)], self.centre[at]

    @property
    def routing(self) -> Floats:
        """What the gate looks at, as weights."""
        return self.beta @ self.direction if self.gate is None else self.gate


class SoftGraph:
    """The nodes with all that is known of the rows at each: gates and losses."""

    def __init__(self, task: GraphTask, graph: GateGraph) -> None:
        self.task, self.graph = task, graph
        n = task.design.n_rows
        dtype: type = np.float32 if n * len(graph) > LARGE else np.float64
        self.traversal = Traversal(graph, n, dtype)
        self.loss: NDArray[np.floating] = np.zeros((len(graph), n), dtype)
        self.nodes: list[Classifier] = []
        self.started: list[Classifier] = []
        self._columns: dict[int, Floats] = {}

    # ---- the objective ----------------------------------------------------------------------------------------

    def path_squares(self, k: int, without: int | None = None) -> Floats:
        """Σ ‖β_t^j‖² over the path to node k, for each column."""
        total = np.zeros(self.task.design.n_columns)
        for j in self.graph.path(k):
            if j != without and j < len(self.nodes):
                total += (self.nodes[j].beta ** 2).sum(axis=1)
        return total

    def objective(self) -> float:
        """The value of the whole."""
        expected = self.traversal.loss_from(0, self.loss, self.task.at_exit)
        size = sum(float(np.linalg.norm(node.beta, axis=1).sum()) for node in self.nodes)
        means = self.traversal.mean_leave(self.task.share)
        squares = np.column_stack([self.path_squares(k) for k, _ in self.graph.terminals])
        return float(self.task.omega @ expected + self.task.rho * size + means @ self.task.norm.value(squares))

    # ---- from the top down ------------------------------------------------------------------------------------

    @classmethod
    def initialise(
        cls, task: GraphTask, graph: GateGraph, root_gram: Floats | None = None, starts: list[Classifier] | None = None
    ) -> SoftGraph:
        """Each node as if it were the last; nodes below one that buys nothing, or with too few rows, are not made.

        `root_gram` is the root's Gram matrix if it is known, `starts` (as `started`) are nodes to begin from.
        """
        whole = cls(task, graph)
        made = np.zeros(len(graph), bool)
        for k in range(len(graph)):
            above = graph.parents[k]
            parent_splits = above is None or (made[above[0]] and bool(whole.nodes[above[0]].beta.any()))
            reach = whole.traversal.reach(k) if parent_splits else None
            if reach is None or (k > 0 and float(task.share @ reach) < task.min_rows):
                whole.nodes.append(whole._nothing())
                continue
            made[k] = True
            start = None if starts is None else starts[k].beta
            whole.nodes.append(whole._pretend_last(k, reach, root_gram if k == 0 else None, start))
            whole.refresh(k)
        part = whole.keep(made)
        part.started = whole.nodes
        return part

    def keep(self, kept: NDArray[np.bool_]) -> SoftGraph:
        """The same nodes without some."""
        if kept.all():
            return self
        part = SoftGraph(self.task, self.graph.keep(kept))
        part.nodes = [node for node, stays in zip(self.nodes, kept) if stays]
        for new, old in enumerate(np.flatnonzero(kept)):
            part.loss[new] = self.loss[old]
            if not part.graph.is_leaf(new):
                part.traversal.set(new, self.traversal.gate(int(old)))
        return part

    def _nothing(self) -> Classifier:
        n_outputs = self.task.targets.shape[1]
        return Classifier(np.zeros((self.task.design.n_columns, n_outputs)), np.zeros(n_outputs), np.zeros(n_outputs))

    def _pretend_last(self, k: int, reach: Floats, gram: Floats | None, start: Floats | None) -> Classifier:
        task = self.task
        weight = _most(_present(task.omega * reach)) if k else task.omega
        gram = task.design.gram(weight) if gram is None else gram
        base, size = self.path_squares(k), task.loss.curvature
        scores, value = np.tile(task.loss.constant(task.targets, weight), (task.design.n_rows, 1)), np.inf
        first = float(weight @ task.loss.values(scores, task.targets))
        for _ in range(1 if task.loss.is_squared else TOUCHES):
            A, b, centre, mean = moments(task, weight, gram, task.loss.working(scores, task.targets))
            problem = MixedNorm(size * A, size * b, task.norm, task.rho, float(task.share @ reach), base=base)
            beta = start = (problem.reweighted(start) if task.reweight else problem.run_from(start)).beta
            node = Classifier(beta, mean - centre @ beta, _direction(A, beta))
            if task.loss.is_squared:
                break
            scores, before = task.design.scores(beta) + node.bias, value
            penalty = problem.value(beta) + size * float(np.vdot(b, beta) - 0.5 * np.vdot(beta, A @ beta))
            value = float(weight @ task.loss.values(scores, task.targets)) + penalty
            if not beta.any() or before - value <= TOUCH_TOL * first:
                break
        kept = node.columns
        node.known, node.gram, node.centre = kept, A[np.ix_(kept, kept)], centre[kept]
        routing, total = node.routing, float(weight.sum())
        node.mass = total
        node.threshold = float(centre @ routing)
        std = float(np.sqrt(max(float(routing @ A @ routing), 0.0) / total))
        node.steepness = task.steepness or (task.sharpness / std if std > 0 else 1.0)
        return node

    def window(self, columns: NDArray[np.intp], rows: NDArray[np.intp] | None = None) -> Window:
        """Some columns of the design and some of its rows; if it is all, an array that lies row by row."""
        if self.task.design.far:
            return Asked(self.task.design, columns, rows)
        if rows is None:
            return Held(np.ascontiguousarray(self._block(columns, np.arange(self.task.design.n_rows))))
        return Held(self._block(columns, rows))

    def _block(self, columns: NDArray[np.intp], rows: NDArray[np.intp]) -> Floats:
        """Columns are cached while memory allows, since nodes share them."""
        out = np.empty((len(rows), len(columns)), order="F")
        for i, j in enumerate(columns):
            column = self._columns.get(int(j))
            if column is None:
                column = self.task.design.column(int(j))
                if (len(self._columns) + 1) * len(column) <= LARGE:
                    self._columns[int(j)] = column
            out[:, i] = column[rows]
        return out

    def refresh(self, k: int) -> None:
        """What the rows meet at node k, after it has changed."""
        node = self.nodes[k]
        scores = self.task.design.scores(node.beta)
        if not self.graph.is_leaf(k):
            seen = scores @ node.direction if node.gate is None else self.task.design.scores(node.gate)
            self.traversal.set(k, soft_gate(seen, node.threshold, node.steepness))
        self.loss[k] = self.task.loss.values(scores + node.bias, self.task.targets)

    # ---- one node after the other -----------------------------------------------------------------------------

    def sharpen(self, factor: float) -> None:
        """Gates that are steeper by a factor."""
        if factor != 1.0:
            for k, node in enumerate(self.nodes):
                node.steepness *= factor
                self.refresh(k)

    def optimise(
        self, max_iter: int, tol: float = 1e-4, after: Callable[[SoftGraph], bool] | None = None
    ) -> list[float]:
        """All nodes at once where that fits into memory and pays, else one after the other; values on the way.

        `after` is shown the graph after each round, and says whether to stop.
        """
        columns = np.unique(np.concatenate([node.columns for node in self.nodes]))
        if not max_iter or not len(columns):
            return [self.objective()]
        widest = max(0 if self.task.design.far else len(columns), len(self.graph) * self.task.targets.shape[1])
        if len(self.graph) <= MANY_NODES and widest * self.task.design.n_rows <= LARGE:
            return Joint(self).optimise(max_iter, tol, after)
        return self.sweep(max_iter, tol)

    def sweep(self, max_sweeps: int, tol: float = 1e-4, rounds: int = 3) -> list[float]:
        """Algorithm 5: over the nodes until the objective falls by less than `tol` of itself; values on the way."""

        def sweep() -> None:
            for k in range(len(self.graph)):
                self.improve(k, rounds)

        return repeat_until_converged(sweep, self.objective, max_sweeps, tol)

    def improve(self, k: int, rounds: int = 3) -> None:
        """Lower the objective in the parameters of one node."""
        if not self.nodes[k].beta.any():
            return
        if self.graph.is_leaf(k):
            self._improve_leaf(k)
        else:
            GatedNode(self, k).improve(rounds)
        self.refresh(k)

    def _improve_leaf(self, k: int) -> None:
        task, node = self.task, self.nodes[k]
        columns, reach = node.columns, self.traversal.reach(k)
        weight = _present(task.omega * reach) * (1 if task.at_exit else 1 + self.graph.skipped(k))
        if not weight.any():
            return
        rows = np.flatnonzero(weight)
        w, Y, Z = weight[rows], task.targets[rows], self.window(columns, rows)
        total, size = float(w.sum()), task.loss.curvature
        centre = Z.sums(w) / total
        around = Z.around(centre)
        A = around.gram(w)
        base = self.path_squares(k, without=k)
        others = base.copy()
        others[columns] = 0.0
        for _ in range(1 if task.loss.is_squared else LEAF_TOUCHES):
            wanted = Y if task.loss.is_squared else task.loss.working(Z.scores(node.beta[columns]) + node.bias, Y)
            mean = w @ wanted / total
            problem = MixedNorm(
                size * A,
                size * around.sums(w[:, None] * (wanted - mean)),
                task.norm.of_columns(columns),
                task.rho,
                float(task.share @ reach),
                base=base[columns],
                shared=task.norm.needs @ others,
            )
            beta = problem.run(start=node.beta[columns], max_iter=LEAF_ROUNDS).beta
            node.beta[columns] = beta
            node.bias = mean - centre @ beta


def moments(
    task: GraphTask, weight: Floats, gram: Floats | None = None, targets: Floats | None = None
) -> tuple[Floats, Floats, Floats, Floats]:
    """A and b around the weighted means, which are the third and fourth: so the intercept is free."""
    total, targets = float(weight.sum()), task.targets if targets is None else targets
    mean = weight @ targets / total
    sums = task.design.sums(np.column_stack([weight, weight[:, None] * (targets - mean)]))
    centre = sums[:, 0] / total
    A = task.design.gram(weight) if gram is None else gram
    return centred_gram(A, total, centre), sums[:, 1:], centre, mean


def _present(weight: Floats) -> Floats:
    """Weights without those of rows that practically never come."""
    return np.where(weight > NEGLIGIBLE * weight.max(initial=0.0), weight, 0.0)


def _most(weight: Floats) -> Floats:
    """Weights of many rows without the smallest, as far as these hold next to nothing together: less to add up."""
    if len(weight) <= MANY_ROWS:
        return weight
    ordered = np.sort(weight)
    least = ordered[np.searchsorted(np.cumsum(ordered), FORGOTTEN * weight.sum())]
    return np.where(weight >= least, weight, 0.0)


def _direction(A: Floats, beta: Floats) -> Floats:
    """The direction of the outputs in which the scores vary most; its largest part is positive."""
    if beta.shape[1] == 1:
        return np.ones(1)
    used = np.flatnonzero(beta.any(axis=1))
    std = beta[used].T @ A[np.ix_(used, used)] @ beta[used]
    direction = np.linalg.eigh(std)[1][:, -1]
    return direction * np.sign(direction[np.argmax(np.abs(direction))])

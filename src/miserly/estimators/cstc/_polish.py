"""Greedy improvement of a tree whose gates are hard: cheaper gates with weights of their own, and swaps at each leaf.

The descent moves all weights of a node together, and its gate looks at the very weights that it predicts with. So an
expensive column that helps few rows of an inner node stays in its gate, and all rows pay for it. Here

    Σ_i ω_i ½‖y_i − f(x_i)‖² + λ · mean cost

is lowered with hard gates by three kinds of moves: a leaf chooses its columns again (forward by gain less price, then
one swap at a time, as ASTC selects); a gate gives up acquisitions that nodes above it have not paid, its other weights
fitted to its old score; a gate gives up its more expensive columns, all but one, or one. Each move is kept if the
objective falls. Moves are made by the squared loss, also where nodes have another: candidates are judged by theirs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from miserly._typing import Floats
from miserly.estimators._base import Learners
from miserly.estimators.cstc._soft_graph import SoftGraph, moments
from miserly.solvers import EXIT

WORK = 1e9  # rows × columns² of all moves tried: about half a second
MOST_MOVES = 100
MOST_COLUMNS = 40  # columns that a leaf may add: beyond that greedy choice costs more than it gives
LEVELS = 4  # prices up to which a gate is tried, and columns that it is tried with alone: each is one fit of its score
RIDGE = 1e-9


@dataclass(frozen=True)
class GateWeights:
    """The gate of an inner node: weights of standardised columns and a threshold."""

    weights: Floats
    threshold: float

    @property
    def columns(self) -> NDArray[np.intp]:
        """The columns that it looks at."""
        return np.flatnonzero(self.weights)


@dataclass(frozen=True)
class Leaf:
    """The columns that a leaf predicts with, and what its rows add to the objective."""

    columns: NDArray[np.intp]
    value: float


class Polish:
    """Moves on one tree; `run` gives the tree with the best gates and leaves found, or None if none is better."""

    def __init__(self, soft: SoftGraph, learners: Learners, price: float) -> None:
        self.soft, self.learners, self.price = soft, learners, price
        self.task, self.graph = soft.task, soft.graph
        self._leaves: dict[tuple[bytes, bytes], Leaf] = {}
        n_moves = int(WORK / (self.task.design.n_rows * self.task.design.n_columns**2))
        self.n_moves = min(MOST_MOVES, n_moves)

    def run(self) -> SoftGraph:
        """The improved tree: same graph, gates with weights of their own."""
        gates = {k: GateWeights(self.soft.nodes[k].routing, self.soft.nodes[k].threshold) for k in self.graph.inner}
        value = self._value(gates)
        improved = True
        while improved and self.n_moves > 0:
            improved = False
            for k in reversed(self.graph.inner):
                for columns in self._smaller(gates, k):
                    if self.n_moves <= 0:
                        break
                    self.n_moves -= 1
                    tried = {**gates, k: self._refitted(gates, k, columns)}
                    found = self._value(tried)
                    if found < value - 1e-9 * abs(value):
                        gates, value, improved = tried, found, True
                        break
        return self._tree(gates)

    # ---- gates ------------------------------------------------------------------------------------------------

    def _smaller(self, gates: dict[int, GateWeights], k: int) -> Iterator[NDArray[np.intp]]:
        """Sets of columns that gate k might do with: what is paid above it, its cheaper ones, one, all but one."""
        own = gates[k].columns
        above = [gates[j].columns for j in self.graph.path(k)[:-1]]
        paid = np.unique(np.concatenate([*above, np.zeros(0, np.intp)]))
        if len(paid) and len(np.setdiff1d(own, paid)):
            yield paid
        before = self.learners.price(paid)
        extra = self.price * np.array([self.learners.price([*paid, j]) - before for j in own])
        levels = np.unique(extra)[:-1]
        for level in levels[np.unique(np.linspace(0, len(levels) - 1, min(LEVELS, len(levels))).astype(np.intp))]:
            yield own[extra <= level]
        if len(own) > 1:
            for j in own[np.argsort(-np.abs(gates[k].weights[own]), kind="stable")][:LEVELS]:
                yield np.array([j])
            for j in own[np.argsort(np.abs(gates[k].weights[own]), kind="stable")]:
                yield own[own != j]

    def _refitted(self, gates: dict[int, GateWeights], k: int, columns: NDArray[np.intp]) -> GateWeights:
        """The old score of the rows that come to the gate, as well as some columns can say it."""
        rows = self._routes(gates)[k]
        weights = np.zeros_like(gates[k].weights)
        if not len(rows):
            return GateWeights(weights, gates[k].threshold)
        score = self._scores(gates[k])[rows]
        Z = self.soft.window(columns, rows)
        w = self.task.share[rows]
        total = float(w.sum())
        centre, mean = Z.sums(w) / total, float(w @ score / total)
        around = Z.around(centre)
        A, b = around.gram(w), around.sums(w * (score - mean))
        A[np.diag_indices(len(A))] += RIDGE * max(float(np.trace(A)), 1e-300)
        weights[columns] = linalg.solve(A, b.reshape(len(A)), assume_a="pos", check_finite=False)
        return GateWeights(weights, gates[k].threshold - mean + float(centre @ weights[columns]))

    def _scores(self, gate: GateWeights) -> Floats:
        return np.asarray(self.task.design.scores(gate.weights))

    def _routes(self, gates: dict[int, GateWeights]) -> list[NDArray[np.intp]]:
        """The rows that come to each node."""
        at = np.zeros(self.task.design.n_rows, np.intp)
        reached = []
        for k in range(len(self.graph)):
            rows = np.flatnonzero(at == k)
            reached.append(rows)
            if k in gates:
                passed = self._scores(gates[k])[rows] > gates[k].threshold
                at[rows] = np.where(passed, self.graph.up[k], self.graph.low[k])
                at[rows[at[rows] == EXIT]] = k
        return reached

    # ---- leaves -----------------------------------------------------------------------------------------------

    def _exits(self, gates: dict[int, GateWeights]) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.intp]]]:
        """The leaves with their rows, and the columns that gates on the way have paid for."""
        for k, rows in enumerate(self._routes(gates)):
            if self.graph.is_leaf(k):
                paid = [gates[j].columns for j in self.graph.path(k)[:-1]]
                yield k, rows, np.unique(np.concatenate([*paid, np.zeros(0, np.intp)]))

    def _value(self, gates: dict[int, GateWeights]) -> float:
        return sum(self._leaf(rows, paid).value for _, rows, paid in self._exits(gates))

    def _leaf(self, rows: NDArray[np.intp], paid: NDArray[np.intp]) -> Leaf:
        key = (rows.tobytes(), paid.tobytes())
        if key not in self._leaves:
            self._leaves[key] = self._select(rows, paid)
        return self._leaves[key]

    def _select(self, rows: NDArray[np.intp], paid: NDArray[np.intp]) -> Leaf:
        """Forward by gain less price, then swaps; a column must also earn its coefficient (as in ASTC)."""
        weight = np.zeros(self.task.design.n_rows)
        weight[rows] = self.task.omega[rows]
        if not weight.any():
            return Leaf(paid, 0.0)
        A, b, _, mean = moments(self.task, weight)
        total = 0.5 * float(weight[rows] @ ((self.task.targets[rows] - mean) ** 2).sum(axis=1))
        choice = LeafChoice(A, b, total, self.learners, self.price * float(self.task.share[rows].sum()), len(rows))
        columns = choice.swapped(choice.forward(list(map(int, paid))), set(map(int, paid)))
        return Leaf(np.array(sorted(columns), np.intp), choice.value(columns))

    def _tree(self, gates: dict[int, GateWeights]) -> SoftGraph:
        """The graph with these gates; an inner node has the columns of its gate, a leaf those that it chose."""
        made = SoftGraph(self.task, self.graph)
        leaves = {k: self._leaf(rows, paid).columns for k, rows, paid in self._exits(gates)}
        for k, node in enumerate(self.soft.nodes):
            columns = gates[k].columns if k in gates else leaves[k]
            beta = np.zeros_like(node.beta)
            beta[columns] = np.where(node.beta[columns] != 0.0, node.beta[columns], RIDGE)
            gate = gates[k] if k in gates else GateWeights(np.zeros(len(beta)), 0.0)
            made.nodes.append(replace(node, beta=beta, gate=gate.weights, threshold=gate.threshold))
            made.refresh(k)
        return made


class LeafChoice:
    """Least squares on some columns of a leaf: A and b around the means, prices times λ and the leaf's share."""

    def __init__(self, A: Floats, b: Floats, total: float, learners: Learners, price: float, n_rows: int) -> None:
        self.A, self.b, self.total, self.learners, self.price = A, b, total, learners, price
        self.varying = np.diag(A) > 1e-10 * max(float(np.diag(A).max(initial=0.0)), 1e-300)
        # of all columns, chance makes the best look this many times the error's variance
        self.penalty = 2.0 * max(1.0, math.log(max(1, len(A)))) / max(n_rows, 1)

    def error(self, columns: list[int]) -> float:
        """The loss that is left."""
        used = [j for j in columns if self.varying[j]]
        if not used:
            return self.total
        M = self.A[np.ix_(used, used)].copy()
        M[np.diag_indices(len(M))] *= 1.0 + RIDGE
        solved = linalg.lstsq(M, self.b[used], check_finite=False)[0]
        return max(self.total - 0.5 * float((solved * self.b[used]).sum()), 0.0)

    def value(self, columns: list[int]) -> float:
        """Loss and cost."""
        return self.error(columns) + self.price * self.learners.price(columns)

    def forward(self, columns: list[int]) -> list[int]:
        """Add what lowers loss and cost most, while its coefficient is worth having."""
        while len(columns) < MOST_COLUMNS and (best := self._best(columns)) is not None:
            columns = [*columns, best]
        return columns

    def swapped(self, columns: list[int], fixed: set[int]) -> list[int]:
        """Give up one column, and take the best other one or none, while that is better."""
        value = self._penalised(columns)
        improved = True
        while improved:
            improved = False
            for j in [c for c in columns if c not in fixed]:
                rest = [c for c in columns if c != j]
                tried = self.forward(rest)
                for other in (rest, tried):
                    if (found := self._penalised(other)) < value - 1e-12 * self.total:
                        columns, value, improved = other, found, True
                if improved:
                    break
        return columns

    def _penalised(self, columns: list[int]) -> float:
        return self.error(columns) * (1.0 + self.penalty * len(columns)) + self.price * self.learners.price(columns)

    def _best(self, columns: list[int]) -> int | None:
        """The column whose gain is most above its price, all at once through the residual's moments."""
        used = [j for j in columns if self.varying[j]]
        rest, moment = np.diag(self.A).copy(), self.b
        if used:
            M = self.A[np.ix_(used, used)].copy()
            M[np.diag_indices(len(M))] *= 1.0 + RIDGE
            solved = linalg.lstsq(M, np.column_stack([self.b[used], self.A[used]]), check_finite=False)[0]
            K = self.b.shape[1]
            moment = self.b - self.A[:, used] @ solved[:, :K]
            rest = rest - np.einsum("ij,ji->i", self.A[:, used], solved[:, K:])
        usable = self.varying & (rest > 1e-8 * np.diag(self.A))
        usable[columns] = False
        error = self.error(columns)
        gains = np.zeros(len(rest))
        gains[usable] = 0.5 * (moment[usable] ** 2).sum(axis=1) / rest[usable]
        useful = np.flatnonzero(gains > self.penalty * np.maximum(error - gains, 0.0) + 1e-12 * self.total)
        if not len(useful):
            return None
        before = self.learners.price(columns)
        net = [gains[j] - self.price * (self.learners.price([*columns, int(j)]) - before) for j in useful]
        return int(useful[int(np.argmax(net))]) if max(net) > 0 else None

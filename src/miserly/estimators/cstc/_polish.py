"""Greedy improvement of a tree whose gates are hard: cheaper gates with weights of their own, and swaps at each leaf.

The descent moves all weights of a node together, and its gate looks at the very weights that it predicts with. So an
expensive column that helps few rows of an inner node stays in its gate, and all rows pay for it. Here

    Σ_i ω_i ½‖y_i − f(x_i)‖² + λ · mean cost

is lowered with hard gates by three kinds of moves: a leaf chooses its columns again (`_leaf_choice`); a gate gives up
acquisitions that nodes above it have not paid, its other weights fitted to its old score; a gate gives up its more
expensive columns, all but one, or one. Each move is kept if the objective falls. Moves are made by the squared loss,
also where nodes have another: candidates are judged by theirs.
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
from miserly.estimators.cstc._leaf_choice import RIDGE, LeafChoice
from miserly.estimators.cstc._soft_graph import SoftGraph, moments
from miserly.solvers import EXIT

WORK = 1e9  # rows × columns² of all moves tried: about half a second
MOST_MOVES = 100
LEVELS = 4  # prices up to which a gate is tried, and columns that it is tried with alone: each is one fit of its score
Columns = NDArray[np.intp]


@dataclass(frozen=True)
class GateWeights:
    """The gate of an inner node: weights of standardised columns and a threshold."""

    weights: Floats
    threshold: float

    @property
    def columns(self) -> Columns:
        """The columns that it looks at."""
        return np.flatnonzero(self.weights)


@dataclass(frozen=True)
class HardTree:
    """Gates, what they make of all rows, and the rows that come to each node."""

    gates: dict[int, GateWeights]
    scores: dict[int, Floats]
    reached: list[NDArray[np.intp]]


@dataclass(frozen=True)
class Leaf:
    """The columns that rows are answered with where they leave, and what these rows add to the objective."""

    columns: Columns
    value: float


class Polish:
    """Moves on one tree; `run` gives the tree with the best gates and leaves found."""

    def __init__(self, soft: SoftGraph, learners: Learners, price: float) -> None:
        self.soft, self.learners, self.price = soft, learners, price
        self.task, self.graph = soft.task, soft.graph
        self._leaves: dict[tuple[bytes, bytes, bool], Leaf] = {}
        n_moves = int(WORK / (self.task.design.n_rows * self.task.design.n_columns**2))
        self.n_moves = min(MOST_MOVES, n_moves)

    def run(self) -> SoftGraph:
        """The improved tree: same graph, gates with weights of their own."""
        gates = {k: GateWeights(self.soft.nodes[k].routing, self.soft.nodes[k].threshold) for k in self.graph.inner}
        every = [np.arange(self.task.design.n_rows), *[np.zeros(0, np.intp)] * (len(self.graph) - 1)]
        tree = self._routed(HardTree(gates, {k: self._scores(gate) for k, gate in gates.items()}, every), 0)
        value = self._value(tree)
        improved = True
        while improved and self.n_moves > 0:
            improved = False
            for k in reversed(self.graph.inner):
                for columns in self._smaller(tree.gates, k):
                    if self.n_moves <= 0:
                        break
                    self.n_moves -= 1
                    tried = self._moved(tree, k, self._refitted(tree, k, columns))
                    found = self._value(tried, value)
                    if found < value - 1e-9 * abs(value):
                        tree, value, improved = tried, found, True
                        break
        return self._soft(tree)

    # ---- gates ------------------------------------------------------------------------------------------------

    def _smaller(self, gates: dict[int, GateWeights], k: int) -> Iterator[Columns]:
        """Sets of columns that gate k might do with: what is paid above it, its cheaper ones, one, all but one."""
        own, paid = gates[k].columns, self._paid(gates, self.graph.path(k)[:-1])
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

    def _refitted(self, tree: HardTree, k: int, columns: Columns) -> GateWeights:
        """The old score of the rows that come to the gate, as well as some columns can say it."""
        rows, gate = tree.reached[k], tree.gates[k]
        weights = np.zeros_like(gate.weights)
        if not len(rows):
            return GateWeights(weights, gate.threshold)
        score = tree.scores[k][rows]
        Z = self.soft.window(columns, rows)
        w = self.task.share[rows]
        total = float(w.sum())
        centre, mean = Z.sums(w) / total, float(w @ score / total)
        around = Z.around(centre)
        A, b = around.gram(w), around.sums(w * (score - mean))
        A[np.diag_indices(len(A))] += RIDGE * max(float(np.trace(A)), 1e-300)
        weights[columns] = linalg.solve(A, b.reshape(len(A)), assume_a="pos", check_finite=False)
        return GateWeights(weights, gate.threshold - mean + float(centre @ weights[columns]))

    def _scores(self, gate: GateWeights) -> Floats:
        return np.asarray(self.task.design.scores(gate.weights))

    def _moved(self, tree: HardTree, k: int, gate: GateWeights) -> HardTree:
        """The tree with another gate."""
        return self._routed(
            HardTree({**tree.gates, k: gate}, {**tree.scores, k: self._scores(gate)}, list(tree.reached)), k
        )

    def _routed(self, tree: HardTree, top: int) -> HardTree:
        """Send the rows that come to a node on, all the way down."""
        below = [top]
        for k in below:
            if k in tree.gates:
                rows = tree.reached[k]
                passed = tree.scores[k][rows] > tree.gates[k].threshold
                for child, mine in ((self.graph.up[k], passed), (self.graph.low[k], ~passed)):
                    if child != EXIT:
                        tree.reached[child] = rows[mine]
                        below.append(child)
        return tree

    # ---- where rows leave -------------------------------------------------------------------------------------

    def _paid(self, gates: dict[int, GateWeights], nodes: Iterator[int] | list[int] | tuple[int, ...]) -> Columns:
        """What the gates of some nodes look at."""
        return np.unique(np.concatenate([*(gates[j].columns for j in nodes), np.zeros(0, np.intp)]))

    def _exits(self, tree: HardTree) -> Iterator[tuple[int, NDArray[np.intp], Columns]]:
        """The nodes where rows leave, these rows, and the columns that gates on the way have paid for."""
        for k, rows in enumerate(tree.reached):
            if self.graph.is_leaf(k):
                yield k, rows, self._paid(tree.gates, self.graph.path(k)[:-1])
            elif EXIT in (self.graph.up[k], self.graph.low[k]):
                passed = tree.scores[k][rows] > tree.gates[k].threshold
                leaves = passed if self.graph.up[k] == EXIT else ~passed
                yield k, rows[leaves], self._paid(tree.gates, self.graph.path(k))

    def _value(self, tree: HardTree, most: float = math.inf) -> float:
        """The objective; once it must be more than `most`, infinity. Rows pay at least what their gates look at."""
        known, asked = 0.0, []
        for k, rows, paid in self._exits(tree):
            leaf = self._leaves.get((rows.tobytes(), paid.tobytes(), self.graph.is_leaf(k)))
            least = self._price(rows) * self.learners.price(paid) if leaf is None else leaf.value
            known += least
            if leaf is None:
                asked.append((least, k, rows, paid))
        for least, k, rows, paid in asked:
            if known > most:
                return math.inf
            known += self._leaf(k, rows, paid).value - least
        return known

    def _price(self, rows: NDArray[np.intp]) -> float:
        return self.price * float(self.task.share[rows].sum())

    def _leaf(self, k: int, rows: NDArray[np.intp], paid: Columns) -> Leaf:
        """What is answered there; an inner node answers those that leave with what its gate looks at."""
        chooses = self.graph.is_leaf(k)
        key = (rows.tobytes(), paid.tobytes(), chooses)
        if key not in self._leaves:
            self._leaves[key] = self._select(rows, paid, chooses)
        return self._leaves[key]

    def _select(self, rows: NDArray[np.intp], paid: Columns, chooses: bool) -> Leaf:
        weight = np.zeros(self.task.design.n_rows)
        weight[rows] = self.task.omega[rows]
        if not weight.any():
            return Leaf(paid, self._price(rows) * self.learners.price(paid))
        A, b, _, mean = moments(self.task, weight)
        total = 0.5 * float(weight[rows] @ ((self.task.targets[rows] - mean) ** 2).sum(axis=1))
        choice = LeafChoice(A, b, total, self.learners, self._price(rows), len(rows))
        columns, value = choice.best(paid.tolist()) if chooses else (paid.tolist(), choice.value(paid.tolist()))
        return Leaf(np.array(sorted(columns), np.intp), value)

    def _soft(self, tree: HardTree) -> SoftGraph:
        """The graph with these gates; an inner node has the columns of its gate, a leaf those that it chose."""
        made = SoftGraph(self.task, self.graph)
        leaves = {k: self._leaf(k, rows, paid).columns for k, rows, paid in self._exits(tree)}
        for k, node in enumerate(self.soft.nodes):
            columns = tree.gates[k].columns if k in tree.gates else leaves[k]
            beta = np.zeros_like(node.beta)
            beta[columns] = np.where(node.beta[columns] != 0.0, node.beta[columns], RIDGE)
            gate = tree.gates[k] if k in tree.gates else GateWeights(np.zeros(len(beta)), 0.0)
            made.nodes.append(replace(node, beta=beta, gate=gate.weights, threshold=gate.threshold))
            made.refresh(k)
        return made

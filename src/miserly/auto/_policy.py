"""Fitted value iteration over a graph of stages: for each rate λ, who goes on from each stage, and where to.

A state is a set of acquisitions with the stage fitted on it; a row may stop there or go on to a larger set. Backwards
from the largest sets, the loss saved by going on, less λ · price, is regressed on what is known at the state (owned
columns, and how sure the present prediction is). Losses are those of out-of-fold predictions, and a rule decides for
rows that it was not fitted on, so that the value of a state is that of its rules on new rows.
Where the orders of a row are limited, a place is a state with the orders that are left, and one order may go to any
larger set: which tests are ordered together is learned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from miserly._typing import Floats
from miserly.auto._gate_tree import GateTree, Inputs, grow
from miserly.auto._labels import SoftLabels
from miserly.auto._stages import StageFitter, StageModel
from miserly.auto._task import Rows, Task
from miserly.plan import Trees, confidence_columns, stack_trees
from miserly.solvers import weighted_mean

ROWS_ALIKE = 20  # for each different prediction of a model, so that it has not learned single rows
N_PARTS = 3  # a rule is the mean of this many trees, each fitted on the rows of all parts but one
MOST_COLUMNS = 12  # of the data, that a rule may look at: those that its stage uses most
MOST_WAYS = 4  # from one state: half of them lead to the least loss, half to the most gain for the price
MOST_ROWS = 20_000  # that rules learn from
UNLIMITED = -1  # orders
Place = tuple[int, int]  # the orders that are left, and the state


@dataclass(frozen=True)
class Rule:
    """The mean of trees over some inputs; rows for which it is positive pass."""

    inputs: Inputs
    trees: tuple[GateTree, ...]

    def forest(self) -> Trees:
        """As the node of a plan keeps it."""
        return stack_trees([tree.table(self.inputs, 1.0 / len(self.trees)) for tree in self.trees])


@dataclass(frozen=True)
class Decision:
    """What happens at a place: `go` is a rule, or the same for all rows; then `choosers[j]` takes `ways[j]` for rows
    that pass it, and the last way is for the others."""

    go: Rule | bool
    ways: tuple[Place, ...] = ()
    choosers: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class StagePolicy:
    """Decisions at a rate, from a place on, and where each row ends (numbers of `StageGraph.order`): by rules that have
    not seen it, by the rules of all parts, and for held-out rows."""

    rate: float
    start: Place
    decisions: dict[Place, Decision]
    end: np.ndarray
    end_of_all: np.ndarray
    end_of_held: np.ndarray | None


@dataclass(eq=False)
class StageGraph:
    """Stages and the ways between them: from a set to the smallest sets of the graph that contain it."""

    task: Task
    fitter: StageFitter
    order: list[int] = field(init=False)
    ways: dict[int, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.stages, self.price = self.fitter.stages, self.fitter.price
        self.order = sorted(self.stages, key=lambda s: (s.bit_count(), s))
        self.ways = {s: self._next(s) for s in self.order}
        rng = np.random.default_rng(self.task.seed)
        self.rows = self.task.scored
        if len(self.rows) > MOST_ROWS:
            self.rows = np.sort(rng.permutation(self.rows)[:MOST_ROWS])
        self.part = rng.permutation(len(self.rows)) % N_PARTS
        self.number = {s: k for k, s in enumerate(self.order)}

    def _next(self, state: int) -> list[int]:
        above = [s for s in self.order if s != state and not state & ~s]
        least = [s for s in above if not any(t not in (s, state) and not t & ~s for t in above)]
        if len(least) <= MOST_WAYS:
            return least
        best = sorted(least, key=lambda s: (self._mean_loss(s), s))[: MOST_WAYS // 2]
        others = [s for s in least if s not in best]
        return best + sorted(others, key=lambda s: (-self._gain_per_price(state, s), s))[: MOST_WAYS - len(best)]

    def _gain_per_price(self, state: int, way: int) -> float:
        price = self.stages[way].price - self.stages[state].price
        gain = self._mean_loss(state) - self._mean_loss(way)
        return gain / price if price > 0 else math.inf

    def _mean_loss(self, state: int) -> float:
        return self.task.mean_loss(self.stages[state].oof, "log", state)

    @cached_property
    def prices(self) -> Floats:
        """What a row has paid that ends at each state, in order."""
        return np.array([self.stages[s].price for s in self.order])

    @cached_property
    def paid_by_rows(self) -> Floats:
        """What each row that rules learn from has paid that ends at each state (states × rows)."""
        return self.paid(self.task.train.part(self.rows))

    @cached_property
    def inputs(self) -> dict[int, tuple[Inputs, np.ndarray | None]]:
        """What is known at each state, in bins, and the bins of held-out rows."""
        return {s: self._known_at(s) for s in self.order}

    def paid(self, rows: Rows) -> Floats:
        """What each of some rows has paid that ends at each state (states × rows)."""
        if rows.prices is None:
            return np.broadcast_to(self.prices[:, None], (len(self.order), len(rows)))
        return np.array([rows.paid(s, self.stages[s].price, self.stages[s].evaluations) for s in self.order])

    def weights(self, rows: Rows) -> Floats | None:
        """How many rows each of some rows stands for that ends at each state (states × rows), where purchases were
        logged; None: all rows count alike."""
        return None if rows.logged is None else np.array([rows.logged.weights(s) for s in self.order])

    @cached_property
    def _weights_of_rows(self) -> Floats | None:
        return self.weights(self.task.train.part(self.rows))

    def _counted(self, *ends: np.ndarray) -> Floats | None:
        """How many rows each row stands for whose purchases are logged wherever it may end."""
        weights = self._weights_of_rows
        if weights is None or len(ends) == 1:
            return None if weights is None else weights[ends[0], np.arange(len(self.rows))]
        out, logged = np.zeros(len(self.rows)), self.task.train.part(self.rows).logged
        assert logged is not None
        pairs, kind = np.unique(np.stack(ends), axis=1, return_inverse=True)
        for k, (a, b) in enumerate(pairs.T):
            here = np.flatnonzero(kind.ravel() == k)
            out[here] = logged.part(here).weights(self.order[a] | self.order[b])
        return out

    def _mean(self, loss: Floats, ends: np.ndarray, here: Floats, state: int) -> float:
        """The mean loss if rows end there. Where purchases are logged: that of stopping at a state, and what it differs
        by on the rows that tell."""
        counted = self._counted(ends)
        if counted is None:
            return float(loss.mean())
        stopping = weighted_mean(here, self._counted(np.full(len(here), self.number[state])))
        differs = weighted_mean(loss - here, counted)
        return stopping + differs if np.isfinite(differs) else np.inf

    def _known_at(self, state: int) -> tuple[Inputs, np.ndarray | None]:
        task, stage = self.task, self.stages[state]
        n_features = task.train.X.shape[1]
        if not stage.plan.nodes:  # a constant: shares that differ from fold to fold say nothing about a row
            nothing = np.zeros((len(self.rows), 0))
            return Inputs.of(nothing, ()), None if task.held is None else np.zeros((len(task.held), 0), np.intp)
        columns = _most_used(stage, MOST_COLUMNS)
        values = _inputs_of(task.train.X[self.rows][:, columns], self._output(stage), task.n_classes)
        numbers = (*columns, *range(n_features, n_features + values.shape[1] - len(columns)))
        inputs = Inputs.of(values, numbers)
        if task.held is None or stage.held is None:
            return inputs, None
        held = _inputs_of(task.held.X[:, columns], stage.held, task.n_classes)
        return inputs, inputs.encode(held)

    def _output(self, stage: StageModel) -> Floats:
        """What rules see of a stage's predictions: those out of fold. A model with few different ones gives each to
        many rows, and out of fold they differ by fold, which a rule could cut between: then those of the model
        itself, which the plan has."""
        own = self.fitter.predict(stage.plan, self.task.train.part(self.rows))
        return own if len(np.unique(own, axis=0)) * ROWS_ALIKE <= len(own) else stage.oof[self.rows]

    def policy(self, rate: float, loss: str) -> StagePolicy:
        """The decisions at every state for one rate, found backwards."""
        task, n = self.task, len(self.rows)
        n_held = 0 if task.held is None else len(task.held)
        value: dict[Place, Floats] = {}
        ends: dict[Place, list[np.ndarray]] = {}
        decisions: dict[Place, Decision] = {}
        losses = {s: self.labels.row_loss(self.stages[s].oof[self.rows], loss) for s in self.order}
        places = self._places()
        for place in places:
            state, here = place[1], losses[place[1]]
            stop = [np.full(size, self.number[state]) for size in (n, n, n_held)]
            ways = [(to, value[to] + rate * self._extra(state, to[1])) for to in self._onward(place)]
            ways = [way for way in ways if way[1].min() < here.max()]
            if task.max_rounds is not None:
                ways = sorted(ways, key=lambda way: float(way[1].mean()))[:MOST_WAYS]
            if not ways:
                value[place], ends[place], decisions[place] = here, stop, Decision(False)
                continue
            value[place], ends[place], decisions[place] = self._decide(state, here, stop, ways, ends)
        start = places[-1]
        held = None if task.held is None else ends[start][2]
        return StagePolicy(rate, start, decisions, ends[start][0], ends[start][1], held)

    def _places(self) -> list[Place]:
        """All places, so that each comes after those that it leads to; the last is where rows start."""
        states, rounds = self.order[::-1], self.task.max_rounds
        if rounds is None:
            return [(UNLIMITED, s) for s in states]
        return [*((left, s) for left in range(rounds) for s in states if s), (rounds, 0)]

    def _onward(self, place: Place) -> list[Place]:
        """Where one order may lead from a place."""
        left, state = place
        if left == UNLIMITED:
            return [(UNLIMITED, s) for s in self.ways[state]]
        return [(left - 1, s) for s in self.order if left and s != state and not state & ~s]

    def _extra(self, state: int, to: int) -> Floats:
        """What rows pay for going on from a state to a larger one."""
        extra: Floats = self.paid_by_rows[self.number[to]] - self.paid_by_rows[self.number[state]]
        return extra

    @cached_property
    def labels(self) -> SoftLabels:
        """The labels of the rows that rules learn from."""
        rows = self.task.train.part(self.rows)
        return SoftLabels(self.task, rows.y, self.stages[self.teacher].oof[self.rows], rows.mistakes)

    @cached_property
    def teacher(self) -> int:
        """The state with the best probabilities."""
        return min(self.order, key=lambda s: (self._mean_loss(s), s))

    def _decide(
        self,
        state: int,
        here: Floats,
        stop: list[np.ndarray],
        ways: Sequence[tuple[Place, Floats]],
        ends: dict[Place, list[np.ndarray]],
    ) -> tuple[Floats, list[np.ndarray], Decision]:
        """Which way is best for whom, then who goes at all; a rule is kept only where it beats the better constant on
        rows that it has not seen."""
        ways = sorted(ways, key=lambda way: self._mean(way[1], ends[way[0]][0], here, state))
        last, worth = ways[0]
        reached = list(ends[last])
        mean = self._mean(worth, reached[0], here, state)
        taken = [last]
        choosers: list[Rule] = []
        for way, cost in ways[1:]:
            rule, passed = self._rule(state, worth - cost, self._counted(reached[0], ends[way][0]))
            better = np.where(passed[0], cost, worth)
            both_ways = [np.where(on, there, so_far) for on, there, so_far in zip(passed, ends[way], reached)]
            mean_of_both = self._mean(better, both_ways[0], here, state)
            if mean_of_both < min(mean, self._mean(cost, ends[way][0], here, state)) - 1e-9:
                worth, mean, reached = better, mean_of_both, both_ways
                taken.insert(0, way)
                choosers.insert(0, rule)
        rule, passed = self._rule(state, here - worth, self._counted(reached[0]))
        both = np.where(passed[0], worth, here)
        some = [np.where(on, there, stay) for on, there, stay in zip(passed, reached, stop)]
        stopping = self._mean(here, stop[0], here, state)
        if self._mean(both, some[0], here, state) < min(stopping, mean) - 1e-9:
            return both, some, Decision(rule, tuple(taken), tuple(choosers))
        if mean < stopping:
            return worth, reached, Decision(True, tuple(taken), tuple(choosers))
        return here, stop, Decision(False)

    def _rule(self, state: int, target: Floats, counted: Floats | None) -> tuple[Rule, list[np.ndarray]]:
        """A rule for a target, and who passes: by trees that have not seen the row, by all, and of held-out rows. Rows
        are weighted by how many they stand for."""
        inputs, held = self.inputs[state]
        least = max(5, len(target) // 60)
        trees = []
        own, mean = np.zeros(len(target)), np.zeros(len(target))
        of_held = np.zeros(0 if held is None else len(held))
        for k in range(N_PARTS):
            tree = grow(inputs, target, np.flatnonzero(self.part != k), least, counted)
            here = tree.predict(inputs.codes)
            own[self.part == k] = here[self.part == k]
            mean += here / N_PARTS
            if held is not None:
                of_held += tree.predict(held) / N_PARTS
            trees.append(tree)
        return Rule(inputs, tuple(trees)), [own > 0, mean > 0, of_held > 0]


def _inputs_of(columns: Floats, output: Floats, n_classes: int) -> Floats:
    sure = confidence_columns(output) if n_classes else output
    return np.concatenate([columns, sure], axis=1)


def _most_used(stage: StageModel, most: int) -> list[int]:
    """The columns that move a stage's score most: by the spread of each tree's leaves, shared among its splits."""
    trees = stage.plan.dictionary
    if not stage.plan.nodes or not isinstance(trees, Trees):
        return []
    moved = np.zeros(len(stage.plan.costs.features))
    for node in stage.plan.nodes:
        for tree, weight in zip(node.learners, np.abs(node.weights).max(axis=1)):
            places = slice(trees.start[tree], trees.start[tree + 1])
            leaf = trees.is_leaf[places]
            splits = trees.feature[places][~leaf]
            if len(splits):
                each = weight * float(trees.value[places][leaf].std()) / len(splits)
                np.add.at(moved, splits, each)
    return sorted(int(f) for f in np.argsort(-moved, kind="stable")[:most] if moved[f] > 0)

"""A plan made ready to run: each node's learners as kernel arguments, its price as bit sets, free runs joined."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from miserly.plan._background import gaps_of
from miserly.plan._dictionary import Kernels, RawFeatures, Trees
from miserly.plan._node import Node

if TYPE_CHECKING:
    from miserly.plan._plan import Plan

Join = Literal["none", "free", "all"]
NOBODY = (np.zeros(0), np.zeros(0, bool))


class Stop(NamedTuple):
    """A place inside a step where a row may have to stop: after `n_nodes` of its nodes, of which the last ones, since
    the stop before, need these acquisitions and evaluate these learners."""

    n_nodes: int
    acquisitions: int
    evaluated: int


@dataclass(frozen=True)
class Step:
    """One node, or a run of nodes that only add up, as the kernels take it: it begins as `head`, ends as `node`.

    `is_priced` tells whether evaluating it costs anything; `ends` counts the learners up to the end of each node;
    `stops` are the places where a walk may have to stop.
    """

    first: int
    last: int
    head: Node
    node: Node
    learners: NDArray[np.int32]
    pointer: NDArray[np.int32]
    column: NDArray[np.int32]
    weight: NDArray[np.float64]
    acquisitions: int
    evaluated: int
    is_priced: bool
    ends: tuple[int, ...]
    stops: tuple[Stop, ...]

    @property
    def is_open(self) -> bool:
        """Whether every row passes."""
        return self.node.gate.kind == "open"


class Program:
    """The steps of a plan. Nodes that only add are joined where a stop between them makes no difference:
    "free" joins those that buy nothing more, "all" also across purchases (when no budget can stop a row)."""

    def __init__(self, plan: Plan, join: Join) -> None:
        self.plan = plan
        self.ledger, self.n_outputs = plan.tables.ledger, plan.n_outputs
        self.words = plan.costs.needs_words
        if plan.unavailable:
            self.words = self.words.copy()
            self.words[[plan.tables.feature_numbers[name] for name in plan.unavailable]] = 0
        self.trees = plan.dictionary.table if isinstance(plan.dictionary, Trees) else None
        self.gaps = None if self.trees is None else gaps_of(plan.dictionary, plan.shares, plan.nodes, plan.prior)
        self.seen = np.ones(len(plan.costs.features), bool)  # what a row may know at all
        self.seen[[plan.tables.feature_numbers[name] for name in plan.unavailable]] = False
        self.machine = plan.dictionary.machine if isinstance(plan.dictionary, Kernels) else None
        self.no_values = np.full(len(plan.costs.features), np.nan) if plan.means is None else plan.means
        self.none_ready: NDArray[np.bool_] = np.zeros(len(plan.costs.features), bool)
        self._known: dict[int, NDArray[np.intp]] = {}
        self._wants: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
        self.no_scores = np.zeros((1, 2 * plan.n_outputs + 1))
        self.no_scores[:, : plan.n_outputs] = plan.prior
        uses = Counter(int(t) for node in plan.nodes for t in node.learners)
        at_hand = isinstance(plan.dictionary, RawFeatures)
        shared = [] if at_hand else sorted(t for t, count in uses.items() if count > 1)
        self.keep = np.full(len(plan.dictionary), -1, np.int32)
        self.keep[shared] = np.arange(len(shared))
        self.n_kept = len(shared)
        self.calibrated = any(n.scale is not None or n.offset is not None for n in plan.nodes)
        self.steps: dict[int, Step] = {}
        for run in self._runs(join):
            self.steps[run[0]] = self._step(run)

    def kept(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Space for what the learners that several nodes use say of one row, and whether they were asked."""
        return (np.zeros(self.n_kept), np.zeros(self.n_kept, bool)) if self.n_kept else NOBODY

    def wants(self, first: int, end: int) -> tuple[tuple[int, int], ...]:
        """What the nodes from `first` to before `end` look at, by feature (column, acquisitions that it needs), in the
        order of their learners: the order in which rows buy when not everything fits their budget."""
        if (first, end) not in self._wants:
            plan = self.plan
            learners = dict.fromkeys(int(t) for k in range(first, end) for t in plan.nodes[k].learners)
            features = dict.fromkeys(f for t in learners for f in plan.dictionary.features_in_order(t))
            features |= dict.fromkeys(f for k in range(first, end) for f in plan.tables.rule_features(plan.nodes[k]))
            self._wants[first, end] = tuple((f, plan.tables.masks[f]) for f in features)
        return self._wants[first, end]

    def known(self, owned: int) -> NDArray[np.intp]:
        """The columns in use that a row knows when it owns these acquisitions."""
        if owned not in self._known:
            masks = self.plan.tables.masks
            self._known[owned] = np.array([f for f in self.plan.used_features if not masks[f] & ~owned], np.intp)
        return self._known[owned]

    def _runs(self, join: Join) -> list[list[int]]:
        nodes = self.plan.nodes
        entries = Counter(way for node in nodes for way in node.ways)
        runs: list[list[int]] = []
        for k, node in enumerate(nodes):
            joined = (
                join != "none"
                and bool(runs)
                and runs[-1][-1] == k - 1
                and nodes[k - 1].gate.kind == "open"
                and nodes[k - 1].passed == k
                and k not in self.plan.roots
                and entries[k] == 1
                and node.is_sum
                and nodes[k - 1].is_sum
                and not node.has_bias
                and (not self.calibrated or (join == "all" and node.outputs == nodes[k - 1].outputs))
            )
            if joined and (join == "all" or self._is_free(k, runs[-1][0])):
                runs[-1].append(k)
            else:
                runs.append([k])
        return runs

    def _is_free(self, node: int, after: int) -> bool:
        """Whether a node buys nothing for a row that has been through another, and evaluates nothing that is priced."""
        acquisitions, learners = self.plan.tables.purchase(node)
        have = self.plan.tables.owned_at(after)
        return not (acquisitions & ~have[0] or self.ledger.price(0, learners & ~have[1]))

    def _stops(self, run: list[int]) -> tuple[Stop, ...]:
        """Where a row that pays by learner may stop inside a run: before each node that is not free by then."""
        firsts = run[:1]
        for k in run[1:]:
            if not self._is_free(k, firsts[-1]):
                firsts.append(k)
        ends = [*firsts[1:], run[-1] + 1]
        return tuple(Stop(end - run[0], *self.plan.tables.purchase(first)) for first, end in zip(firsts, ends))

    def _step(self, run: list[int]) -> Step:
        plan = self.plan
        pointer, column, weight = [0], [], []
        learners: list[int] = []
        ends: list[int] = []
        acquisitions = evaluated = 0
        for k in run:
            node = plan.nodes[k]
            base = 0 if node.is_direct else plan.n_outputs
            for i, t in enumerate(node.learners):
                learners.append(int(t))
                for j in np.flatnonzero(node.weights[i]):
                    column.append(base + node.outputs[j])
                    weight.append(node.weights[i, j])
                if node.routing is not None and node.routing[i]:
                    column.append(2 * plan.n_outputs)
                    weight.append(node.routing[i])
                pointer.append(len(column))
            ends.append(len(learners))
            bought, used = plan.tables.purchase(k)
            acquisitions |= bought
            evaluated |= used
        return Step(
            first=run[0],
            last=run[-1],
            head=plan.nodes[run[0]],
            node=plan.nodes[run[-1]],
            learners=np.array(learners, np.int32),
            pointer=np.array(pointer, np.int32),
            column=np.array(column, np.int32),
            weight=np.array(weight, np.float64),
            acquisitions=acquisitions,
            evaluated=evaluated,
            is_priced=self.ledger.price(0, evaluated) > 0,
            ends=tuple(ends),
            stops=self._stops(run),
        )

"""Policies as plans: one scoring node for each stage where rows may stop, gates between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from miserly.auto._policy import Decision, Place, StageGraph, StagePolicy
from miserly.plan import EXIT, Gate, Node, Plan, Trees, cascade

Name = tuple[int, Place, int]


def assemble(graph: StageGraph, policies: Sequence[StagePolicy], chooser: Trees | None, of_fold: bool) -> Plan:
    """The plan that follows a policy from the empty set on; with a `chooser` rows that pass it follow the second of two
    policies, the others the first. `of_fold` takes the models of the first fold instead of those of all rows."""
    builder = _Builder(graph, policies, of_fold)
    if chooser is not None:
        root = replace(_no_learners(builder.n_outputs), gate=Gate.learned(), rule=chooser)
        first, second = (builder.entry(number, policy.start) for number, policy in enumerate(policies))
        builder.made.append(((-1, policies[0].start, 0), root, second, first))
    for number in range(len(policies)):
        for place in builder.reached[number]:
            builder.add(number, place)
    nodes = builder.nodes()
    prior = graph.stages[0].model(of_fold).prior
    notes = {**builder.joined.notes, "estimator": "AutoMiser", "rates": [policy.rate for policy in policies]}
    return replace(builder.joined, nodes=nodes, roots=(0,) if nodes else (), prior=prior, notes=notes)


class _Builder:
    """Nodes with names (policy, place, step) for numbers, until all are known."""

    def __init__(self, graph: StageGraph, policies: Sequence[StagePolicy], of_fold: bool) -> None:
        self.policies = policies
        self.reached = [_reached(graph, policy) for policy in policies]
        scored = {to[1] for p, reached in zip(policies, self.reached) for to in reached if _answers(p.decisions[to])}
        ordered = [s for s in graph.order if s in scored] or [0]
        plans = {s: graph.stages[s].model(of_fold) for s in ordered}
        self.joined = cascade(list(plans.values()))
        self.scorer = dict(zip([s for s in ordered if plans[s].nodes], self.joined.nodes))
        self.n_outputs = self.joined.n_outputs
        self.made: list[tuple[Name, Node, Name | None, Name | None]] = []

    def entry(self, number: int, place: Place) -> Name | None:
        """Where a row enters a place; None if there is nothing to do there but stop."""
        decision = self.policies[number].decisions[place]
        if not _answers(decision):
            return self.entry(number, decision.ways[0])
        if decision.go is False and place[1] not in self.scorer:
            return None
        return number, place, 0

    def add(self, number: int, place: Place) -> None:
        """The nodes of one place: score, then stop or go on, then which way."""
        decision = self.policies[number].decisions[place]
        if not _answers(decision) or self.entry(number, place) is None:
            return
        score = replace(self.scorer.get(place[1], _no_learners(self.n_outputs)), passed=EXIT)
        if decision.go is False:
            self.made.append(((number, place, 0), score, None, None))
            return
        onward = (number, place, 1) if decision.choosers else self.entry(number, decision.ways[0])
        if decision.go is True:
            self.made.append(((number, place, 0), score, onward, None))
        else:
            gated = replace(score, gate=Gate.learned(), rule=decision.go.forest())
            self.made.append(((number, place, 0), gated, onward, None))
        for j, rule in enumerate(decision.choosers):
            node = replace(_no_learners(self.n_outputs), gate=Gate.learned(), rule=rule.forest())
            last = j + 1 == len(decision.choosers)
            other = self.entry(number, decision.ways[j + 1]) if last else (number, place, j + 2)
            self.made.append(((number, place, j + 1), node, self.entry(number, decision.ways[j]), other))

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, with numbers for names; ways lead to larger sets, so later."""
        place: dict[Name | None, int] = {name: k for k, (name, *_) in enumerate(self.made)}
        place[None] = EXIT
        return tuple(replace(node, passed=place[passed], failed=place[failed]) for _, node, passed, failed in self.made)


def _reached(graph: StageGraph, policy: StagePolicy) -> list[Place]:
    """The places that some row may come to, in order."""
    found = {policy.start}
    ordered = sorted(policy.decisions, key=lambda place: graph.number[place[1]])
    for place in ordered:
        decision = policy.decisions[place]
        if place in found and decision.go is not False:
            found.update(decision.ways)
    return [place for place in ordered if place in found]


def _answers(decision: Decision) -> bool:
    """Whether a place needs the scores of its stage: to stop there, or to choose a way by them."""
    return decision.go is not True or bool(decision.choosers)


def _no_learners(n_outputs: int) -> Node:
    outputs = tuple(range(n_outputs))
    return Node(np.zeros(0, np.int32), np.zeros((0, n_outputs)), np.zeros(n_outputs), outputs)

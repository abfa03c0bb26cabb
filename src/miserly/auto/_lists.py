"""Cascades for lists: only the documents that a cheap stage ranks high buy what the next stage needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from miserly._typing import Floats
from miserly.auto._candidates import Scale, TriedPlan, pareto
from miserly.auto._clock import TimeLimit
from miserly.auto._stages import StageModel
from miserly.plan import EXIT, Gate, Plan, cascade

KEPT = (6, 10, 16)  # documents of a list that go on
ABOVE = 1e6  # more than scores differ: documents of a later stage stand above all others
LONGEST = 3  # models in a cascade
MOST_SINGLES, MOST_PAIRS = 24, 16  # that get a second, and a third stage


@dataclass(frozen=True)
class _Chain:
    """Models, and how many documents of a list go on after each but the last."""

    models: tuple[StageModel, ...]
    kept: tuple[int, ...] = ()


def list_candidates(scale: Scale, clock: TimeLimit) -> list[TriedPlan]:
    """Single models and their prefixes, and cascades of two and of three of them with gates by rank."""
    lists, most_rounds = _Lists(scale), scale.task.max_rounds or LONGEST
    stages = scale.graph.stages.values()
    chains = [_Chain((m,)) for stage in stages for m in (stage, *stage.prefixes)]
    found = [(chain, lists.candidate(chain)) for chain in chains]
    if len(np.unique(scale.rows.qid)) > 1:
        for n_best in (MOST_SINGLES, MOST_PAIRS)[: most_rounds - 1]:
            best = {id(c) for c in _thinned(pareto([c for _, c in found]), n_best)}
            starts = [chain for chain, c in found if id(c) in best and chain.models[0].plan.nodes]
            ends = [
                chain.models[-1] for chain, c in found[: len(chains)] if id(c) in best or not chain.models[-1].prefixes
            ]
            ends += [stage for stage in stages if stage.plan.nodes]
            for chain in starts:
                for model in dict.fromkeys(ends):
                    if lists.leads_to(chain, model) and not clock.over(0.95):
                        longer = [m for m in KEPT if not chain.kept or m < chain.kept[-1]]
                        more = [_Chain((*chain.models, model), (*chain.kept, m)) for m in longer]
                        found += [(chain, lists.candidate(chain)) for chain in more]
    return [candidate for _, candidate in found]


def _thinned(candidates: list[TriedPlan], most: int) -> list[TriedPlan]:
    """Some of the candidates, from the first to the last."""
    if len(candidates) <= most:
        return candidates
    return [candidates[k] for k in np.unique(np.linspace(0, len(candidates) - 1, most).round().astype(int))]


class _Lists:
    """Follows chains of models on the measured rows."""

    def __init__(self, scale: Scale) -> None:
        self.scale, self.price = scale, scale.graph.price
        _, self.query = np.unique(scale.rows.qid, return_inverse=True)

    def leads_to(self, chain: _Chain, model: StageModel) -> bool:
        """Whether a model buys more than the last of a chain."""
        last = chain.models[-1]
        return bool(model.acquired & ~last.acquired) and len(model.plan.nodes) >= len(last.plan.nodes) // 4

    def output(self, model: StageModel) -> Floats:
        """The model's scores of the measured rows."""
        return model.oof[self.scale.graph.rows, 0] if model.held is None else model.held[:, 0]

    def candidate(self, chain: _Chain) -> TriedPlan:
        """What a chain is worth."""
        first, *others = chain.models
        score, bought, evaluated = self.output(first).copy(), first.acquired, first.evaluations
        rows = self.scale.rows
        costs = rows.paid(bought, self.price(bought) + evaluated, evaluated)
        inside = np.ones(len(score), bool)
        for tier, (model, m) in enumerate(zip(others, chain.kept), start=1):
            inside = self._best(score, inside, m)
            bought, evaluated = bought | model.acquired, evaluated + model.evaluations
            score[inside] = tier * ABOVE + self.output(model)[inside]
            costs[inside] = rows.paid(bought, self.price(bought) + evaluated, evaluated)[inside]
        quality = self.scale.task.quality(self.scale.rows, score[:, None])
        quality = quality if math.isfinite(quality) else -math.inf
        plan = partial(_plan_of, chain, self.scale.task.max_rounds is not None)
        member = "cascade" if others else "subset" if first.plan.nodes else "constant"
        return TriedPlan(member, quality, costs, np.zeros(len(score), np.intp), None, plan)

    def _best(self, score: Floats, inside: np.ndarray, m: int) -> np.ndarray:
        """The m best of each list among those still inside; ties go to the earlier row."""
        rows = np.flatnonzero(inside)
        order = rows[np.lexsort((-score[rows], self.query[rows]))]
        query = self.query[order]
        first = np.flatnonzero(np.r_[True, np.diff(query) != 0])
        rank = np.arange(len(order)) - np.repeat(first, np.diff(np.r_[first, len(order)]))
        passed = np.zeros(len(score), bool)
        passed[order[rank < m]] = True
        return passed


def _plan_of(chain: _Chain, in_one_order: bool, of_fold: bool) -> Plan:
    return _gated([model.model(of_fold) for model in chain.models], chain.kept, in_one_order)


def _gated(plans: Sequence[Plan], kept: Sequence[int], in_one_order: bool) -> Plan:
    """The stages one after another, with gates by rank between them; later stages stand higher."""
    if len(plans) == 1 and (not in_one_order or not plans[0].nodes):
        return plans[0]
    joined = cascade(plans)
    nodes = [replace(node, tier=tier) for tier, node in enumerate(joined.nodes)]
    for k, m in enumerate(kept):
        nodes[k] = replace(nodes[k], gate=Gate.top(m), passed=k + 1, failed=EXIT)
    return replace(joined, nodes=tuple(nodes), notes={**joined.notes, "estimator": "AutoMiser"})

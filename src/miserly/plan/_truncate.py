"""The smaller plan that a budget leaves: the accounts that rows may hold, followed through the graph."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from miserly.costs import Account
from miserly.plan._budget import PART, SKIP, WHOLE, buy_sets
from miserly.plan._node import EXIT

if TYPE_CHECKING:
    from miserly.plan._plan import Plan

MOST_STATES = 1 << 12


class _State(NamedTuple):
    """How rows may come to a node: what they own, which outputs have an answer, whether they skip."""

    account: Account
    answered: int
    is_skipping: bool


def truncated(plan: Plan, budget: float) -> Plan:
    """The plan without the nodes that a budget leaves out, and without the features that it leaves missing; an error
    where that depends on the way a row came."""
    outcomes, known, missing = _follow(plan, budget)
    mixed = sorted(known & missing)
    if mixed:
        raise _refused(f"Some rows buy {plan.costs.features[mixed[0]]!r} and others cannot")
    kept = [k for k in sorted(outcomes) if outcomes[k] in (WHOLE, PART)]
    number = {old: new for new, old in enumerate(kept)}

    def place(k: int) -> int:
        while outcomes.get(k) == SKIP and plan.nodes[k].gate.kind == "open":
            k = plan.nodes[k].passed
        return number.get(k, EXIT)

    nodes = [
        replace(node, passed=place(node.passed), failed=place(node.failed)) for node in (plan.nodes[k] for k in kept)
    ]
    roots = tuple(root for root in map(place, plan.roots) if root != EXIT)
    away = (*plan.unavailable, *(plan.costs.features[f] for f in sorted(missing)))
    cut = replace(plan, nodes=tuple(nodes), roots=roots, unavailable=away)
    if away and not _assumes_the_same(plan, cut):
        raise _refused("Nodes that the budget leaves out decide what others assume of unknown values")
    return cut


def _assumes_the_same(plan: Plan, cut: Plan) -> bool:
    """Whether the trees of a smaller plan say of unknown values what they said before."""
    before, after = plan.tables.program("none").gaps, cut.tables.program("none").gaps
    if before is None or after is None:
        return True
    used = {int(t) for node in cut.nodes for t in node.learners}
    roots = plan.dictionary.start[sorted(used)]  # type: ignore[attr-defined]
    return np.array_equal(before[1][roots], after[1][roots])


def _follow(plan: Plan, budget: float) -> tuple[dict[int, int], set[int], set[int]]:
    """What rows buy of each node that they come to, and which columns they then know or miss."""
    outcomes: dict[int, int] = {}
    known: set[int] = set()
    missing: set[int] = set()
    states = {_State(plan.tables.ledger.empty, 0, False)}
    for root in plan.roots:
        arriving = {root: {state._replace(is_skipping=False) for state in states}}
        leaving: set[_State] = set()
        while arriving:
            k = min(arriving)
            node, here = plan.nodes[k], arriving.pop(k)
            after = {_after(plan, k, state, budget) for state in here}
            kinds = {outcome for _, outcome, _ in after} | ({outcomes[k]} if k in outcomes else set())
            if len(kinds) > 1 or len(after) + len(leaving) > MOST_STATES:
                raise _refused(f"Rows come to node {k} with different purchases")
            if len({absent for _, _, absent in after}) > 1:
                raise _refused(f"Rows come to node {k} with different purchases")
            outcome = outcomes[k] = kinds.pop()
            if outcome in (WHOLE, PART):
                absent = next(iter(after))[2]
                missing |= absent
                known |= {f for f, _ in plan.tables.program("none").wants(k, k + 1)} - absent
            goes_on = outcome in (WHOLE, PART) or (outcome == SKIP and node.gate.reads_answer)
            if outcome == SKIP and node.gate.kind in ("confidence", "learned"):
                raise _refused(f"Rows that skip node {k} go different ways")
            found = {state for state, _, _ in after}
            for way in node.ways if goes_on else (EXIT,):
                if way == EXIT:
                    leaving |= found
                else:
                    arriving[way] = arriving.get(way, set()) | found
        states = leaving
    return outcomes, known, missing


def _after(plan: Plan, k: int, state: _State, budget: float) -> tuple[_State, int, frozenset[int]]:
    """The state after a node, what was bought of it, and which of its features did not fit."""
    node, program = plan.nodes[k], plan.tables.program("none")
    replaces = node.combine == "replace"
    if state.is_skipping and not replaces:
        return state, SKIP, frozenset()
    is_whole = replaces and not node.output_bits & ~state.answered
    account, outcome = buy_sets(program, program.ledger, k, k + 1, state.account, budget, is_whole)
    if outcome not in (WHOLE, PART):
        return _State(account, state.answered, outcome == SKIP), outcome, frozenset()
    absent = frozenset(f for f, mask in program.wants(k, k + 1) if mask & ~account.owned)
    answered = state.answered | (node.output_bits if len(node.learners) else 0)
    return _State(account, answered, False), outcome, absent


def _refused(why: str) -> ValueError:
    return ValueError(
        f"{why}, so that this budget gives no one smaller plan. Use predict(X, budget=...), which decides for each row."
    )

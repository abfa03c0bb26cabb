"""What of a chain of stages must be run to know its answer: stages that later ones replace need not be.

Only for rows that pay by learner, since then all of them buy the same.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from miserly.costs import Caps
from miserly.plan._budget import PART, SKIP, WHOLE, buy_sets
from miserly.plan._node import EXIT

if TYPE_CHECKING:
    from miserly.plan._plan import Plan


def brief(plan: Plan, budget: float | Caps) -> tuple[Plan, int, bool] | None:
    """A shorter plan with the same answers and costs, the stage that it ends at, and whether a budget left out any;
    None where the plan is no such chain, where a stage is bought in part, or where nothing can be left out."""
    is_own = isinstance(budget, Caps) or (plan.tables.row_prices is not None and budget < math.inf)
    if (
        is_own or not plan.tables.replaces or plan.unavailable
    ):  # which nodes there are decides what unknown values are taken for
        return None
    entered = _entered(plan, float(budget))  # type: ignore[arg-type]
    if entered is None:
        return None
    if entered not in plan.tables.briefs:
        plan.tables.briefs[entered] = _shortened(plan, entered)
    shorter = plan.tables.briefs[entered]
    return None if shorter is None else (shorter, entered[-1], len(entered) < len(plan.tables.chain))


def _entered(plan: Plan, budget: float) -> tuple[int, ...] | None:
    """The stages that rows buy whole."""
    program, account = plan.tables.program("none"), plan.tables.ledger.empty
    answered: set[int] = set()
    entered: list[int] = []
    is_skipping = False
    for k in plan.tables.chain:
        node = plan.nodes[k]
        is_whole = node.combine == "replace" and answered.issuperset(node.outputs)
        if is_skipping and node.combine != "replace":
            continue
        account, outcome = buy_sets(program, program.ledger, k, k + 1, account, budget, is_whole)
        if outcome == PART:
            return None
        if outcome == WHOLE:
            entered.append(k)
            answered.update(node.outputs if len(node.learners) else ())
        elif outcome != SKIP:
            break
        is_skipping = outcome == SKIP
    return tuple(entered)


def _shortened(plan: Plan, chain: tuple[int, ...]) -> Plan | None:
    kept = _needed(plan, chain)
    if len(kept) == len(chain):
        return None
    last = len(kept) - 1
    nodes = [replace(plan.nodes[k], passed=i + 1 if i < last else EXIT, failed=EXIT) for i, k in enumerate(kept)]
    return replace(plan, nodes=tuple(nodes), roots=(0,))


def _needed(plan: Plan, chain: tuple[int, ...]) -> list[int]:
    """The nodes whose outputs are not all replaced later, or that buy what no later node does."""
    replaced: set[int] = set()
    bought = used = 0
    kept = []
    for k in reversed(chain):
        node, (acquisitions, learners) = plan.nodes[k], plan.tables.purchase(k)
        pays = acquisitions & ~bought or plan.tables.ledger.price(0, learners & ~used)
        if replaced.issuperset(node.outputs) and not pays:
            continue
        kept.append(k)
        bought, used = bought | acquisitions, used | learners
        if node.combine == "replace":
            replaced.update(node.outputs)
    return kept[::-1]

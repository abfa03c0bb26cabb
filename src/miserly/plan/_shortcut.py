"""What of a chain of stages must be run to know its answer: stages that later ones replace need not be.

Only for rows that pay by learner, since then a budget stops all of them at the same stage.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from miserly.plan._node import EXIT

if TYPE_CHECKING:
    from miserly.plan._plan import Plan


def brief(plan: Plan, budget: float) -> tuple[Plan, int, bool] | None:
    """A shorter plan with the same answers and costs, the stage that it ends at, and whether a budget ended it there;
    None where the plan is no such chain or nothing can be left out."""
    chain = plan.chain
    if not plan.replaces:
        return None
    end, account = 0, plan.ledger.empty
    for k in chain:
        account = plan.ledger.after(account, *plan.purchase(k))
        if account.total > budget:
            break
        end += 1
    if end not in plan.briefs:
        plan.briefs[end] = _shortened(plan, chain[:end])
    shorter = plan.briefs[end]
    return None if shorter is None else (shorter, chain[end - 1], end < len(chain))


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
        node, (acquisitions, learners) = plan.nodes[k], plan.purchase(k)
        pays = acquisitions & ~bought or plan.ledger.price(0, learners & ~used)
        if replaced.issuperset(node.outputs) and not pays:
            continue
        kept.append(k)
        bought, used = bought | acquisitions, used | learners
        if node.combine == "replace":
            replaced.update(node.outputs)
    return kept[::-1]

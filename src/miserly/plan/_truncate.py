"""Which nodes a budget leaves: the accounts that rows may hold, followed from node to node through the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from miserly.costs import Account
from miserly.plan._node import EXIT

if TYPE_CHECKING:
    from miserly.plan._plan import Plan

MOST_ACCOUNTS = 1 << 12


def affordable_nodes(plan: Plan, budget: float) -> list[int]:
    """The nodes that rows can pay for; an error where that depends on the way a row came."""
    ledger = plan.ledger
    kept: set[int] = set()
    accounts: set[Account] = {ledger.empty}
    for root in plan.roots:
        arriving = {root: accounts}
        leaving: set[Account] = set()
        while arriving:
            k = min(arriving)
            here = arriving.pop(k)
            after = {ledger.after(account, *plan.purchase(k)) for account in here}
            affordable = {account.total <= budget for account in after}
            if len(affordable) > 1 or len(after) + len(leaving) > MOST_ACCOUNTS:
                why = "too many different purchases to follow" if len(affordable) == 1 else "different purchases"
                raise ValueError(
                    f"Rows come to node {k} with {why}, so that this budget gives no one smaller plan. "
                    "Use predict(X, budget=...), which decides for each row."
                )
            if affordable == {False}:
                leaving |= here
                continue
            kept.add(k)
            for way in plan.nodes[k].ways:
                if way == EXIT:
                    leaving |= after
                else:
                    arriving[way] = arriving.get(way, set()) | after
        accounts = leaving
    return sorted(kept)

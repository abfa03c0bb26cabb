"""What a row buys of some nodes when it pays by learner and not everything fits its budget.

What does not fit is skipped and the row goes on. Nodes that add to the score are evaluated with the skipped features
missing; a node that would replace an answer which the row already has is taken whole or not at all, and then the nodes
that add to it are skipped too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from miserly.costs import Account, Ledger

if TYPE_CHECKING:
    from miserly.plan._program import Program

WHOLE, PART, SKIP, LEAVE = range(4)  # a row buys all, buys what fits, skips the nodes and goes on, or leaves


def buy_sets(
    program: Program, ledger: Ledger, first: int, end: int, account: Account, budget: float, is_whole: bool
) -> tuple[Account, int]:
    """The account after the nodes from `first` to before `end`, of which none but the first is priced for itself, and
    which of the four outcomes it is. `is_whole` nodes are not bought in part."""
    plan = program.plan
    acquisitions = evaluated = 0
    for k in range(first, end):
        bought, used = plan.tables.purchase(k)
        acquisitions, evaluated = acquisitions | bought, evaluated | used
    whole = ledger.after(account, acquisitions, evaluated)
    if whole.total <= budget:
        return whole, WHOLE
    if is_whole:
        return account, SKIP
    after = ledger.after(account, 0, evaluated)
    if after.total > budget or not plan.can_miss:
        return account, LEAVE
    return ledger.within(after, (mask for _, mask in program.wants(first, end)), budget), PART

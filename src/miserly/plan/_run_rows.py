"""Running a plan on a matrix where prices depend on the row and a budget limits them: every row on its own walk.

Rows that can pay for everything that they want are run together, as without a budget.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from miserly._typing import Rows
from miserly.costs import Caps
from miserly.plan._run import FIELDS, Run, run
from miserly.plan._walk import ListWalk, Walk

if TYPE_CHECKING:
    from miserly.plan._plan import Plan


def run_rows(plan: Plan, X: NDArray[Any], query: Rows, limit: float | Caps) -> Run:
    """The run of a plan under a budget."""
    whole = run(plan, X, query, math.inf, plan.charge, checked=False)
    prices = plan.tables.row_prices
    assert prices is not None
    assert whole.accounts is not None
    most = prices.totals(whole.accounts, X, at_least_expected=True)
    within = most <= limit if isinstance(limit, float) else np.zeros(len(X), bool)
    if plan.by_query and not within.all():
        within[:] = False
    fields = {name: np.array(getattr(whole, name)) for name in FIELDS}
    accounts = whole.accounts
    for rows in _groups(plan, query, np.flatnonzero(~within)):
        for row, walk in zip(rows, _walked(plan, X[rows], limit)):
            fields["score"][row], fields["z"][row] = walk.scores
            fields["cost"][row], fields["tier"][row], fields["exit"][row] = walk.cost, walk.tier, walk.exit
            fields["out_of_budget"][row] = walk.stopped == "budget"
            accounts.set_account(int(row), walk.account)
    return Run(**fields).with_accounts(accounts)


def _groups(plan: Plan, query: Rows, rows: Rows) -> list[Rows]:
    """Rows that are walked together: those of one query, if a gate compares them."""
    if not plan.by_query:
        return [rows[i : i + 1] for i in range(len(rows))]
    return [rows[query[rows] == number] for number in np.unique(query[rows])]


def _walked(plan: Plan, X: NDArray[Any], limit: float | Caps) -> list[Walk]:
    """The walks of some rows, to their ends."""
    arriving = plan.tables.arriving
    first = [{name: x[f] for name, f in arriving(0, 0).items()} for x in X]
    if not plan.by_query:
        walks = [Walk(plan, limit, given) for given in first]
        for x, walk in zip(X, walks):
            while walk.needs:
                walk.supply({name: x[f] for name, f in arriving(walk.owned, walk.asked).items()})
        return walks
    together = ListWalk(plan, first, limit)
    while not together.done:
        for number in together.needs:
            walk = together.walks[number]
            together.supply(number, {n: X[number][f] for n, f in arriving(walk.owned, walk.asked).items()})
    return together.walks

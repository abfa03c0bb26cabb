"""Prices that were measured row by row: read and checked, and what rows paid at them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from miserly.costs import ROUNDS, Caps, CostTable, RowPrices, SpentAccount, paid_by_row, read_budget
from miserly.plan._run import Run
from miserly.plan._validation import as_matrix

if TYPE_CHECKING:
    from miserly.plan._plan import Plan

Floats = NDArray[np.float64]


def measured_prices(costs: CostTable, prices: Any, n_rows: int) -> dict[int, Floats]:
    """What was measured, by the number of the acquisition.

    Parameters
    ----------
    costs : CostTable
        The acquisitions that there are.
    prices : frame, mapping of str to array, or array of shape (n_rows, n_acquisitions)
        By name, or in the order of `costs.acquisitions`. Acquisitions that a frame has not keep the table's price.
    n_rows : int
        How many rows there are.
    """
    names = costs.acquisitions
    columns = getattr(prices, "columns", None)
    if columns is None and hasattr(prices, "keys"):
        columns = list(prices)
    if columns is None:
        table = np.asarray(prices, np.float64)
        if table.shape != (n_rows, len(names)):
            raise ValueError(
                f"prices has the shape {table.shape}, and there are {n_rows} rows and {len(names)} acquisitions. Give "
                "a column for each, in the order of costs.acquisitions, or a frame with their names."
            )
        found = {a: table[:, a] for a in range(len(names))}
    else:
        number = {name: a for a, name in enumerate(names)}
        listed = [str(name) for name in columns]
        unknown = [name for name in listed if name not in number]
        if unknown or len(set(listed)) < len(listed):
            wrong = unknown[0] if unknown else next(name for name in listed if listed.count(name) > 1)
            raise ValueError(
                f"prices has a column {wrong!r}, which is {'no acquisition' if unknown else 'there twice'}. The "
                f"acquisitions are: {', '.join(map(repr, names[:8]))}."
            )
        found = {number[str(name)]: np.asarray(prices[name], np.float64) for name in columns}
    for a, values in found.items():
        if values.shape != (n_rows,):
            raise ValueError(f"prices has {len(values)} rows for {names[a]!r}, and there are {n_rows}.")
        wrong_rows = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if len(wrong_rows):
            i = int(wrong_rows[0])
            raise ValueError(
                f"prices says that row {i} (from 0) pays {values[i]:g} for {names[a]!r}. Prices are finite, 0 or more; "
                "what did not run cost 0."
            )
    return found


def really_paid(plan: Plan, run: Run, X: Any, prices: Any) -> Floats:
    """What rows paid at measured prices; what was not measured costs what the table says."""
    matrix = as_matrix(X, plan.costs.features, plan.costs.named, plan.schema)
    own = RowPrices(plan.costs).matrix(matrix, checked=False)
    for a, values in measured_prices(plan.costs, prices, len(matrix)).items():
        own[:, a] = values
    assert run.accounts is not None
    return paid_by_row(run.accounts, plan.tables.ledger, own)


def repriced(plan: Plan, run: Run, X: Any) -> Run:
    """A run that was decided at other prices, with its costs at the plan's own."""
    assert run.accounts is not None
    accounts, rules = run.accounts.under(plan.tables.ledger), plan.tables.row_prices
    if rules is None:
        cost = accounts.totals()
    else:
        matrix = as_matrix(X, plan.costs.features, plan.costs.named, plan.schema)
        cost = rules.totals(accounts, matrix, np.arange(len(matrix)))
    return replace(run, cost=cost).with_accounts(accounts)


def spending(plan: Plan, X: Any, qid: Any, budget: Any, charge: Any, confidence: float | None, currency: str) -> Floats:
    """How much of one currency each row pays."""
    known = (*plan.costs.exchange, ROUNDS)
    if currency not in known:
        raise ValueError(f"The prices know no currency {currency!r}. They know {', '.join(map(repr, known))}.")
    limit = read_budget(budget, plan.costs.exchange, plan.costs.unit)
    caps = limit if isinstance(limit, Caps) else Caps(limit, ())
    run = plan.run(X, qid, caps, charge, confidence)
    assert run.accounts is not None
    numbers, kind = np.unique(run.accounts.of_row, return_inverse=True)
    accounts = [run.accounts.accounts[n] for n in numbers]
    return np.array(
        [account.spent[known.index(currency)] for account in accounts if isinstance(account, SpentAccount)]
    )[kind]

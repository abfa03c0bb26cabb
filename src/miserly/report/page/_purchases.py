"""What rows buy: for each acquisition the share of rows that pay for it, in which order, and what goes there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from miserly.costs import set_bits
from miserly.plan import PolicyPlan
from miserly.report._observed import Observed
from miserly.report.page._walks import WalkStep

AGREE = 1e-9


def purchases(seen: Observed, steps: Sequence[Sequence[WalkStep]]) -> list[dict[str, Any]]:
    """One record for each acquisition that some row buys, in the mean order of purchase.

    `share` is over all rows, except for plans charged by path, where it is over the walked ones. `spent` is what a row
    pays for it on average; it is left out where prices differ from row to row, so that share × price would be wrong.
    """
    place: dict[str, list[int]] = {}
    for mine in steps:
        for i, step in enumerate(mine):
            for name in step.buys:
                place.setdefault(name, []).append(i)
    costs, owned = seen.plan.costs, owned_by(seen)
    shares = {name: len(places) / len(steps) for name, places in place.items()}
    if owned is not None:
        shares = {name: float(owned[:, a].mean()) for a, name in enumerate(costs.acquisitions) if owned[:, a].any()}
    last = max((len(mine) for mine in steps), default=0)
    order = sorted(shares, key=lambda name: (float(np.mean(place.get(name, [last]))), -shares[name]))
    prices = {name: costs.price_of([name]) for name in order}
    spent = {name: shares[name] * prices[name] for name in order}
    exact = owned is not None and _adds_up(seen, sum(spent.values()))
    return [
        {"name": name, "price": prices[name], "share": shares[name], "spent": spent[name] if exact else None}
        for name in order
    ]


def owned_by(seen: Observed) -> np.ndarray | None:
    """Rows × acquisitions: who bought what; None for plans charged by path, whose runs do not keep it."""
    plan = seen.plan
    if isinstance(plan, PolicyPlan):
        return np.asarray(plan.walk_all(seen.rows.X)[1])
    if plan.charge == "path":
        return None
    owned = np.zeros((len(seen.rows), len(plan.costs.acquisitions)), bool)
    for k in range(len(plan.nodes)):
        here = list(set_bits(plan.tables.purchase(k)[0]))
        owned[:, here] |= seen.visits[:, [k]]
    return owned


def _adds_up(seen: Observed, spent: float) -> bool:
    """Whether prices times shares are what rows pay, computing apart."""
    rest = float(seen.cost.mean()) - spent
    slack = AGREE * max(1.0, abs(spent))
    return rest >= -slack if seen.plan.costs.evaluation else abs(rest) <= slack

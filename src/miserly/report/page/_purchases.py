"""What rows buy: for each acquisition the share of rows that pay for it, in which order, and what goes there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from miserly.costs import set_bits
from miserly.plan import Plan, PolicyPlan
from miserly.report._observed import Observed
from miserly.report.page._walks import WalkStep

AGREE = 1e-9
BLOCK = 1000  # rows


def purchases(seen: Observed, steps: Sequence[Sequence[WalkStep]]) -> list[dict[str, Any]]:
    """One record for each acquisition that some row buys, in the mean order of purchase.

    `share` is over all rows. `spent` is what a row pays for it on average; it is left out where prices differ from row
    to row, so that share × price would be wrong.
    """
    place: dict[str, list[int]] = {}
    for mine in steps:
        for i, step in enumerate(mine):
            for name in step.buys:
                place.setdefault(name, []).append(i)
    costs, owned = seen.plan.costs, owned_by(seen)
    shares = {name: float(owned[:, a].mean()) for a, name in enumerate(costs.acquisitions) if owned[:, a].any()}
    last = max((len(mine) for mine in steps), default=0)
    order = sorted(shares, key=lambda name: (float(np.mean(place.get(name, [last]))), -shares[name]))
    prices = {name: costs.price_of([name]) for name in order}
    spent = {name: shares[name] * prices[name] for name in order}
    exact = _adds_up(seen, sum(spent.values()))
    return [
        {"name": name, "price": prices[name], "share": shares[name], "spent": spent[name] if exact else None}
        for name in order
    ]


def owned_by(seen: Observed) -> np.ndarray:
    """Rows × acquisitions: who bought what."""
    plan = seen.plan
    if isinstance(plan, PolicyPlan):
        return np.asarray(plan.walk_all(seen.rows.X)[1])
    if plan.charge == "path":
        return _by_path(seen)
    owned = np.zeros((len(seen.rows), len(plan.costs.acquisitions)), bool)
    for k in range(len(plan.nodes)):
        here = list(set_bits(plan.tables.purchase(k)[0]))
        owned[:, here] |= seen.visits[:, [k]]
    return owned


def _by_path(seen: Observed) -> np.ndarray:
    """The same where each row pays for its own path: a block of rows at a time, since attributions are large."""
    plan, rows = seen.plan, seen.rows
    if has_no_background(plan):
        plan = plan.with_background(rows.X)  # moves attributions, not purchases
    owned = np.zeros((len(rows), len(plan.costs.acquisitions)), bool)
    size = len(rows) if plan.by_query else BLOCK
    for first in range(0, len(rows), max(1, size)):
        block = slice(first, first + size)
        found = plan.contributions(rows.X[block], None if rows.qid is None else rows.qid[block])
        columns = [plan.costs.acquisitions.index(name) for name in found.acquisitions]
        owned[block, columns] = found.bought
    return owned


def has_no_background(plan: Plan) -> bool:
    """Whether a plan has not kept what attributions are changes from."""
    try:
        plan.contributions(np.zeros((0, len(plan.costs.features))), np.zeros(0, int) if plan.by_query else None)
    except ValueError:
        return True
    return False


def moved(seen: Observed, steps: Sequence[Sequence[WalkStep]], walked: np.ndarray) -> dict[str, Any] | None:
    """What each step of the walked rows moved the score of the class that was predicted in the end (of the second of
    two classes, of the number; by softmax against the mean of the others, since only differences of such scores say
    anything): the first has what is known at no price, and all of them add up to the score. None for plans
    that have not kept what is known of the training rows."""
    rows = seen.rows
    if has_no_background(seen.plan):
        return None
    found = seen.plan.contributions(rows.X[walked], None if rows.qid is None else rows.qid[walked])
    place = {name: a for a, name in enumerate(found.acquisitions)}
    lines, by_difference = [], seen.plan.link == "softmax"
    for i, mine in enumerate(steps):
        k = found.outputs.index(str(mine[-1].answer)) if str(mine[-1].answer) in found.outputs else 0
        bought = [sum(found.values[i, place[name]] for name in step.buys) for step in mine[1:]]
        parts = [_of_class(part, k, by_difference) for part in (found.base[i] + found.free[i], *bought)]
        lines.append([k, [float(f"{part:.3g}") for part in parts]])
    outputs = [f"{name} against the others" if by_difference else name for name in found.outputs]
    return {"outputs": outputs, "rows": lines}


def _of_class(scores: Any, k: int, by_difference: bool) -> float:
    """One of several scores, or what it has more than the mean of the others; 0 if nothing was bought."""
    if np.ndim(scores) == 0:
        return 0.0
    return float(scores[k] - np.delete(scores, k).mean() if by_difference else scores[k])


def _adds_up(seen: Observed, spent: float) -> bool:
    """Whether prices times shares are what rows pay, computing apart."""
    rest = float(seen.cost.mean()) - spent
    slack = AGREE * max(1.0, abs(spent))
    return rest >= -slack if seen.plan.costs.evaluation else abs(rest) <= slack

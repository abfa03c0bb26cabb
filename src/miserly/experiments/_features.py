"""What plans look at: features by price, stage by stage, and how many rows are left there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from miserly.experiments._parts import DataPart
from miserly.plan import Plan


def used_by(plan: Plan, nodes: Iterable[int]) -> set[int]:
    """The features that some nodes look at."""
    learners = {int(t) for k in nodes for t in plan.nodes[k].learners}
    return {int(f) for t in learners for f in plan.dictionary.features_of(t)}


def shares_by_price(plan: Plan, used: set[int]) -> dict[float, float]:
    """For each price, which part of its features is among those used."""
    prices = list(plan.costs.marginal().values())
    return {
        price: float(np.mean([f in used for f, p in enumerate(prices) if p == price])) for price in sorted(set(prices))
    }


def count_by_price(plan: Plan) -> dict[float, int]:
    """How many features have each price."""
    prices = list(plan.costs.marginal().values())
    return {price: prices.count(price) for price in sorted(set(prices))}


def lines_by_price(plan: Plan, shares: Sequence[dict[float, float]], x: Sequence[float]) -> dict[str, tuple]:
    """A line for each price: the part of its features in use, at each x."""
    return {
        f"c = {price:g} ({n})": (list(x), [share[price] for share in shares])
        for price, n in count_by_price(plan).items()
    }


def remaining(plan: Plan, part: DataPart) -> list[float]:
    """The share of rows, as often as they count, that comes to each stage of a cascade."""
    last = plan.run(part.X).exit[:, 0]
    weights = np.ones(len(last)) if part.copies is None else part.copies
    return [float(weights[last >= k].sum() / weights.sum()) for k in range(len(plan.nodes))]

"""New prices for models that stay as they are: what was bought is counted again, and chosen again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from miserly._typing import Floats
from miserly.costs import CostTable, set_bits

if TYPE_CHECKING:
    from miserly.plan._menu import Menu
    from miserly.plan._plan import Plan

SPREAD = math.log(1.5)  # of new to old prices, about their mean: below it retrained frontiers differ within noise
CHEAPER = 0.5  # of its old price relative to the others: then what no plan bought before may be worth it


@dataclass(frozen=True)
class Repricing:
    """What new prices change, and whether retraining would pay.

    Parameters
    ----------
    old, new : float
        The mean cost per row of the plan without a cap, by the old and by the new prices.
    spread : float
        How differently prices have moved: the standard deviation of the logarithm of new over old prices, weighted by
        what was spent. 0 if all moved by one factor: then training again gives the same models.
    reasons : tuple of str
        Why retraining would pay; empty if it would not.

    Examples
    --------
    >>> from miserly.plan import Repricing
    >>> Repricing(10.0, 20.0, 0.0, ()).retrain
    False
    """

    old: float
    new: float
    spread: float
    reasons: tuple[str, ...]

    @property
    def retrain(self) -> bool:
        """Whether retraining would pay."""
        return bool(self.reasons)

    def describe(self) -> str:
        """The change in one line."""
        said = "; ".join(self.reasons)
        advice = (
            f"Retraining would pay: {said}." if said else "Retraining would not pay: prices keep their proportions."
        )
        return f"New prices: mean cost {self.new:.4g}, before {self.old:.4g}. {advice}"


def new_costs(old: CostTable, given: CostTable | Mapping[str, float]) -> CostTable:
    """The table with new prices; an error if it prices something else."""
    if isinstance(given, CostTable):
        if (
            given.features != old.features
            or dict(given.needs) != dict(old.needs)
            or set(given.prices) != set(old.prices)
        ):
            raise ValueError(
                "reprice takes new prices for the same features and acquisitions: the new table has others, or other "
                "needs. Train again for those."
            )
        specs = given.specs
        return replace(given, prices={a: specs[a] for a in old.prices}, row_prices={}, amounts={}, named=old.named)
    unknown = [name for name in given if name not in old.prices]
    if unknown:
        raise ValueError(f"The plan buys no {unknown[0]!r}. It has prices for {', '.join(old.prices)}.")
    return replace(old, prices={**old.specs, **given}, row_prices={}, amounts={})


def shares_bought(plan: Plan, X: Any, qid: Any = None) -> Floats:
    """The share of rows that buys each acquisition, without a cap."""
    accounts, shares = plan.run(X, qid).accounts, np.zeros(len(plan.costs.prices))
    assert accounts is not None
    for number, n in zip(*np.unique(accounts.of_row, return_counts=True)):
        shares[list(set_bits(accounts.accounts[number].owned))] += n
    return shares / max(1, len(X))


def repriced_menu(
    menu: Menu, costs: CostTable | Mapping[str, float]
) -> tuple[CostTable, Floats, Floats, Floats, Repricing]:
    """New prices, caps, qualities and costs of a menu, from the shares that it keeps.

    Exact without a cap, and with one where all prices moved by one factor. Otherwise a plan under a cap is taken to do
    what it did under the old cap that was as large a part of its mean cost.
    """
    if menu.bought is None:
        raise ValueError(
            "This menu does not say what its plans bought, so it cannot be counted again: give validation rows, as in "
            "reprice(costs, X, quality=...), or measure it again."
        )
    table = new_costs(menu.costs, costs)
    if table.row_prices or menu.costs.row_prices:
        raise ValueError(
            "Prices that depend on the row can be counted on rows only: give validation rows, as in "
            "reprice(costs, X, quality=...)."
        )
    old, new = (np.array(list(t.prices.values())) for t in (menu.costs, table))
    whole = menu.bought @ old
    evaluated = np.maximum(0.0, menu.cost[:, -1] - whole) * _ratio_of_evaluation(menu.costs, table)
    rates = np.divide(
        menu.bought @ new + evaluated, menu.cost[:, -1], out=np.ones(len(whole)), where=menu.cost[:, -1] > 0
    )
    plans = [plan.reprice(table) for plan in menu.plans]
    factor = float(rates[menu.cost[:, -1] > 0].mean()) if (menu.cost[:, -1] > 0).any() else 1.0
    caps = np.unique(np.append(menu.caps[:-1] * (factor or 1.0), np.inf))
    quality, cost = np.zeros((len(plans), len(caps))), np.zeros((len(plans), len(caps)))
    for i, plan in enumerate(plans):
        for j, cap in enumerate(caps):
            same = cap / rates[i] if rates[i] > 0 else np.inf
            at = len(menu.caps) - 1
            if cap < plan.tables.most_expensive:
                at = max(0, int(np.searchsorted(menu.caps, same * (1 + 1e-9), side="right")) - 1)
            quality[i, j], cost[i, j] = menu.quality[i, at], menu.cost[i, at] * rates[i]
    return table, caps, quality, cost, compared(menu, table, rates)


def _ratio_of_evaluation(old: CostTable, new: CostTable) -> float:
    before, after = float(np.mean(old.evaluation)), float(np.mean(new.evaluation))
    return after / before if before > 0 else 1.0


def compared(menu: Menu, table: CostTable, rates: Floats) -> Repricing:
    """How differently prices have moved, and what that means; `rates` are new over old mean costs of the plans."""
    assert menu.bought is not None
    old, new = (np.array(list(t.prices.values())) for t in (menu.costs, table))
    best = int(np.argmax(menu.quality[:, -1]))
    bought = menu.bought.max(axis=0)
    reasons = list(_free_ones(table, old, new))
    paid = (old > 0) & (new > 0)
    moved = np.log(new[paid] / old[paid])
    weight = (bought * np.sqrt(np.maximum(old, 0) * np.maximum(new, 0)))[paid]
    spread = 0.0
    if weight.sum() > 0:
        mean = float(np.average(moved, weights=weight))
        spread = math.sqrt(float(np.average((moved - mean) ** 2, weights=weight)))
        names = [table.acquisitions[k] for k in np.flatnonzero(paid)]
        for k in np.flatnonzero((bought[paid] < 0.05) & (moved - mean < math.log(CHEAPER))):
            reasons.append(f"{names[k]!r} is much cheaper now beside the others, and hardly a row buys it")
        if spread > SPREAD:
            far = int(np.argmax(weight * np.abs(moved - mean)))
            reasons.append(f"prices moved apart, {names[far]!r} most of all: {old[paid][far]:g} to {new[paid][far]:g}")
    cost = float(menu.cost[best, -1])
    return Repricing(cost, cost * float(rates[best]), spread, tuple(reasons))


def _free_ones(table: CostTable, old: Floats, new: Floats) -> Sequence[str]:
    """What began to cost something, or ceased to."""
    kinds = (("is free now", (old > 0) & (new == 0)), ("was free and has a price now", (old == 0) & (new > 0)))
    return [f"{table.acquisitions[k]!r} {said}" for said, which in kinds for k in np.flatnonzero(which)]

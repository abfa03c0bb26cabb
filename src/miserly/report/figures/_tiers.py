"""Which prices are paid: the share of each price tier's acquisitions that is bought, by model or by stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from miserly.costs import CostTable
from miserly.frontiers import Frontier, figure
from miserly.plan import Plan
from miserly.report._graph import everything, levels
from miserly.report.figures._style import Picture, series

MOST_TIERS = 7


@dataclass(frozen=True)
class Tier:
    """Acquisitions of about one price, as a bit set."""

    low: float
    high: float
    members: int

    @property
    def label(self) -> str:
        """Its price or prices."""
        return figure(self.low) if self.low == self.high else f"{figure(self.low)} to {figure(self.high)}"


def price_tiers(costs: CostTable, most: int = MOST_TIERS) -> list[Tier]:
    """One tier for each price; if there are more than `most`, tiers of about as many acquisitions each."""
    prices = np.array(costs.price_list)
    distinct = np.unique(prices)
    if len(distinct) <= most:
        edges = distinct
    else:
        edges = np.unique(np.sort(prices)[np.arange(most) * len(prices) // most])
    tier = np.searchsorted(edges, prices, side="right") - 1
    return [
        Tier(
            float(prices[tier == t].min()),
            float(prices[tier == t].max()),
            sum(1 << int(a) for a in np.flatnonzero(tier == t)),
        )
        for t in range(len(edges))
    ]


@dataclass(frozen=True, eq=False)
class TiersPicture(Picture):
    """One line for each tier of prices.

    `TiersPicture.of_models` and `TiersPicture.of_stages` make the usual ones.

    Parameters
    ----------
    costs : CostTable
        The prices. Each price is a tier; if there are more than seven, tiers hold about as many acquisitions each.
    labels : sequence of str
        The names of the places on the axis, from left to right.
    bought : sequence of int
        The acquisitions that are bought at each of these places, as a bit set (bit i is the table's acquisition i).
    axis : str
        What the axis is called.

    Examples
    --------
    >>> import miserly as ms
    >>> from miserly.report import TiersPicture
    >>> costs = ms.CostTable.per_feature({"age": 1.0, "crp": 5.0})
    >>> picture = TiersPicture(costs, labels=["small", "large"], bought=[0b01, 0b11], axis="model")
    >>> [(r["model"], r["tier"], r["share"]) for r in picture.frame()]
    [('small', '1', 1.0), ('small', '5', 0.0), ('large', '1', 1.0), ('large', '5', 1.0)]
    """

    costs: CostTable
    labels: Sequence[str]
    bought: Sequence[int]
    axis: str

    @classmethod
    def of_models(cls, front: Frontier) -> TiersPicture:
        """Against the models of a front, cheapest first (Greedy Miser's figure 2)."""
        points = front.pareto()
        labels = [figure(p.validation.cost["mean"]) for p in points]
        plans = [p.model.plan_ for p in points]
        return cls(plans[0].costs, labels, [everything(p) for p in plans], f"mean cost per row ({front.unit})")

    @classmethod
    def of_stages(cls, plan: Plan) -> TiersPicture:
        """Against the stages of a cascade or the levels of a tree: what the nodes there look at (Cronus's figure 4,
        the thesis's 3.7 and 3.8)."""
        stages = levels(plan)
        used = []
        for nodes in stages:
            used.append(0)
            for k in nodes:
                used[-1] |= plan.tables.purchase(k)[0]
        return cls(plan.costs, [str(i) for i in range(1, len(stages) + 1)], used, "stage")

    def frame(self) -> list[dict[str, Any]]:
        return [
            {
                self.axis: label,
                "tier": tier.label,
                "bought": (tier.members & bought).bit_count(),
                "of": tier.members.bit_count(),
                "share": (tier.members & bought).bit_count() / tier.members.bit_count(),
            }
            for label, bought in zip(self.labels, self.bought)
            for tier in price_tiers(self.costs)
        ]

    def draw(self, ax: Axes) -> None:
        records, places = self.frame(), np.arange(len(self.labels))
        for i, tier in enumerate(price_tiers(self.costs)):
            shares = [r["share"] for r in records if r["tier"] == tier.label]
            ax.plot(places, shares, label=f"{tier.label} ({tier.members.bit_count()})", **series(i))
        step = max(1, len(places) // 12)
        ax.set_xticks(places[::step], self.labels[::step])
        ax.set_xlabel(self.axis)
        ax.set_ylabel("share of the tier that is bought")
        ax.set_ylim(-0.03, 1.03)
        ax.grid(alpha=0.3)
        ax.legend(title="price (how many)")

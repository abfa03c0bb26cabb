"""Who pays: what rows spend, by label and by outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes

from miserly.report._observed import Observed
from miserly.report.figures._style import Picture, patch

FEW_COSTS = 12
BINS = 20


@dataclass(frozen=True, eq=False)
class SpendingPicture(Picture):
    """A histogram of the rows' costs, parted by label or by outcome (right or wrong).

    Parameters
    ----------
    observed : Observed
        A plan and what its rows paid.
    by : {"label", "outcome"}, default="label"
        What parts the bars. Outcomes are right and wrong answers; for lists the documents shown first and the others;
        for numbers the nearer and the farther half.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> from miserly.report import LabelledRows, Observed, SpendingPicture
    >>> costs = ms.CostTable.per_feature({"age": 1.0, "crp": 5.0})
    >>> plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [1.0, 1.0]),), [0.0], means=[0.0, 0.0])
    >>> rows = LabelledRows(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1.0, 4.0]))
    >>> SpendingPicture(Observed.of(plan, rows)).frame()
    [{'low': 6.0, 'high': 6.0, 'rows': 2, '1': 1, '4': 1}]
    """

    observed: Observed
    by: Literal["label", "outcome"] = "label"

    @property
    def groups(self) -> dict[str, np.ndarray]:
        """The rows of each group."""
        return self.observed.label_groups if self.by == "label" else self.observed.outcome_groups

    def frame(self) -> list[dict[str, Any]]:
        """One record for each bar: its costs from `low` to `high`, its rows, and those of each group."""
        cost, distinct = self.observed.cost, np.unique(self.observed.cost)
        if len(distinct) <= FEW_COSTS:
            lows = highs = distinct
        else:
            edges = np.linspace(distinct[0], distinct[-1], BINS + 1)
            lows, highs = edges[:-1], edges[1:]
        bar = np.clip(np.searchsorted(lows, cost, side="right") - 1, 0, len(lows) - 1)
        return [
            {"low": float(low), "high": float(high), "rows": int((bar == i).sum())}
            | {name: int(((bar == i) & rows).sum()) for name, rows in self.groups.items()}
            for i, (low, high) in enumerate(zip(lows, highs))
        ]

    def totals(self) -> list[dict[str, Any]]:
        """One record for each group: how many rows, what they pay, and their share of all that is paid."""
        cost, everything = self.observed.cost, float(self.observed.cost.sum())
        return [
            {
                "by": self.by,
                "group": name,
                "rows": int(rows.sum()),
                "mean": float(cost[rows].mean()),
                "p95": float(np.percentile(cost[rows], 95)),
                "max": float(cost[rows].max()),
                "share": float(cost[rows].sum()) / everything if everything else 0.0,
            }
            for name, rows in self.groups.items()
        ]

    def draw(self, ax: Axes) -> None:
        records = self.frame()
        bottom = np.zeros(len(records))
        if records[0]["low"] == records[0]["high"]:
            places, width = np.arange(len(records)), 0.8
            ax.set_xticks(places, [f"{r['low']:g}" for r in records])
        else:
            places = np.array([(r["low"] + r["high"]) / 2 for r in records])
            width = 0.95 * (records[0]["high"] - records[0]["low"])
        for i, name in enumerate(self.groups):
            rows = np.array([r[name] for r in records])
            ax.bar(places, rows, width, bottom=bottom, label=name, **patch(i))
            bottom += rows
        ax.set_xlabel(f"cost of a row ({self.observed.plan.costs.unit})")
        ax.set_ylabel("rows")
        ax.grid(axis="y", alpha=0.3)
        ax.legend(title=self.by)

"""How many rows are left: those that come to each stage of a cascade or level of a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from miserly.report._graph import levels
from miserly.report._observed import Observed
from miserly.report.figures._style import INK, Picture, patch


@dataclass(frozen=True, eq=False)
class StagesPicture(Picture):
    """A bar for each stage, parted by the rows' labels.

    Parameters
    ----------
    observed : Observed
        A plan and which of its nodes the rows came through.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> from miserly.report import LabelledRows, Observed, StagesPicture
    >>> costs = ms.CostTable.per_feature({"age": 1.0, "crp": 5.0})
    >>> plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [1.0, 1.0]),), [0.0], means=[0.0, 0.0])
    >>> rows = LabelledRows(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1.0, 4.0]))
    >>> StagesPicture(Observed.of(plan, rows)).frame()
    [{'stage': 1, 'rows': 2, 'share': 1.0, '1': 1, '4': 1}]
    """

    observed: Observed

    def frame(self) -> list[dict[str, Any]]:
        groups = self.observed.label_groups
        records = []
        for stage, nodes in enumerate(levels(self.observed.plan), start=1):
            here = self.observed.visits[:, nodes].any(axis=1)
            record: dict[str, Any] = {"stage": stage, "rows": int(here.sum()), "share": float(here.mean())}
            records.append(record | {name: int((here & rows).sum()) for name, rows in groups.items()})
        return records

    def draw(self, ax: Axes) -> None:
        records = self.frame()
        stages = [r["stage"] for r in records]
        bottom = np.zeros(len(records))
        for i, name in enumerate(self.observed.label_groups):
            rows = np.array([r[name] for r in records])
            ax.bar(stages, rows, bottom=bottom, label=name, **patch(i))
            bottom += rows
        for record in records if len(records) <= 12 else ():
            ax.annotate(
                f"{record['share']:.0%}", (record["stage"], record["rows"]), ha="center", va="bottom", color=INK
            )
        ax.locator_params(axis="x", integer=True)
        ax.set_xlabel("stage")
        ax.set_ylabel("rows that come there")
        ax.grid(axis="y", alpha=0.3)
        ax.legend(title="label")

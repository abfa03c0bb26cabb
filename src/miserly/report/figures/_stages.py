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
    """A bar for each stage, parted by the rows' labels."""

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

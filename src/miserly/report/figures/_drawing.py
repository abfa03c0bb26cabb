"""The plan as a drawing: a funnel where every row goes one way, a tree where ways part."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from miserly.plan import EXIT, Plan
from miserly.report._graph import Box, boxes, names
from miserly.report._observed import LabelledRows, Observed
from miserly.report.figures._style import COLOURS, FAINT, INK, Picture, drawn

WRITTEN = 3


@dataclass(frozen=True, eq=False)
class PlanPicture(Picture):
    """Boxes of nodes: size by the rows that come there, colour by their label, with what each buys and who goes on.

    Parameters
    ----------
    observed : Observed
        The plan to draw, with the rows that go through it.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> from miserly.report import LabelledRows, Observed, PlanPicture
    >>> costs = ms.CostTable.per_feature({"age": 1.0, "crp": 5.0})
    >>> plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [1.0, 1.0]),), [0.0], means=[0.0, 0.0])
    >>> rows = LabelledRows(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1.0, 4.0]))
    >>> box = PlanPicture(Observed.of(plan, rows)).frame()[0]
    >>> box["rows"], box["buys"], box["price"]
    (2, ['age', 'crp'], 6.0)
    """

    observed: Observed
    size = (8.0, 5.5)

    def frame(self) -> list[dict[str, Any]]:
        """One record for each box: what it buys, its price and that of all that is owned by then, its
        rows and their label, where they go, its place."""
        plan, rows = self.observed.plan, self.observed.rows
        home = {k: number for number, box in enumerate(self._boxes) for k in box.nodes}
        records = []
        for number, box in enumerate(self._boxes):
            node = plan.nodes[box.last]
            here = self.observed.visits[:, box.nodes[0]]
            gated = node.gate.kind != "open"
            passed, failed = (None if way == EXIT else home[way] for way in (node.passed, node.failed))
            records.append(
                {
                    "box": number,
                    "nodes": len(box.nodes),
                    "level": self._levels[number],
                    "place": self._places[number],
                    "rows": int(here.sum()),
                    "share": float(here.mean()) if len(rows) else 0.0,
                    "leave": int(np.isin(self.observed.run.exit, box.nodes).any(axis=1).sum()),
                    **self._label(here),
                    "buys": names(plan, box.acquisitions),
                    "price": plan.tables.ledger.price(box.acquisitions),
                    "total": plan.tables.ledger.price(plan.tables.owned_at(box.last)[0]),
                    "gate": node.gate.describe() if gated else None,
                    "passed": passed,
                    "failed": failed if gated else None,
                }
            )
        return records

    @property
    def is_funnel(self) -> bool:
        """Whether no box leads to two others."""
        return all(len(self._next(box)) < 2 for box in self._boxes)

    def draw(self, ax: Axes) -> None:
        if self.is_funnel:
            self._draw_funnel(ax)
        else:
            self._draw_tree(ax)
        ax.set_axis_off()

    # ---- where boxes stand ------------------------------------------------------------------------------------

    @cached_property
    def _boxes(self) -> list[Box]:
        return boxes(self.observed.plan)

    def _next(self, box: Box) -> list[int]:
        """The boxes that a box leads to."""
        starts = {b.nodes[0]: number for number, b in enumerate(self._boxes)}
        return [starts[way] for way in self.observed.plan.nodes[box.last].ways if way != EXIT]

    @cached_property
    def _levels(self) -> list[int]:
        level = [0] * len(self._boxes)
        for number, box in enumerate(self._boxes):
            for after in self._next(box):
                level[after] = max(level[after], level[number] + 1)
        return level

    @cached_property
    def _places(self) -> list[float]:
        """From left (0) to right (1): ends in the order of their ways, others in the middle of what they lead to."""
        after = [self._next(box) for box in self._boxes]
        ends: list[int] = []
        seen: set[int] = set()

        def visit(number: int) -> None:
            if number in seen:
                return
            seen.add(number)
            for way in after[number]:
                visit(way)
            if not after[number]:
                ends.append(number)

        for number in range(len(self._boxes)):
            visit(number)
        place = {number: (i + 0.5) / len(ends) for i, number in enumerate(ends)}
        for number in reversed(range(len(self._boxes))):
            if number not in place:
                place[number] = float(np.mean([place[way] for way in after[number]]))
        return [place[number] for number in range(len(self._boxes))]

    # ---- labels -----------------------------------------------------------------------------------------------

    def _label(self, here: np.ndarray) -> dict[str, Any]:
        """The most frequent class and its share among rows, or the mean label."""
        y = self.observed.rows.y[here]
        classes = self.observed.plan.classes
        if not len(y):
            return {"label": None, "purity": None}
        if classes is None:
            return {"label": float(y.mean()), "purity": None}
        counts = np.array([(y == c).sum() for c in classes])
        best = int(counts.argmax())
        return {"label": str(classes[best]), "purity": float(counts[best] / len(y))}

    def _colour(self, record: dict[str, Any]) -> Any:
        classes = self.observed.plan.classes
        if record["label"] is None:
            return FAINT
        if classes is not None:
            return COLOURS[[str(c) for c in classes].index(record["label"]) % len(COLOURS)]
        low, high = np.quantile(self.observed.rows.y, [0.05, 0.95])
        share = float(np.clip((record["label"] - low) / (high - low), 0, 1)) if high > low else 0.5
        light, dark = np.array(to_rgb("#cfe3f1")), np.array(to_rgb("#08519c"))
        return tuple(light + share * (dark - light))

    # ---- drawing ----------------------------------------------------------------------------------------------

    def _draw_funnel(self, ax: Axes) -> None:
        records = self.frame()
        for record in records:
            y, half = -record["box"], 0.5 * record["share"]
            ax.barh(y, 2 * half, left=-half, height=0.7, color=self._colour(record), edgecolor=INK)
            ax.text(0.56, y, _words(record), va="center", fontsize=8, color=INK)
            ax.text(-0.56, y, _who(record), va="center", ha="right", fontsize=8, color=INK)
        ax.set_xlim(-1.1, 2.2)

    def _draw_tree(self, ax: Axes) -> None:
        records = self.frame()
        for record in records:
            at = (record["place"], -record["level"])
            for way, line in (("passed", "-"), ("failed", "--")):
                if record[way] is not None:
                    end = records[record[way]]
                    ax.plot([at[0], end["place"]], [at[1], -end["level"]], line, color=FAINT, zorder=1)
        for record in records:
            at = (record["place"], -record["level"])
            area = 120 + 2200 * record["share"]
            ax.scatter(*at, s=area, color=self._colour(record), edgecolor=INK, zorder=2)
            below = f"{_who(record)}\n{_words(record)}" + (f"\n{record['gate']}?" if record["gate"] else "")
            style: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "top", "fontsize": 7}
            paper = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
            ax.annotate(below, at, (0, -6 - np.sqrt(area) / 2), bbox=paper, **style)
        ax.margins(0.12, 0.25)


def _words(record: dict[str, Any]) -> str:
    bought = record["buys"]
    if not bought:
        return "buys nothing"
    more = f" and {len(bought) - WRITTEN} more" if len(bought) > WRITTEN else ""
    return f"buys {', '.join(bought[:WRITTEN])}{more} for {record['price']:g}"


def _who(record: dict[str, Any]) -> str:
    label = record["label"]
    label_text = "" if label is None else f", {label}" if isinstance(label, str) else f", mean {label:.3g}"
    return f"{record['share']:.0%} of rows{label_text}"


def plot_plan(plan: Plan, X: Any, y: Any, path: str | Path | None = None, ax: Axes | None = None) -> Figure:
    """Draw a plan with the rows that go through it: what `plan.plot()` calls.

    Parameters
    ----------
    plan : Plan
        The plan to draw.
    X : array of shape (n_rows, n_features)
        The rows, in the order of the plan's features.
    y : array of shape (n_rows,)
        Their labels.
    path : str, Path or None, default=None
        Where to write the picture; the end of the name says how (.png, .svg, .pdf; .png if there is none).
    ax : matplotlib Axes or None, default=None
        Where to draw; None: on a new figure.

    Returns
    -------
    matplotlib Figure
        The figure that was drawn on.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> from miserly.report import plot_plan
    >>> costs = ms.CostTable.per_feature({"age": 1.0, "crp": 5.0})
    >>> plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [1.0, 1.0]),), [0.0], means=[0.0, 0.0])
    >>> figure = plot_plan(plan, np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1.0, 4.0]))
    >>> len(figure.axes)
    1
    """
    return drawn(PlanPicture(Observed.of(plan, LabelledRows(np.asarray(X), np.asarray(y)))), path, ax)

"""Pictures of several panels: frontiers, lines, clouds of points; a stamp says what the data stand in for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from miserly.frontiers import Frontier
from miserly.report.figures._style import COLOURS, MARKERS, write_figure

MOST_IN_A_ROW = 4
Points = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True)
class FrontierPanel:
    """Quality against cost on test data: all points faint, those chosen on validation as a line of steps."""

    title: str
    fronts: Sequence[Frontier]

    def draw(self, ax: Axes) -> None:
        for i, front in enumerate(self.fronts):
            style: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
            faint: dict[str, Any] = {"alpha": 0.25, "linestyle": ""}
            for points, more in ((front.points, faint), (front.pareto(), {})):
                measured = [point.on("test") for point in points]
                x, y = [m.cost["mean"] for m in measured], [m.quality for m in measured]
                label = "" if more else front.name
                ax.plot(x, y, drawstyle="steps-post", markersize=4, linewidth=1.2, label=label, **style, **more)
        costs = [p.on("test").cost["mean"] for front in self.fronts for p in front.points]
        ax.set_xscale("symlog", linthresh=min((c for c in costs if c > 0), default=1.0))
        ax.set(xlabel=f"mean cost ({self.fronts[0].unit})", ylabel=f"{self.fronts[0].metric.name} on test")
        ax.grid(alpha=0.3)
        ax.legend(fontsize=7)


@dataclass(frozen=True)
class LinePanel:
    """Named lines; `rings` are marked points."""

    title: str
    x: str
    y: str
    lines: Mapping[str, Points]
    rings: Points | None = None
    log_x: bool = False

    def draw(self, ax: Axes) -> None:
        for i, (name, (x, y)) in enumerate(self.lines.items()):
            few = len(x) <= 30
            style: dict[str, Any] = {"marker": MARKERS[i % len(MARKERS)], "markersize": 4} if few else {}
            ax.plot(x, y, color=COLOURS[i % len(COLOURS)], label=name, linewidth=1.2, **style)
        if self.rings is not None:
            ax.plot(*self.rings, "o", markersize=10, fillstyle="none", color="red", label="best on validation")
        if self.log_x:
            ax.set_xscale("log")
        ax.set(xlabel=self.x, ylabel=self.y)
        ax.grid(alpha=0.3)
        ax.legend(fontsize=7)


@dataclass(frozen=True)
class CloudPanel:
    """Points of several classes in the plane, lines across it, and where scores are zero on a grid."""

    title: str
    clouds: Sequence[Points]
    verticals: Sequence[float] = ()
    vectors: Points | None = None
    zero: Sequence[tuple[np.ndarray, np.ndarray]] = field(default_factory=tuple)

    def draw(self, ax: Axes) -> None:
        for i, (x, y) in enumerate(self.clouds):
            ax.scatter(x, y, s=4, color=COLOURS[i], alpha=0.6)
        for i, at in enumerate(self.verticals):
            ax.axvline(at, color="black" if i == 0 else "grey", linewidth=1)
        for (ticks, scores), colour in zip(self.zero, ("black", COLOURS[2])):
            ax.contour(ticks, ticks, scores, [0.0], colors=colour)
        if self.vectors is not None:
            ax.scatter(*self.vectors, s=40, color=COLOURS[5], edgecolors="black")
        ax.set(xticks=[], yticks=[])


@dataclass(frozen=True)
class TablePanel:
    """A matrix of numbers between 0 and 1."""

    title: str
    names: Sequence[str]
    values: np.ndarray

    def draw(self, ax: Axes) -> None:
        ax.imshow(self.values, cmap="Blues", vmin=0.0, vmax=1.0)
        ax.set(xticks=range(len(self.names)), yticks=range(len(self.names)))
        ax.set_xticklabels(self.names, fontsize=7)
        ax.set_yticklabels(self.names, fontsize=7)
        for (i, j), value in np.ndenumerate(self.values):
            ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=7)


Panel = FrontierPanel | LinePanel | CloudPanel | TablePanel


def plot_panels(panels: Sequence[Panel], path: str | Path, title: str, stamp: str = "") -> None:
    """Draw the panels side by side, and the stamp across the foot."""
    columns = min(MOST_IN_A_ROW, len(panels)) or 1
    lines = -(-len(panels) // columns) or 1
    wide = 6.0 if columns < 3 else 4.0
    figure = Figure(figsize=(wide * columns, 0.4 + 0.75 * wide * lines), layout="constrained")
    for ax, panel in zip(np.ravel(figure.subplots(lines, columns, squeeze=False)), panels):
        panel.draw(ax)
        ax.set_title(panel.title, fontsize=9)
    for ax in figure.axes[len(panels) :]:
        ax.set_axis_off()
    figure.suptitle(title, fontsize=11)
    if stamp:
        figure.supxlabel(stamp, fontsize=10, color="#B00000", weight="bold")
    write_figure(figure, path, 120)

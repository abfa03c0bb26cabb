"""Quality against cost: several sweeps, their Pareto fronts, and the chosen point."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from miserly.frontiers import Frontier, Point

MARKERS = "osD^vP*X"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def plot_frontier(
    fronts: Sequence[Frontier],
    path: str | Path | None = None,
    ax: Axes | None = None,
    chosen: Point | None = None,
    on: str = "validation",
) -> Figure:
    """Draw sweeps on one axis (log cost): all points faint, the front chosen on validation as a line of steps."""
    if ax is None:
        ax = Figure(figsize=(7.5, 4.8), layout="constrained").subplots()
    for i, front in enumerate(fronts):
        colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
        _scatter(ax, front.points, on, color=colour, marker=marker, alpha=0.3)
        costs, qualities = _coordinates(front.pareto(), on)
        ax.plot(costs, qualities, color=colour, marker=marker, drawstyle="steps-post", label=front.name or None)
    if chosen is not None:
        costs, qualities = _coordinates([chosen], on)
        ax.plot(costs, qualities, "o", markersize=15, fillstyle="none", color="black", label="chosen")
    ax.set_xscale("symlog", linthresh=_smallest(fronts, on))
    ax.set_xlabel(f"mean cost per row ({fronts[0].unit})")
    metric = fronts[0].metric
    ax.set_ylabel(f"{metric.name} on {on}" + ("" if metric.greater_is_better else " (lower is better)"))
    ax.grid(alpha=0.3)
    ax.legend()
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _coordinates(points: Sequence[Point], on: str) -> tuple[list[float], list[float]]:
    measured = [point.on(on) for point in points]
    return [m.cost["mean"] for m in measured], [m.quality for m in measured]


def _scatter(ax: Axes, points: Sequence[Point], on: str, **style: Any) -> None:
    ax.scatter(*_coordinates(points, on), **style)


def _smallest(fronts: Sequence[Frontier], on: str) -> float:
    """The smallest cost that is not zero: below it the logarithmic axis is linear, so that free models have a place."""
    costs = [c for front in fronts for c in _coordinates(front.points, on)[0] if c > 0]
    return min(costs, default=1.0)

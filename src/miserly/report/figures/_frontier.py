"""Quality against cost: several sweeps, their Pareto fronts, the chosen and the cost-blind model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, SymmetricalLogLocator

from miserly.frontiers import Frontier, Point
from miserly.report._intervals import half_width, parts_left, replicates
from miserly.report._observed import LabelledRows, Observed
from miserly.report._prefixes import prefixes
from miserly.report.figures._style import FAINT, INK, Picture, drawn, series


@dataclass(frozen=True, eq=False)
class FrontierPicture(Picture):
    """All points faint, each front as a line of steps, on a logarithmic axis of cost.

    With the validation `rows`, points of the fronts have 95 % intervals, and the most expensive of each front, if it is
    an anytime model (a chain of stages), is also drawn as a thin line through its prefixes.

    Parameters
    ----------
    fronts : sequence of Frontier
        The sweeps, at least one. Metric and unit of the first name the axes.
    chosen : Point or None, default=None
        The point to mark as chosen, one of the sweeps' own.
    blind : Point or None, default=None
        The point to mark as cost-blind, one of the sweeps' own.
    on : {"validation", "test"}, default="validation"
        The data whose figures are drawn.
    rows : LabelledRows or None, default=None
        The validation rows, for intervals and prefixes; without effect if `on` is "test".

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.report import FrontierPicture
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = ms.GreedyMiserRegressor(ms.CostTable.per_feature([1.0, 5.0]), n_estimators=5)
    >>> front = ms.frontier(model, (X, X[:, 0]), (X, X[:, 0]), grid={"tradeoff": [0.0, 0.1]})
    >>> [(r["tradeoff"], r["cost"], r["front"]) for r in FrontierPicture([front]).frame()]
    [(0.0, 1.0, True), (0.1, 1.0, False)]
    """

    fronts: Sequence[Frontier]
    chosen: Point | None = None
    blind: Point | None = None
    on: str = "validation"
    rows: LabelledRows | None = None

    def frame(self) -> list[dict[str, Any]]:
        """One record for each point, and for each prefix of an anytime model."""
        records = []
        for front in self.fronts:
            on_front = front.pareto()
            for point in front.points:
                measured = point.on(self.on)
                is_on_front = any(point is p for p in on_front)
                half = self._half_width(front, point) if is_on_front else None
                records.append(
                    {
                        "method": front.name,
                        "kind": "model",
                        **point.params,
                        "cost": measured.cost["mean"],
                        "quality": measured.quality,
                        "low": None if half is None else measured.quality - half,
                        "high": None if half is None else measured.quality + half,
                        "front": is_on_front,
                        "chosen": point is self.chosen,
                        "blind": point is self.blind,
                    }
                )
            records += [
                {"method": front.name, "kind": "prefix", "cost": cost, "quality": quality}
                for cost, quality in self._prefixes(front)
            ]
        return records

    def draw(self, ax: Axes) -> None:
        records = self.frame()
        for i, front in enumerate(self.fronts):
            style = series(i)
            mine = [r for r in records if r["method"] == front.name]
            models = [r for r in mine if r["kind"] == "model"]
            ax.scatter(*_columns(models), color=style["color"], marker=style["marker"], alpha=0.3)
            line = sorted((r for r in models if r["front"]), key=lambda r: r["cost"])
            ax.plot(*_columns(line), drawstyle="steps-post", label=front.name or None, **style)
            sure = [r for r in line if r["low"] is not None]
            if sure:
                reach = [(r["high"] - r["low"]) / 2 for r in sure]
                ax.errorbar(*_columns(sure), yerr=reach, fmt="none", ecolor=style["color"], capsize=3, linewidth=1)
            prefix = [r for r in mine if r["kind"] == "prefix"]
            if prefix:
                label = f"{front.name}: its prefixes"
                ax.plot(*_columns(prefix), color=style["color"], linestyle=":", linewidth=1, label=label)
        for name, shape, colour in (("chosen", "o", INK), ("blind", "s", FAINT)):
            marked = [r for r in records if r.get(name)]
            if marked:
                label = {"blind": "cost-blind"}.get(name, name)
                ax.plot(*_columns(marked), shape, markersize=15, fillstyle="none", color=colour, label=label)
        _scale_costs(ax, [r["cost"] for r in records])
        ax.set_xlabel(f"mean cost per row ({self.fronts[0].unit})")
        metric = self.fronts[0].metric
        ax.set_ylabel(f"{metric.name} on {self.on}" + ("" if metric.greater_is_better else " (lower is better)"))
        ax.grid(alpha=0.3)
        ax.legend()

    @cached_property
    def _parts(self) -> list[Any]:
        assert self.rows is not None
        return parts_left(self.rows)

    def _half_width(self, front: Frontier, point: Point) -> float | None:
        if self.rows is None or self.on != "validation":
            return None
        seen = Observed.of(point.model.plan_, self.rows)
        half = half_width(replicates(seen, front.metric, self._parts))
        return None if half != half else half

    def _prefixes(self, front: Frontier) -> list[tuple[float, float]]:
        if self.rows is None or self.on != "validation" or not front.points:
            return []
        return prefixes(front.pareto()[-1].model.plan_, front.metric, self.rows)


def plot_frontier(
    fronts: Sequence[Frontier],
    path: str | Path | None = None,
    ax: Axes | None = None,
    chosen: Point | None = None,
    on: str = "validation",
    **options: Any,
) -> Figure:
    """Draw sweeps on one axis, and write the picture if there is a path: what `front.plot()` calls.

    Parameters
    ----------
    fronts : sequence of Frontier
        The sweeps, at least one.
    path : str, Path or None, default=None
        Where to write the picture; the end of the name says how (.png, .svg, .pdf; .png if there is none).
    ax : matplotlib Axes or None, default=None
        Where to draw; None: on a new figure.
    chosen : Point or None, default=None
        The point to mark as chosen, one of the sweeps' own.
    on : {"validation", "test"}, default="validation"
        The data whose figures are drawn.
    **options
        `blind` and `rows` of `FrontierPicture`.

    Returns
    -------
    matplotlib Figure
        The figure that was drawn on.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.report import plot_frontier
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = ms.GreedyMiserRegressor(ms.CostTable.per_feature([1.0, 5.0]), n_estimators=5)
    >>> front = ms.frontier(model, (X, X[:, 0]), (X, X[:, 0]), grid={"tradeoff": [0.0, 0.1]})
    >>> plot_frontier([front], chosen=front.points[0]).axes[0].get_xlabel()
    'mean cost per row (units)'
    """
    return drawn(FrontierPicture(fronts, chosen, on=on, **options), path, ax)


def plot_frontier_interactive(
    fronts: Sequence[Frontier], chosen: Point | None = None, on: str = "validation", **options: Any
) -> Any:
    """The same as a plotly figure: the settings of each model stand under the pointer."""
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise ImportError("interactive=True needs plotly: pip install plotly. Or leave interactive out.") from None
    picture = FrontierPicture(fronts, chosen, on=on, **options)
    records, metric = picture.frame(), fronts[0].metric
    figure = go.Figure()
    for i, front in enumerate(fronts):
        mine = [r for r in records if r["method"] == front.name and r["kind"] == "model"]
        line = sorted((r for r in mine if r["front"]), key=lambda r: r["cost"])
        colour = series(i)["color"]
        for part, style in ((mine, {"mode": "markers", "opacity": 0.35}), (line, {"mode": "lines+markers"})):
            costs, quality = _columns(part)
            half = [None if r["low"] is None else (r["high"] - r["low"]) / 2 for r in part]
            figure.add_scatter(
                x=costs,
                y=quality,
                name=front.name,
                legendgroup=front.name,
                showlegend=part is line,
                marker={"color": colour},
                line={"shape": "hv", "color": colour},
                hovertext=[_settings(r) for r in part],
                error_y={"array": half} if any(half) else None,
                **style,
            )
    lower = "" if metric.greater_is_better else " (lower is better)"
    figure.update_layout(
        xaxis={"title": f"mean cost per row ({fronts[0].unit})", "rangemode": "tozero"},
        yaxis={"title": f"{metric.name} on {on}{lower}"},
        template="plotly_white",
    )
    return figure


def _settings(record: dict[str, Any]) -> str:
    """The parameters of a model, a line each."""
    shown = {"method", "kind", "cost", "quality", "low", "high", "front", "chosen", "blind"}
    lines = [f"{k} = {v:.4g}" if isinstance(v, float) else f"{k} = {v}" for k, v in record.items() if k not in shown]
    return "<br>".join(lines) or "constant"


def _scale_costs(ax: Axes, costs: Sequence[float]) -> None:
    """Logarithmic, down to what is free; the fewer decades, the more numbers have a tick."""
    positive = [cost for cost in costs if cost > 0] or [1.0]
    low, high = min(positive), max(positive)
    ax.set_xscale("symlog", linthresh=low)
    subs = [1, 2, 3, 4, 5, 6, 8] if high <= 10 * low else [1, 2, 5] if high <= 100 * low else [1]
    ax.xaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=low, subs=subs))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda cost, _: f"{cost:,.0f}" if cost >= 1e4 else f"{cost:g}"))


def _columns(records: Sequence[dict[str, Any]]) -> tuple[list[float], list[float]]:
    return [r["cost"] for r in records], [r["quality"] for r in records]

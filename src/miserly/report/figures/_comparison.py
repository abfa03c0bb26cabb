"""Methods on the same folds: mean test quality over the budget, with intervals at some budgets."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from miserly.frontiers import Comparison, interval, within
from miserly.report.figures._style import Picture, drawn, figure_of, series

N_BUDGETS = 120


@dataclass(frozen=True, eq=False)
class ComparisonPicture(Picture):
    """A line for each method: the mean over folds of what it reaches within each budget; bars are 95 % intervals.

    Parameters
    ----------
    comparison : Comparison
        What `ms.compare` found.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.report import ComparisonPicture
    >>> X = np.random.default_rng(0).normal(size=(150, 2))
    >>> model = ms.GreedyMiserRegressor(ms.CostTable.per_feature([1.0, 5.0]), n_estimators=5)
    >>> found = ms.compare({"miser": model}, (X, X[:, 0]), cv=3, budgets=[2.0])
    >>> [record["budget"] for record in ComparisonPicture(found).frame()]
    [2.0]
    """

    comparison: Comparison

    def frame(self) -> list[dict[str, Any]]:
        """One record for each method and budget of the comparison: mean quality and half the 95 % interval."""
        found = self.comparison
        records = []
        for name in found.curves:
            for budget in found.budgets:
                mean, half = interval([within(front, budget) for front in found.curves[name]], found.overlap)
                records.append({"method": name, "budget": budget, "quality": mean, "half": half})
        return records

    def draw(self, ax: Axes) -> None:
        found, records = self.comparison, self.frame()
        low, high = found.limits
        budgets = np.geomspace(low, high, N_BUDGETS)
        for i, (name, fronts) in enumerate(found.curves.items()):
            style = series(i)
            quality = [np.mean([within(front, b) for front in fronts]) for b in budgets]
            ax.plot(budgets, quality, color=style["color"], linestyle=style["linestyle"])
            mine = [r for r in records if r["method"] == name]
            shift = 1.0 + 0.02 * (i - (len(found.curves) - 1) / 2)  # so that bars of several methods stand side by side
            half = np.nan_to_num([r["half"] for r in mine])
            at, middle = [shift * r["budget"] for r in mine], [r["quality"] for r in mine]
            ax.errorbar(at, middle, half, fmt=style["marker"], color=style["color"], capsize=3, label=name)
        ax.set_xscale("log")
        ax.set_xlabel(f"mean cost per row, at most ({found.unit})")
        lower = "" if found.metric.greater_is_better else " (lower is better)"
        ax.set_ylabel(f"{found.metric.name} on test rows, mean of {found.n_folds} folds{lower}")
        ax.grid(alpha=0.3)
        ax.legend()


def plot_comparison(comparison: Comparison, path: str | Path | None = None, ax: Axes | None = None) -> Figure:
    """Draw a comparison, and write the picture if there is a path: what `comparison.plot()` calls.

    Parameters
    ----------
    comparison : Comparison
        What `ms.compare` found.
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
    >>> from miserly.report import plot_comparison
    >>> X = np.random.default_rng(0).normal(size=(150, 2))
    >>> model = ms.GreedyMiserRegressor(ms.CostTable.per_feature([1.0, 5.0]), n_estimators=5)
    >>> len(plot_comparison(ms.compare({"miser": model}, (X, X[:, 0]), cv=3)).axes)
    1
    """
    return drawn(ComparisonPicture(comparison), path, ax)


def plot_comparison_svg(comparison: Comparison) -> str:
    """The picture as an SVG element, for a page."""
    text = StringIO()
    figure_of(ComparisonPicture(comparison).plot()).savefig(text, format="svg")
    return text.getvalue()[text.getvalue().index("<svg") :]

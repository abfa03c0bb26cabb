"""A plan of two features in the plane: where its answer changes, and the vectors that decide it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from miserly.plan import Kernels, Plan
from miserly.report._observed import LabelledRows
from miserly.report.figures._style import COLOURS, INK, MARKERS, Picture

CELLS = 160
MARGIN = 0.08


@dataclass(frozen=True, eq=False)
class BoundaryPicture(Picture):
    """Rows by label, the answers of a grid of rows behind them and, for kernels, the vectors sized by their weight.

    Parameters
    ----------
    plan : Plan
        A plan that uses exactly two features; others are refused.
    rows : LabelledRows
        The rows to draw. They also set the reach of the two axes.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> from miserly.report import BoundaryPicture, LabelledRows
    >>> costs = ms.CostTable.per_feature({"age": 1.0, "crp": 5.0})
    >>> plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [1.0, 1.0]),), [0.0], means=[0.0, 0.0])
    >>> rows = LabelledRows(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1.0, 4.0]))
    >>> x, y, answers = BoundaryPicture(plan, rows).grid
    >>> answers.shape == (len(y), len(x))
    True
    """

    plan: Plan
    rows: LabelledRows
    size = (6.0, 5.4)

    def __post_init__(self) -> None:
        used = [self.plan.costs.features[f] for f in self.plan.used_features]
        if len(used) != 2:
            raise ValueError(
                f"A boundary is drawn for plans of two features, this one uses {len(used)}: {', '.join(used[:5])}. "
                "Draw it with plot_plan instead."
            )

    def frame(self) -> list[dict[str, Any]]:
        """One record for each vector: where it lies, and the weights it has in all nodes."""
        dictionary = self.plan.dictionary
        if not isinstance(dictionary, Kernels):
            return []
        weights = np.zeros(len(dictionary))
        for node in self.plan.nodes:
            np.add.at(weights, node.learners, np.abs(node.weights).sum(axis=1))
        where = [int(np.flatnonzero(dictionary.columns == f)[0]) for f in self.plan.used_features]
        names = [self.plan.costs.features[f] for f in self.plan.used_features]
        return [
            {names[0]: float(v[where[0]]), names[1]: float(v[where[1]]), "weight": float(w)}
            for v, w in zip(dictionary.vectors, weights)
        ]

    @cached_property
    def grid(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The two features over the plane, and the plan's answer there: the number of a class, or a number."""
        pair = list(self.plan.used_features)
        low, high = np.nanmin(self.rows.X[:, pair], axis=0), np.nanmax(self.rows.X[:, pair], axis=0)
        reach = MARGIN * np.where(high > low, high - low, 1.0)
        x, y = (np.linspace(a - r, b + r, CELLS) for a, b, r in zip(low, high, reach))
        X = np.full((CELLS * CELLS, self.rows.X.shape[1]), np.nan)
        X[:, pair[0]], X[:, pair[1]] = (g.ravel() for g in np.meshgrid(x, y))
        answers = self.plan.predict(X)
        if self.plan.classes is not None:
            answers = np.searchsorted(self.plan.classes, answers)
        return x, y, answers.reshape(CELLS, CELLS)

    def draw(self, ax: Axes) -> None:
        x, y, answers = self.grid
        classes = self.plan.classes
        pair = list(self.plan.used_features)
        first, second = (self.rows.X[:, f] for f in pair)
        if classes is None:
            ax.contourf(x, y, answers, levels=12, cmap="cividis", alpha=0.6)
            ax.scatter(first, second, c=self.rows.y, cmap="cividis", edgecolor=INK, s=12, linewidth=0.3)
        else:
            levels = np.arange(len(classes) + 1) - 0.5
            colours = [COLOURS[k % len(COLOURS)] for k in range(len(classes))]
            ax.contourf(x, y, answers, levels=levels, colors=colours, alpha=0.18)
            ax.contour(x, y, answers, levels=levels[1:-1], colors=INK, linewidths=1.2)
            for k, label in enumerate(classes):
                mine = self.rows.y == label
                style: dict[str, Any] = {
                    "color": colours[k],
                    "marker": MARKERS[k % len(MARKERS)],
                    "s": 14,
                    "alpha": 0.6,
                }
                ax.scatter(first[mine], second[mine], label=str(label), **style)
        names = [self.plan.costs.features[f] for f in pair]
        vectors = self.frame()
        if vectors:
            heaviest = max(v["weight"] for v in vectors) or 1.0
            area = [30 + 170 * v["weight"] / heaviest for v in vectors]
            where = np.array([[v[name] for name in names] for v in vectors]).T
            ax.scatter(where[0], where[1], s=area, facecolor="none", edgecolor=INK, linewidth=1.4, label="vectors")
        ax.set_xlabel(names[0])
        ax.set_ylabel(names[1])
        if classes is not None or vectors:
            ax.legend()

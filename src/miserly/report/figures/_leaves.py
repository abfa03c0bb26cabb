"""Whether leaves buy different things: the Jaccard similarity of what rows own at the ends of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from miserly.plan import Plan
from miserly.report._graph import leaves
from miserly.report.figures._style import Picture


@dataclass(frozen=True, eq=False)
class LeavesPicture(Picture):
    """A matrix over the nodes where rows end: acquisitions in common over acquisitions of either, 1 for equal sets.

    Parameters
    ----------
    plan : Plan
        The plan whose leaves are compared. No rows are needed.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> from miserly.report import LeavesPicture
    >>> costs = ms.CostTable.per_feature({"age": 1.0, "crp": 5.0})
    >>> plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [1.0, 1.0]),), [0.0], means=[0.0, 0.0])
    >>> LeavesPicture(plan).frame()
    [{'leaf': 0, 'other': 0, 'similarity': 1.0}]
    """

    plan: Plan
    size = (5.6, 4.8)

    @property
    def matrix(self) -> np.ndarray:
        """Leaves × leaves."""
        sets = [self.plan.tables.owned_at(k)[0] for k in leaves(self.plan)]
        return np.array([[_jaccard(a, b) for b in sets] for a in sets]).reshape(len(sets), len(sets))

    def frame(self) -> list[dict[str, Any]]:
        ends, matrix = leaves(self.plan), self.matrix
        return [
            {"leaf": a, "other": b, "similarity": float(matrix[i, j])}
            for i, a in enumerate(ends)
            for j, b in enumerate(ends)
        ]

    def draw(self, ax: Axes) -> None:
        matrix, ends = self.matrix, leaves(self.plan)
        image = ax.imshow(matrix, vmin=0, vmax=1, cmap="cividis")
        ax.get_figure(root=True).colorbar(image, ax=ax, label="Jaccard similarity")  # type: ignore[union-attr]
        if len(ends) <= 16:
            ax.set_xticks(range(len(ends)), [str(k) for k in ends])
            ax.set_yticks(range(len(ends)), [str(k) for k in ends])
            for (i, j), value in np.ndenumerate(matrix):
                ax.text(
                    j,
                    i,
                    f"{value:.2f}",
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="black" if value > 0.5 else "white",
                )
        ax.set_xlabel("node where rows end")
        ax.set_ylabel("node where rows end")


def _jaccard(a: int, b: int) -> float:
    either = (a | b).bit_count()
    return (a & b).bit_count() / either if either else 1.0

"""One tree as a drawing, as scikit-learn's `plot_tree` draws one: questions, rows, values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from miserly.frontiers import figure
from miserly.plan import Plan, Trees
from miserly.report._distil import own_tree
from miserly.report._observed import LabelledRows
from miserly.report._wording import question
from miserly.report.figures._style import COLOURS, FAINT, INK, Picture, drawn

PALE = 0.75  # how far towards white a box is that holds several classes alike


@dataclass(frozen=True, eq=False)
class TreePicture(Picture):
    """A tree of boxes: its questions with thresholds in the user's units, the rows of each place, and its values.

    Parameters
    ----------
    plan : Plan
        A plan over trees.
    tree : int, default=0
        The number of the tree, from 0.
    rows : LabelledRows or None, default=None
        Rows to count at each place: how many there are, and how many of each class.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.baselines import PathTreeRegressor
    >>> from miserly.report import TreePicture
    >>> X = np.arange(20.0)[:, None]
    >>> costs = ms.CostTable.per_feature({"age": 1.0})
    >>> model = PathTreeRegressor(costs, tradeoff=0.0, max_leaf_nodes=2).fit(X, X[:, 0] > 9)
    >>> [record["text"] for record in TreePicture(model.plan_).frame()]
    ['age ≤ 9.5?', 'value 0', 'value 1']
    """

    plan: Plan
    tree: int = 0
    rows: LabelledRows | None = None

    def __post_init__(self) -> None:
        trees = self.plan.dictionary
        if not isinstance(trees, Trees):
            raise ValueError(f"The plan weighs {trees.kind} learners, not trees. Use plan.plot(X, y).")
        if not 0 <= self.tree < len(trees):
            raise ValueError(f"The plan has {len(trees)} trees, numbered from 0: there is no tree {self.tree}.")

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        """Wide enough for the leaves, high enough for the levels."""
        records = self.frame()
        n_leaves = sum(record["feature"] is None for record in records)
        return max(5.0, 1.35 * n_leaves), 1.5 + 1.25 * (1 + max(record["depth"] for record in records))

    def frame(self) -> list[dict[str, Any]]:
        """One record for each place, the root first: what it asks or gives, its children, the rows that come there."""
        return [self._record(at) for at in self._places]

    @cached_property
    def _places(self) -> list[int]:
        trees = self._trees
        return list(range(int(trees.start[self.tree]), int(trees.start[self.tree + 1])))

    @property
    def _trees(self) -> Trees:
        assert isinstance(self.plan.dictionary, Trees)
        return self.plan.dictionary

    @cached_property
    def _visits(self) -> dict[int, np.ndarray]:
        """The rows that come to each place."""
        assert self.rows is not None
        trees, here = self._trees, {self._places[0]: np.arange(len(self.rows))}
        for at in self._places:
            left = int(trees.left[at])
            if left == at or at not in here:
                continue
            x = self.rows.X[here[at], trees.feature[at]]
            right = np.where(np.isnan(x), trees.missing_right[at], x > trees.threshold[at])
            here[left], here[left + 1] = here[at][~right], here[at][right]
        return here

    @cached_property
    def _depth(self) -> dict[int, int]:
        depth = {self._places[0]: 0}
        for at in self._places:
            left = int(self._trees.left[at])
            if left != at:
                depth[left] = depth[left + 1] = depth[at] + 1
        return depth

    @cached_property
    def _answers(self) -> list[Any] | None:
        """The prediction of each place, if the plan is this one tree."""
        own = own_tree(self.plan)
        return None if own is None else own.labels

    def _record(self, at: int) -> dict[str, Any]:
        trees, first = self._trees, self._places[0]
        left = int(trees.left[at])
        is_leaf = left == at
        counted = None if self.rows is None else self._visits[at]
        counts: dict[str, int] = {}
        if counted is not None and self.plan.classes is not None:
            counts = {str(c): int(np.sum(self.rows.y[counted] == c)) for c in self.plan.classes}  # type: ignore[union-attr]
        value = None if not is_leaf else self._value(at, first)
        words = question(self.plan, int(trees.feature[at]), float(trees.threshold[at]), self._column(at))
        return {
            "place": at - first,
            "depth": self._depth[at],
            "text": f"{value}" if is_leaf else f"{words.yes}?",
            "feature": None if is_leaf else self.plan.costs.features[int(trees.feature[at])],
            "threshold": None if is_leaf else float(trees.threshold[at]),
            "yes": None if is_leaf else left - first,
            "no": None if is_leaf else left + 1 - first,
            "missing": None if is_leaf else "no" if trees.missing_right[at] else "yes",
            "rows": None if counted is None else len(counted),
            "counts": counts,
            "value": float(trees.value[at]) if is_leaf else None,
        }

    def _column(self, at: int) -> np.ndarray | None:
        return None if self.rows is None else self.rows.X[:, self._trees.feature[at]]

    def _value(self, at: int, first: int) -> str:
        if self._answers is not None and self.plan.classes is not None and self.tree == 0:
            label = self._answers[at - first]
            return f"predict {label.item() if hasattr(label, 'item') else label}"
        return f"value {figure(float(self._trees.value[at]))}"

    def _across(self, records: list[dict[str, Any]]) -> list[float]:
        """Leaves side by side, questions above the middle of their sides."""
        across = [0.0] * len(records)
        n = 0

        def visit(i: int) -> float:
            nonlocal n
            if records[i]["yes"] is None:
                across[i], n = n + 0.5, n + 1
            else:
                across[i] = (visit(records[i]["yes"]) + visit(records[i]["no"])) / 2
            return across[i]

        visit(0)
        return [x / n for x in across]

    def draw(self, ax: Axes) -> None:
        records = self.frame()
        across = self._across(records)
        for i, record in enumerate(records):
            for side in ("yes", "no"):
                if record[side] is None:
                    continue
                end = across[record[side]], -record["depth"] - 1
                ax.plot([across[i], end[0]], [-record["depth"], end[1]], color=FAINT, zorder=1)
                middle = 0.55 * across[i] + 0.45 * end[0], 0.55 * -record["depth"] + 0.45 * end[1]
                word = f"{side}, missing" if record["missing"] == side else side
                paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
                ax.text(*middle, word, fontsize=7, color=FAINT, ha="center", va="center", bbox=paper)
        for x, record in zip(across, records):
            ax.text(
                x,
                -record["depth"],
                _words(record),
                ha="center",
                va="center",
                fontsize=8,
                color=INK,
                bbox={"boxstyle": "round,pad=0.4", "facecolor": self._colour(record), "edgecolor": INK},
            )
        ax.set_xlim(0, 1)
        ax.set_ylim(-max(r["depth"] for r in records) - 0.6, 0.6)
        ax.set_axis_off()

    def _colour(self, record: dict[str, Any]) -> Any:
        counts = list(record["counts"].values())
        if not counts or not sum(counts):
            return "white"
        best = int(np.argmax(counts))
        even = 1 / len(counts)
        sure = (counts[best] / sum(counts) - even) / (1 - even) if len(counts) > 1 else 1.0
        colour = np.array([int(COLOURS[best % len(COLOURS)][k : k + 2], 16) / 255 for k in (1, 3, 5)])
        return tuple(1 - (1 - PALE) * sure * (1 - colour) / (1 - PALE + 0.25))


def _words(record: dict[str, Any]) -> str:
    lines = [record["text"]]
    if record["rows"] is not None:
        lines.append(f"{record['rows']:,} rows")
    if record["counts"]:
        lines.append(" / ".join(f"{name} {n}" for name, n in record["counts"].items()))
    return "\n".join(lines)


def plot_tree(
    plan: Plan, tree: int = 0, X: Any = None, y: Any = None, path: str | Path | None = None, ax: Axes | None = None
) -> Figure:
    """Draw one tree of a plan, with the rows of each place if there are any.

    Parameters
    ----------
    plan : Plan
        A plan over trees.
    tree : int, default=0
        The number of the tree, from 0.
    X : array of shape (n_rows, n_features) or None, default=None
        Rows to count, in the order of the plan's features.
    y : array of shape (n_rows,) or None, default=None
        Their labels; needed with `X`.
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
    >>> from miserly.baselines import PathTreeRegressor
    >>> from miserly.report import plot_tree
    >>> X = np.arange(20.0)[:, None]
    >>> costs = ms.CostTable.per_feature({"age": 1.0})
    >>> model = PathTreeRegressor(costs, tradeoff=0.0, max_leaf_nodes=2).fit(X, X[:, 0] > 9)
    >>> len(plot_tree(model.plan_).axes)
    1
    """
    rows = None if X is None else LabelledRows(np.asarray(X, np.float64), np.asarray(y))
    return drawn(TreePicture(plan, tree, rows), path, ax)

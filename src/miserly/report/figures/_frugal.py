"""A fast-and-frugal tree as FFTrees draws it: cues down the middle, exits to both sides, icons for rows, rates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from miserly.frontiers import figure
from miserly.report._distil import SmallTree, own_tree
from miserly.report._intervals import wilson
from miserly.report._observed import Observed
from miserly.report._wording import question
from miserly.report.figures._style import COLOURS, FAINT, INK, Picture

MOST_ICONS, PER_LINE = 60, 12  # icons of the largest exit, icons side by side
SHAPES = ("o", "^")  # rows of the first class are balls, of the second triangles
EXIT_AT, LEVEL = 1.45, 1.0


@dataclass(frozen=True, eq=False)
class FrugalPicture(Picture):
    """Cues down the middle, an exit to the left or to the right at each, an icon for every row or every few rows.

    Exits to the left predict the first class, those to the right the second. Balls are rows of the first class,
    triangles of the second; filled icons are predicted right, empty ones wrong.

    Parameters
    ----------
    observed : Observed
        A plan that is one fast-and-frugal tree of two classes, with the rows that go through it.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.report import FrugalPicture, LabelledRows, Observed
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] > 0
    >>> model = ms.FastFrugalTreeClassifier(ms.CostTable.per_feature({"age": 1.0, "crp": 5.0})).fit(X, y)
    >>> picture = FrugalPicture(Observed.of(model.plan_, LabelledRows(X, y)))
    >>> [(record["cue"], record["price"]) for record in picture.frame()]
    [('age', 1.0)]
    """

    observed: Observed

    def __post_init__(self) -> None:
        tree, classes = own_tree(self.observed.plan), self.observed.plan.classes
        if tree is None or classes is None or len(classes) != 2 or not _is_frugal(tree):
            raise ValueError(
                "This plan is not a fast-and-frugal tree: one tree of two classes with an exit at each level. Use "
                "TreePicture or protocol()."
            )

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        """Higher with more levels."""
        return 9.0, 2.4 + 1.35 * len(self._levels)

    @cached_property
    def _tree(self) -> SmallTree:
        tree = own_tree(self.observed.plan)
        assert tree is not None
        return tree

    @cached_property
    def _levels(self) -> list[int]:
        places, at = [], 0
        while not self._tree.is_leaf(at):
            places.append(at)
            left = int(self._tree.left[at])
            at = left + 1 if self._tree.is_leaf(left) else left
        return places

    def frame(self) -> list[dict[str, Any]]:
        """One record for each level: the cue, the question, its price, the rows that come there, and its exits: for
        each the predicted class, the answer that leads there, and how many of its rows are right and wrong."""
        tree, plan, rows = self._tree, self.observed.plan, self.observed.rows
        here, owned, records = np.arange(len(rows)), 0, []
        for at in self._levels:
            feature = int(tree.feature[at])
            now = owned | plan.costs.feature_masks[feature]
            words = question(plan, feature, float(tree.threshold[at]), rows.X[:, feature])
            left, right = int(tree.left[at]), tree.right(at, rows.X[here])
            exits = []
            for side, answer in ((0, words.yes), (1, words.no)):
                if tree.is_leaf(left + side):
                    leaving = here[right == bool(side)]
                    label = tree.labels[left + side]
                    hits = int(np.sum(rows.y[leaving] == label))
                    exits.append({"predicts": label, "if": answer, "right": hits, "wrong": len(leaving) - hits})
            records.append(
                {
                    "cue": plan.costs.features[feature],
                    "question": words.yes,
                    "price": plan.tables.ledger.price(now) - plan.tables.ledger.price(owned),
                    "rows": len(here),
                    "missing": "no" if tree.missing_right[at] else "yes",
                    "exits": exits,
                }
            )
            goes_right = tree.is_leaf(left)
            here, owned = here[right == goes_right], now
        return records

    def rates(self) -> list[dict[str, Any]]:
        """Sensitivity, specificity, predictive values and accuracy, each with Wilson's 95 % interval."""
        _, second = self._classes
        said, true = self.observed.answers == second, self.observed.rows.y == second
        pairs = {
            "sensitivity": (said, true),
            "specificity": (~said, ~true),
            "PPV": (true, said),
            "NPV": (~true, ~said),
            "accuracy": (said == true, np.ones(len(true), bool)),
        }
        found = []
        for name, (hit, among) in pairs.items():
            share, low, high = wilson(int(np.sum(hit & among)), int(among.sum()))
            found.append({"rate": name, "share": share, "low": low, "high": high})
        return found

    @property
    def _classes(self) -> tuple[Any, Any]:
        classes = self.observed.plan.classes
        assert classes is not None
        return classes[0], classes[1]

    # ---- drawing ----------------------------------------------------------------------------------------------

    def draw(self, ax: Axes) -> None:
        records = self.frame()
        largest = max((e["right"] + e["wrong"] for r in records for e in r["exits"]), default=1)
        per_icon = max(1, -(-largest // MOST_ICONS))
        unit = self.observed.plan.costs.unit
        for k, record in enumerate(records):
            y = -LEVEL * k
            words = f"{record['cue']}\n{figure(record['price'])} {unit}"
            if k + 1 < len(records):
                ax.plot([0, 0], [y, y - LEVEL], color=INK, zorder=1)
            for leave in record["exits"]:
                self._draw_exit(ax, y, leave, per_icon)
            box = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": INK}
            ax.text(0, y, words, ha="center", va="center", fontsize=9, bbox=box, zorder=3)
            if k + 1 < len(records):
                others = "missing: go on"
                ax.text(0.05, y - 0.62 * LEVEL, others, fontsize=7, color=FAINT, va="center")
        self._draw_rates(ax, -LEVEL * len(records) + 0.25, records, per_icon)
        ax.set_xlim(-3.4, 3.4)
        ax.set_ylim(-LEVEL * len(records) - 0.9, 0.5)
        ax.set_axis_off()

    def _draw_exit(self, ax: Axes, y: float, leave: dict[str, Any], per_icon: int) -> None:
        second = leave["predicts"] == self._classes[1]
        side = 1 if second else -1
        end = side * EXIT_AT, y - 0.45 * LEVEL
        ax.annotate("", end, (0, y), arrowprops={"arrowstyle": "-|>", "color": INK, "shrinkA": 22})
        ax.text(side * 0.95, y - 0.12, leave["if"], fontsize=8, ha="center", va="bottom", color=INK)
        box = {"boxstyle": "round,pad=0.35", "facecolor": COLOURS[int(second)], "edgecolor": "none"}
        ax.text(*end, str(leave["predicts"]), ha="center", va="center", fontsize=9, color="white", bbox=box, zorder=3)
        mine, other = (1, 0) if second else (0, 1)
        icons = [(mine, True)] * round(leave["right"] / per_icon) + [(other, False)] * round(leave["wrong"] / per_icon)
        for i, (kind, is_right) in enumerate(icons):
            x = side * (EXIT_AT + 0.5 + 0.115 * (i % PER_LINE))
            down = end[1] + 0.2 - 0.125 * (i // PER_LINE)
            face = COLOURS[kind] if is_right else "white"
            ax.plot(x, down, SHAPES[kind], markersize=4.5, markerfacecolor=face, markeredgecolor=COLOURS[kind])
        under = f"{leave['right']} right, {leave['wrong']} wrong"
        ax.text(end[0], end[1] - 0.2, under, fontsize=7, color=INK, ha="center", va="top")

    def _draw_rates(self, ax: Axes, top: float, records: list[dict[str, Any]], per_icon: int) -> None:
        rates = self.rates()
        for i, rate in enumerate(rates):
            x = -2.6 + 1.3 * i
            words = "none" if np.isnan(rate["share"]) else f"{100 * rate['share']:.0f} %"
            ax.text(x, top - 0.42, words, ha="center", fontsize=14, color=INK)
            between = f"{100 * rate['low']:.0f} to {100 * rate['high']:.0f} %"
            ax.text(x, top - 0.62, between, ha="center", fontsize=7, color=FAINT)
            ax.text(x, top - 0.8, rate["rate"], ha="center", fontsize=8, color=INK)
        n, plan = len(self.observed.rows), self.observed.plan
        first, second = self._classes
        each = "an icon is a row" if per_icon == 1 else f"an icon is {per_icon} rows"
        cost = f"mean cost {figure(float(self.observed.cost.mean()))} {plan.costs.unit}"
        note = f"{n:,} rows, {cost}; {each}; balls {first}, triangles {second}; empty: predicted wrong"
        ax.text(0, top - 1.05, note, ha="center", fontsize=8, color=FAINT)
        ax.text(0, 0.36, f"{records[0]['rows'] if records else n:,} rows", ha="center", fontsize=9, color=INK)


def _is_frugal(tree: SmallTree) -> bool:
    """Whether every question has a leaf on one side at least."""
    inner = [at for at in range(len(tree.left)) if not tree.is_leaf(at)]
    return bool(inner) and all(tree.is_leaf(int(tree.left[at])) or tree.is_leaf(int(tree.left[at]) + 1) for at in inner)

"""Whether answers can be taken at their word: what is predicted against what is seen, at each budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from miserly.report._observed import Observed
from miserly.report.figures._style import FAINT, Picture, series

BINS = 10


@dataclass(frozen=True, eq=False)
class CalibrationPicture(Picture):
    """One line for each of several models or budgets, by name.

    For two classes the probability of the second is compared with its share, for more the probability of the answer
    with the share of right answers, in ten bins; numbers are compared with the mean label in each tenth of the rows.

    Parameters
    ----------
    observed : mapping of str to Observed
        What each model or budget did to the rows, by the name in the legend; at least one. All have the same classes.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> from miserly.report import CalibrationPicture, LabelledRows, Observed
    >>> costs = ms.CostTable.per_feature({"age": 1.0, "crp": 5.0})
    >>> plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [1.0, 1.0]),), [0.0], means=[0.0, 0.0])
    >>> rows = LabelledRows(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1.0, 4.0]))
    >>> for record in CalibrationPicture({"all": Observed.of(plan, rows)}).frame():
    ...     print(record)
    {'budget': 'all', 'predicted': 1.0, 'seen': 1.0, 'rows': 1}
    {'budget': 'all', 'predicted': 5.0, 'seen': 4.0, 'rows': 1}
    """

    observed: Mapping[str, Observed]

    def frame(self) -> list[dict[str, Any]]:
        """One record for each bin that has rows."""
        records = []
        for name, seen in self.observed.items():
            predicted, truth, bins = _compared(seen)
            for i in range(BINS):
                here = bins == i
                if here.any():
                    mean, share = float(predicted[here].mean()), float(truth[here].mean())
                    records.append({"budget": name, "predicted": mean, "seen": share, "rows": int(here.sum())})
        return records

    def draw(self, ax: Axes) -> None:
        records = self.frame()
        for i, name in enumerate(self.observed):
            mine = [r for r in records if r["budget"] == name]
            ax.plot([r["predicted"] for r in mine], [r["seen"] for r in mine], label=name, **series(i))
        ends = [f([r[key] for r in records for key in ("predicted", "seen")]) for f in (min, max)]
        ax.plot(ends, ends, color=FAINT, linewidth=1, label="as predicted")
        what, seen = self.axes_names
        ax.set_xlabel(what)
        ax.set_ylabel(seen)
        ax.grid(alpha=0.3)
        ax.legend()

    @property
    def axes_names(self) -> tuple[str, str]:
        """What is predicted, and what it is compared with."""
        classes = next(iter(self.observed.values())).plan.classes
        if classes is None:
            return "predicted", "mean label"
        if len(classes) == 2:
            return f"predicted probability of {classes[1]}", f"share of {classes[1]}"
        return "probability of the answer", "share of right answers"


def _compared(seen: Observed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions, what is true of each, and its bin."""
    p, y = seen.probabilities, seen.rows.y
    if p is None:
        answers = seen.answers.astype(np.float64)
        place = np.argsort(np.argsort(answers, kind="stable"), kind="stable")
        return answers, y.astype(np.float64), place * BINS // len(y)
    if p.shape[1] == 2:
        assert seen.plan.classes is not None
        predicted, truth = p[:, 1], y == seen.plan.classes[1]
    else:
        predicted, truth = p.max(axis=1), seen.answers == y
    return predicted, truth.astype(np.float64), np.minimum((predicted * BINS).astype(np.int64), BINS - 1)

"""What a plan did to rows: asked once, read by every picture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from miserly.metrics import Metric
from miserly.plan import Plan, Run

Array = np.ndarray
FEW_LABELS = 8
SHOWN = 5


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows that models are shown on: values in the order of the plan's features, labels and, for ranking, queries.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        The values; NaN where one is missing.
    y : array of shape (n_rows,)
        The labels: classes, numbers or grades.
    qid : array of shape (n_rows,) or None, default=None
        The query of each row; None if rows are not documents of lists.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.report import LabelledRows
    >>> rows = LabelledRows(np.zeros((3, 2)), np.array([0, 1, 1]), qid=np.array([7, 7, 9]))
    >>> len(rows), rows.query.tolist()
    (3, [0, 0, 1])
    """

    X: Array
    y: Array
    qid: Array | None = None

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def query(self) -> Array:
        """The number of each row's query; without queries every row is one of its own."""
        return np.arange(len(self)) if self.qid is None else np.unique(self.qid, return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class Observed:
    """A plan, rows, and what happened to each of them.

    `Observed.of` runs the plan and makes one.

    Parameters
    ----------
    plan : Plan
        The plan that ran.
    rows : LabelledRows
        The rows that it ran on.
    run : Run
        What `plan.run` returned for them: scores, costs and exits.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> from miserly.report import LabelledRows, Observed
    >>> costs = ms.CostTable.per_feature({"age": 1.0, "crp": 5.0})
    >>> plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [1.0, 1.0]),), [0.0], means=[0.0, 0.0])
    >>> rows = LabelledRows(np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1.0, 4.0]))
    >>> seen = Observed.of(plan, rows)
    >>> seen.cost.tolist(), seen.answers.tolist()
    ([6.0, 6.0], [1.0, 5.0])
    """

    plan: Plan
    rows: LabelledRows
    run: Run

    @classmethod
    def of(cls, plan: Plan, rows: LabelledRows, budget: float | None = None) -> Observed:
        """Run the plan on the rows, within a budget for each if there is one."""
        return cls(plan, rows, plan.run(rows.X, rows.qid, budget))

    @property
    def cost(self) -> Array:
        """What each row paid."""
        return self.run.cost

    @cached_property
    def answers(self) -> Array:
        """The label or number that each row got."""
        return self.plan.read(self.run.z)

    @cached_property
    def probabilities(self) -> Array | None:
        """Of each class, where there are classes."""
        return None if self.plan.classes is None else self.plan.probabilities(self.run.z)

    def output(self, metric: Metric) -> Array:
        """What the metric looks at, as in a sweep."""
        if metric.input == "proba":
            return self.plan.probabilities(self.run.z)
        if metric.grouped and any(node.tier for node in self.plan.nodes):
            return self.plan.rank_score(self.rows.X, self.rows.qid)
        if metric.grouped or (metric.input == "score" and self.plan.classes is not None):
            score = self.run.score
            return score[:, 0] if score.shape[1] == 1 else score
        return self.answers

    def quality(self, metric: Metric) -> float:
        """The metric's figure."""
        return metric(self.rows.y, self.output(metric), qid=self.rows.qid, classes=self.plan.classes)

    @cached_property
    def visits(self) -> Array:
        """Rows × nodes: who came through which node."""
        came = np.zeros((len(self.rows), len(self.plan.nodes)), bool)
        if self.plan.tables.chain:
            came[:, list(self.plan.tables.chain)] = True
            return came
        everyone = np.arange(len(self.rows))
        for stage in self.plan.stages(self.rows.X, self.rows.qid):
            for last in stage.exit.T:
                been = last >= 0
                came[everyone[been], last[been]] = True
        return came

    @cached_property
    def label_groups(self) -> dict[str, Array]:
        """The rows of each class or grade; of each quarter, if labels are many numbers."""
        y = self.rows.y
        distinct = np.unique(y)
        if len(distinct) <= FEW_LABELS or y.dtype.kind not in "fiu":
            return {_text(value): y == value for value in distinct}
        cuts = np.quantile(y, [0.25, 0.5, 0.75])
        quarter = np.searchsorted(cuts, y, side="right")
        names = ("lowest quarter", "second quarter", "third quarter", "highest quarter")
        return {name: quarter == k for k, name in enumerate(names) if (quarter == k).any()}

    @cached_property
    def outcome_groups(self) -> dict[str, Array]:
        """Right and wrong answers; for lists what is shown first and what is not; for numbers near and far ones."""
        if self.plan.classes is not None:
            right = self.answers == self.rows.y
            groups = {"right answers": right, "wrong answers": ~right}
        elif self.rows.qid is not None:
            shown = self._place < SHOWN
            groups = {f"first {SHOWN} of their list": shown, "further down": ~shown}
        else:
            error = np.abs(self.answers - self.rows.y)
            near = error <= np.median(error)
            groups = {"nearer half": near, "farther half": ~near}
        return {name: rows for name, rows in groups.items() if rows.any()}

    @property
    def _place(self) -> Array:
        """The place of each row in its query's list, from 0; ties to the earlier row."""
        score = self.plan.rank_score(self.rows.X, self.rows.qid)
        query = self.rows.query
        order = np.lexsort((np.arange(len(score)), -score, query))
        first = np.searchsorted(query[order], query)
        place = np.empty(len(score), np.int64)
        place[order] = np.arange(len(score))
        return place - first


def refuse_logged(plan: Plan) -> None:
    """Refuse plans of logged tables: what they do to rows whose purchases are not there says nothing."""
    if plan.costs.not_ordered:
        name = plan.costs.acquisitions[next(iter(plan.costs.not_ordered))]
        raise ValueError(
            f"Some rows have no value of {name!r} because nobody ordered it (missing='not_ordered'), and figures of "
            "all rows would count these. Use the frontier's table, which counts rows whose purchases were logged, or "
            "rows on which all was ordered with a plan whose costs have missing={}."
        )


def _text(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    return f"{value:g}" if isinstance(value, float) else str(value)

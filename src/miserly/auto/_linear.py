"""Linear models as sums of trees: one tree turns the values of a column into standard scores, in steps.

On few rows a linear model beside a boosted one is worth more than more trees. As trees it runs, saves and misses values
as every other member does: a value that is not known counts as the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from miserly._typing import Floats
from miserly.auto._task import Task
from miserly.plan import EXIT, Node, Plan, cascade, stack_trees

MOST_STEPS = 64  # of a column: fine enough that steps and a line predict the same
FURTHEST = 3.0  # standard deviations: outliers must not bend the line
FEW_VALUES = 8  # up to which each value of a column may have a weight of its own, as words do
MISSING = 0.01  # share of missing values from which "missing" has a weight of its own
STRENGTHS = (0.03, 0.3, 3.0)  # inverse of the penalty on weights
BLENDS = (0.0, 0.25, 0.5, 0.75, 1.0)  # shares of the linear model that are tried
LAST = 1 << 30


@dataclass(frozen=True)
class _Staircase:
    """A column of the design: which feature it reads, where its steps are, their values, and the step of missing values
    (None: missing is the only thing that it looks at)."""

    feature: int
    cuts: Floats
    values: Floats
    missing: int | None

    def read(self, x: Floats) -> Floats:
        """The values for cells of the feature."""
        if self.missing is None:
            return np.isnan(x).astype(np.float64)
        return self.values[np.where(np.isnan(x), self.missing, np.searchsorted(self.cuts, x))]

    def table(self) -> dict[str, np.ndarray]:
        """As a balanced tree."""
        if self.missing is None:
            return {
                "feature": np.array([self.feature, 0, 0], np.int32),
                "threshold": np.array([np.finfo(np.float64).max, np.inf, np.inf]),
                "left": np.array([1, 1, 2], np.int32),
                "missing_right": np.array([True, False, False]),
                "value": np.array([0.0, 0.0, 1.0]),
            }
        inner: list[list[float]] = []
        spans = [(0, len(self.values))]
        k = 0
        while k < len(spans):
            low, high = spans[k]
            if high - low > 1:
                middle = (low + high) // 2
                inner.append([self.cuts[middle - 1], len(spans), self.missing >= middle])
                spans += [(low, middle), (middle, high)]
            else:
                inner.append([np.inf, k, False])
            k += 1
        columns = list(zip(*inner))
        return {
            "feature": np.array([0 if np.isinf(t) else self.feature for t in columns[0]], np.int32),
            "threshold": np.array(columns[0], np.float64),
            "left": np.array(columns[1], np.int32),
            "missing_right": np.array(columns[2], bool),
            "value": np.array([self.values[low] if high - low == 1 else 0.0 for low, high in spans]),
        }


def _columns(x: Floats, feature: int) -> list[_Staircase]:
    """What a linear model sees of a feature: its standard score; each value, where there are few; whether it lacks."""
    known = x[~np.isnan(x)]
    distinct = np.unique(known)
    found = []
    if len(distinct) > 1:
        points = distinct
        if len(distinct) > MOST_STEPS:
            points = np.unique(np.quantile(known, np.linspace(0, 1, MOST_STEPS), method="lower"))
        cuts = points[:-1] + np.diff(points) / 2
        cuts = cuts[(cuts >= points[:-1]) & (cuts < points[1:])]  # halves of tiny gaps may round to an end
        spread = float(known.std())
        if len(cuts) and 0 < spread < np.inf:
            step = np.searchsorted(cuts, known)
            sums, counts = np.bincount(step, known, len(cuts) + 1), np.bincount(step, minlength=len(cuts) + 1)
            scores = (sums / np.maximum(counts, 1) - known.mean()) / spread
            scores = np.clip(np.nan_to_num(scores), -FURTHEST, FURTHEST)
            found.append(_Staircase(feature, cuts, scores, int(np.argmin(np.abs(scores)))))
            if 2 < len(counts) <= FEW_VALUES:
                common = int(np.argmax(counts))
                others = [k for k in range(len(counts)) if k != common]
                found += [_Staircase(feature, cuts, np.eye(len(counts))[k], common) for k in others]
    if MISSING < 1 - len(known) / max(1, len(x)) < 1:
        found.append(_Staircase(feature, np.zeros(0), np.zeros(0), None))
    return found


class LinearFitter:
    """Logistic and ridge regression on steps of standard scores, fitted on parts of the training rows."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.strength = STRENGTHS[1]
        self.columns = [c for f in range(task.train.X.shape[1]) for c in _columns(task.train.X[:, f], f)]
        reads = [column.read(task.train.X[:, column.feature]) for column in self.columns]
        self._design = np.stack(reads, axis=1) if reads else np.zeros((len(task.train), 0))

    def plan(self, rows: np.ndarray, features: np.ndarray, like: Plan) -> Plan | None:
        """The model of some rows on some features, as a plan that answers as another does; None if there is none."""
        used = [k for k, column in enumerate(self.columns) if features[column.feature]]
        y = self.task.train.y[rows]
        if not used or (self.task.kind == "classes" and len(np.unique(y)) < self.task.n_classes):
            return None
        if self.task.kind == "classes":
            model = LogisticRegression(C=self.strength, max_iter=200, tol=1e-3)
        else:
            model = Ridge(alpha=1.0 / self.strength)
        model.fit(self._design[rows][:, used], y)
        weights, bias = np.atleast_2d(model.coef_).T, np.atleast_1d(model.intercept_)
        if weights.shape[1] != like.n_outputs or not np.isfinite(weights).all():
            return None
        trees = stack_trees([self.columns[k].table() for k in used])
        outputs = tuple(range(like.n_outputs))
        node = Node(np.arange(len(used), dtype=np.int32), weights, np.zeros(len(outputs)), outputs, gain=np.nan)
        prior = bias.astype(np.float64)
        plan = replace(like, dictionary=trees, nodes=(node,), roots=(0,), prior=prior, shares=None)
        return plan.with_background(self.task.train.X)


def weighted_sum(plans: Sequence[Plan], weights: Sequence[float]) -> Plan:
    """The plan whose score is a weighted sum of those of several sums of trees; boosted rounds lie side by side."""
    starts = np.cumsum([0, *(len(plan.dictionary) for plan in plans)])
    at: dict[tuple[int, tuple[int, ...]], list[tuple[Node, int, float]]] = {}
    for plan, start, weight in zip(plans, starts, weights):
        for k, node in enumerate(plan.nodes):
            number = k if np.isfinite(node.gain) else LAST  # linear models, which are no rounds, come at the end
            at.setdefault((number, node.outputs), []).append((node, int(start), weight))
    nodes = [_together(at[key]) for key in sorted(at)]
    last = len(nodes) - 1
    nodes = [replace(node, passed=EXIT if k == last else k + 1) for k, node in enumerate(nodes)]
    prior = np.sum([w * plan.prior for plan, w in zip(plans, weights)], axis=0)
    return replace(cascade(plans), nodes=tuple(nodes), roots=(0,) if nodes else (), prior=prior, notes=plans[0].notes)


def _together(parts: Sequence[tuple[Node, int, float]]) -> Node:
    return replace(
        parts[0][0],
        learners=np.concatenate([node.learners + start for node, start, _ in parts]).astype(np.int32),
        weights=np.concatenate([w * node.weights for node, _, w in parts]),
        bias=np.sum([w * node.bias for node, _, w in parts], axis=0),
        gain=float(np.sum([w * node.gain for node, _, w in parts])),
    )

"""What is learned: the rows, their labels, the folds, the prices, and how one row's loss is counted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from miserly._typing import Floats
from miserly.costs import CostTable, paid_for
from miserly.frontiers import divide
from miserly.metrics import Metric, get_metric
from miserly.plan import least_expected
from miserly.solvers import LoggedRows, weighted_mean

Kind = Literal["classes", "numbers", "lists"]
SMALL = 1500  # rows (of two classes; of more classes fewer) up to which five folds are affordable
TINY = 200  # rows up to which three are enough: what they say is mostly luck, and a fit must not take a second
LARGE = 6000  # rows from which one of three folds is enough to choose on, if fitting the others takes long:
LONG = 1_000_000  # values × classes
FEWEST_LOGGED = 10  # rows of each class, or in all, that a set of logged purchases needs to be learned from
LEAST_PROBABILITY = 1e-3  # below it a log loss is noise that would drown all other rows


@dataclass(frozen=True)
class Rows:
    """Features as numbers, labels (numbers of classes, values or grades), and query ids of lists.

    `prices` (rows × acquisitions) are what each row pays, where rows differ; `mistakes` (rows × classes) what each
    prediction costs for each row, where that is not the same for all rows of a class. `logged` says which purchases are
    there, if the table has a value only where somebody bought it.
    """

    X: Floats
    y: Floats
    qid: Any = None
    prices: Floats | None = None
    mistakes: Floats | None = None
    logged: LoggedRows | None = None

    def __len__(self) -> int:
        return len(self.y)

    def part(self, rows: np.ndarray) -> Rows:
        """Some of the rows."""
        others = (self.qid, self.prices, self.mistakes)
        logged = None if self.logged is None else self.logged.part(rows)
        qid, prices, mistakes = (None if part is None else part[rows] for part in others)
        return Rows(self.X[rows], self.y[rows], qid, prices, mistakes, logged)

    def with_more(self, other: Rows) -> Rows:
        """These rows and others of the same kind; query ids are these."""
        pairs = ((self.prices, other.prices), (self.mistakes, other.mistakes))
        prices, mistakes = (None if a is None or b is None else np.concatenate([a, b]) for a, b in pairs)
        logged = None if self.logged is None or other.logged is None else self.logged.joined(other.logged)
        return Rows(
            np.concatenate([self.X, other.X]), np.concatenate([self.y, other.y]), self.qid, prices, mistakes, logged
        )

    def weights(self, bought: int) -> Floats | None:
        """How many rows each stands for where a set of purchases was logged, 0 where it was not; None: all alike."""
        return None if self.logged is None else self.logged.weights(bought)

    def paid(self, bought: int, price: float, evaluations: float = 0.0) -> Floats:
        """What each row pays for a set of acquisitions and for evaluations; `price` is the sum where rows do not
        differ."""
        if self.prices is None:
            return np.full(len(self), price)
        return paid_for(bought, self.prices) + evaluations


@dataclass(frozen=True)
class Task:
    """A problem in the form that all members of the portfolio use.

    `train` are the rows to learn from; `held` are validation rows of the user, if there are any: then models are chosen
    on them, otherwise on out-of-fold scores of `train`. `max_rounds` are the orders that a row may make.
    """

    kind: Kind
    train: Rows
    held: Rows | None
    classes: np.ndarray | None
    costs: CostTable
    metric: Metric
    seed: int
    error_costs: Floats | None = None
    max_rounds: int | None = None

    @cached_property
    def folds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Row numbers to fit on and to score, for each fold; lists stay whole. Of much data one fold is scored."""
        train = self.train
        n_folds = 5 if len(train) > TINY and len(train) * max(1, self.n_classes // 2) <= SMALL else 3
        split = divide(train.y, train.qid if self.kind == "lists" else None, n_folds, self.seed, self.kind == "classes")
        much = len(train) > LARGE and train.X.size * max(1, self.n_classes - 1) > LONG
        return split[: 1 if much and self.kind != "lists" else None]

    @cached_property
    def scored(self) -> np.ndarray:
        """The training rows that have out-of-fold predictions."""
        return np.sort(np.concatenate([score for _, score in self.folds])) if self.folds else np.arange(len(self.train))

    @property
    def n_classes(self) -> int:
        """How many classes there are; 0 for numbers and lists."""
        return 0 if self.classes is None else len(self.classes)

    @property
    def n_columns(self) -> int:
        """How many columns a prediction has: the classes' probabilities, or one number."""
        return max(1, self.n_classes)

    def row_loss(self, rows: Rows, output: Floats, kind: str) -> Floats:
        """The loss of each row: for classes 0/1 errors, what mistakes cost, or log loss; squared errors otherwise."""
        if self.kind != "classes":
            return np.square(output[:, 0] - rows.y)
        if kind == "error":
            return (output.argmax(axis=1) != rows.y).astype(np.float64)
        if kind == "mistakes" and self.error_costs is not None:
            predicted = least_expected(output, self.error_costs)
            if rows.mistakes is not None:
                return rows.mistakes[np.arange(len(output)), predicted]
            return self.error_costs[rows.y.astype(np.intp), predicted]
        p = output[np.arange(len(output)), rows.y.astype(np.intp)]
        return -np.log(np.clip(p, LEAST_PROBABILITY, 1.0))

    def mean_loss(self, oof: Floats, kind: str, bought: int = 0) -> float:
        """The mean loss of out-of-fold predictions from what a set of acquisitions gives."""
        rows = self.train.part(self.scored)
        return weighted_mean(self.row_loss(rows, oof[self.scored], kind), rows.weights(bought))

    def can_learn(self, bought: int) -> bool:
        """Whether a set of purchases was logged often enough."""
        weights = self.train.weights(bought)
        if weights is None:
            return True
        there = self.train.y[weights > 0]
        counts = (
            np.bincount(there.astype(np.intp), minlength=self.n_classes) if self.n_classes else np.array(len(there))
        )
        return bool(counts.min() >= FEWEST_LOGGED)

    def quality(self, rows: Rows, output: Floats, weights: Floats | None = None) -> float:
        """The metric, where higher is better."""
        value = self.figure(rows, output, weights)
        return value if self.metric.greater_is_better else -value

    def figure(self, rows: Rows, output: Floats, weights: Floats | None = None) -> float:
        """The metric as it is; rows may count differently, and those of weight 0 not at all."""
        if weights is not None:
            there = np.flatnonzero(weights)
            return (
                self._figure(rows.part(there), output[there], {"sample_weight": weights[there]})
                if len(there)
                else math.nan
            )
        return self._figure(rows, output, {})

    def _figure(self, rows: Rows, output: Floats, more: dict[str, Any]) -> float:
        if self.kind != "classes":
            return float(self.metric(rows.y, output[:, 0], qid=rows.qid, **more))
        if rows.mistakes is not None and self.metric.name == "mistakes":
            return weighted_mean(self.row_loss(rows, output, "mistakes"), more.get("sample_weight"))
        assert self.classes is not None
        labels = self.classes[rows.y.astype(np.intp)]
        if self.metric.input == "proba":
            return float(self.metric(labels, output, classes=self.classes, **more))
        if self.metric.input == "value":
            return float(self.metric(labels, self.classes[output.argmax(axis=1)], **more))
        if self.n_classes != 2 or len(np.unique(rows.y)) < 2:
            return float("nan")
        return float(self.metric(labels, output[:, 1], **more))


def cost_of_mistakes(error_costs: Floats) -> Metric:
    """The mean cost of the predictions that are expected to cost least."""

    def mean_cost(y: np.ndarray, output: Floats, classes: np.ndarray, sample_weight: Any = None) -> float:
        truth = np.searchsorted(classes, y)
        return weighted_mean(error_costs[truth, least_expected(output, error_costs)], sample_weight)

    return Metric("mistakes", False, "proba", False, mean_cost)


def choose_metric(kind: Kind, y: np.ndarray) -> tuple[Metric, str]:
    """The metric that suits the data, and why."""
    if kind == "lists":
        return get_metric("ndcg@5"), "documents of queries are ranked"
    if kind == "numbers":
        return get_metric("mse"), "numbers are predicted"
    shares = np.bincount(y.astype(np.intp)) / len(y)
    if len(shares) == 2 and shares.min() < SKEWED:
        return get_metric("auc"), f"the smaller class has {shares.min():.0%} of the rows"
    if shares.max() > 1.0 - SKEWED:
        return get_metric("logloss"), f"the largest class has {shares.max():.0%} of the rows"
    return get_metric("accuracy"), "no class has more than 80 % of the rows"


SKEWED = 0.2  # a class share below which, for two classes, accuracy says little

"""Greedy Miser (Xu, Weinberger, Chapelle, ICML 2012): boosting that pays for each first use of an acquisition.

Each tree minimises  ½ mean (g − h)² + λ · (price of what it is first to use)  over trees h, with g the negative
gradient of the mean loss: equation (2.5), with the sum over rows made a mean so that λ does not depend on their number.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_array, column_or_1d

from miserly.boosting import (
    BinnedData,
    Boosted,
    LambdaRankLoss,
    Limits,
    LocalBackend,
    LogLoss,
    Loss,
    Round,
    Settings,
    Shop,
    SoftmaxLoss,
    SquaredLoss,
    bin_data,
    boost,
)
from miserly.costs import CostTable
from miserly.estimators import constraints
from miserly.estimators.base import PlanClassifier, PlanEstimator, PlanRegressor
from miserly.kernels.threads import threads
from miserly.metrics import get_metric
from miserly.plan import EXIT, Node, Plan, stack_trees

logger = logging.getLogger(__name__)
LOSS = constraints.has_methods("constant", "gradients", "value")


@dataclass(frozen=True)
class Purchase:
    """What boosting bought: in which round, for which feature, at what price.

    `gain` is the mean squared error of the gradients that the split removed (before the learning rate): what its price
    was weighed against.
    """

    round: int
    feature: str
    acquisitions: tuple[str, ...]
    price: float
    gain: float


class _GreedyMiser(PlanEstimator):
    """The parameters and the fit that regression and classification share."""

    cost_axis = "tradeoff"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "costs": constraints.COSTS,
        "tradeoff": [constraints.not_negative()],
        "n_estimators": [constraints.at_least(1)],
        "learning_rate": [constraints.share()],
        "max_depth": [constraints.at_least(1), None],
        "max_leaf_nodes": [constraints.at_least(2), None],
        "min_samples_leaf": [constraints.at_least(1)],
        "max_bins": [constraints.whole(2, 255)],
        "n_iter_no_change": [constraints.at_least(1), None],
        "n_jobs": constraints.N_JOBS,
        "loss": [constraints.one_of("auto"), LOSS],
    }

    def __init__(
        self,
        costs: CostTable | None = None,
        tradeoff: float = 1e-3,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int = 20,
        max_bins: int = 255,
        n_iter_no_change: int | None = None,
        loss: str | Loss = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.costs = costs
        self.tradeoff = tradeoff
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.max_bins = max_bins
        self.n_iter_no_change = n_iter_no_change
        self.loss = loss
        self.n_jobs = n_jobs

    def prepare(self, X: Any) -> BinnedData:
        """Put the data in bins once, for several fits: `fit(X, y, binned=model.prepare(X))`."""
        X = check_array(X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
        return bin_data(X, self.max_bins, n_jobs=self.n_jobs)

    def suggest_grid(self, y: Any, n_points: int = 8) -> np.ndarray:
        """Values of `tradeoff` from nearly cost-blind to nearly nothing bought, whatever the unit of the prices."""
        costs = self._given_costs()
        loss, target = self._loss_and_target(np.asarray(y))
        start = loss.value(target, np.repeat(loss.constant(target)[:, None], len(target), axis=1))
        prices = [p for p in costs.price_list if p > 0] or [costs.each or 1.0]
        typical = math.fsum(prices) / len(prices)
        return np.geomspace(1e-5, 1e-1, n_points) * (start or 1.0) / typical

    def _boost(
        self, X: np.ndarray, y: np.ndarray, loss: Loss, watch: _Validation | None, binned: BinnedData | None
    ) -> tuple[Boosted, CostTable]:
        costs = self._bound_costs()
        if isinstance(costs.evaluation, tuple):
            raise ValueError("Boosting grows its own trees: give one evaluation price for all, not one per learner.")
        if self.n_iter_no_change is not None and watch is None:
            raise ValueError("n_iter_no_change stops on a validation set: give eval_set=(X, y) to fit.")
        settings = Settings(
            self.n_estimators,
            self.learning_rate,
            Limits(self.max_depth, self.max_leaf_nodes, self.min_samples_leaf),
        )
        with threads(self.n_jobs, X.size):
            data = binned if binned is not None else bin_data(X, self.max_bins, n_jobs=self.n_jobs)
            if (data.n_rows, data.n_features) != X.shape:
                raise ValueError(
                    f"binned holds {data.n_rows} × {data.n_features} values, X {X.shape}. Prepare it from this X."
                )
            boosted = boost(LocalBackend(data, y, loss), Shop(costs, self.tradeoff), settings, loss.n_outputs, watch)
        self.validation_loss_ = watch.losses if watch is not None else None
        if watch is not None and self.n_iter_no_change is not None:
            boosted = replace(boosted, rounds=boosted.rounds[: watch.best], losses=boosted.losses[: watch.best])
        self.n_iter_ = len(boosted.rounds)
        self.train_loss_ = list(boosted.losses)
        self.path_ = _path(boosted, costs)
        logger.debug("%d rounds, %d purchases", self.n_iter_, len(self.path_))
        return boosted, costs

    def _watch(self, eval_set: Any, loss: Loss) -> _Validation | None:
        if eval_set is None:
            return None
        X, y, _ = self._eval_data(eval_set, parts=("X", "y"))
        target = self._target(y)
        return _Validation(X, lambda scores: loss.value(target, scores), self.n_iter_no_change)

    def _eval_data(self, eval_set: Any, parts: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        if not isinstance(eval_set, tuple) or len(eval_set) != len(parts):
            raise ValueError(f"eval_set is validation data: ({', '.join(parts)}).")
        X, *columns = self._checked(eval_set[0]), *(column_or_1d(part) for part in eval_set[1:])
        if any(len(column) != len(X) for column in columns):
            raise ValueError(f"eval_set has {len(X)} rows in X and {len(columns[0])} in y. Give one label per row.")
        if columns[0].dtype.kind == "f" and not np.isfinite(columns[0]).all():
            raise ValueError("eval_set holds NaN or infinity in y. Remove such rows.")
        return X, columns[0], columns[1] if len(columns) > 1 else None

    def _target(self, y: np.ndarray) -> np.ndarray:
        """The labels of validation data as numbers."""
        raise NotImplementedError

    def _loss_and_target(self, y: np.ndarray) -> tuple[Loss, np.ndarray]:
        raise NotImplementedError


class GreedyMiserRegressor(PlanRegressor, _GreedyMiser):
    """Cost-sensitive boosted trees for numbers; squared loss unless `loss` is one of your own."""

    def fit(self, X: Any, y: Any, *, eval_set: Any = None, binned: BinnedData | None = None) -> GreedyMiserRegressor:
        """Learn which features to buy. `eval_set=(X, y)` is watched, and stops with `n_iter_no_change`."""
        X, y = self._fit_data(X, y, y_numeric=True)
        loss, target = self._loss_and_target(y)
        boosted, costs = self._boost(X, target, loss, self._watch(eval_set, loss), binned)
        self.plan_ = _plan(self, boosted, costs, "identity", None)
        return self

    def _target(self, y: np.ndarray) -> np.ndarray:
        return y.astype(np.float64)

    def _loss_and_target(self, y: np.ndarray) -> tuple[Loss, np.ndarray]:
        return (SquaredLoss() if isinstance(self.loss, str) else self.loss), self._target(y)


class GreedyMiserClassifier(PlanClassifier, _GreedyMiser):
    """Cost-sensitive boosted trees for classes: logistic loss for two, softmax with one shared purse for more."""

    def fit(self, X: Any, y: Any, *, eval_set: Any = None, binned: BinnedData | None = None) -> GreedyMiserClassifier:
        """Learn which features to buy. `eval_set=(X, y)` is watched, and stops with `n_iter_no_change`."""
        X, y = self._fit_data(X, y, y_numeric=False)
        self.classes_ = self._find_classes(y)
        loss, target = self._loss_and_target(y)
        boosted, costs = self._boost(X, target, loss, self._watch(eval_set, loss), binned)
        link = "logistic" if len(self.classes_) == 2 else "softmax"
        self.plan_ = _plan(self, boosted, costs, link, self.classes_)
        return self

    def _target(self, y: np.ndarray) -> np.ndarray:
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"The validation data have classes that the training data have not: {unknown[:5]}.")
        return np.searchsorted(self.classes_, y).astype(np.float64)

    def _loss_and_target(self, y: np.ndarray) -> tuple[Loss, np.ndarray]:
        classes = self._find_classes(y)
        n_outputs = 1 if len(classes) == 2 else len(classes)
        loss = self.loss if not isinstance(self.loss, str) else LogLoss() if n_outputs == 1 else SoftmaxLoss(n_outputs)
        if loss.n_outputs != n_outputs:
            raise ValueError(
                f"{len(classes)} classes need {n_outputs} scores, {type(loss).__name__} gives {loss.n_outputs}."
            )
        return loss, np.searchsorted(classes, y).astype(np.float64)


class GreedyMiserRanker(PlanRegressor, _GreedyMiser):
    """Cost-sensitive boosted trees for graded documents of queries.

    `loss="squared"` fits the grades, as the paper does; "lambdarank" follows LambdaMART's gradients. `metric` is
    watched on `eval_set=(X, y, qid)`, and stops with `n_iter_no_change`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_GreedyMiser._parameter_constraints,
        "loss": [constraints.one_of("squared", "lambdarank")],
        "metric": [str],
    }

    def __init__(
        self,
        costs: CostTable | None = None,
        tradeoff: float = 1e-3,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int = 20,
        max_bins: int = 255,
        n_iter_no_change: int | None = None,
        loss: str = "squared",
        metric: str = "ndcg@5",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            costs,
            tradeoff,
            n_estimators,
            learning_rate,
            max_depth,
            max_leaf_nodes,
            min_samples_leaf,
            max_bins,
            n_iter_no_change,
            loss,
            n_jobs,
        )
        self.metric = metric

    def fit(
        self, X: Any, y: Any, qid: Any = None, *, eval_set: Any = None, binned: BinnedData | None = None
    ) -> GreedyMiserRanker:
        """Learn to rank; without `qid` all rows are one query. Rows of a query lie together."""
        X, y = self._fit_data(X, y, y_numeric=True)
        query = _queries(qid, len(X), "qid")
        if self.loss == "lambdarank" and y.min() < 0:
            raise ValueError(f"lambdarank needs grades of 0 or more, got {y.min():g}. Map the labels first.")
        loss: Loss = LambdaRankLoss(query) if self.loss == "lambdarank" else SquaredLoss()
        boosted, costs = self._boost(X, self._target(y), loss, self._watch(eval_set, loss), binned)
        sign = -1.0 if get_metric(self.metric).greater_is_better else 1.0
        self.validation_score_ = None if self.validation_loss_ is None else [sign * v for v in self.validation_loss_]
        self.plan_ = _plan(self, boosted, costs, "identity", None)
        return self

    def _watch(self, eval_set: Any, loss: Loss) -> _Validation | None:
        if eval_set is None:
            return None
        X, y, qid = self._eval_data(eval_set, parts=("X", "y", "qid"))
        metric, query = get_metric(self.metric), _queries(qid, len(X), "the qid of eval_set")
        sign = -1.0 if metric.greater_is_better else 1.0
        return _Validation(X, lambda scores: sign * metric(y, scores[0], qid=query), self.n_iter_no_change)

    def _target(self, y: np.ndarray) -> np.ndarray:
        return y.astype(np.float64)

    def _loss_and_target(self, y: np.ndarray) -> tuple[Loss, np.ndarray]:
        return SquaredLoss(), self._target(y)


def _queries(qid: Any, n_rows: int, what: str) -> np.ndarray:
    """Query ids, one per row, those of one query together."""
    if qid is None:
        return np.zeros(n_rows, np.intp)
    ids = column_or_1d(qid)
    if len(ids) != n_rows:
        raise ValueError(f"{what} must give one query id per row: {n_rows} rows, got {len(ids)}.")
    first = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    names, times = np.unique(ids[first], return_counts=True)
    if (times > 1).any():
        raise ValueError(f"{what} comes back to query {names[times > 1][0]!r} after others. Sort the rows by query.")
    return ids


class _Validation:
    """Follows a figure on validation data (lower is better) and says when it has not fallen for `patience` rounds."""

    def __init__(self, X: np.ndarray, measure: Callable[[np.ndarray], float], patience: int | None) -> None:
        self._X, self._measure, self._patience = np.ascontiguousarray(X), measure, patience
        self._scores: np.ndarray | None = None
        self.losses: list[float] = []
        self.best = 0

    def __call__(self, this: Round, constant: np.ndarray) -> bool:
        if self._scores is None:
            self._scores = np.repeat(constant[:, None], len(self._X), axis=1)
        trees = stack_trees(this.tables)
        for t, output in enumerate(this.outputs):
            self._scores[output] += trees.evaluate(self._X, t)
        self.losses.append(self._measure(self._scores))
        if self.losses[-1] <= min(self.losses):
            self.best = len(self.losses)
        return self._patience is not None and len(self.losses) - self.best >= self._patience


def _path(boosted: Boosted, costs: CostTable) -> list[Purchase]:
    names, prices = costs.acquisitions, costs.price_list
    return [
        Purchase(
            number,
            costs.features[split.feature],
            tuple(names[a] for a in split.bought),
            math.fsum(prices[a] for a in split.bought),
            split.gain,
        )
        for number, this in enumerate(boosted.rounds)
        for tree in this.trees
        for split in tree.splits
        if split.bought
    ]


def _plan(model: Any, boosted: Boosted, costs: CostTable, link: Any, classes: np.ndarray | None) -> Plan:
    """A chain of open gates, one node per round, so that it can stop after any."""
    n_outputs = len(boosted.constant)
    losses = [boosted.start_loss, *boosted.losses]
    nodes = []
    n_learners = 0
    for number, this in enumerate(boosted.rounds):
        weights = np.zeros((len(this.outputs), n_outputs))
        weights[np.arange(len(this.outputs)), this.outputs] = 1.0
        nodes.append(
            Node(
                learners=np.arange(n_learners, n_learners + len(this.outputs), dtype=np.int32),
                weights=weights,
                bias=np.zeros(n_outputs),
                outputs=tuple(range(n_outputs)),
                passed=number + 1 if number + 1 < len(boosted.rounds) else EXIT,
                gain=losses[number] - losses[number + 1],
            )
        )
        n_learners += len(this.outputs)
    return Plan(
        costs=costs,
        dictionary=stack_trees([table for this in boosted.rounds for table in this.tables]),
        nodes=tuple(nodes),
        prior=boosted.constant,
        link=link,
        classes=classes,
        roots=(0,) if nodes else (),
        notes={
            "estimator": type(model).__name__,
            "tradeoff": float(model.tradeoff),
            "path": [asdict(purchase) for purchase in model.path_],
        },
    )

"""Greedy Miser (Xu, Weinberger, Chapelle, ICML 2012): boosting that pays for each first use of an acquisition.

Each tree minimises  ½ mean (g − h)² + λ · (price of what it is first to use)  over trees h, with g the negative
gradient of the mean loss: equation (2.5), with the sum over rows made a mean so that λ does not depend on their number.
"""

from __future__ import annotations

import logging
import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_array, column_or_1d

from miserly.boosting import (
    BinnedData,
    Boosted,
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
        self, X: np.ndarray, y: np.ndarray, loss: Loss, eval_set: Any, binned: BinnedData | None
    ) -> tuple[Boosted, CostTable]:
        costs = self._bound_costs()
        if isinstance(costs.evaluation, tuple):
            raise ValueError("Boosting grows its own trees: give one evaluation price for all, not one per learner.")
        if self.n_iter_no_change is not None and eval_set is None:
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
            watch = _Validation(loss, eval_set, self.n_iter_no_change) if eval_set is not None else None
            boosted = boost(LocalBackend(data, y, loss), Shop(costs, self.tradeoff), settings, loss.n_outputs, watch)
        self.validation_loss_ = watch.losses if watch is not None else None
        if watch is not None and self.n_iter_no_change is not None:
            boosted = Boosted(boosted.constant, boosted.rounds[: watch.best], boosted.losses[: watch.best])
        self.n_iter_ = len(boosted.rounds)
        self.train_loss_ = list(boosted.losses)
        self.path_ = _path(boosted, costs)
        self._start_loss = loss.value(y, np.repeat(boosted.constant[:, None], len(y), axis=1))
        logger.debug("%d rounds, %d purchases", self.n_iter_, len(self.path_))
        return boosted, costs

    def _eval_set(self, eval_set: Any) -> tuple[np.ndarray, np.ndarray] | None:
        if eval_set is None:
            return None
        if not isinstance(eval_set, tuple) or len(eval_set) != 2:
            raise ValueError("eval_set is a pair (X, y) of validation data.")
        X, y = self._checked(eval_set[0]), column_or_1d(eval_set[1])
        if len(X) != len(y):
            raise ValueError(f"eval_set has {len(X)} rows in X and {len(y)} in y.")
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError("eval_set holds NaN or infinity in y. Remove such rows.")
        return X, self._target(y)

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
        boosted, costs = self._boost(X, target, loss, self._eval_set(eval_set), binned)
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
        boosted, costs = self._boost(X, target, loss, self._eval_set(eval_set), binned)
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


class _Validation:
    """Follows the loss on validation data and says when it has not fallen for `patience` rounds."""

    def __init__(self, loss: Loss, data: tuple[np.ndarray, np.ndarray], patience: int | None) -> None:
        self._loss, self._patience = loss, patience
        self._X, self._y = np.ascontiguousarray(data[0]), data[1]
        self._scores: np.ndarray | None = None
        self.losses: list[float] = []
        self.best = 0

    def __call__(self, this: Round, constant: np.ndarray) -> bool:
        if self._scores is None:
            self._scores = np.repeat(constant[:, None], len(self._X), axis=1)
        trees = stack_trees(this.tables)
        for t, output in enumerate(this.outputs):
            self._scores[output] += trees.evaluate(self._X, t)
        self.losses.append(self._loss.value(self._y, self._scores))
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
    losses = [model._start_loss, *boosted.losses]
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

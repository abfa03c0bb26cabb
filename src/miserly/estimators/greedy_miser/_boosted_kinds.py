"""Boosted trees for numbers, for classes and for lists: each kind's losses, and how its scores are read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import column_or_1d

from miserly.boosting import (
    BackendOfRows,
    BinnedData,
    BinnedDataset,
    Boosted,
    Loss,
    LossContext,
    SquaredHingeLoss,
    SquaredLoss,
    make_loss,
)
from miserly.estimators._base import PlanClassifier, PlanRegressor, check_eval_set, constraints
from miserly.estimators.greedy_miser._boosted import LOSS, BoostedEstimator
from miserly.estimators.greedy_miser._validation import Validation
from miserly.metrics import get_metric
from miserly.plan import refuse_missing
from miserly.solvers import platt


class BoostedRegressor(PlanRegressor, BoostedEstimator):
    """Boosted trees for numbers; squared loss unless `loss` is one of your own."""

    def _learn(self, X: Any, y: np.ndarray, weight: np.ndarray | None, eval_set: Any, **how: Any) -> None:
        loss, target = self._loss_and_target(y)
        boosted, costs = self._boost(X, target, loss, weight, self._watch(eval_set, loss), **how)
        self.plan_ = self._plan(boosted, costs)

    def _loss_and_target(self, y: np.ndarray) -> tuple[Loss, np.ndarray]:
        loss = make_loss("regression", self.loss) if isinstance(self.loss, str) else self.loss
        return loss, self._as_numbers(y)


class BoostedClassifier(PlanClassifier, BoostedEstimator):
    """Boosted trees for classes: logistic loss for two, softmax with one shared purse for more.

    `loss="squared_hinge"` is each class against the rest; its scores become log-odds by Platt's method, on the
    validation data if there are any.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedEstimator._parameter_constraints,
        "loss": [constraints.loss_of("classification"), LOSS],
    }

    def _learn(self, X: Any, y: np.ndarray, weight: np.ndarray | None, eval_set: Any, **how: Any) -> None:
        self.classes_ = self._find_classes(y)
        loss, target = self._loss_and_target(y)
        watch = self._watch(eval_set, loss)
        if isinstance(loss, SquaredHingeLoss) and watch is None and isinstance(X, BackendOfRows):
            raise ValueError("squared_hinge reads probabilities off the data: on a cluster give eval_set=(X, y).")
        boosted, costs = self._boost(X, target, loss, weight, watch, **how)
        link = "softmax" if len(self.classes_) > 2 else "logistic"
        calibration: tuple[Any, Any] = (None, None)
        if isinstance(loss, SquaredHingeLoss):
            link = "logistic"
            known = Validation(X, target, lambda scores: loss.value(target, scores)) if watch is None else watch
            calibration = self._platt(boosted, known, weight if watch is None else None)
        self.plan_ = self._plan(boosted, costs, link, self.classes_, *calibration)

    def _platt(self, boosted: Boosted, known: Validation, weight: np.ndarray | None) -> tuple[list[float], list[float]]:
        """Scale and offset that turn each output's margin into log-odds."""
        scores = known.scores_after(boosted)
        positive = [1] if len(scores) == 1 else range(len(scores))
        fits = [platt(z, (known.y == k).astype(float), weight) for z, k in zip(scores, positive)]
        return [a for a, _ in fits], [b for _, b in fits]

    def _as_numbers(self, y: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.classes_, y).astype(np.float64)

    def _loss_and_target(self, y: np.ndarray) -> tuple[Loss, np.ndarray]:
        classes = self._find_classes(y)
        n_classes = len(classes)
        n_outputs = 1 if n_classes == 2 else n_classes
        named = isinstance(self.loss, str)
        loss: Loss = make_loss("classification", self.loss, LossContext(n_classes)) if named else self.loss
        if loss.n_outputs != n_outputs:
            raise ValueError(
                f"{n_classes} classes need {n_outputs} scores, {type(loss).__name__} gives {loss.n_outputs}."
            )
        return loss, np.searchsorted(classes, y).astype(np.float64)


class BoostedRanker(PlanRegressor, BoostedEstimator):
    """Boosted trees for graded documents of queries.

    `loss="squared"` fits the grades, as the paper does; "lambdarank" follows LambdaMART's gradients. `metric` is
    watched on `eval_set=(X, y, qid)`, and stops with `n_iter_no_change`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedEstimator._parameter_constraints,
        "loss": [constraints.loss_of("ranking")],
        "metric": [str],
    }

    def fit(  # type: ignore[override]  # lists have queries, in the place that ranking gives them
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        binned: BinnedData | None = None,
        backend: Any = None,
        checkpoint: str | Path | None = None,
        prices: Any = None,
    ) -> Any:
        """Learn to rank; without `qid` all rows are one query. Rows of a query lie together. `prices`, measured on the
        rows, are a frame by acquisition, or an array in the order of `costs.acquisitions`.

        A `backend` holds remote rows; for Dask collections it is found. A file as `checkpoint` keeps the rounds
        that are done: with `warm_start=True` a killed fit goes on from it.
        """
        how = {"keep_rows": True, "qid": qid, "backend": backend, "prices": prices}
        X, y, weight = self._fit_data(X, y, sample_weight, y_numeric=True, **how)
        far = isinstance(X, BackendOfRows)
        query = np.empty(0) if far else _queries(qid, X.shape[0], "qid")
        if weight is not None and binned is None and not isinstance(X, BinnedDataset):
            present = np.flatnonzero(weight)
            X, y, weight, query = X[present], y[present], weight[present], query[present]
            if self._training_prices is not None:
                priced = self._training_prices
                self._training_prices = replace(priced, matrix=priced.matrix[present])
        if self.loss == "lambdarank" and y.min() < 0:
            raise ValueError(f"lambdarank needs grades of 0 or more, got {y.min():g}. Map the labels first.")
        loss = make_loss("ranking", self.loss, LossContext(qid=query))
        watch = self._watch(eval_set, loss)
        boosted, costs = self._boost(X, self._as_numbers(y), loss, weight, watch, binned, checkpoint)
        sign = -1.0 if get_metric(self.metric).greater_is_better else 1.0
        self.validation_score_ = None if self.validation_loss_ is None else [sign * v for v in self.validation_loss_]
        self.plan_ = self._plan(boosted, costs)
        return self

    def _watch(self, eval_set: Any, loss: Loss) -> Validation | None:
        if eval_set is None:
            return None
        X, y, qid = check_eval_set(self, eval_set, ("X", "y", "qid"))
        query = _queries(qid, X.shape[0], "the qid of eval_set")
        metric = get_metric(self.metric)
        sign = -1.0 if metric.greater_is_better else 1.0
        return Validation(X, y, lambda scores: sign * metric(y, scores[0], qid=query), self.n_iter_no_change)

    def _loss_and_target(self, y: np.ndarray) -> tuple[Loss, np.ndarray]:
        return SquaredLoss(), self._as_numbers(y)


def _queries(qid: Any, n_rows: int, what: str) -> np.ndarray:
    """Query ids, one per row, those of one query together."""
    if qid is None:
        return np.zeros(n_rows, np.intp)
    ids = column_or_1d(qid)
    if len(ids) != n_rows:
        raise ValueError(f"{what} must give one query id per row: {n_rows} rows, got {len(ids)}.")
    refuse_missing(ids, what, "query id")
    first = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    names, times = np.unique(ids[first], return_counts=True)
    if (times > 1).any():
        query = names[times > 1].tolist()[0]
        raise ValueError(f"{what} comes back to query {query!r} after others. Sort the rows by query.")
    return ids

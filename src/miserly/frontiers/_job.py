"""What the points of a sweep share, and how one of them is made: fit, then measure on data it was not fitted on.

Where only the cost axis of a model with `within` is swept, it is fitted once, and every point is made from it. With
cross-validation each point is measured on rows that its fits have not seen, and its model is fitted again on all rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from miserly.frontiers._folds import Fold
from miserly.frontiers._front import Measured, Point
from miserly.frontiers._totals import PredictedRows
from miserly.metrics import Metric
from miserly.plan import Plan, as_matrix
from miserly.solvers import LoggedPurchases

Data = tuple[Any, Any, Any]


@dataclass(frozen=True)
class Job:
    """A model, its data sets as (X, y, qid), and what every fit is given besides X and y; an anytime model fitted."""

    model: Any
    train: Data
    validation: Data | None
    test: Data | None
    metric: Metric
    given: Mapping[str, Any] = field(default_factory=dict)
    whole: Any = None
    folds: tuple[Fold, ...] = ()
    parts: tuple[Job, ...] = ()
    prices: Mapping[str, Any] = field(default_factory=dict)

    def prepared(self, swept: Mapping[str, Any]) -> Job:
        """With the data in bins, query ids and validation data for fits that take them."""
        given: dict[str, Any] = {}
        if hasattr(self.model, "prepare") and "max_bins" not in swept:
            given["binned"] = self.model.prepare(self.train[0])
        by_query = "qid" in signature(self.model.fit).parameters
        if "train" in self.prices:
            given["prices"] = self.prices["train"]
        if by_query and self.train[2] is not None:
            given["qid"] = self.train[2]
        if getattr(self.model, "n_iter_no_change", None) is not None and self.validation is not None:
            given["eval_set"] = self.validation if by_query else self.validation[:2]
        whole = None
        if [*swept] == [getattr(self.model, "cost_axis", None)] and hasattr(self.model, "within"):
            unlimited = {"budget": None} if "budget" in swept else {}
            whole = clone(self.model).set_params(**unlimited).fit(*self.train[:2], **given)
        parts = tuple(self._part(fit, score).prepared(swept) for fit, score in self.folds)
        return replace(self, given=given, whole=whole, parts=parts)

    def _part(self, fit: np.ndarray, score: np.ndarray) -> Job:
        """One fold: some rows to fit on, others to score."""
        train, validation = (
            (_safe_indexing(X, rows), np.asarray(y)[rows], None if qid is None else np.asarray(qid)[rows])
            for (X, y, qid), rows in ((self.train, fit), (self.train, score))
        )
        paid = self.prices.get("train")
        prices = {} if paid is None else {"train": _rows_of(paid, fit), "validation": _rows_of(paid, score)}
        return replace(self, train=train, validation=validation, test=None, folds=(), parts=(), prices=prices)

    def point(self, params: Mapping[str, Any]) -> Point:
        """Fit and measure one model."""
        started = time.perf_counter()
        try:
            if self.parts:
                measured, fitted, held = self._cross_validated(params)
            else:
                fitted, held = self._fitted(params), None
                measured = None
            seconds = time.perf_counter() - started
            test = None if self.test is None else self.measure(fitted, self.test)
            if measured is None:
                assert self.validation is not None
                measured = self.measure(fitted, self.validation)
            return Point(params, fitted, measured, test, seconds, held)
        except Exception as error:
            error.add_note(f"This happened at the point {spelled(params)} of the sweep.")
            raise

    def _cross_validated(self, params: Mapping[str, Any]) -> tuple[Measured, Any, PredictedRows | None]:
        """What the models of the folds are worth on the rows they have not seen, and the model of all rows: boosted
        models with as many rounds as were best in the folds."""
        y, qid = np.asarray(self.train[1]), self.train[2]
        models = [part._fitted(params) for part in self.parts]
        final = dict(params)
        if getattr(models[0], "n_iter_no_change", None) is not None and hasattr(models[0], "n_iter_"):
            rounds = max(1, round(float(np.mean([model.n_iter_ for model in models]))))
            final |= {"n_estimators": rounds, "n_iter_no_change": None}
        fitted = self._fitted(final)
        classes = getattr(fitted, "classes_", None)
        output: Any = None
        costs = np.zeros(len(y))
        weights: Any = None
        for model, part, (_, score) in zip(models, self.parts, self.folds):
            assert part.validation is not None
            values, costs[score] = part._predicted(model, part.validation)
            counted = part._counted(model, part.validation)
            if counted is not None:
                weights = np.zeros(len(y)) if weights is None else weights
                weights[score] = counted
            if values.ndim == 2 and classes is not None and values.shape[1] < len(classes):
                values = _with_all_classes(values, model.classes_, classes)
            if output is None:
                output = np.zeros((len(y), *values.shape[1:]), values.dtype)
            output[score] = values
        scored = np.unique(np.concatenate([score for _, score in self.folds]))
        given = None if qid is None else np.asarray(qid)[scored]
        counted = None if weights is None else weights[scored]
        quality = self.quality(y[scored], output[scored], given, classes, counted)
        held = None
        if output.ndim == 2 and classes is not None:
            truth = np.searchsorted(classes, y[scored])
            held = PredictedRows(output[scored], truth, costs[scored], weights=counted)
        return Measured.of(quality, costs[scored], counted), fitted, held

    def _fitted(self, params: Mapping[str, Any]) -> Any:
        if self.whole is not None:
            return self.whole.within(**params)
        return clone(self.model).set_params(**params).fit(self.train[0], self.train[1], **self.given)

    def measure(self, model: Any, data: Data) -> Measured:
        """Quality and costs of a fitted model on some rows."""
        output, costs = self._predicted(model, data)
        weights = self._counted(model, data)
        quality = self.quality(np.asarray(data[1]), output, data[2], getattr(model, "classes_", None), weights)
        return Measured.of(quality, costs, weights)

    def quality(self, y: Any, output: Any, qid: Any, classes: Any, weights: Any) -> float:
        """The metric on the rows that count."""
        if weights is None:
            return self.metric(y, output, qid=qid, classes=classes)
        there = np.flatnonzero(weights)
        if not len(there):
            return float("nan")
        return self.metric(y[there], output[there], classes=classes, sample_weight=weights[there])

    def counted(self, model: Any) -> Any:
        """The same of validation rows."""
        return None if self.validation is None else self._counted(model, self.validation)

    def _counted(self, model: Any, data: Data) -> Any:
        """How many rows each stands for whose purchases by a model were all logged; None where nothing is logged."""
        plan = getattr(model, "plan_", None)
        if not isinstance(plan, Plan) or not plan.costs.not_ordered:
            return None
        return logged_weights(plan, self.purchases(model), model._dense(data[0]), data[1])

    def purchases(self, model: Any) -> LoggedPurchases:
        """How likely the purchases of the training rows were, as a fitted model prices them; learned once."""
        plan = model.plan_
        known: LoggedPurchases | None = self.__dict__.get("_learned")
        if known is None or known.costs != plan.costs:
            known = LoggedPurchases.learn(plan.costs, model._dense(self.train[0]), np.asarray(self.train[1]))
            self.__dict__["_learned"] = known
        return known

    def _predicted(self, model: Any, data: Data) -> tuple[Any, Any]:
        """What the metric looks at, and what the rows pay."""
        X, _, qid = data
        by_query = {"qid": qid} if "qid" in signature(model.predict_cost).parameters else {}
        if self.metric.input == "proba":
            output = model.predict_proba(X)
        elif self.metric.grouped and hasattr(model, "rank_score"):
            output = model.rank_score(X, **by_query)
        elif self.metric.input == "score" and hasattr(model, "decision_function"):
            output = model.decision_function(X)
        else:
            output = model.predict(X, **by_query)
        name = "validation" if data is self.validation else "test" if data is self.test else ""
        paid = {"prices": self.prices[name]} if name in self.prices else {}
        return np.asarray(output), model.predict_cost(X, **by_query, **paid)


def logged_weights(plan: Plan, purchases: LoggedPurchases, X: Any, y: Any) -> Any:
    """How many rows each of some rows stands for, if a plan walks them: 0 where it buys what was not logged."""
    accounts = plan.run(X).accounts
    assert accounts is not None
    return purchases.rows(X, y).weights_of(accounts)


def logged_purchases(model: Any, X: Any, y: Any) -> LoggedPurchases | None:
    """How likely the purchases of the rows were that an estimator was fitted on; None if its prices mark none."""
    plan = model.plan_
    return LoggedPurchases.learn(plan.costs, model._dense(X), y) if plan.costs.not_ordered else None


def measured_where_logged(plan: Plan, purchases: LoggedPurchases, X: Any, y: Any, metric: Metric) -> Measured:
    """A plan on the rows whose purchases were all logged, each weighted by how many rows it stands for."""
    X, run = as_matrix(X, plan.costs.features, plan.costs.named), plan.run(X)
    weights = logged_weights(plan, purchases, X, y)
    there = np.flatnonzero(weights)
    output = plan.probabilities(run.z) if metric.input == "proba" else plan.read(run.z)
    if metric.input == "score":
        output = run.score[:, 0] if plan.classes is None else plan.probabilities(run.z)[:, 1]
    quality = math.nan
    if len(there):
        more = {"sample_weight": weights[there], "classes": plan.classes}
        quality = metric(np.asarray(y)[there], output[there], **more)
    return Measured.of(quality, run.cost, weights)


def _rows_of(prices: Any, rows: np.ndarray) -> Any:
    """The measured prices of some rows."""
    if isinstance(prices, Mapping):
        return {name: np.asarray(values)[rows] for name, values in prices.items()}
    return _safe_indexing(prices, rows)


def _with_all_classes(values: np.ndarray, known: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Probabilities of a model whose fold lacked some classes: 0 for these."""
    out = np.zeros((len(values), len(classes)))
    out[:, np.searchsorted(classes, known)] = values
    return out


def spelled(params: Mapping[str, Any]) -> str:
    """Parameters as a user writes them."""
    return ", ".join(
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value!r}" for name, value in params.items()
    )

"""What the points of a sweep share, and how one of them is made: fit, then measure on data it was not fitted on.

Where only the cost axis of a model with `within` is swept, it is fitted once, and every point is made from it. With
cross-validation each point is measured on rows that its fits have not seen, and its model is fitted again on all rows.
"""

from __future__ import annotations

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
        for model, part, (_, score) in zip(models, self.parts, self.folds):
            assert part.validation is not None
            values, costs[score] = part._predicted(model, part.validation)
            if values.ndim == 2 and classes is not None and values.shape[1] < len(classes):
                values = _with_all_classes(values, model.classes_, classes)
            if output is None:
                output = np.zeros((len(y), *values.shape[1:]), values.dtype)
            output[score] = values
        scored = np.unique(np.concatenate([score for _, score in self.folds]))
        given = None if qid is None else np.asarray(qid)[scored]
        quality = self.metric(y[scored], output[scored], qid=given, classes=classes)
        held = None
        if output.ndim == 2 and classes is not None:
            held = PredictedRows(output[scored], np.searchsorted(classes, y[scored]), costs[scored])
        return Measured.of(quality, costs[scored]), fitted, held

    def _fitted(self, params: Mapping[str, Any]) -> Any:
        if self.whole is not None:
            return self.whole.within(**params)
        return clone(self.model).set_params(**params).fit(self.train[0], self.train[1], **self.given)

    def measure(self, model: Any, data: Data) -> Measured:
        """Quality and costs of a fitted model on some rows."""
        output, costs = self._predicted(model, data)
        quality = self.metric(np.asarray(data[1]), output, qid=data[2], classes=getattr(model, "classes_", None))
        return Measured.of(quality, costs)

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

"""What the points of a sweep share, and how one of them is made: fit, then measure on data it was not fitted on.

Where only the cost axis of a model with `within` is swept, it is fitted once, and every point is made from it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone

from miserly.frontiers._front import Measured, Point
from miserly.metrics import Metric

Data = tuple[Any, Any, Any]


@dataclass(frozen=True)
class Job:
    """A model, its data sets as (X, y, qid), and what every fit is given besides X and y; an anytime model fitted."""

    model: Any
    train: Data
    validation: Data
    test: Data | None
    metric: Metric
    given: Mapping[str, Any] = field(default_factory=dict)
    whole: Any = None

    def prepared(self, swept: Mapping[str, Any]) -> Job:
        """With the data in bins, query ids and validation data for fits that take them."""
        given: dict[str, Any] = {}
        if hasattr(self.model, "prepare") and "max_bins" not in swept:
            given["binned"] = self.model.prepare(self.train[0])
        by_query = "qid" in signature(self.model.fit).parameters
        if by_query and self.train[2] is not None:
            given["qid"] = self.train[2]
        if getattr(self.model, "n_iter_no_change", None) is not None:
            given["eval_set"] = self.validation if by_query else self.validation[:2]
        whole = None
        if [*swept] == [getattr(self.model, "cost_axis", None)] and hasattr(self.model, "within"):
            unlimited = {"budget": None} if "budget" in swept else {}
            whole = clone(self.model).set_params(**unlimited).fit(*self.train[:2], **given)
        return replace(self, given=given, whole=whole)

    def point(self, params: Mapping[str, Any]) -> Point:
        """Fit and measure one model."""
        started = time.perf_counter()
        try:
            fitted = self._fitted(params)
            seconds = time.perf_counter() - started
            test = None if self.test is None else self._measure(fitted, self.test)
            return Point(params, fitted, self._measure(fitted, self.validation), test, seconds)
        except Exception as error:
            error.add_note(f"This happened at the point {spelled(params)} of the sweep.")
            raise

    def _fitted(self, params: Mapping[str, Any]) -> Any:
        if self.whole is not None:
            return self.whole.within(**params)
        return clone(self.model).set_params(**params).fit(self.train[0], self.train[1], **self.given)

    def _measure(self, model: Any, data: Data) -> Measured:
        X, y, qid = data
        by_query = {"qid": qid} if "qid" in signature(model.predict_cost).parameters else {}
        if self.metric.input == "proba":
            output = model.predict_proba(X)
        elif self.metric.grouped and hasattr(model, "rank_score"):
            output = model.rank_score(X, **by_query)
        elif self.metric.input == "score" and hasattr(model, "decision_function"):
            output = model.decision_function(X)
        else:
            output = model.predict(X, **by_query)
        quality = self.metric(np.asarray(y), output, qid=qid, classes=getattr(model, "classes_", None))
        return Measured.of(quality, model.predict_cost(X, **by_query))


def spelled(params: Mapping[str, Any]) -> str:
    """Parameters as a user writes them."""
    return ", ".join(
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value!r}" for name, value in params.items()
    )

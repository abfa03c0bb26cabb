"""Data on a cluster or in bins on disk: a sample decides what is worth a model, then models learn where the rows are.

The search for sets, the shape of trees and the stops are learned from the sample, which is brought here. A set that
stands on the frontier gets a model of all rows in place of that of the sample.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from miserly._typing import Floats
from miserly.auto._clock import TimeLimit
from miserly.auto._stages import StageFitter, within_lists
from miserly.boosting import BinnedData, BinnedDataset, backend_for, chosen_rows, is_remote
from miserly.estimators import GreedyMiserClassifier, GreedyMiserRanker, GreedyMiserRegressor

logger = logging.getLogger(__name__)
MOST_HERE = 12_000  # rows that are brought here


@dataclass(frozen=True, eq=False)
class Sample:
    """Some of the rows, as arrays; the labels of all rows, and what the columns are called."""

    X: Floats
    y: np.ndarray
    qid: np.ndarray | None
    labels: np.ndarray
    names: Sequence[str] | None
    categories: dict[str, tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class LargeData:
    """Rows that are not here as arrays: Dask collections, or a `BinnedDataset`."""

    X: Any
    y: Any
    qid: Any

    @classmethod
    def of(cls, X: Any, y: Any, qid: Any) -> LargeData | None:
        """The data, if they are of such a kind."""
        return cls(X, y, qid) if is_remote(X) or isinstance(X, BinnedDataset) else None

    def sample(self, seed: int, numeric: bool) -> Sample:
        """At most about `MOST_HERE` rows; queries stay whole."""
        if isinstance(self.X, BinnedDataset):
            return self._decoded()
        backend = backend_for(self.X)
        backend.take(self.X, self.y, self.qid, None, numeric=numeric)
        X, y, qid = backend.sample(MOST_HERE, seed, numeric)
        return Sample(X, y, qid, backend.labels, backend.features, backend.categories)

    def _decoded(self) -> Sample:
        data: BinnedData = self.X.data
        y = np.asarray(self.y)
        if y.shape != (len(self.X),):
            raise ValueError(f"y has the shape {y.shape}, X {len(self.X)} rows. Give one label per row.")
        rows = chosen_rows(len(y), MOST_HERE)
        rows = np.arange(len(y)) if rows is None else rows
        qid = None if self.qid is None else np.asarray(self.qid)
        if qid is not None:
            rows = np.flatnonzero(np.isin(qid, np.unique(qid[rows[:: max(1, len(y) // MOST_HERE)]])))
        X = np.stack([_middles(data, f)[data.lane(f)[rows]] for f in range(data.n_features)], axis=1)
        names = self.X.features if self.X.named else None
        return Sample(X, y[rows], None if qid is None else qid[rows], np.unique(y), names, {})

    def learn(self, fitter: StageFitter, used: Sequence[int], clock: TimeLimit) -> None:
        """Give stages the models of all rows; when the time is over, the others keep those of the sample."""
        done = 0
        for state in used:
            stage = fitter.stages[state]
            if clock.over() and done:
                break
            if stage.plan.nodes:
                model = self._model(fitter, state).set_params(n_estimators=len(stage.plan.nodes), n_iter_no_change=None)
                more = {} if self.qid is None else {"qid": self.qid}
                plan = model.fit(self.X, self._target(model), **more).plan_
                if plan.n_outputs != stage.plan.n_outputs:
                    raise ValueError("The sample lacks a class that other rows have: it has too few rows.")
                fitter.finals[state] = replace(plan, classes=stage.plan.classes)
            done += 1
            clock.report(f"{done} of {len(used)} models learned from all rows", 0.95)
        if done < len(used):
            logger.warning("Time is short: %d of %d models are those of a sample of rows.", len(used) - done, len(used))

    def _target(self, model: Any) -> Any:
        """What a model learns; grades on a cluster keep what differs between lists."""
        centred = self.qid is not None and isinstance(self.X, BinnedDataset) and model.loss == "squared"
        return within_lists(np.asarray(self.y, np.float64), np.asarray(self.qid)) if centred else self.y

    def _model(self, fitter: StageFitter, state: int) -> Any:
        model = _OF_SETS[type(fitter.model)](**clone(fitter.model_of(state)).get_params(deep=False))
        model.usable_features = fitter.features(state)
        if isinstance(self.X, BinnedDataset):
            model.set_params(max_bins=self.X.max_bins)
        return model


class _OfSet:
    """A miser that may use some features only."""

    usable_features: np.ndarray

    def _usable(self, data: BinnedData, costs: Any) -> BinnedData:
        return replace(data, n_bins=np.where(self.usable_features, data.n_bins, 0).astype(data.n_bins.dtype))


class _SetClassifier(_OfSet, GreedyMiserClassifier): ...


class _SetRegressor(_OfSet, GreedyMiserRegressor): ...


class _SetRanker(_OfSet, GreedyMiserRanker): ...


_OF_SETS: dict[type, Any] = {
    GreedyMiserClassifier: _SetClassifier,
    GreedyMiserRegressor: _SetRegressor,
    GreedyMiserRanker: _SetRanker,
}


def _middles(data: BinnedData, feature: int) -> Floats:
    """A number for each bin of a feature that lies in it; NaN for that of missing values."""
    values = np.full(256, np.nan)
    n = int(data.n_bins[feature])
    cuts = data.cuts[feature, : max(0, n - 1)]
    cuts = cuts[np.isfinite(cuts)]
    if n:
        step = float(np.diff(cuts).mean()) if len(cuts) > 1 else 1.0
        ends = np.concatenate([[cuts[0] - step], cuts, [cuts[-1] + step]]) if len(cuts) else np.zeros(2)
        middles = (ends[:-1] + ends[1:]) / 2
        values[: len(middles)] = middles
    return values

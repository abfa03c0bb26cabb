"""What estimators over weak learners share: data, here or on a cluster, made into learners, targets and weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from miserly._typing import Floats
from miserly.boosting import backend_for, warn_of_seen_rows
from miserly.estimators._base._base import PlanEstimator, check_numbers
from miserly.estimators._base._dictionary import Learners, RemoteTable, find_learners, reads_missing
from miserly.estimators._base._target import Target
from miserly.estimators._base._tree_dictionary import pooled_trees
from miserly.plan import Plan


class Ready(NamedTuple):
    """Learners over the rows of a fit, their labels, what is predicted, and weights."""

    learners: Learners
    y: np.ndarray
    target: Target
    weights: Floats


class LearnerEstimator(PlanEstimator):
    """An estimator that weighs learners of a `dictionary` and knows its rows through a design only."""

    dictionary: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = reads_missing(self.dictionary)
        return tags

    def _ready(self, X: Any, y: Any, sample_weight: Any, backend: Any) -> Ready:
        """Checked data as learners. Remote rows stay where they are; labels and weights come."""
        X, y, weights = self._taken(X, y, sample_weight, backend)
        if self.categories_ and self.dictionary is None:
            raise ValueError(
                f"{type(self).__name__} over raw features is linear and cannot read categories as numbers: "
                f"{sorted(self.categories_)}. Give one column per category, or a dictionary of trees."
            )
        target = self._fit_target(y)
        costs, dictionary = self._bound_costs(), self.dictionary
        if isinstance(dictionary, str):
            if isinstance(X, RemoteTable):
                raise ValueError('dictionary="trees" is grown here: give a fitted model of trees for remote rows.')
            dictionary = pooled_trees(costs, X, target.encode(y), weights)
        if isinstance(dictionary, Plan) and isinstance(X, np.ndarray):
            warn_of_seen_rows(dictionary, X, y, "training rows")
        learners = find_learners(dictionary, costs, X, y, weights)
        return Ready(learners, y, target, np.ones(len(y)) if weights is None else weights)

    def _taken(self, X: Any, y: Any, sample_weight: Any, backend: Any) -> tuple[Any, np.ndarray, Floats | None]:
        numeric = self.numeric_labels
        backend = backend_for(X) if backend is None else backend
        if backend is None:
            return self._fit_data(X, y, sample_weight, y_numeric=numeric)
        self._validate_params()
        backend.take(X, y, None, sample_weight, numeric=numeric, missing=reads_missing(self.dictionary))
        self._name_features(backend.shape[1], backend.features)
        self.categories_ = backend.categories
        table = backend.table()
        if numeric:
            check_numbers(table.y)
        return table, table.y, table.weight

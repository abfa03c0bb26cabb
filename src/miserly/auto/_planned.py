"""A fitted model that is one plan: what `choose` gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from miserly.estimators import PlanClassifier, PlanEstimator, PlanRegressor
from miserly.plan import Plan


class _Planned(PlanEstimator):
    """An estimator without parameters that takes over a plan and the columns that it was fitted on."""

    @classmethod
    def of(cls, fitted: Any, plan: Plan) -> Any:
        """The model of a plan, for the data of a fitted estimator."""
        model = cls()
        model.plan_ = plan
        for name in ("categories_", "n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(fitted, name):
                setattr(model, name, getattr(fitted, name))
        return model

    def fit(self, X: Any, y: Any = None) -> Any:
        """Refused: the model was chosen from a frontier, which learns it together with all others."""
        raise TypeError("This model was chosen from a frontier. Fit AutoMiser* again instead, and choose from it.")


class PlannedClassifier(PlanClassifier, _Planned):
    """A classifier that is one plan."""


class PlannedRegressor(PlanRegressor, _Planned):
    """A regressor that is one plan."""


class PlannedRanker(PlanRegressor, _Planned):
    """A ranker that is one plan; gates that compare documents need `qid`."""

    def predict(self, X: Any, qid: Any = None, budget: float | None = None) -> np.ndarray:  # type: ignore[override]
        """Scores to rank by."""
        return self._by_blocks(X, lambda plan, block: plan.rank_score(block, qid, budget))

    def predict_cost(  # type: ignore[override]
        self, X: Any, qid: Any = None, budget: float | None = None, *, prices: Any = None
    ) -> np.ndarray:
        """What each document pays, or with measured `prices` really paid."""
        if prices is not None:
            return self.plan_.predict_cost(self._dense(X), qid, budget, prices=prices)
        return self._by_blocks(X, lambda plan, block: plan.predict_cost(block, qid, budget))

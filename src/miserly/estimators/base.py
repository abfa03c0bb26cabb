"""What all estimators share: the border where data and prices are checked, and predictions read off the plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from miserly.costs import CostTable
from miserly.plan import Plan


class PlanEstimator(BaseEstimator):
    """An estimator whose fitted state is `plan_`. `cost_axis` names the parameter that trades quality for cost."""

    cost_axis: ClassVar[str]
    plan_: Plan

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "plan_")

    def predict(self, X: Any, budget: float | None = None) -> np.ndarray:
        """Answers; with a budget, each row stops before the purchase that would exceed it."""
        return self._fitted_plan().predict(self._checked(X), budget=budget)

    def predict_cost(self, X: Any, budget: float | None = None, charge: str | None = None) -> np.ndarray:
        """What each row pays; `charge` prices whole learners or only the paths walked ("learner", "path")."""
        return self._fitted_plan().predict_cost(self._checked(X), budget=budget, charge=charge)  # type: ignore[arg-type]

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Answers after each stage."""
        plan = self._fitted_plan()
        return (plan.read(stage.z) for stage in plan.stages(self._checked(X)))

    def staged_cost(self, X: Any) -> Iterator[np.ndarray]:
        """What each row has paid after each stage."""
        return (stage.cost for stage in self._fitted_plan().stages(self._checked(X)))

    def _fitted_plan(self) -> Plan:
        check_is_fitted(self)
        return self.plan_

    def _checked(self, X: Any) -> np.ndarray:
        return validate_data(self, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")

    def _fit_data(self, X: Any, y: Any, y_numeric: bool) -> tuple[np.ndarray, np.ndarray]:
        """Check parameters and data; X stays as it is if it is a float array already."""
        self._validate_params()
        return validate_data(
            self, X, y, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan", y_numeric=y_numeric
        )

    def _given_costs(self) -> CostTable:
        """The user's prices; there is no default price."""
        costs: CostTable | None = getattr(self, "costs", None)
        if costs is None:
            raise ValueError(
                f"{type(self).__name__} needs the price of each feature: costs=CostTable.per_feature({{...}}), "
                "CostTable.from_csv(...), or, if all cost the same, costs=CostTable.uniform()."
            )
        return costs

    def _bound_costs(self) -> CostTable:
        """The user's prices in the order of the columns."""
        names = getattr(self, "feature_names_in_", None)
        return self._given_costs().bind(self.n_features_in_ if names is None else [str(n) for n in names])


class PlanRegressor(RegressorMixin, PlanEstimator):
    """A regressor that answers with numbers."""


class PlanClassifier(ClassifierMixin, PlanEstimator):
    """A classifier: labels are part of the plan."""

    classes_: np.ndarray

    def predict_proba(self, X: Any, budget: float | None = None) -> np.ndarray:
        """Probability of each class, in the order of `classes_`."""
        return self._fitted_plan().predict_proba(self._checked(X), budget=budget)

    def decision_function(self, X: Any, budget: float | None = None) -> np.ndarray:
        """Raw scores: one per row for two classes, one per class otherwise."""
        return self._fitted_plan().score(self._checked(X), budget=budget)

    def _find_classes(self, y: np.ndarray) -> np.ndarray:
        """The classes in order; an error if there is only one."""
        check_classification_targets(y)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"y holds one class only, {classes[0]!r} ({type_of_target(y)}): a classifier needs at least two "
                "classes. Give data that has both."
            )
        return classes

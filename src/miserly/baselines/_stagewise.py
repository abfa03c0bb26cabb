"""Stage-wise regression, the cost-blind boosting that all are compared with, whole or on the cheap features only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from miserly.boosting import BinnedData, Loss
from miserly.costs import CostTable
from miserly.estimators import BoostedClassifier, BoostedEstimator, BoostedRegressor, constraints


class _Stagewise(BoostedEstimator):
    """Boosting that does not look at prices; its only way to save is to stop early."""

    cost_axis = "n_estimators"

    def __init__(
        self,
        costs: CostTable | None = None,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_bins: int = 255,
        subsample: float = 1.0,
        max_features: float = 1.0,
        n_iter_no_change: int | None = None,
        loss: str | Loss = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.costs = costs
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_bins = max_bins
        self.subsample = subsample
        self.max_features = max_features
        self.n_iter_no_change = n_iter_no_change
        self.loss = loss
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """Numbers of rounds, from one to all."""
        return np.unique(np.geomspace(1, self.n_estimators, n_points).round().astype(int))


class StagewiseRegressor(_Stagewise, BoostedRegressor):
    """Gradient-boosted trees for numbers, blind to cost."""


class StagewiseClassifier(_Stagewise, BoostedClassifier):
    """Gradient-boosted trees for classes, blind to cost."""


class _FeatureSubset(BoostedEstimator):
    """Cost-blind boosting on the features whose price, all that they need together, is at most `max_price`."""

    cost_axis = "max_price"
    _parameter_constraints: ClassVar[dict[str, Any]] = {"max_price": [constraints.limits(0)]}

    def __init__(
        self,
        costs: CostTable | None = None,
        max_price: float = np.inf,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_bins: int = 255,
        subsample: float = 1.0,
        max_features: float = 1.0,
        n_iter_no_change: int | None = None,
        loss: str | Loss = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.costs = costs
        self.max_price = max_price
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_bins = max_bins
        self.subsample = subsample
        self.max_features = max_features
        self.n_iter_no_change = n_iter_no_change
        self.loss = loss
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """The prices of features, at most `n_points` of them, from the cheapest to the most expensive."""
        costs = self._given_costs()
        prices = np.unique(list(costs.marginal().values())) if costs.each is None else np.array([costs.each])
        return prices[np.unique(np.linspace(0, len(prices) - 1, n_points).round().astype(int))]

    def _usable(self, data: BinnedData, costs: CostTable) -> BinnedData:
        prices = costs.marginal()
        affordable = np.array([prices[f] <= self.max_price for f in costs.features])
        return replace(data, n_bins=np.where(affordable, data.n_bins, 0).astype(data.n_bins.dtype))


class FeatureSubsetRegressor(_FeatureSubset, BoostedRegressor):
    """Gradient-boosted trees for numbers on the features that cost at most `max_price`."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedRegressor._parameter_constraints,
        **_FeatureSubset._parameter_constraints,
    }


class FeatureSubsetClassifier(_FeatureSubset, BoostedClassifier):
    """Gradient-boosted trees for classes on the features that cost at most `max_price`."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedClassifier._parameter_constraints,
        **_FeatureSubset._parameter_constraints,
    }

"""Every public estimator: the cost battery, none of it skipped."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from miserly.baselines import (
    FeatureSubsetClassifier,
    FeatureSubsetRegressor,
    PathTreeClassifier,
    PathTreeRegressor,
    StagewiseClassifier,
    StagewiseRegressor,
)
from miserly.checks import ESTIMATOR_CHECKS, PLAN_CHECKS, check_estimator_costs
from miserly.costs import CostTable
from miserly.estimators import GreedyMiserClassifier, GreedyMiserRanker, GreedyMiserRegressor
from oracles.prices import shared_prices

REGRESSORS = (GreedyMiserRegressor, GreedyMiserRanker, StagewiseRegressor, FeatureSubsetRegressor, PathTreeRegressor)


SETTINGS = {
    "tradeoff": {"tradeoff": 1e-3, "n_estimators": 20},
    "path": {"tradeoff": 1e-3, "n_estimators": 20, "charge": "path", "repeat_price": 0.125},
    "drawn": {"tradeoff": 1e-3, "n_estimators": 20, "subsample": 0.5, "random_state": 3},
    "hinge": {"tradeoff": 1e-3, "n_estimators": 20, "loss": "squared_hinge"},
    "rounds": {"n_estimators": 20},
    "prices": {"max_price": 4.0, "n_estimators": 20},
    "tree": {"tradeoff": 1e-3, "max_leaf_nodes": 12},
}
CASES = [
    *((kind, way) for kind in (GreedyMiserRegressor, GreedyMiserClassifier) for way in ("tradeoff", "path", "drawn")),
    (GreedyMiserRanker, "tradeoff"),
    (GreedyMiserClassifier, "hinge"),
    *((kind, "rounds") for kind in (StagewiseRegressor, StagewiseClassifier)),
    *((kind, "prices") for kind in (FeatureSubsetRegressor, FeatureSubsetClassifier)),
    *((kind, "tree") for kind in (PathTreeRegressor, PathTreeClassifier)),
]
TARGETS = {"numbers": lambda y: y, "two": lambda y: y > 0, "three": lambda y: np.digitize(y, [-0.5, 0.5])}


@pytest.mark.parametrize(
    ("kind", "way", "target"),
    [(kind, way, t) for kind, way in CASES for t in (["numbers"] if kind in REGRESSORS else ["two", "three"])],
)
@pytest.mark.parametrize(
    ("costs", "missing"), [(shared_prices(), 0.1), (CostTable.uniform(), 0.0)], ids=["shared", "uniform"]
)
def test_cost_battery(kind, way, target, missing, costs):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1000, 7))
    y = X[:, 0] + X[:, 3] * X[:, 4] + 0.1 * rng.normal(size=1000)
    X[rng.random(X.shape) < missing] = np.nan
    ran = check_estimator_costs(kind(costs, min_samples_leaf=50, **SETTINGS[way]), X, TARGETS[target](y))
    assert len(ran) == len(ESTIMATOR_CHECKS) == 5
    assert len(PLAN_CHECKS) == 6


def test_an_estimator_that_the_battery_cannot_take_is_refused_by_what_it_lacks():
    class NoPlan(GreedyMiserRegressor):
        def fit(self, X, y):
            return self

    X, y = np.zeros((4, 2)), np.arange(4.0)
    with pytest.raises(TypeError, match="NoPlan has no plan_ after fit"):
        check_estimator_costs(NoPlan(CostTable.uniform()), X, y)
    with pytest.raises(TypeError, match="has no prices"):
        check_estimator_costs(GreedyMiserRegressor(), X, y)
    with pytest.raises(TypeError, match="LinearRegression has no predict_cost, costs"):
        check_estimator_costs(LinearRegression(), X, y)

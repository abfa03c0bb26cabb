"""Anytime models: the cost battery, none of it skipped."""

import numpy as np
import pytest

from miserly.checks import ESTIMATOR_CHECKS, PLAN_CHECKS, check_estimator_costs
from miserly.costs import CostTable
from miserly.estimators import AFRClassifier, AnytimeMiserClassifier, AnytimeMiserRegressor
from oracles.prices import shared_prices

UNIFORM = CostTable.uniform()
AFR = {"n_dims": 3, "n_trees_per_dim": 2, "n_levels": 8}
MISER = {"n_estimators": 5}


TARGETS = {"numbers": lambda y: y, "two": lambda y: y > 0, "three": lambda y: np.digitize(y, [-0.5, 0.5])}
SHARED = shared_prices()
MODELS = [  # gradients of the first trees have two values: in small leaves splits tie between features
    (AFRClassifier(SHARED, budget=9.0, random_state=0, min_samples_leaf=60, **AFR), "two"),
    (AFRClassifier(UNIFORM, budget=5.0, random_state=0, max_depth=2, min_samples_leaf=60, **AFR), "three"),
    (AnytimeMiserRegressor(UNIFORM, budget=5.0, min_samples_leaf=60, **MISER), "numbers"),
    (AnytimeMiserClassifier(SHARED, budget=9.0, min_samples_leaf=60, **MISER), "two"),
    (AnytimeMiserClassifier(UNIFORM, budget=5.0, min_samples_leaf=60, loss="squared_hinge", **MISER), "three"),
]


@pytest.mark.parametrize(("model", "target"), MODELS, ids=[f"{type(m).__name__}-{t}" for m, t in MODELS])
def test_cost_battery(model, target):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 7))
    y = X[:, 0] + X[:, 3] * X[:, 4] + 0.1 * rng.normal(size=500)
    X[rng.random(X.shape) < 0.05] = np.nan
    ran = check_estimator_costs(model, X, TARGETS[target](y))
    assert len(ran) == len(ESTIMATOR_CHECKS) == 5
    assert len(PLAN_CHECKS) == 6
    assert len(model.fit(X, TARGETS[target](y)).plan_.nodes) > 1

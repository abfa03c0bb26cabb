"""Baselines for two classes: the cost battery, none of it skipped."""

import numpy as np
import pytest

from miserly.baselines import AdaBoostRSClassifier, AndOrCascadeClassifier, SoftCascadeClassifier
from miserly.checks import ESTIMATOR_CHECKS, PLAN_CHECKS, check_estimator_costs
from miserly.costs import CostTable
from miserly.estimators import GreedyMiserRegressor
from oracles.prices import shared_prices

UNIFORM = CostTable.uniform()


TREES = GreedyMiserRegressor(n_estimators=20, max_depth=1, min_samples_leaf=60, tradeoff=0.0)
MODELS = {
    "and or": AndOrCascadeClassifier(class_weight="balanced"),
    "minimum": AndOrCascadeClassifier(negatives="minimum", cost_weight=0.01),
    "and or, trees": AndOrCascadeClassifier(dictionary=TREES, cost_weight=0.05),
    "soft": SoftCascadeClassifier(class_weight="balanced"),
    "soft, trees": SoftCascadeClassifier(dictionary=TREES, cost_weight=0.3),
    "adaboost": AdaBoostRSClassifier(budget=8.0, n_estimators=20, min_samples_leaf=60, random_state=0),
}


SLOW = ("minimum", "and or, trees")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in MODELS])
@pytest.mark.parametrize(
    "costs",
    [
        pytest.param(shared_prices(last_is_free=True), id="shared"),
        pytest.param(UNIFORM, id="uniform", marks=pytest.mark.slow),
    ],
)
def test_cost_battery(name, costs):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 7)) @ rng.normal(size=(7, 7)) + 3
    y = X[:, 0] + X[:, 3] * np.sign(X[:, 4]) + 0.1 * rng.normal(size=400) > 2
    model = MODELS[name].set_params(costs=costs)
    ran = check_estimator_costs(model, X, y)
    assert len(ran) == len(ESTIMATOR_CHECKS) == 5
    assert len(PLAN_CHECKS) == 6
    fitted = model.set_params(costs=costs.bind(7)).fit(X, y)
    assert fitted.plan_.nodes
    if costs is not UNIFORM and name != "adaboost":
        assert len(np.unique(fitted.plan_.run(X).exit)) > 1

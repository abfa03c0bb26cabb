"""Trees and cascades of classifiers: the cost battery, none of it skipped."""

import numpy as np
import pytest

from miserly.checks import ESTIMATOR_CHECKS, PLAN_CHECKS, check_estimator_costs
from miserly.costs import CostTable
from miserly.estimators import GreedyMiserRegressor
from miserly.estimators.cronus._cronus import CronusClassifier, CronusRegressor
from miserly.estimators.cstc._cscc import CSCCClassifier
from miserly.estimators.cstc._cstc import CSTCClassifier, CSTCRegressor
from oracles.prices import shared_prices

UNIFORM = CostTable.uniform()
TARGETS_OF = {
    CSTCRegressor: ["numbers"],
    CSTCClassifier: ["two", "three"],
    CSCCClassifier: ["two", "three"],
    CronusRegressor: ["numbers"],
    CronusClassifier: ["two"],
}


def short(kind, n_stages):
    if kind in (CronusRegressor, CronusClassifier):
        return {"n_stages": n_stages, "max_iter": 1}
    return {} if kind is CSCCClassifier else {"max_depth": 2}


# leaves of 60 rows: splits of small leaves tie between features, and then a permuted dictionary is another one
TARGETS = {"numbers": lambda y: y, "two": lambda y: y > 2, "three": lambda y: np.digitize(y, [-2.0, 2.0])}
TREES = GreedyMiserRegressor(n_estimators=15, min_samples_leaf=60, tradeoff=0.0)
SETTINGS = {"raw": {}, "trees": {"dictionary": TREES}}


@pytest.mark.parametrize(
    ("kind", "target"),
    [(kind, target) for kind, targets in TARGETS_OF.items() for target in targets],
)
@pytest.mark.parametrize(
    ("costs", "way"),
    [
        pytest.param(shared_prices(last_is_free=True), "raw", id="shared"),
        pytest.param(shared_prices(last_is_free=True), "trees", id="shared trees"),
        pytest.param(UNIFORM, "raw", id="uniform", marks=pytest.mark.slow),
    ],
)
def test_cost_battery(kind, target, costs, way):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 7)) @ rng.normal(size=(7, 7)) + 3
    y = X[:, 0] + X[:, 3] * np.sign(X[:, 4]) + 0.1 * rng.normal(size=400)
    model = kind(costs, tradeoff=0.001, **SETTINGS[way], **short(kind, 3))
    ran = check_estimator_costs(model, X, TARGETS[target](y))
    assert len(ran) == len(ESTIMATOR_CHECKS) == 5
    assert len(PLAN_CHECKS) == 6
    fitted = model.set_params(costs=costs.bind(7)).fit(X, TARGETS[target](y))
    assert len(np.unique(fitted.plan_.run(X).exit)) > 1

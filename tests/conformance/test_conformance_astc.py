"""ASTC: the cost battery, none of it skipped."""

import numpy as np
import pytest

from miserly.checks import ESTIMATOR_CHECKS, PLAN_CHECKS, check_estimator_costs
from miserly.costs import CostTable
from miserly.estimators import ASTCClassifier, ASTCRegressor, GreedyMiserClassifier, GreedyMiserRegressor
from oracles.prices import shared_prices

UNIFORM = CostTable.uniform()


def rows(n_rows, missing=0.0):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 7)) @ rng.normal(size=(7, 7)) + 5
    y = X[:, 0] + np.abs(X[:, 3]) * 0.5 + X[:, 6] + 0.3 * rng.normal(size=n_rows)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


TARGETS = {
    "numbers": lambda y: y,
    "two": lambda y: y > np.median(y),
    "three": lambda y: np.digitize(y, np.quantile(y, [0.3, 0.7])),
}
MODELS = [
    (ASTCRegressor(node_budget=3.0), "numbers"),
    (ASTCRegressor(node_budget=np.array([2.5, 1.0, 4.0]), soft=True), "numbers"),
    (ASTCClassifier(node_budget=3.0), "two"),
    (ASTCClassifier(node_budget=3.0, threshold="half", penalty=0), "three"),
]


@pytest.mark.parametrize(("model", "target"), MODELS, ids=repr)
@pytest.mark.parametrize("n_rows", [1000, 40])
@pytest.mark.parametrize(
    "costs",
    [shared_prices(0.0, last_is_free=True), shared_prices(0.01, last_is_free=True), UNIFORM],
    ids=["shared", "fees", "uniform"],
)
def test_cost_battery(model, target, n_rows, costs):
    X, y = rows(n_rows)
    ran = check_estimator_costs(model.set_params(costs=costs), X, TARGETS[target](y))
    assert len(ran) == len(ESTIMATOR_CHECKS) == 5
    assert len(PLAN_CHECKS) == 6


@pytest.mark.parametrize(
    ("model", "inner", "target"),
    [
        (ASTCRegressor(node_budget=6.0), GreedyMiserRegressor, "numbers"),
        (ASTCClassifier(node_budget=6.0), GreedyMiserClassifier, "two"),
        (ASTCClassifier(node_budget=6.0), GreedyMiserClassifier, "three"),
    ],
)
@pytest.mark.parametrize("evaluation", [pytest.param(0.0, marks=pytest.mark.slow), 0.01])
def test_cost_battery_over_trees(model, inner, target, evaluation):
    """The inner model is blind to cost, so that the unit of the prices does not change its trees."""
    X, y = rows(1000, missing=0.1)
    trees = inner(UNIFORM, tradeoff=0.0, n_estimators=20, max_depth=2, min_samples_leaf=50)
    model = model.set_params(costs=shared_prices(evaluation, last_is_free=True), dictionary=trees)
    check_estimator_costs(model, X, TARGETS[target](y))
    assert len(model.fit(X, TARGETS[target](y)).plan_.nodes) > 1

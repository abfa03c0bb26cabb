"""Every public estimator: scikit-learn's own checks and the cost battery, none of them skipped."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from miserly.checks import ESTIMATOR_CHECKS, PLAN_CHECKS, check_estimator_costs
from miserly.costs import CostTable
from miserly.estimators import GreedyMiserClassifier, GreedyMiserRanker, GreedyMiserRegressor

SKLEARN_CHECKS = {GreedyMiserRegressor: 59, GreedyMiserRanker: 59, GreedyMiserClassifier: 62}


@pytest.mark.parametrize("kind", SKLEARN_CHECKS, ids=lambda kind: kind.__name__)
def test_scikit_learns_contract(kind):
    results = check_estimator(kind(CostTable.uniform()), on_fail=None, on_skip=None)
    wrong = [(r["check_name"], r["status"], r["exception"]) for r in results if r["status"] != "passed"]
    assert not wrong
    assert len(results) == SKLEARN_CHECKS[kind]


def shared_prices():
    """Seven features in three groups, with a price for each and one for the group."""
    return CostTable(
        features=[f"x{i}" for i in range(7)],
        needs={f"x{i}": [f"own{i}", f"group{i // 3}"] for i in range(7)},
        prices={**{f"own{i}": 0.3 + i for i in range(7)}, **{f"group{i}": 1.7 for i in range(3)}},
        evaluation=0.01,
    )


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (GreedyMiserRegressor, lambda y: y),
        (GreedyMiserRanker, lambda y: y),
        (GreedyMiserClassifier, lambda y: y > 0),
        (GreedyMiserClassifier, lambda y: np.digitize(y, [-0.5, 0.5])),
    ],
)
@pytest.mark.parametrize("costs", [shared_prices(), CostTable.uniform()], ids=["shared", "uniform"])
def test_cost_battery(kind, target, missing, costs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 7))
    y = X[:, 0] + X[:, 3] * X[:, 4] + 0.1 * rng.normal(size=1000)
    X[rng.random(X.shape) < missing] = np.nan
    ran = check_estimator_costs(kind(costs, tradeoff=1e-3, n_estimators=20, min_samples_leaf=50), X, target(y))
    assert len(ran) == len(ESTIMATOR_CHECKS) == 5
    assert len(PLAN_CHECKS) == 6

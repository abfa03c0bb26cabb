"""Active models: the cost battery, none of it skipped."""

import numpy as np
import pytest

from miserly.checks import ESTIMATOR_CHECKS, PLAN_CHECKS, check_estimator_costs
from miserly.costs import CostTable
from miserly.estimators import ActiveClassifier, ActiveRegressor
from oracles.prices import shared_prices

UNIFORM = CostTable.uniform()


TARGETS = {"numbers": lambda y: y, "two": lambda y: y > 0, "three": lambda y: np.digitize(y, [-0.5, 0.5])}
SMALL = {"n_estimators": 6, "tradeoff": 0.02, "n_folds": 2}
STEADY = {**SMALL, "lookahead": False, "min_samples_leaf": 40}  # in small leaves splits tie between features


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("costs", "missing"), [(shared_prices(), 0.1), (UNIFORM, 0.0)], ids=["shared prices", "uniform"]
)
def test_cost_battery(target, costs, missing):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 7))
    y = X[:, 0] + X[:, 3] * X[:, 4] + 0.1 * rng.normal(size=500)
    X[rng.random(X.shape) < missing] = np.nan
    kind = ActiveRegressor if target == "numbers" else ActiveClassifier
    assert len(check_estimator_costs(kind(costs, **STEADY), X, TARGETS[target](y))) == len(ESTIMATOR_CHECKS) == 5
    assert len(PLAN_CHECKS) >= 6

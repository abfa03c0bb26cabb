"""The linear baselines: the cost battery, none of it skipped."""

import numpy as np
import pytest

from miserly.baselines import CostWeightedL1Classifier, CostWeightedL1Regressor, LinearSVM
from miserly.checks import ESTIMATOR_CHECKS, PLAN_CHECKS, check_estimator_costs
from miserly.costs import CostTable
from oracles.prices import shared_prices

MODELS = [
    *(CostWeightedL1Regressor(tradeoff=0.03, refit=refit) for refit in (True, False)),
    *(CostWeightedL1Classifier(tradeoff=0.03, refit=refit) for refit in (True, False)),
    LinearSVM(C=0.1),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_rows", [1000, 40])
@pytest.mark.parametrize("costs", [shared_prices(last_is_free=True), CostTable.uniform()], ids=["shared", "uniform"])
def test_cost_battery(model, n_classes, n_rows, costs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 7)) @ rng.normal(size=(7, 7)) + 5
    y = X[:, 0] + X[:, 3] * 0.5 + X[:, 6] + 0.3 * rng.normal(size=n_rows)
    target = (
        y if isinstance(model, CostWeightedL1Regressor) else np.digitize(y, np.quantile(y, [0.4, 0.7][: n_classes - 1]))
    )
    ran = check_estimator_costs(model.set_params(costs=costs), X, target)
    assert len(ran) == len(ESTIMATOR_CHECKS) == 5
    assert len(PLAN_CHECKS) == 6

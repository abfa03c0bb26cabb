"""Kernel machines: the cost battery, none of it skipped."""

import numpy as np
import pytest

from miserly.baselines import ReducedSVC
from miserly.checks import ESTIMATOR_CHECKS, PLAN_CHECKS, check_estimator_costs
from miserly.costs import CostTable
from miserly.estimators import CompressedSVC
from oracles.prices import shared_prices

QUICK = {"n_starts": 1, "max_iter": 5}


MODELS = [
    CompressedSVC(n_vectors=7, **QUICK),
    CompressedSVC(n_vectors=9, kernel="poly", degree=2, coef0=1.0, n_stages=2, confidence=0.8, **QUICK),
    CompressedSVC(budget=40.0, init="random", **QUICK),
    ReducedSVC(n_vectors=6),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_cost_battery(model, n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 7))
    y = np.digitize(X[:, 0] + X[:, 3] * X[:, 4] + 0.1 * rng.normal(size=200), [-0.4, 0.7][: n_classes - 1])
    ran = check_estimator_costs(model.set_params(costs=shared_prices(1.0)), X, y)
    assert len(ran) == len(ESTIMATOR_CHECKS) == 5
    assert len(PLAN_CHECKS) == 6


def test_without_prices_a_row_pays_by_evaluation():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    model = CompressedSVC(n_vectors=5, **QUICK).fit(X, X[:, 0] > 0)
    assert model.plan_.costs.unit == "kernel evaluations"
    np.testing.assert_array_equal(model.predict_cost(X), np.full(60, 5.0))
    priced = CompressedSVC(n_vectors=5, costs=CostTable.uniform(2.0), **QUICK).fit(X, X[:, 0] > 0)
    np.testing.assert_array_equal(priced.predict_cost(X), np.full(60, 6.0))

"""Active models: scikit-learn's own checks and the cost battery, none of them skipped."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from miserly.checks import ESTIMATOR_CHECKS, PLAN_CHECKS, check_estimator_costs
from miserly.costs import CostTable
from miserly.estimators import ActiveClassifier, ActiveRegressor
from oracles.prices import shared_prices

UNIFORM = CostTable.uniform()
REASON = "states are drawn for each row: a row of weight two and the same row twice are in different states"
EXPECTED = dict.fromkeys([f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")], REASON)


@pytest.mark.parametrize(("kind", "n_checks"), [(ActiveClassifier, 62), (ActiveRegressor, 59)])
def test_scikit_learns_contract(kind, n_checks):
    model = kind(UNIFORM, n_estimators=10, n_folds=2, min_samples_leaf=1, n_rounds=1, lookahead=False)
    results = check_estimator(model, on_fail=None, on_skip=None, expected_failed_checks=EXPECTED)
    wrong = [(r["check_name"], r["status"], r["exception"]) for r in results if r["status"] not in ("passed", "xfail")]
    assert not wrong
    assert [r["check_name"] for r in results if r["status"] == "xfail"] == list(EXPECTED)
    assert len(results) == n_checks


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

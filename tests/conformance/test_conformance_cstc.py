"""Trees and cascades of classifiers: scikit-learn's own checks and the cost battery, none of them skipped."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from miserly.checks import ESTIMATOR_CHECKS, PLAN_CHECKS, check_estimator_costs
from miserly.costs import CostTable
from miserly.estimators import GreedyMiserRegressor
from miserly.estimators.cronus._cronus import CronusClassifier, CronusRegressor
from miserly.estimators.cstc._cscc import CSCCClassifier
from miserly.estimators.cstc._cstc import CSTCClassifier, CSTCRegressor
from oracles.prices import shared_prices

UNIFORM = CostTable.uniform()
SKLEARN_CHECKS = {CSTCRegressor: 60, CSTCClassifier: 63, CSCCClassifier: 64, CronusRegressor: 60, CronusClassifier: 65}
DRAWN = "rows that choose the steepness are drawn, and a row that stands twice is drawn twice as often"
WEIGHTS = {f"check_sample_weight_equivalence_on_{kind}_data": DRAWN for kind in ("dense", "sparse")}
EXPECTED = {CronusRegressor: WEIGHTS, CronusClassifier: WEIGHTS}
TARGETS_OF = {
    CSTCRegressor: ["numbers"],
    CSTCClassifier: ["two", "three"],
    CSCCClassifier: ["two", "three"],
    CronusRegressor: ["numbers"],
    CronusClassifier: ["two"],
}


def short(kind, n_stages):
    return {"n_stages": n_stages, "max_iter": 1} if kind in (CronusRegressor, CronusClassifier) else {}


@pytest.mark.parametrize("kind", SKLEARN_CHECKS, ids=lambda kind: kind.__name__)
def test_scikit_learns_contract(kind):
    model, expected = kind(UNIFORM, **short(kind, 2)), EXPECTED.get(kind, {})
    results = check_estimator(model, expected_failed_checks=expected, on_fail=None, on_skip=None)
    wrong = [(r["check_name"], r["status"], r["exception"]) for r in results if r["status"] not in ("passed", "xfail")]
    assert not wrong
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(expected)
    assert len(results) == SKLEARN_CHECKS[kind]


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

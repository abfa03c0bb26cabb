"""Kernel machines: scikit-learn's own checks and the cost battery, none of them skipped."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from miserly.baselines import ReducedSVC
from miserly.checks import ESTIMATOR_CHECKS, PLAN_CHECKS, check_estimator_costs
from miserly.costs import CostTable
from miserly.estimators import CompressedSVC
from oracles.prices import shared_prices

QUICK = {"n_starts": 1, "max_iter": 5}
REPEATED = (
    "LibSVM's own answer for a row of weight two is that for two rows only to its tolerance; ours moves on from it"
)
DRAWN = "vectors are drawn among the rows, and a row that stands twice is drawn twice as often"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": REPEATED,
    "check_sample_weight_equivalence_on_sparse_data": REPEATED,
}


@pytest.mark.parametrize(
    ("model", "expected", "n_checks"),
    [
        (CompressedSVC(ratio=0.3, **QUICK), EXPECTED, 63),
        (
            CompressedSVC(ratio=0.3, n_stages=2, kernel="poly", degree=2, coef0=1.0, **QUICK),
            EXPECTED,
            63,
        ),
        (ReducedSVC(), dict.fromkeys(EXPECTED, DRAWN), 63),
        (ReducedSVC(selection="random"), dict.fromkeys(EXPECTED, DRAWN), 63),
    ],
    ids=["compressed", "cascade", "reduced", "nystrom"],
)
def test_scikit_learns_contract(model, expected, n_checks):
    results = check_estimator(model, expected_failed_checks=expected, on_fail=None, on_skip=None)
    wrong = {r["check_name"]: (r["status"], r["exception"]) for r in results if r["status"] not in ("passed", "xfail")}
    assert not wrong
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(expected)
    assert len(results) == n_checks


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

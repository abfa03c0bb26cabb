"""Early exits: the cost battery, none of it skipped."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_methods_subset_invariance

from miserly.baselines import EarlyExitClassifier, EarlyExitRanker
from miserly.checks import ESTIMATOR_CHECKS, PLAN_CHECKS, check_estimator_costs
from miserly.costs import CostTable
from miserly.estimators import GreedyMiserClassifier, GreedyMiserRanker, GreedyMiserRegressor
from oracles.prices import shared_prices

UNIFORM = CostTable.uniform()


@pytest.mark.parametrize("rule", ["proximity", "rank", "capacity", "score"])
def test_a_part_of_a_query_is_another_query(rule):
    """scikit-learn's check passes above only because its 20 rows make no tree with leaves of 20."""
    inner = GreedyMiserRanker(UNIFORM, n_estimators=25, min_samples_leaf=1)
    model = EarlyExitRanker(inner, rule=rule, threshold=0.9, exits=4)
    if rule == "score":
        check_methods_subset_invariance("EarlyExitRanker", model)
    else:
        with pytest.raises(AssertionError, match="not invariant"):
            check_methods_subset_invariance("EarlyExitRanker", model)


BLIND = {"tradeoff": 0.0, "n_estimators": 20, "min_samples_leaf": 50}


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (EarlyExitRanker(GreedyMiserRanker(**BLIND), threshold=0.5, exits=4), lambda y: y),
        (EarlyExitRanker(GreedyMiserRegressor(**BLIND), rule="rank", threshold=200.0, exits=4), lambda y: y),
        (EarlyExitRanker(GreedyMiserRanker(**BLIND), rule="capacity", threshold=20.0, exits=4), lambda y: y),
        (EarlyExitRanker(GreedyMiserRanker(**BLIND), rule="score", threshold=0.2, exits=4), lambda y: y),
        (EarlyExitClassifier(GreedyMiserClassifier(**BLIND), threshold=0.7, exits=4), lambda y: y > 0),
        (
            EarlyExitClassifier(GreedyMiserClassifier(**BLIND), threshold=0.5, exits=4),
            lambda y: np.digitize(y, [-0.5, 0.5]),
        ),
        (EarlyExitClassifier(GreedyMiserClassifier(**BLIND), rule="score", threshold=0.9, exits=4), lambda y: y > 1),
    ],
)
@pytest.mark.parametrize(("costs", "missing"), [(shared_prices(), 0.1), (UNIFORM, 0.0)], ids=["shared", "uniform"])
def test_cost_battery(model, target, missing, costs):
    """The bars lie on the scale of scores, so that the unit of the prices changes no exit: the inner model is blind."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1000, 7))
    y = X[:, 0] + X[:, 3] * X[:, 4] + 0.1 * rng.normal(size=1000)
    X[rng.random(X.shape) < missing] = np.nan
    ran = check_estimator_costs(model.set_params(costs=costs), X, target(y))
    assert len(ran) == len(ESTIMATOR_CHECKS) == 5
    assert len(PLAN_CHECKS) == 6
    fitted = model.fit(X, target(y))
    assert len(np.unique(fitted.plan_.run(X).exit)) > 1

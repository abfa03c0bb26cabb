"""A cap for each row: it holds, what is free counts, and a plan that is too expensive is not useless."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from miserly import AutoMiserClassifier, CostTable

PRICES = {"age": 0.0, "pulse": 1.0, "blood": 3.0, "scan": 9.0, "biopsy": 20.0}
CAPS = (0.0, 0.5, 1.0, 3.0, 5.0, 8.0, 14.0, 40.0)


def patients(n, seed):
    """A skewed class; each result says more than the cheaper ones, and some are missing."""
    rng = np.random.default_rng(seed)
    illness = rng.normal(size=n)
    X = np.stack([illness + rng.normal(size=n) * noise for noise in (2.5, 2.0, 1.2, 0.8, 0.5)], axis=1)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, (illness + 0.3 * rng.normal(size=n) > 1.0).astype(int)


@pytest.fixture(scope="module")
def fitted():
    return AutoMiserClassifier(CostTable.per_feature(PRICES), time_limit=None, random_state=0).fit(*patients(700, 0))


def auc(model, X, y, budget):
    return roc_auc_score(y, model.predict_proba(X, budget=budget)[:, 1])


def test_every_model_but_the_constant_has_what_is_free(fitted):
    for point in fitted.frontier_.points:
        if point.validation.cost["max"] > 0:
            assert 0 in point.model.plan_.used_features


def test_caps_hold_and_more_is_not_worse(fitted):
    X, y = patients(3000, 1)
    cheapest = min(p.validation.cost["mean"] for p in fitted.frontier_.points if p.validation.cost["mean"] > 0)
    least = auc(fitted.frontier_.choose(budget=cheapest), X, y, None)
    found = []
    for cap in CAPS:
        assert fitted.predict_cost(X, budget=cap).max() <= cap
        found.append(auc(fitted, X, y, cap))
    assert found[0] > 0.55  # age alone
    assert all(b > a - 0.02 for a, b in pairwise(found))
    assert auc(fitted, X, y, 5.0) > least - 0.01


def test_any_plan_of_the_frontier_answers_under_a_cap_with_what_fits(fitted):
    X, y = patients(3000, 1)
    for point in fitted.frontier_.points:
        plan = point.model.plan_
        if plan.nodes:
            for cap in (0.0, 5.0):
                answers = plan.predict_proba(X, budget=cap)[:, 1]
                assert plan.predict_cost(X, budget=cap).max() <= cap
                assert roc_auc_score(y, answers) > 0.6


def test_the_constant_tells_nobody_apart(fitted):
    assert fitted.metric_.name == "auc"
    assert fitted.frontier_.points[0].validation.quality == 0.5

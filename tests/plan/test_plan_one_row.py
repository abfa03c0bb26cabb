"""A matrix of one row takes a short way where the plan is a sum of trees: the bits of the batch all the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import miserly as ms
from oracles.hand_built import PLANS, rows
from oracles.random_plans import random_plan, random_rows


def assert_rows_are_the_batch(plan, X):
    batch = plan.run(X)
    for i in range(len(X)):
        x = np.ascontiguousarray(X[i : i + 1])
        score = np.atleast_2d(plan.score(x))
        np.testing.assert_array_equal(score.reshape(1, -1), batch.score[i : i + 1])
        np.testing.assert_array_equal(plan.predict(x), plan.read(batch.z[i : i + 1]))
        if plan.classes is not None:
            np.testing.assert_array_equal(plan.predict_proba(x), plan.probabilities(batch.z[i : i + 1]))


@pytest.mark.parametrize("name", [name for name in PLANS if not PLANS[name]().by_query])
def test_hand_built_plans(name):
    plan = PLANS[name]()
    assert_rows_are_the_batch(
        plan, rows(5, 3, 0.2 if plan.dictionary.kind == "trees" else 0.0, len(plan.costs.features))
    )


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_random_plans(seed):
    plan = random_plan(seed)
    if not plan.by_query:
        assert_rows_are_the_batch(plan, random_rows(plan, seed, 4)[0])


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_boosted_plans_take_the_short_way(n_classes):
    X = np.random.default_rng(0).normal(size=(200, 6))
    X[::7, 2] = np.nan
    y = np.nan_to_num(X[:, 0] * X[:, 1] + X[:, 2])
    kind = ms.GreedyMiserRegressor if n_classes == 1 else ms.GreedyMiserClassifier
    target = y if n_classes == 1 else np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    plan = kind(ms.CostTable.uniform(6), n_estimators=12).fit(X, target).plan_
    assert plan.tables.one_row is not None
    assert_rows_are_the_batch(plan, X[:20])
    x = X[:1]
    for other in (x.astype(np.float32), x.tolist(), np.asfortranarray(np.repeat(x, 2, axis=1))[:, ::2]):
        assert plan.predict(other) == plan.predict(x)
    with pytest.raises(ValueError, match="reads 6 features"):
        plan.predict(x[:, :5])
    assert replace(plan, unavailable=(plan.costs.features[0],)).tables.one_row is None

"""The batch run equals the slow executor: scores, costs, exits and tiers, to the last bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miserly.plan import Gate, Node, Plan
from oracles.executor import assert_run_is, cost, execute, label, probabilities
from oracles.hand_built import PLANS, rows
from oracles.random_plans import random_budgets, random_plan, random_rows

SEEDS = st.integers(0, 2**32 - 1)
hand_built = pytest.mark.parametrize("name", PLANS)


def data_for(plan, n=40, missing=0.0, seed=3):
    X = rows(n, seed, missing if plan.dictionary.kind == "trees" else 0.0, len(plan.costs.features))
    return X, np.arange(n) * 7 % 5


@hand_built
@pytest.mark.parametrize("charge", ["learner", "path"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_run_equals_the_slow_executor(name, charge, missing):
    plan = PLANS[name]()
    X, qid = data_for(plan, missing=missing)
    assert_run_is(plan, plan.run(X, qid, charge=charge), execute(plan, X, qid, charge=charge))


@hand_built
@pytest.mark.parametrize("charge", ["learner", "path"])
def test_a_run_within_a_budget_equals_the_slow_executor(name, charge):
    plan = PLANS[name]()
    X, qid = data_for(plan, n=25, missing=0.1)
    for budget in random_budgets(plan, X, qid, 5, charge):
        expected = execute(plan, X, qid, budget, charge)
        assert_run_is(plan, plan.run(X, qid, budget, charge), expected)


def check_random_plan(seed, charge):
    plan = random_plan(seed)
    X, qid = random_rows(plan, seed)
    assert_run_is(plan, plan.run(X, qid, charge=charge), execute(plan, X, qid, charge=charge))
    for budget in random_budgets(plan, X, qid, seed, charge)[:4]:
        assert_run_is(plan, plan.run(X, qid, budget, charge), execute(plan, X, qid, budget, charge))


@settings(max_examples=250, deadline=None)
@given(SEEDS, st.sampled_from(["learner", "path"]))
def test_random_plans_equal_the_slow_executor(seed, charge):
    check_random_plan(seed, charge)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None)
@given(SEEDS, st.sampled_from(["learner", "path"]))
def test_random_plans_equal_the_slow_executor_at_length(seed, charge):
    check_random_plan(seed, charge)


@hand_built
def test_answers_and_probabilities_are_read_from_the_scores(name):
    plan = PLANS[name]()
    X, qid = data_for(plan)
    done = execute(plan, X, qid)
    np.testing.assert_array_equal(plan.predict(X, qid), np.array([label(plan, r.z) for r in done]))
    np.testing.assert_array_equal(plan.predict_cost(X, qid), [cost(plan, r) for r in done])
    score = plan.score(X, qid)
    assert score.shape == ((len(X),) if plan.n_outputs == 1 else (len(X), plan.n_outputs))
    if plan.classes is not None:
        rtol = 1e-15 if plan.link != "coupled" else 1e-4  # which is found by iteration
        np.testing.assert_allclose(plan.predict_proba(X, qid), [probabilities(plan, r.z) for r in done], rtol=rtol)


@hand_built
def test_single_precision_rows_are_read_as_they_are(name):
    plan = PLANS[name]()
    X, qid = data_for(plan)
    X = X.astype(np.float32)
    assert_run_is(plan, plan.run(X, qid), execute(plan, X, qid))


@hand_built
def test_no_rows_give_no_answers(name):
    plan = PLANS[name]()
    X = np.zeros((0, len(plan.costs.features)))
    for budget in (None, 1.0):
        result = plan.run(X, budget=budget)
        assert result.score.shape == (0, plan.n_outputs)
        assert result.cost.shape == (0,)


def test_the_bias_of_the_first_node_of_a_joined_run_is_kept():
    plan = PLANS["anytime"]()
    X = np.zeros((2, 8))
    np.testing.assert_array_equal(plan.run(X).score, [[1.75], [1.75]])
    np.testing.assert_array_equal(plan.run(X, budget=1e9).score, [[1.75], [1.75]])


def test_every_output_of_a_joined_run_is_read_through_its_own_calibration():
    plan = PLANS["platt"]()
    X, _ = data_for(plan)
    np.testing.assert_array_equal(plan.run(X).z, plan.run(X, budget=1e9).z)


def test_features_that_need_nothing_are_free():
    from dataclasses import replace

    plan = PLANS["cascade"]()
    costs = replace(plan.costs, needs={**plan.costs.needs, "age": (), "sex": ()}, evaluation=0.0)
    plan = replace(plan, costs=costs)
    X, _ = data_for(plan)
    assert (plan.run(X, budget=0.0).exit == 0).all()
    assert_run_is(plan, plan.run(X), execute(plan, X))


def test_a_plan_with_ten_classes_one_against_the_rest_is_as_sure_alone_as_in_company():
    rng = np.random.default_rng(0)
    costs, raw = PLANS["cascade"]().costs, PLANS["cascade"]().dictionary
    node = Node(
        np.arange(8), rng.normal(size=(8, 10)), 0.0, tuple(range(10)), gate=Gate.unless_confident(0.2), passed=1
    )
    last = Node([], [], 1.0, (0,))
    plan = Plan(costs, raw, (node, last), np.zeros(10), "logistic", np.arange(10))
    X = rng.normal(size=(300, 8))
    together = plan.predict_proba(X)
    alone = np.vstack([plan.predict_proba(x[None]) for x in X])
    np.testing.assert_array_equal(together, alone)

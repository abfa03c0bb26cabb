"""What is not paid for does not matter; a budget is kept; a plan cut to a budget answers as within it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miserly.plan import Gate, Node, Plan
from miserly.plan._run import Run, _Batch
from oracles.executor import cut_or_refused, execute, features_bought
from oracles.hand_built import COSTS, PLANS, RAW, rows
from oracles.random_plans import random_budgets, random_plan, random_rows

SEEDS = st.integers(0, 2**32 - 1)
CHARGES = pytest.mark.parametrize("charge", ["learner", "path"])


def assert_same(a: Run, b: Run):
    for name in Run.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def poisoned(plan, X, qid, budget, charge, poison):
    """X with everything that a row did not pay for replaced."""
    done = execute(plan, X, qid, budget, charge)
    Z = np.full_like(X, poison)
    for i, row in enumerate(done):
        paid = [plan.costs.features.index(f) for f in features_bought(plan, row)]
        Z[i, paid] = X[i, paid]
    return Z


@pytest.mark.parametrize("name", PLANS)
@CHARGES
@pytest.mark.parametrize("poison", [np.nan, 1e300, -np.inf])
def test_values_not_paid_for_change_nothing(name, charge, poison):
    plan = PLANS[name]()
    X, qid = rows(20, 6, n_features=len(plan.costs.features)), np.arange(20) % 3
    for budget in [None, *random_budgets(plan, X, qid, 2, charge)[1:3]]:
        Z = poisoned(plan, X, qid, budget, charge, poison)
        assert_same(plan.run(Z, qid, budget, charge), plan.run(X, qid, budget, charge))


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.sampled_from(["learner", "path"]))
def test_values_not_paid_for_change_nothing_in_random_plans(seed, charge):
    plan = random_plan(seed)
    X, qid = random_rows(plan, seed)
    for budget in [None, *random_budgets(plan, X, qid, seed, charge)[1:3]]:
        Z = poisoned(plan, X, qid, budget, charge, np.nan)
        assert_same(plan.run(Z, qid, budget, charge), plan.run(X, qid, budget, charge))


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.sampled_from(["learner", "path"]), st.floats(-1, 30))
def test_a_budget_is_never_exceeded(seed, charge, budget):
    plan = random_plan(seed)
    X, qid = random_rows(plan, seed)
    result = plan.run(X, qid, budget, charge)
    assert (result.cost <= max(budget, 0.0)).all()
    if not result.out_of_budget.any():
        assert_same(result, plan.run(X, qid, None, charge))


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.sampled_from(["learner", "path"]))
def test_joined_nodes_give_the_same_bits(seed, charge):
    plan = random_plan(seed)
    X, qid = random_rows(plan, seed)
    query = np.unique(qid, return_inverse=True)[1]
    one, two, three = (_Batch(plan.tables.program(j), X, query, np.inf, charge).run() for j in ("none", "free", "all"))
    assert_same(one, two)
    assert_same(one, three)


@pytest.mark.parametrize("name", PLANS)
def test_joined_nodes_of_each_kind_give_the_same_bits(name):
    plan = PLANS[name]()
    X, query = rows(30, 1, n_features=len(plan.costs.features)), np.arange(30) % 4
    one, two, three = (
        _Batch(plan.tables.program(j), X, query, np.inf, "learner").run() for j in ("none", "free", "all")
    )
    assert_same(one, two)
    assert_same(one, three)


def test_free_nodes_are_joined_and_purchases_are_not():
    steps = PLANS["anytime_trees_free"]().tables.program("free").steps
    assert 1 < len(steps) < 12
    assert len(PLANS["anytime_trees_free"]().tables.program("all").steps) == 1
    assert len(PLANS["anytime_trees"]().tables.program("free").steps) == 12


TRUNCATABLE = [
    "cascade",
    "binary_tree",
    "anytime",
    "anytime_trees",
    "anytime_trees_free",
    "proximity",
    "rank",
    "capacity",
]
TRUNCATABLE += ["soft_cascade", "one_vs_one", "platt", "confident", "constant", "wide"]


@pytest.mark.parametrize("name", TRUNCATABLE)
def test_a_plan_cut_to_a_budget_answers_as_within_it(name):
    plan = PLANS[name]()
    X, qid = rows(30, 8, n_features=len(plan.costs.features)), np.arange(30) % 4
    for budget in random_budgets(plan, X, qid, 3):
        cut = plan.truncate(budget)
        a, b = cut.run(X, qid), plan.run(X, qid, budget)
        for what in ("score", "z", "cost", "tier"):
            np.testing.assert_array_equal(getattr(a, what), getattr(b, what))
        np.testing.assert_array_equal(cut.predict(X, qid), plan.predict(X, qid, budget))
        assert (a.cost <= max(budget, 0.0)).all()


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_a_random_plan_is_cut_rightly_or_refused(seed):
    plan = random_plan(seed)
    X, qid = random_rows(plan, seed)
    for budget in random_budgets(plan, X, qid, seed):
        cut = cut_or_refused(plan, budget)
        if cut is None:
            continue
        a, b = cut.run(X, qid), plan.run(X, qid, budget)
        np.testing.assert_array_equal(a.score, b.score)
        np.testing.assert_array_equal(a.cost, b.cost)


def test_a_plan_that_cannot_be_cut_says_what_to_do():
    ways = (
        Node([0], [1.0], gate=Gate.above(0.0), passed=1, failed=2),
        Node([2], [1.0], passed=3),
        Node([6], [1.0], passed=3),
        Node([3], [1.0]),
    )
    plan = Plan(COSTS, RAW, ways, [0.0])
    with pytest.raises(ValueError, match=r"node 3 with different purchases.*predict\(X, budget"):
        plan.truncate(20.0)
    with pytest.raises(ValueError, match="split by split"):
        replace(PLANS["anytime_trees"](), charge="path").truncate(5.0)


@pytest.mark.parametrize("name", ["anytime", "anytime_trees", "platt", "one_vs_one", "wide", "constant"])
@CHARGES
def test_stages_are_the_prefixes_of_the_chain(name, charge):
    plan = replace(PLANS[name](), charge=charge)
    X = rows(30, 8, n_features=len(plan.costs.features))
    stages = list(plan.stages(X))
    assert len(stages) == len(plan.nodes)
    for k, stage in enumerate(stages):
        nodes = (*plan.nodes[:k], replace(plan.nodes[k], passed=-1))
        assert_same(stage, replace(plan, nodes=nodes).run(X))


def test_a_charge_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="charge"):
        PLANS["forest"]().run(rows(3), charge="paths")

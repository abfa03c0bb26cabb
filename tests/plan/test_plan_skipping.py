"""What does not fit a budget is skipped, free features are always used, and any state of knowledge is a valid start."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from miserly import GreedyMiserClassifier
from miserly.costs import CostTable
from miserly.plan import Node, Plan, RawFeatures, Trees, load_plan, stack_trees
from oracles.driver import drive
from oracles.executor import _fresh, _tree_value
from oracles.hand_built import tree
from oracles.random_plans import random_budgets, random_plan, random_rows

SEEDS = st.integers(0, 2**32 - 1)
CHARGES = st.sampled_from(["learner", "path"])


def patients(n, seed):
    """Two free questions, a cheap and two expensive tests, some of whose results are missing."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    noise = rng.normal(size=(n, 5))
    X = noise + np.outer(y, [0.7, 0.4, 0.8, 1.4, 2.0])
    X[:, 3:][rng.random((n, 2)) < 0.1] = np.nan
    return X, y.astype(int)


CLINIC = CostTable.per_feature({"age": 0.0, "pulse": 0.0, "strip": 3.0, "blood": 12.0, "scan": 40.0})


@pytest.mark.parametrize("charge", ["learner", "path"])
def test_a_plan_under_a_cap_is_as_good_as_the_cheapest_plan(charge):
    """A plan chosen at a mean cost of some 40 had AUC 0.5 under a cap of 5: it stopped at the first split that it could
    not afford, and ignored even what is free."""
    X, y = patients(3000, 0)
    train, test = slice(0, 1500), slice(1500, None)
    fits = [
        GreedyMiserClassifier(CLINIC, tradeoff=t, n_estimators=60, charge=charge).fit(X[train], y[train])
        for t in (1e-5, 1.0)
    ]
    rich, cheap = (model.plan_ for model in fits)
    assert rich.predict_cost(X[test]).mean() > 30
    assert cheap.predict_cost(X[test]).mean() < 1
    auc = {cap: roc_auc_score(y[test], rich.predict_proba(X[test], budget=cap)[:, 1]) for cap in (0, 5, 16, 60)}
    assert auc[5] >= roc_auc_score(y[test], cheap.predict_proba(X[test])[:, 1])
    assert sorted(auc.values()) == list(auc.values())
    assert auc[0] > 0.65
    for cap in auc:
        assert (rich.predict_cost(X[test], budget=cap) <= cap).all()


@settings(max_examples=80, deadline=None)
@given(SEEDS, CHARGES)
def test_free_features_are_always_used(seed, charge):
    """At a budget of nothing, the answer is that of a row that knows the free features and no others."""
    plan = random_plan(seed, kind="trees", queries=False, charge=charge)
    free = plan.costs.features[0]
    costs = replace(plan.costs, needs={**plan.costs.needs, free: ()}, evaluation=0.0)
    plan = replace(plan, costs=costs, unavailable=())
    assume(not any(node.combine == "replace" for node in plan.nodes))
    X, _ = random_rows(plan, seed)
    prices = [costs.price([f]) for f in costs.features]
    others = tuple(f for f, price in zip(costs.features, prices) if price > 0)
    assert plan.run(X, budget=0.0).score.tolist() == replace(plan, unavailable=others).run(X).score.tolist()


@settings(max_examples=80, deadline=None)
@given(SEEDS, CHARGES)
def test_a_walk_starts_from_any_state_of_knowledge(seed, charge):
    """What is known is neither asked for nor paid, whatever else is unknown; the answer is that of free features."""
    plan = random_plan(seed, queries=False, charge=charge)
    assume(plan.can_miss and not plan.unavailable)
    X, _ = random_rows(plan, seed, n=4)
    rng = np.random.default_rng(seed)
    known = [f for f in plan.costs.features if rng.random() < 0.5]
    free = replace(plan, costs=replace(plan.costs, needs={**plan.costs.needs, **dict.fromkeys(known, ())}))
    for budget in [None, *random_budgets(plan, X, None, seed)[:3]]:
        result = free.run(X, budget=budget)
        for i, x in enumerate(X):
            given = {f: float(x[k]) for k, f in enumerate(plan.costs.features) if f in known}
            walk = drive(plan, x, budget, given=given)
            np.testing.assert_array_equal(walk.best.score, result.score[i])
            assert walk.cost == result.cost[i]


def test_learners_that_cannot_miss_a_value_take_the_mean():
    costs = CostTable.per_feature({"a": 1.0, "b": 5.0})
    plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [1.0, 10.0]),), [0.0]).with_background(
        np.array([[0.0, 1.0], [0.0, 3.0]])
    )
    X = np.array([[7.0, 100.0], [np.nan, 100.0]])
    assert plan.predict(X, budget=2.0).tolist() == [27.0, 20.0]
    assert plan.predict_cost(X, budget=2.0).tolist() == [1.0, 1.0]
    assert plan.run(X, budget=2.0).out_of_budget.all()
    assert plan.truncate(2.0).predict(X).tolist() == [27.0, 20.0]
    walk = plan.start(without=["b"])
    walk.supply({"a": 7.0})
    assert (walk.best.value, walk.stopped) == (27.0, "failed:b")
    without_means = replace(plan, means=None)
    assert without_means.predict(X[:1], budget=2.0).tolist() == [0.0]


def test_a_plan_that_cannot_miss_values_never_asks_for_what_is_out_of_reach():
    """It asked for it, whatever the walk was told at its start."""
    costs = CostTable.per_feature({"a": 1.0, "b": 5.0, "c": 2.0})
    nodes = (Node([0], [1.0], passed=1), Node([1], [10.0], passed=2), Node([2], [100.0]))
    plan = Plan(costs, RawFeatures([0, 1, 2]), nodes, [0.0])
    assert not plan.can_miss
    walk = plan.start(without=["b"])
    walk.supply({"a": 7.0})
    assert (walk.best.value, walk.stopped, walk.cost) == (7.0, "failed:b", 1.0)
    assert plan.start(without=["a"]).stopped == "failed:a"
    known = plan.start(given={"b": 3.0}, without=["b"])
    known.supply({"a": 7.0})
    known.supply({"c": 1.0})
    assert (known.best.value, known.stopped, known.cost) == (137.0, "answered", 3.0)
    later = plan.start()
    later.fail("c")
    later.supply({"a": 7.0})
    later.supply({"b": 3.0})
    assert (later.best.value, later.stopped) == (37.0, "failed:c")


def test_a_stage_that_would_replace_an_answer_is_taken_whole_or_not_at_all():
    costs = CostTable.per_feature({"a": 1.0, "b": 2.0, "c": 4.0})
    stages = (
        Node([0], [1.0], combine="replace", passed=1),
        Node([1, 2], [10.0, 100.0], combine="replace", passed=2),
        Node([1], [1000.0], passed=3),
        Node([1], [7.0], combine="replace"),
    )
    plan = Plan(costs, RawFeatures([0, 1, 2]), stages, [0.0], means=np.zeros(3))
    x = np.array([[1.0, 1.0, 1.0]])
    by_budget = {budget: plan.predict(x, budget=budget)[0] for budget in (0.5, 1.0, 3.0, 7.0)}
    assert by_budget == {0.5: 0.0, 1.0: 1.0, 3.0: 7.0, 7.0: 7.0}
    three = replace(plan, nodes=(*stages[:2], replace(stages[2], passed=-1)))
    assert [three.predict(x, budget=b)[0] for b in (1.0, 3.0, 7.0)] == [1.0, 1.0, 1110.0]


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_shares_are_counted_and_unknown_splits_change_nothing_in_the_mean(seed):
    rng = np.random.default_rng(seed)
    spec = (0, 0.1, (1, -0.2, 1.0, (0, -1.0, 3.0, -2.0)), (2, 0.3, 4.0, -5.0, True))
    trees = stack_trees([tree(spec), tree(0.5)])
    costs = CostTable.per_feature(np.ones(3))
    plan = Plan(costs, trees, (Node([0, 1], [1.0, 1.0], bias=1.0),), [9.0])
    X = rng.normal(size=(60, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    full = plan.with_background(X)
    left = np.isnan(X[:, 0]) | (X[:, 0] <= 0.1)
    assert full.shares[0] == left.mean()
    blind = replace(full, unavailable=tuple(costs.features))
    np.testing.assert_allclose(blind.score(X), full.score(X).mean())
    one_blind = replace(full, unavailable=("x0",))
    for x in X[:5]:
        row = _fresh(one_blind, x)
        assert one_blind.score(x[None])[0] == 10.0 + _tree_value(one_blind, 0, row) + _tree_value(one_blind, 1, row)


def test_a_row_that_knows_nothing_has_the_prior_of_a_boosted_model():
    X, y = patients(400, 3)
    plan = GreedyMiserClassifier(CLINIC.scaled(1.0), tradeoff=1e-5, n_estimators=30).fit(X, y).plan_
    blind = replace(plan, unavailable=plan.costs.features)
    assert np.unique(blind.score(X)).tolist() == plan.prior.tolist()


@pytest.mark.parametrize("seed", range(12))
def test_what_is_assumed_of_unknown_values_is_in_the_file(seed, tmp_path):
    plan, path = random_plan(seed), tmp_path / "a.plan"
    plan.save(path)
    again = load_plan(path)
    for name in ("means", "shares"):
        a, b = getattr(plan, name), getattr(again, name)
        assert (a is None and b is None) or np.array_equal(a, b)
    assert again.unavailable == plan.unavailable


def test_what_is_assumed_must_fit_the_learners():
    costs = CostTable.per_feature([1.0])
    trees = stack_trees([tree((0, 0.0, 1.0, 2.0))])
    assert isinstance(trees, Trees)
    with pytest.raises(ValueError, match="means"):
        Plan(costs, trees, (), [0.0], roots=(), means=[0.0])
    for shares in ([0.5], [0.5, 2.0, 0.0], [np.nan] * 3):
        with pytest.raises(ValueError, match="shares"):
            Plan(costs, trees, (), [0.0], roots=(), shares=shares)
    with pytest.raises(ValueError, match="shares"):
        Plan(costs, RawFeatures([0]), (), [0.0], roots=(), shares=[1.0])
    with pytest.raises(ValueError, match="unavailable"):
        Plan(costs, trees, (), [0.0], roots=(), unavailable=("y",))

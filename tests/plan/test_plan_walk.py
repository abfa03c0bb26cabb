"""One row without I/O equals the batch to the bit, given only what it asks for; so does the list of one query."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miserly.costs import CostTable
from miserly.plan import EXIT, Node, Plan, RawFeatures
from oracles.driver import assert_walk_is, drive, drive_list, gift
from oracles.hand_built import PLANS, rows
from oracles.random_plans import random_budgets, random_plan, random_rows

SEEDS = st.integers(0, 2**32 - 1)
CHARGES = pytest.mark.parametrize("charge", ["learner", "path"])
ONE_BY_ONE = [name for name in PLANS if not PLANS[name]().by_query]
BY_QUERY = [name for name in PLANS if PLANS[name]().by_query]


def prepared(name, charge, n=12, missing=0.15):
    plan = replace(PLANS[name](), charge=charge)
    missing = missing if plan.dictionary.kind == "trees" else 0.0
    return plan, rows(n, 11, missing, len(plan.costs.features))


@pytest.mark.parametrize("name", ONE_BY_ONE)
@CHARGES
def test_a_walk_equals_the_batch(name, charge):
    plan, X = prepared(name, charge)
    for budget in [None, *random_budgets(plan, X, None, 1)]:
        result = plan.run(X, budget=budget)
        for i, x in enumerate(X):
            assert_walk_is(drive(plan, x, budget), result, i)


@pytest.mark.parametrize("name", BY_QUERY)
@CHARGES
def test_a_list_walk_equals_the_batch(name, charge):
    plan, X = prepared(name, charge, n=21)
    qid = np.arange(21) * 5 % 3
    for budget in [None, *random_budgets(plan, X, qid, 1)]:
        result = plan.run(X, qid, budget)
        for query in range(3):
            members = np.flatnonzero(qid == query)
            walks = drive_list(plan, X[members], budget, np.random.default_rng(query))
            for walk, i in zip(walks, members):
                assert_walk_is(walk, result, i)


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_a_list_walk_of_a_plan_without_query_gates_is_many_walks(name):
    plan, X = prepared(name, "learner", n=6)
    result = plan.run(X)
    for i, walk in enumerate(drive_list(plan, X)):
        assert_walk_is(walk, result, i)


@pytest.mark.parametrize("name", BY_QUERY)
def test_a_single_walk_through_a_query_gate_is_a_query_of_one_row(name):
    plan, X = prepared(name, "learner")
    result = plan.run(X, qid=np.arange(len(X)))
    for i, x in enumerate(X):
        assert_walk_is(drive(plan, x), result, i)


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.sampled_from(["learner", "path"]))
def test_walks_through_random_plans_equal_the_batch(seed, charge):
    plan = random_plan(seed, queries=False, charge=charge)
    X, _ = random_rows(plan, seed, n=6)
    for budget in [None, *random_budgets(plan, X, None, seed)[:3]]:
        result = plan.run(X, budget=budget)
        for i, x in enumerate(X):
            assert_walk_is(drive(plan, x, budget), result, i)


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.sampled_from(["learner", "path"]))
def test_list_walks_through_random_plans_equal_the_batch(seed, charge):
    plan = random_plan(seed, queries=True, charge=charge)
    X, _ = random_rows(plan, seed, n=7)
    for budget in [None, *random_budgets(plan, X, None, seed)[:3]]:
        result = plan.run(X, budget=budget)
        for i, walk in enumerate(drive_list(plan, X, budget, np.random.default_rng(seed))):
            assert_walk_is(walk, result, i)


@pytest.mark.parametrize("name", PLANS)
@CHARGES
def test_the_free_answer_is_there_before_anything_is_bought(name, charge):
    plan, X = prepared(name, charge)
    walk = plan.start(budget=0.0)
    assert walk.cost == 0.0
    assert walk.stopped == ("budget" if plan.nodes else "answered")
    if name != "anytime_trees_free":  # whose trees are evaluated for nothing, with all features missing
        np.testing.assert_array_equal(walk.best.score, plan.prior)
    np.testing.assert_array_equal(walk.best.score, plan.run(X[:1], budget=0.0).score[0])


@pytest.mark.parametrize(("name", "charge"), [("anytime", "learner"), ("forest", "path")])
def test_a_feature_that_needs_nothing_is_not_silently_missing(name, charge):
    """It costs nothing and is never asked for, so it must be given at the start: never read as missing."""
    plan = PLANS[name]()
    plan = replace(plan, charge=charge, costs=replace(plan.costs, needs={**plan.costs.needs, "age": (), "page": ()}))
    x = rows(1, 2)[0]
    with pytest.raises(KeyError, match=r"age.*page"):
        plan.start(given={})
    walk, owned = plan.start(given={"age": x[0], "page": x[6]}), set()
    while not walk.done:
        values = gift(plan, x, owned, walk.needs)
        owned |= set(walk.needs)
        walk.supply(values)
    assert_walk_is(walk, plan.run(x[None]), 0)


@pytest.mark.parametrize(("name", "charge"), [("anytime", "learner"), ("anytime_trees", "path")])
def test_a_feature_whose_acquisition_was_bought_for_another_is_not_silently_missing(name, charge):
    """`age` and `sex` come with one question; a driver that forgets `sex` must be told when it is read."""
    plan = replace(PLANS[name](), charge=charge)
    x, walk, owned = rows(1, 5)[0], plan.start(), set()

    def forgetful():
        while not walk.done:
            values = gift(plan, x, owned, walk.needs)
            owned.update(walk.needs)
            walk.supply({f: v for f, v in values.items() if f != "sex"})

    with pytest.raises(KeyError, match="sex"):
        forgetful()


def test_a_supply_without_a_wanted_feature_says_which_and_can_be_repeated():
    plan, X = prepared("cascade", "learner")
    walk = plan.start()
    assert walk.needs == ("ask",)
    with pytest.raises(KeyError, match="sex"):
        walk.supply({"age": 0.0})
    assert walk.cost == 0.0
    walk.supply({"sex": X[0, 1], "age": X[0, 0]})
    assert walk.cost > 0
    with pytest.raises(KeyError, match="nonsense"):
        plan.start().supply({"nonsense": 1.0})


def test_a_walk_that_is_done_takes_nothing_and_keeps_its_reason():
    plan, X = prepared("cascade", "learner")
    walk = drive(plan, X[0])
    with pytest.raises(RuntimeError, match="wants nothing"):
        walk.supply({"age": 1.0})
    walk.stop("deadline")
    assert walk.stopped == "answered"
    walk.fail("ask")
    assert walk.stopped == "answered"


def test_a_failure_or_a_deadline_leaves_the_answer_of_the_last_complete_node():
    plan, X = prepared("anytime", "learner")
    stages = list(plan.stages(X[:1]))
    for how, reason in ((lambda w: w.fail("draw"), "failed:draw"), (lambda w: w.stop("deadline"), "deadline")):
        walk, owned = plan.start(), set()
        while "draw" not in walk.needs:
            values = gift(plan, X[0], owned, walk.needs)
            owned |= set(walk.needs)
            walk.supply(values)
        how(walk)
        assert walk.stopped == reason
        assert walk.needs == ()
        np.testing.assert_array_equal(walk.best.score, stages[3].score[0])
        assert walk.cost == stages[3].cost[0]


def without(plan, lost):
    """The plan when acquisitions are unavailable: features that need them are missing, and nobody pays for those."""
    gone = [f for f in plan.costs.features if set(plan.costs.needs[f]) & set(lost)]
    return replace(plan, unavailable=(*plan.unavailable, *gone))


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.sampled_from(["learner", "path"]))
def test_plans_go_on_without_an_acquisition_that_is_unavailable(seed, charge):
    plan = random_plan(seed, queries=False, charge=charge)
    X, _ = random_rows(plan, seed, n=5)
    if not plan.can_miss:
        return
    rng = np.random.default_rng(seed)
    lost = set(rng.choice(plan.costs.acquisitions, rng.integers(1, 3)).tolist())
    instead = without(plan, lost)
    for budget in [None, *random_budgets(plan, X, None, seed)[:3]]:
        result = instead.run(X, budget=budget)
        for i, x in enumerate(X):
            walk = drive(plan, x, budget, lost)
            np.testing.assert_array_equal(walk.best.score, result.score[i])
            if budget is not None:
                assert walk.cost == result.cost[i]
            else:  # what proves useless later may have been bought before
                assert walk.cost >= result.cost[i]
            assert not lost & set(walk.bought)
            assert walk.stopped in {*(f"failed:{a}" for a in lost), "budget" if result.out_of_budget[i] else "answered"}


@pytest.mark.parametrize("name", ["anytime_trees", "forest", "shared_softmax", "confident"])
def test_only_what_a_row_wanted_is_to_blame(name):
    """Known to be out of reach, but not on the row's own path: the answer is what it would have been."""
    plan, X = prepared(name, "path")
    for x in X:
        full = drive(plan, x)
        others = set(plan.costs.acquisitions) - set(full.bought)
        walk = drive(plan, x, budget=1e9, lost=others)
        assert (walk.stopped, walk.cost) == ("answered", full.cost)
        np.testing.assert_array_equal(walk.best.score, full.best.score)
        assert drive(plan, x, budget=1e9, lost={full.bought[0]}).stopped == f"failed:{full.bought[0]}"


@pytest.mark.parametrize("name", BY_QUERY)
def test_a_document_that_fails_does_not_hold_up_its_query(name):
    plan, X = prepared(name, "learner", n=6)
    walks, owned = plan.start_list(6), [set() for _ in X]
    walks.fail(2, "ask")
    while not walks.done:
        row, needs = next(iter(walks.needs.items()))
        values = gift(plan, X[row], owned[row], needs)
        owned[row] |= set(needs)
        walks.supply(row, values)
    assert walks.walks[2].stopped == "failed:ask"
    holes = np.concatenate([X[:2], X[2:3], X[3:]])
    holes[2, :2] = np.nan
    result = plan.run(holes)
    for i, walk in enumerate(walks.walks):
        if i != 2:
            assert_walk_is(walk, result, i)
    np.testing.assert_array_equal(walks.walks[2].best.score, result.score[2])


def test_a_list_of_no_documents_is_done():
    assert PLANS["rank"]().start_list(0).done


@pytest.mark.parametrize("call", ["run", "start", "start_list", "truncate"])
def test_a_budget_that_is_not_a_number_is_refused_everywhere(call):
    plan = PLANS["cascade"]()
    nan = float("nan")
    calls = {
        "run": lambda: plan.run(np.zeros((1, 8)), budget=nan),
        "start": lambda: plan.start(nan),
        "start_list": lambda: plan.start_list(2, nan),
        "truncate": lambda: plan.truncate(nan),
    }
    with pytest.raises(ValueError, match="budget"):
        calls[call]()


@pytest.mark.parametrize("charge", ["learner", "path"])
def test_a_walk_through_thousands_of_nodes(charge):
    """Each node used to be one more call on the stack."""
    plan = PLANS["anytime_trees"]()
    n = 3000
    nodes = [replace(plan.nodes[0], passed=k + 1 if k + 1 < n else EXIT) for k in range(n)]
    long = replace(plan, nodes=tuple(nodes), charge=charge)
    x = rows(1, 4)[0]
    assert_walk_is(drive(long, x), long.run(x[None]), 0)
    assert_walk_is(drive(long, x, budget=1e9), long.run(x[None], budget=1e9), 0)


def test_one_row_of_a_plan_with_one_class():
    """It answered a batch, but one row ended in an IndexError: the short way looked for a second class."""
    plan = Plan(
        costs=CostTable.per_feature({"a": 1.0}),
        dictionary=RawFeatures(np.array([0])),
        nodes=(Node(np.array([0]), np.array([1.0])),),
        prior=np.zeros(1),
        link="logistic",
        classes=np.array(["only"]),
        roots=(0,),
    )
    walk = plan.start()
    walk.supply({"a": 3.0})
    assert walk.best.value == "only"
    assert plan.predict(np.array([[3.0]])).tolist() == ["only"]


def test_a_plan_that_runs_for_long_does_not_grow():
    """The names of sets of acquisitions were kept without a limit: a server's memory rose with every new set."""
    plan = Plan(
        CostTable.per_feature(np.ones(15)),
        RawFeatures(np.arange(15)),
        (Node(learners=[0], weights=[1.0], bias=[0.0], passed=EXIT),),
        prior=[0.0],
    )
    for asked in range(1, 1 << 15):
        assert len(plan.tables.acquisition_names(asked)) == asked.bit_count()
        plan.tables.arriving(0, asked)
        plan.tables.known_at_first(asked)
    tables = plan.tables
    assert max(kept.cache_info().currsize for kept in (tables._names, tables._arriving, tables._at_first)) == 1 << 14

"""A plan may be stopped: after any level of its nodes, when the money ends, or when a row is sure enough."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from miserly.checks import check_plan
from miserly.plan import EXIT, Gate
from miserly.plan._run import Run
from oracles.executor import assert_run_is, cut_or_refused, execute
from oracles.hand_built import PLANS, rows
from oracles.random_plans import random_budgets, random_plan, random_rows

SEEDS = st.integers(0, 2**32 - 1)
CHARGES = st.sampled_from(["learner", "path"])


def assert_same(a: Run, b: Run):
    for name in Run.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def levels(plan):
    """How many nodes may lie before each, by following every way."""
    level = {}
    waiting = [(root, 0) for root in plan.roots]
    while waiting:
        k, depth = waiting.pop()
        level[k] = max(level.get(k, 0), depth)
        waiting += [(way, depth + 1) for way in plan.nodes[k].ways if way != EXIT]
    return level


@settings(max_examples=50, deadline=None)
@given(SEEDS, CHARGES)
def test_a_stage_is_the_plan_without_its_deeper_nodes(seed, charge):
    plan = random_plan(seed, charge=charge)
    assume(len(plan.roots) == 1)
    X, qid = random_rows(plan, seed)
    level = levels(plan)
    for depth, stage in enumerate(plan.stages(X, qid)):

        def cut(way, depth=depth):
            return EXIT if level.get(way, 0) > depth else way

        nodes = tuple(replace(n, passed=cut(n.passed), failed=cut(n.failed)) for n in plan.nodes)
        assert_same(stage, replace(plan, nodes=nodes).run(X, qid))


@settings(max_examples=50, deadline=None)
@given(SEEDS, CHARGES)
def test_the_last_stage_is_the_plan_and_costs_only_grow(seed, charge):
    plan = random_plan(seed, charge=charge)
    X, qid = random_rows(plan, seed)
    stages = list(plan.stages(X, qid))
    assert_same(stages[-1], plan.run(X, qid))
    assert (np.diff([stage.cost for stage in stages], axis=0) >= 0).all()


def sure_stage(plan, X, confidence):
    """For each row the first node of a chain before whose successor it is sure enough and something is for sale."""
    stages = list(plan.stages(X))
    at = np.full(len(X), len(stages) - 1)
    for k in range(len(stages) - 2, -1, -1):
        for_sale = stages[k + 1].cost > stages[k].cost
        sure = plan.probabilities(stages[k].z).max(axis=1) >= confidence
        at[for_sale & sure] = k
    return stages, at


CHAINS = [
    name
    for name, make in PLANS.items()
    if make().classes is not None and all(n.gate.kind == "open" for n in make().nodes) and len(make().roots) == 1
]


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("confidence", [0.5, 0.7, 0.9, 1.0])
def test_rows_confidence_they_are_sure(name, confidence):
    plan = PLANS[name]()
    X = rows(40, 3, n_features=len(plan.costs.features))
    stages, at = sure_stage(plan, X, confidence)
    stopped = plan.run(X, confidence=confidence)
    for what in ("score", "z", "cost"):
        wanted = [getattr(stages[k], what)[i] for i, k in enumerate(at)]
        np.testing.assert_array_equal(getattr(stopped, what), wanted, err_msg=what)
    assert (plan.predict_cost(X, confidence=confidence) == stopped.cost).all()
    assert (plan.predict(X, confidence=confidence) == plan.read(stopped.z)).all()
    assert (plan.predict_proba(X, confidence=confidence) == plan.probabilities(stopped.z)).all()


@settings(max_examples=15, deadline=None)
@given(SEEDS, CHARGES, st.floats(0.01, 1.0))
def test_sure_rows_are_walked_as_in_a_batch_and_keep_their_budget(seed, charge, confidence):
    plan = random_plan(seed, charge=charge)
    assume(plan.classes is not None)
    X, qid = random_rows(plan, seed)
    check_plan(plan.stopping(confidence), X, qid)
    for budget in random_budgets(plan, X, qid, seed):
        both = plan.run(X, qid, budget, confidence=confidence)
        assert (both.cost <= max(budget, 0.0)).all()


@settings(max_examples=50, deadline=None)
@given(SEEDS, st.floats(0.01, 1.0))
def test_a_chain_cut_to_a_budget_stops_as_within_it(seed, confidence):
    plan = random_plan(seed, queries=False)
    assume(plan.classes is not None)
    chain = [replace(n, gate=Gate(), passed=k + 1, failed=EXIT) for k, n in enumerate(plan.nodes)]
    plan = replace(plan, nodes=(*chain[:-1], replace(chain[-1], passed=EXIT)), roots=(0,))
    X, _ = random_rows(plan, seed)
    stopping = plan.stopping(confidence)
    for budget in random_budgets(plan, X, None, seed):
        cut = cut_or_refused(stopping, budget)
        if cut is None:  # a stage that does not fit is skipped by rows that may leave there
            assert any(node.combine == "replace" for node in plan.nodes)
            continue
        a, b = cut.run(X), plan.run(X, None, budget, confidence=confidence)
        for what in ("score", "z", "cost"):
            np.testing.assert_array_equal(getattr(a, what), getattr(b, what))


def test_what_cannot_be_asked():
    with pytest.raises(ValueError, match="this plan predicts numbers"):
        PLANS["anytime"]().run(rows(3), confidence=0.9)
    for confidence in (0.0, 1.5, np.nan):
        with pytest.raises(ValueError, match="probability above 0"):
            PLANS["platt"]().stopping(confidence)


def replacing_chain(seed):
    """A chain whose nodes replace some outputs, or add to them."""
    rng = np.random.default_rng(seed)
    plan = random_plan(seed, queries=False)
    nodes = [
        replace(n, gate=Gate(), passed=k + 1, failed=EXIT, combine=rng.choice(["replace", "replace", n.combine]))
        for k, n in enumerate(plan.nodes)
    ]
    return replace(plan, nodes=(*nodes[:-1], replace(nodes[-1], passed=EXIT)), roots=(0,))


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_what_is_replaced_need_not_be_run(seed):
    """Stage by stage nothing is left out: the same answers, costs and exits, at any budget."""
    plan = replacing_chain(seed)
    X, _ = random_rows(plan, seed)
    assert_same(plan.run(X), list(plan.stages(X))[-1])
    for budget in random_budgets(plan, X, None, seed):
        assert_run_is(plan, plan.run(X, None, budget), execute(plan, X, None, budget))


def test_an_answer_takes_its_last_stage_only():
    plan = PLANS["anytime_trees"](evaluation=0.0)
    nodes = [replace(n, combine="replace") for n in plan.nodes]
    plan = replace(
        plan, nodes=tuple(replace(n, learners=plan.nodes[-1].learners, weights=plan.nodes[-1].weights) for n in nodes)
    )
    plan.run(rows(3))
    [(stages, shorter)] = plan.tables.briefs.items()
    assert len(stages) == len(plan.nodes) > 1
    assert len(shorter.nodes) == 1

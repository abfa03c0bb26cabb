"""The runtime says what the batch says, value and cost to the bit, and reads nothing that was not bought."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miserly.runtime import OnDemand, readers
from oracles.extractors import extractors_of, of_documents, own_threads, rows_of
from oracles.hand_built import PLANS, rows
from oracles.random_plans import random_budgets, random_plan, random_rows

SEEDS = st.integers(0, 2**32 - 1)
CHARGES = pytest.mark.parametrize("charge", ["learner", "path"])
ONE_BY_ONE = [name for name in PLANS if not PLANS[name]().by_query]
BY_QUERY = [name for name in PLANS if PLANS[name]().by_query]
LONG = 60.0


def assert_same(answers, plan, result):
    for i, answer in enumerate(answers):
        np.testing.assert_array_equal(answer.score, result.score[i])
        assert answer.cost == result.cost[i]
        assert answer.stopped == ("budget" if result.out_of_budget[i] else "answered")
        np.testing.assert_array_equal(answer.value, plan.read(result.z[i : i + 1])[0])
        if plan.classes is not None:
            np.testing.assert_array_equal(answer.probabilities, plan.probabilities(result.z[i : i + 1])[0])


def assert_only_bought(row, answer, plan):
    """What was read needs nothing but what was acquired; each acquisition once."""
    assert len(set(answer.acquired)) == len(answer.acquired)
    for feature in row.read:
        assert set(plan.costs.needs[feature]) <= set(answer.acquired)


def ways(plan):
    """The runners, and how each is asked: at once, on threads, from an event loop, many together."""
    plain = OnDemand(plan, extractors_of(plan.costs))
    later = OnDemand(plan, extractors_of(plan.costs, is_async=True))
    together = OnDemand(plan, extractors_of(plan.costs, many=True))
    yield plain, lambda rows, budget: [plain.predict(row, budget) for row in rows]
    yield plain, lambda rows, budget: [plain.predict(row, budget, LONG) for row in rows]
    yield later, lambda rows, budget: [later.predict(row, budget) for row in rows]
    yield together, lambda rows, budget: [together.predict(row, budget) for row in rows]
    yield together, lambda rows, budget: together.predict_many(rows, budget)
    yield together, lambda rows, budget: together.predict_many(rows, budget, LONG)
    for runner in (plain, later):

        async def all_at_once(rows, budget, runner=runner):
            return await asyncio.gather(*(runner.apredict(row, budget, LONG) for row in rows))

        yield runner, lambda rows, budget, ask=all_at_once: asyncio.run(ask(rows, budget))


@pytest.mark.parametrize("name", ONE_BY_ONE)
@CHARGES
def test_hand_built_plans_in_every_way(name, charge):
    plan = replace(PLANS[name](), charge=charge)
    X = rows(7, 11, 0.15 if plan.can_miss else 0.0, len(plan.costs.features))
    for runner, ask in ways(plan):
        with runner:
            for budget in [None, *random_budgets(plan, X, None, 1)[:3]]:
                given = rows_of(plan, X)
                answers = ask(given, budget)
                assert_same(answers, plan, plan.run(X, budget=budget))
                for row, answer in zip(given, answers):
                    assert_only_bought(row, answer, plan)
                    assert budget is None or budget < 0 or answer.cost <= budget
    assert not own_threads()


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.sampled_from(["learner", "path"]))
def test_random_plans(seed, charge):
    plan = random_plan(seed, queries=False, charge=charge)
    X, _ = random_rows(plan, seed, n=5)
    runner = OnDemand(plan, extractors_of(plan.costs))
    for budget in [None, *random_budgets(plan, X, None, seed)[:4]]:
        given = rows_of(plan, X)
        answers = [runner.predict(row, budget) for row in given]
        assert_same(answers, plan, plan.run(X, budget=budget))
        for row, answer in zip(given, answers):
            assert_only_bought(row, answer, plan)
            assert budget is None or budget < 0 or answer.cost <= budget


@pytest.mark.parametrize("name", BY_QUERY)
@CHARGES
@pytest.mark.parametrize("deadline", [None, LONG])
@pytest.mark.parametrize("many", [False, True])
def test_the_documents_of_a_query(name, charge, deadline, many):
    plan = replace(PLANS[name](), charge=charge)
    X = rows(9, 11, 0.15, len(plan.costs.features))
    documents = rows_of(plan, X)

    with OnDemand(plan, of_documents(extractors_of(plan.costs, many=many), many)) as runner:
        for budget in [None, *random_budgets(plan, X, None, 1)[:3]]:
            for ranking in (
                runner.rank("query", documents, budget, deadline),
                asyncio.run(runner.arank("query", documents, budget, deadline)),
            ):
                result = plan.run(X, budget=budget)
                assert_same(ranking.answers, plan, result)
                order = np.lexsort((np.arange(9), -result.score[:, 0], -result.tier))
                assert ranking.order == tuple(order.tolist())
                assert ranking.cost == pytest.approx(result.cost.sum())
        assert runner.rank("query", []).order == ()


def test_readers_read_rows_that_are_there():
    plan = PLANS["forest"]()
    X = rows(5, 3, 0.1, len(plan.costs.features))
    runner = OnDemand(plan, readers(plan.costs))
    answers = [runner.predict(dict(zip(plan.costs.features, x))) for x in X]
    assert_same(answers, plan, plan.run(X))

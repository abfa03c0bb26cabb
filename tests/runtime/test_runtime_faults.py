"""Extractors that raise, hang or die: the caller gets an answer with a reason, in time, and nothing is left running."""

import asyncio
import os
import threading
import time

import numpy as np
import pytest

from miserly.costs import CostTable
from miserly.plan import Node, Plan, RawFeatures
from miserly.runtime import OnDemand, extractor
from oracles.driver import drive
from oracles.extractors import extractors_of, of_documents, own_threads, rows_of
from oracles.hand_built import PLANS, rows

FOREST = PLANS["forest"]()
CHAIN = PLANS["anytime"]()


class BrokenError(Exception):
    pass


def broken(*names):
    def break_up(name, row):
        if name in names:
            raise BrokenError(name)

    return break_up


def data(plan, n=6):
    X = rows(n, 11, 0.1 if plan.can_miss else 0.0, len(plan.costs.features))
    return X, rows_of(plan, X)


# ---- failures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [("ask",), ("draw",), ("ask", "draw")])
def test_trees_go_on_without_what_failed(lost):
    X, given = data(FOREST)
    runner = OnDemand(FOREST, extractors_of(FOREST.costs, break_up=broken(*lost)), failures=1000)
    for x, row in zip(X, given):
        walk, answer = drive(FOREST, x, lost=lost), runner.predict(row)
        np.testing.assert_array_equal(answer.score, walk.best.score)
        assert answer.cost == walk.cost
        assert answer.stopped == walk.stopped
        assert not set(lost) & set(answer.acquired)
        assert any("BrokenError" in call.outcome for call in answer.calls) == (walk.stopped != "answered")


def test_a_linear_plan_answers_from_its_last_complete_node():
    X, given = data(CHAIN)
    runner = OnDemand(CHAIN, extractors_of(CHAIN.costs, break_up=broken("draw")))
    stage = list(CHAIN.stages(X))[3]
    for i, row in enumerate(given):
        answer = runner.predict(row)
        assert answer.stopped == "failed:draw"
        np.testing.assert_array_equal(answer.score, stage.score[i])
        assert answer.cost == stage.cost[i]


@pytest.mark.parametrize("plan", [FOREST, CHAIN], ids=["trees", "linear"])
def test_a_derived_feature_that_fails(plan):
    name = next(f for f in plan.costs.features if len(plan.costs.needs[f]) > 1)
    _, given = data(plan)
    runner = OnDemand(plan, extractors_of(plan.costs, break_up=broken(f"derive_{name}")))
    answers = [runner.predict(row) for row in given]
    assert {a.stopped for a in answers} <= {f"failed:derive_{name}", "answered"}
    assert any(a.stopped != "answered" for a in answers)


def test_a_failed_call_is_repeated_as_often_as_its_extractor_says():
    X, given = data(FOREST, 1)
    tries = {"n": 0}

    def twice_wrong(name, row):
        if name == "ask":
            tries["n"] += 1
            if tries["n"] < 3:
                raise BrokenError

    for deadline in (None, 60.0):
        tries["n"] = 0
        with OnDemand(FOREST, extractors_of(FOREST.costs, break_up=twice_wrong, retries=2)) as runner:
            answer = runner.predict(given[0], deadline=deadline)
        assert answer.stopped == "answered"
        np.testing.assert_array_equal(answer.score, FOREST.run(X).score[0])
        assert [c.outcome for c in answer.calls if c.name == "ask"] == ["BrokenError: ", "BrokenError: ", "ok"]


def test_a_dead_extractor_is_left_alone_then_tried_again():
    _, given = data(FOREST, 1)
    calls, dead = [], {"ask"}

    def break_up(name, row):
        calls.append(name)
        if name in dead:
            raise BrokenError

    runner = OnDemand(FOREST, extractors_of(FOREST.costs, break_up=break_up), failures=3, recovery=20.0)
    for _ in range(10):
        assert runner.predict(given[0]).stopped == "failed:ask"
    assert calls.count("ask") == 3
    time.sleep(0.25)
    dead.clear()
    assert runner.predict(given[0]).stopped == "answered"
    assert runner.predict(given[0]).stopped == "answered"
    assert calls.count("ask") == 5


def test_what_is_left_alone_does_not_use_up_the_budget():
    """A budget that would stop before the dead acquisition's price goes to the others."""
    plan = PLANS["anytime_trees_free"]()
    X, given = data(plan, 4)
    first = plan.start().needs[0]
    runner = OnDemand(plan, extractors_of(plan.costs, break_up=broken(first)), failures=1)
    runner.predict(given[0])
    for x, row in zip(X, given):
        walk = drive(plan, x, 3.0, lost=[first])
        answer = runner.predict(row, budget=3.0)
        np.testing.assert_array_equal(answer.score, walk.best.score)
        assert answer.cost == walk.cost <= 3.0


# ---- deadlines ----------------------------------------------------------------------------------------------------


def waiting(release, *names):
    def break_up(name, row):
        if name in names:
            release.wait(20.0)

    return break_up


def test_the_best_answer_so_far_at_the_deadline():
    X, given = data(CHAIN, 1)
    release = threading.Event()
    runner = OnDemand(CHAIN, extractors_of(CHAIN.costs, break_up=waiting(release, "draw")))
    began = time.perf_counter()
    answer = runner.predict(given[0], deadline=0.1)
    assert time.perf_counter() - began < 5.0
    stage = list(CHAIN.stages(X))[3]
    assert answer.stopped == "deadline"
    np.testing.assert_array_equal(answer.score, stage.score[0])
    assert answer.calls[-1].outcome == "running"
    assert runner.running == 1
    release.set()
    assert runner.close() == 0
    assert runner.running == 0
    assert not own_threads()


def test_a_call_has_its_own_time_within_the_deadline():
    X, given = data(FOREST, 1)
    release = threading.Event()
    break_up = waiting(release, "ask")
    runner = OnDemand(FOREST, extractors_of(FOREST.costs, break_up=break_up, timeout=0.1))
    answer = runner.predict(given[0], deadline=20.0)
    assert answer.stopped == "failed:ask"
    assert answer.elapsed < 10.0
    assert "TimeoutError" in next(c.outcome for c in answer.calls if c.name == "ask")
    np.testing.assert_array_equal(answer.score, drive(FOREST, X[0], lost=["ask"]).best.score)
    release.set()
    runner.close()


def test_calls_that_hang_do_not_hold_up_all_others():
    """Once every worker is held by a call that nobody waits for, the next request does without, at once."""
    _, given = data(FOREST, 1)
    release = threading.Event()
    break_up = waiting(release, "ask")
    runner = OnDemand(FOREST, extractors_of(FOREST.costs, break_up=break_up, workers=2), failures=100)
    assert [runner.predict(given[0], deadline=0.4).stopped for _ in range(2)] == ["deadline", "deadline"]
    answer = runner.predict(given[0], deadline=20.0)
    assert answer.stopped == "failed:ask"
    assert answer.elapsed < 10.0
    assert runner.close(timeout=0.01) == 2, "they are counted"
    release.set()


@pytest.mark.parametrize("is_async", [False, True])
def test_independent_acquisitions_of_one_node_run_side_by_side(is_async):
    """Each waits for the other to begin."""
    plan = Plan(CostTable.per_feature({"a": 1.0, "b": 2.0}), RawFeatures([0, 1]), (Node([0, 1], [1.0, 10.0]),), [0.0])
    barrier = threading.Barrier(2, timeout=20.0)
    begun = []

    def plain(row):
        barrier.wait()
        return 1.0

    async def later(row):
        begun.append(row)
        while len(begun) < 2:
            await asyncio.sleep(0)
        return 1.0

    function = later if is_async else plain
    with OnDemand(plan, [extractor(name, yields=name)(function) for name in "ab"]) as runner:
        assert runner.predict(0, deadline=60.0).value == 11.0
        begun.clear()
        assert asyncio.run(runner.apredict(0)).value == 11.0


@extractor("a", yields="a", process=True, workers=1)
def in_another_process(row):
    if row == "die":
        os._exit(1)
    return row + os.getpid() * 0


def test_functions_that_hold_the_interpreters_lock_run_in_processes():
    plan = Plan(CostTable.per_feature({"a": 1.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.5])
    with OnDemand(plan, [in_another_process]) as runner:
        assert runner.predict(2.0, deadline=60.0).value == 2.5
        assert runner.predict("die", deadline=60.0).stopped == "failed:a"
        assert runner.predict(3.0, deadline=60.0).value == 3.5, "a process that died is replaced"
        assert "TypeError" in runner.predict(None, deadline=60.0).calls[0].outcome
    assert runner.running == 0


def with_one_that_hangs():
    """A runner whose first call never comes back; notes when calls begin and when they are gone."""
    plan = PLANS["anytime_trees"]()
    first = plan.start().needs[0]
    started, ended = [], []

    async def forever(row):
        started.append(True)
        try:
            await asyncio.sleep(60.0)
        finally:
            ended.append(True)

    extractors = {e.name: e for e in extractors_of(plan.costs, is_async=True)}
    extractors[first] = extractor(first, yields=extractors[first].yields)(forever)
    return OnDemand(plan, extractors.values()), started, ended


def test_async_calls_are_cancelled_at_the_deadline_and_none_is_left():
    for how in ("plain", "loop"):
        runner, _, ended = with_one_that_hangs()
        _, given = data(runner.plan, 1)

        async def ask(runner=runner, row=given[0]):
            answer = await runner.apredict(row, deadline=0.05)
            await runner.aclose()
            assert len(asyncio.all_tasks()) == 1
            return answer

        answer = asyncio.run(ask()) if how == "loop" else runner.predict(given[0], deadline=0.05)
        assert answer.stopped == "deadline"
        runner.close()
        assert ended == [True]
        assert runner.running == 0
        assert not own_threads()


def test_an_async_function_that_always_hangs_is_left_alone():
    """Its calls are cancelled at the deadline, so they never fail by themselves."""
    plan = Plan(CostTable.per_feature({"a": 1.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.5])

    @extractor("a", yields="a")
    async def hang(row):
        await asyncio.sleep(60.0)

    with OnDemand(plan, [hang], failures=3) as runner:
        reasons = [runner.predict(0, deadline=0.02).stopped for _ in range(5)]
    assert reasons == ["deadline"] * 3 + ["failed:a"] * 2


def test_a_call_that_is_cancelled_before_it_begins_is_not_counted_for_ever():
    """The deadline may come before the event loop has had time to start the call."""
    runner, _, _ = with_one_that_hangs()
    _, given = data(runner.plan, 1)
    with runner:
        for _ in range(30):
            runner.predict(given[0], deadline=0.0)
        end = time.perf_counter() + 10.0
        while runner.running and time.perf_counter() < end:
            time.sleep(0.005)
        assert runner.running == 0


def test_a_function_that_is_only_late_is_not_left_alone():
    plan = Plan(CostTable.per_feature({"a": 1.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.5])

    @extractor("a", yields="a")
    def slow(row):
        time.sleep(0.03)
        return 1.0

    with OnDemand(plan, [slow], failures=2) as runner:
        for _ in range(4):
            assert runner.predict(0, deadline=0.01).stopped == "deadline"
            while runner.running:
                time.sleep(0.005)
        assert runner.predict(0).value == 1.5


def test_one_deadline_for_all_documents():
    plan = PLANS["rank"]()
    release = threading.Event()
    _, given = data(plan, 6)
    first = plan.start().needs[0]

    def break_up(name, row):
        if name == first and row is given[3]:
            release.wait(20.0)

    runner = OnDemand(plan, of_documents(extractors_of(plan.costs, break_up=break_up)))
    ranking = runner.rank("query", given, deadline=0.1)
    assert ranking.elapsed < 10.0
    assert {a.stopped for a in ranking.answers} == {"deadline"}, "the others wait at the gate for the one that hangs"
    assert ranking.order[-1] == 3 or ranking.answers[3].score[0] == plan.prior[0]
    release.set()
    runner.close()


def test_a_free_feature_that_fails():
    """A linear plan answers with its constant, alone or among other documents; trees take it as missing."""
    costs = CostTable(features=["a", "b"], needs={"a": [], "b": ["buy"]}, prices={"buy": 1.0})
    plan = Plan(costs, RawFeatures([0, 1]), (Node([0], [1.0], passed=1), Node([1], [10.0])), [0.5])

    @extractor(yields="a")
    def free(row):
        return {"a": 1.0 / (row.document if isinstance(row, tuple) else row)}

    buy = extractor("buy", yields="b")(lambda row: 1.0)
    runner = OnDemand(plan, [free, buy])
    assert runner.predict(1.0).value == 11.5
    answer = runner.predict(0.0)
    assert (answer.value, answer.cost, answer.stopped) == (0.5, 0.0, "failed:free")
    assert [a.value for a in runner.rank("q", [1.0, 0.0, 0.5]).answers] == [11.5, 0.5, 12.5]


def test_a_request_that_is_cancelled_leaks_nothing():
    runner, started, ended = with_one_that_hangs()

    async def ask():
        task = asyncio.create_task(runner.apredict({}))
        while not started:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await runner.aclose()
        return len(asyncio.all_tasks())

    assert asyncio.run(ask()) == 1
    assert ended == [True]
    assert runner.running == 0


@pytest.mark.parametrize("deadline", [-1.0, float("nan")])
def test_a_deadline_is_a_number_of_seconds(deadline):
    _, given = data(FOREST, 1)
    with pytest.raises(ValueError, match="seconds from now"):
        OnDemand(FOREST, extractors_of(FOREST.costs)).predict(given[0], deadline=deadline)


def test_a_deadline_of_zero_is_the_free_answer():
    _, given = data(FOREST, 1)
    with OnDemand(FOREST, extractors_of(FOREST.costs)) as runner:
        answer = runner.predict(given[0], deadline=0.0)
    assert answer.stopped == "deadline"
    np.testing.assert_array_equal(answer.score, FOREST.prior)


# ---- everything at once -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("is_async", [False, True])
def test_requests_under_fire(is_async, n):
    """A tenth of the calls raise, a twentieth hang past the deadline, one extractor is dead."""
    _, given = data(FOREST, 40)
    rng, lock = np.random.default_rng(0), threading.Lock()

    def break_up(name, row):
        with lock:
            luck = rng.random()
        if name == "draw" or luck < 0.10:
            raise BrokenError
        if luck < 0.15 and not is_async:
            time.sleep(0.02)

    runner = OnDemand(FOREST, extractors_of(FOREST.costs, is_async=is_async, break_up=break_up, workers=4))
    known = {"answered", "deadline", *(f"failed:{e.name}" for e in extractors_of(FOREST.costs))}
    reasons = set()
    for i in range(n):
        answer = runner.predict(given[i % 40], budget=20.0, deadline=0.005)
        reasons.add(answer.stopped)
        assert answer.cost <= 20.0
        assert answer.value in FOREST.classes
    assert reasons <= known | {"budget"}
    assert "failed:draw" in reasons
    runner.close()
    assert not own_threads()


def test_a_number_too_large_for_a_double_is_a_failure():
    """It reached the caller as an OverflowError."""
    plan = Plan(CostTable.per_feature({"x": 1.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.5])
    runner = OnDemand(plan, [extractor("x", yields="x")(lambda row: 10**400)])
    for deadline in (None, 20.0):
        answer = runner.predict(0, deadline=deadline)
        assert (answer.value, answer.stopped, answer.cost) == (0.5, "failed:x", 0.0)
    runner.close()


@pytest.mark.parametrize("is_async", [False, True])
def test_a_request_does_not_wait_for_what_is_left_alone(is_async):
    """Without a deadline it waited for ever once a derived feature's function had failed often enough."""
    given = data(FOREST)[1]
    broke = broken("derive_fti", "derive_t3")
    runner = OnDemand(FOREST, extractors_of(FOREST.costs, is_async=is_async, break_up=broke), failures=2)

    async def ask():
        async with asyncio.timeout(60):
            return [await runner.apredict(row) for row in given * 3]

    answers = asyncio.run(ask())
    assert all(answer.stopped.startswith("failed:derive_") for answer in answers)
    assert any("left alone" in call.outcome for call in answers[-1].calls)
    runner.close()

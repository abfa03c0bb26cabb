"""Extractors that raise, hang or die: the caller gets an answer with a reason, in time, and nothing is left running."""

import asyncio
import math
import os
import sys
import threading

import numpy as np
import pytest

from miserly.costs import CostTable
from miserly.plan import Node, Plan, RawFeatures
from miserly.runtime import REAL, BadRow, Cache, OnDemand, extractor
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


def test_a_dead_extractor_is_left_alone_then_tried_again(clock):
    _, given = data(FOREST, 1)
    calls, dead = [], {"ask"}

    def break_up(name, row):
        calls.append(name)
        if name in dead:
            raise BrokenError

    runner = OnDemand(FOREST, extractors_of(FOREST.costs, break_up=break_up), failures=3, recovery=20.0, clock=clock)
    for _ in range(10):
        assert runner.predict(given[0]).stopped == "failed:ask"
    assert calls.count("ask") == 3
    clock.sleep(0.25)
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


def slow(clock, seconds, *names):
    """These take so long, in virtual time (for ever: math.inf)."""

    def break_up(name, row):
        if name in names:
            clock.sleep(seconds)

    return break_up


ONE = Plan(CostTable.per_feature({"a": 1.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.5])


def test_the_best_answer_so_far_at_the_deadline(clock, on_demand):
    X, given = data(CHAIN, 1)
    runner = on_demand(CHAIN, extractors_of(CHAIN.costs, break_up=slow(clock, math.inf, "draw")), clock=clock)
    answer = runner.predict(given[0], deadline=0.1)
    assert answer.elapsed == pytest.approx(0.1, abs=1e-8)
    stage = list(CHAIN.stages(X))[3]
    assert answer.stopped == "deadline"
    np.testing.assert_array_equal(answer.score, stage.score[0])
    assert answer.calls[-1].outcome == "running"
    assert runner.running == 1
    assert runner.close() == 1, "the call that hangs is counted"


def test_a_thread_that_hangs_is_waited_for_when_the_runner_is_closed(on_demand, release):
    _, given = data(CHAIN, 1)

    def break_up(name, row):
        if name == "draw":
            release.wait(60.0)

    runner = on_demand(CHAIN, extractors_of(CHAIN.costs, break_up=break_up))
    assert runner.predict(given[0], deadline=0.05).stopped == "deadline"
    assert runner.close(0.01) == runner.running <= 1
    release.set()
    assert runner.close() == 0
    assert not own_threads()


def test_a_call_has_its_own_time_within_the_deadline(clock, on_demand):
    X, given = data(FOREST, 1)
    break_up = slow(clock, math.inf, "ask")
    runner = on_demand(FOREST, extractors_of(FOREST.costs, break_up=break_up, timeout=0.1), clock=clock)
    answer = runner.predict(given[0], deadline=20.0)
    assert answer.stopped == "failed:ask"
    assert answer.elapsed == pytest.approx(0.1, abs=1e-8)
    assert "TimeoutError" in next(c.outcome for c in answer.calls if c.name == "ask")
    np.testing.assert_array_equal(answer.score, drive(FOREST, X[0], lost=["ask"]).best.score)


def test_the_time_of_a_call_begins_when_a_worker_takes_it(clock, on_demand):
    """Ten requests at once, one worker, 20 ms each: the last waits 180 ms, and its own timeout of 50 ms is kept."""
    runner = on_demand(
        ONE, [extractor("a", yields="a", workers=1, timeout=0.05)(lambda row: clock.sleep(0.02) or 1.0)], clock=clock
    )

    async def ask():
        return await asyncio.gather(*(runner.apredict(0, deadline=1.0) for _ in range(10)))

    answers = clock.run(ask())
    assert [a.stopped for a in answers] == ["answered"] * 10
    assert max(a.elapsed for a in answers) == pytest.approx(0.2, abs=1e-6)


def test_calls_that_hang_do_not_hold_up_all_others(clock, on_demand):
    """Once every worker hangs, requests do without it: those that wait for a worker soon, later ones at once."""
    _, given = data(FOREST, 1)
    break_up = slow(clock, math.inf, "ask")
    runner = on_demand(FOREST, extractors_of(FOREST.costs, break_up=break_up, workers=2), failures=100, clock=clock)
    assert [runner.predict(given[0], deadline=0.4).stopped for _ in range(2)] == ["deadline", "deadline"]
    answer = runner.predict(given[0], deadline=20.0)
    assert answer.stopped == "failed:ask"
    assert answer.elapsed < 2.0
    assert "workers hang" in next(c.outcome for c in answer.calls if c.name == "ask")
    answer = runner.predict(given[0], deadline=20.0)
    assert (answer.stopped, answer.elapsed) == ("failed:ask", 0.0)
    assert runner.close(timeout=0.01) == 2, "they are counted"


def test_clients_in_a_hurry_switch_nothing_off_for_others(clock, on_demand):
    """250 requests with 30 ms for a function of 100 ms: a client's deadline is no failure of the function's."""
    runner = on_demand(ONE, [extractor("a", yields="a", workers=8)(lambda row: clock.sleep(0.1) or 1.0)], clock=clock)

    async def ask():
        hurried = [asyncio.ensure_future(runner.apredict(0, deadline=0.03)) for _ in range(250)]
        await asyncio.sleep(0.01)
        patient = await asyncio.gather(*(runner.apredict(0) for _ in range(20)))
        return await asyncio.gather(*hurried), patient

    hurried, patient = clock.run(ask())
    assert {a.stopped for a in hurried} == {"deadline"}
    assert {a.stopped for a in patient} == {"answered"}
    assert runner.predict(0).stopped == "answered"
    assert not any(runner.left_alone.values())


def test_rows_that_a_function_calls_bad_switch_nothing_off(on_demand):
    calls = []

    @extractor("a", yields="a", retries=3)
    def strict(row):
        calls.append(row)
        if row < 0:
            raise BadRow("negative")
        return row

    runner = on_demand(ONE, [strict], failures=2)
    for deadline in (None, 60.0):
        calls.clear()
        answers = [runner.predict(-1.0, deadline=deadline) for _ in range(10)]
        assert {a.stopped for a in answers} == {"failed:a"}
        assert "BadRow: negative" in answers[-1].calls[0].outcome
        assert len(calls) == 10, "no retries: the row stays bad"
        assert runner.predict(1.0, deadline=deadline).value == 1.5


def test_a_breaker_counts_by_rate(clock, on_demand):
    """One failure in three is not enough, one in two is."""
    for share, is_open in ((3, False), (2, True)):
        n = iter(range(1000))
        runner = on_demand(
            ONE, [extractor("a", yields="a")(lambda row, n=n, s=share: 1.0 if next(n) % s else 1 / 0)], failures=5
        )
        for _ in range(40):
            runner.predict(0)
        assert runner.left_alone == {"a": is_open}
        assert set(runner.failure_causes) == {("a", "error")}


def test_a_function_that_always_hangs_is_left_alone_by_its_own_timeout(clock, on_demand):
    @extractor("a", yields="a", timeout=0.02)
    async def hang(row):
        await asyncio.sleep(60.0)

    runner = on_demand(ONE, [hang], failures=3, clock=clock)
    answers = [runner.predict(0, deadline=1.0) for _ in range(5)]
    assert [a.stopped for a in answers] == ["failed:a"] * 5
    assert ["left alone" in a.calls[-1].outcome if a.calls else True for a in answers] == [False] * 3 + [True] * 2
    assert runner.failure_causes == {("a", "timeout"): 3}


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_function_that_ends_the_program_is_a_failure(how, on_demand):
    """`sys.exit()` in an async function ended the event loop: later calls and `close` waited for ever."""

    @extractor("a", yields="a")
    async def leave(row):
        if row < 0:
            sys.exit(3)
        if row == 0:
            raise KeyboardInterrupt
        if row == 1:
            asyncio.get_running_loop().stop()
            await asyncio.sleep(0)
        return row

    runner = on_demand(ONE, [leave])
    if how == "sync":
        assert [runner.predict(-1.0, deadline=d).stopped for d in (None, 60.0)] == ["failed:a"] * 2
        assert runner.predict(0.0).stopped == "failed:a"
        assert runner.predict(1.0, deadline=60.0).value == 1.5
        assert runner.predict(2.0, deadline=60.0).value == 2.5
    else:

        async def ask():
            first = await runner.apredict(-1.0)
            return first, await runner.apredict(0.0), await runner.apredict(2.0)

        assert [a.stopped for a in asyncio.run(ask())] == ["failed:a", "failed:a", "answered"]
    assert runner.close(10.0) == 0


def test_a_plain_function_that_ends_the_program_is_a_failure(on_demand):
    runner = on_demand(ONE, [extractor("a", yields="a")(lambda row: sys.exit(1))])
    assert [runner.predict(0, deadline=d).stopped for d in (None, 60.0)] == ["failed:a"] * 2


@pytest.mark.parametrize("is_async", [False, True])
def test_independent_acquisitions_of_one_node_run_side_by_side(is_async, on_demand):
    """Each waits for the other to begin."""
    plan = Plan(CostTable.per_feature({"a": 1.0, "b": 2.0}), RawFeatures([0, 1]), (Node([0, 1], [1.0, 10.0]),), [0.0])
    barrier = threading.Barrier(2, timeout=60.0)
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
    runner = on_demand(plan, [extractor(name, yields=name)(function) for name in "ab"])
    assert runner.predict(0, deadline=600.0).value == 11.0
    begun.clear()
    assert asyncio.run(runner.apredict(0)).value == 11.0


def with_one_that_hangs(clock=REAL):
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
    return OnDemand(plan, extractors.values(), clock=clock), started, ended


@pytest.mark.parametrize("how", ["plain", "loop"])
def test_async_calls_are_cancelled_at_the_deadline_and_none_is_left(how, clock):
    runner, _, ended = with_one_that_hangs(clock)
    _, given = data(runner.plan, 1)
    if how == "loop":
        answer = clock.run(runner.apredict(given[0], deadline=0.05))
        assert clock.run(runner.aclose()) == 0
    else:
        answer = runner.predict(given[0], deadline=0.05)
        assert runner.close() == 0
    assert answer.stopped == "deadline"
    assert ended == [True]
    assert runner.running == 0
    assert not asyncio.all_tasks(clock.loop)


def test_a_call_that_is_cancelled_before_it_begins_is_not_counted_for_ever(clock):
    """The deadline may come before the event loop has had time to start the call."""
    runner, _, _ = with_one_that_hangs(clock)
    _, given = data(runner.plan, 1)
    for _ in range(30):
        runner.predict(given[0], deadline=0.0)
    clock.run(asyncio.sleep(0.01))
    assert runner.running == 0


def test_a_function_that_is_only_late_is_not_left_alone(clock, on_demand):
    runner = on_demand(ONE, [extractor("a", yields="a")(lambda row: clock.sleep(0.03) or 1.0)], failures=2, clock=clock)
    for _ in range(4):
        assert runner.predict(0, deadline=0.01).stopped == "deadline"
        clock.sleep(0.1)
        assert runner.running == 0
    assert runner.predict(0).value == 1.5


def test_one_deadline_for_all_documents(clock, on_demand):
    plan = PLANS["rank"]()
    _, given = data(plan, 6)
    first = plan.start().needs[0]

    def break_up(name, row):
        if name == first and row is given[3]:
            clock.sleep(math.inf)

    runner = on_demand(plan, of_documents(extractors_of(plan.costs, break_up=break_up)), clock=clock)
    ranking = runner.rank("query", given, deadline=0.1)
    assert ranking.elapsed == pytest.approx(0.1, abs=1e-8)
    assert {a.stopped for a in ranking.answers} == {"deadline"}, "the others wait at the gate for the one that hangs"
    assert ranking.order[-1] == 3 or ranking.answers[3].score[0] == plan.prior[0]


def test_documents_that_nobody_looked_at_in_time_cost_nothing(clock, on_demand):
    """Beginning a thousand documents took longer than the deadline allowed."""
    costs = CostTable(features=["a", "b"], needs={"a": [], "b": ["buy"]}, prices={"buy": 1.0})
    plan = Plan(costs, RawFeatures([0, 1]), (Node([0], [1.0], passed=1), Node([1], [10.0])), [0.5])
    seen = []

    @extractor(yields="a")
    def free(row):
        seen.append(row)
        clock.sleep(0.01)
        return 1.0

    runner = on_demand(plan, [free, extractor("buy", yields="b")(lambda row: 1.0)], clock=clock)
    for rank in (runner.rank, lambda *args, **options: clock.run(runner.arank(*args, **options))):
        seen.clear()
        ranking = rank("q", range(1000), deadline=0.05)
        assert ranking.elapsed == pytest.approx(0.05, abs=0.011)
        assert len(seen) <= 6
        assert {a.stopped for a in ranking.answers[6:]} == {"deadline"}
        assert sum(a.cost for a in ranking.answers[6:]) == 0.0


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


@pytest.mark.parametrize("deadline", [1e10, 1e300, math.inf])
def test_a_deadline_may_be_far_away(deadline, on_demand):
    """The system refuses to wait for so long: `OverflowError`."""
    _, given = data(FOREST, 1)
    runner = on_demand(FOREST, extractors_of(FOREST.costs))
    assert runner.predict(given[0], deadline=deadline).stopped == "answered"
    assert asyncio.run(runner.apredict(given[0], deadline=deadline)).stopped == "answered"


def test_a_deadline_of_zero_is_the_free_answer(on_demand):
    _, given = data(FOREST, 1)
    answer = on_demand(FOREST, extractors_of(FOREST.costs)).predict(given[0], deadline=0.0)
    assert answer.stopped == "deadline"
    np.testing.assert_array_equal(answer.score, FOREST.prior)


def test_a_runner_that_is_closed_meanwhile_still_answers(on_demand):
    """A request that raced `close` got a RuntimeError."""
    _, given = data(FOREST, 1)
    runner = on_demand(FOREST, extractors_of(FOREST.costs))
    end = threading.Event()
    reasons, errors = set(), []

    def ask():
        while not end.is_set():
            try:
                reasons.add(runner.predict(given[0], deadline=60.0).stopped.partition(":")[0])
            except Exception as error:
                errors.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    for _ in range(30):
        runner.close(1.0)
    end.set()
    thread.join()
    assert not errors
    assert reasons <= {"answered", "failed"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_workers_of_its_own(on_demand):
    """The child waited for ever for threads that only its parent has."""
    _, given = data(FOREST, 1)
    plain, later = (on_demand(FOREST, extractors_of(FOREST.costs, is_async=kind)) for kind in (False, True))
    kept = on_demand(ONE, [extractor("a", yields="a", cache=Cache(lambda row: 0, 60.0))(lambda row: 1.0)])
    runners = [(plain, given[0]), (later, given[0]), (kept, 0)]
    for runner, row in runners:
        assert runner.predict(row, deadline=60.0).stopped == "answered"
    child = os.fork()
    if not child:
        reasons = {runner.predict(row, deadline=60.0).stopped for runner, row in runners}
        os._exit(0 if reasons == {"answered"} else 1)
    assert os.waitpid(child, 0)[1] == 0


# ---- everything at once -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("is_async", [False, True])
def test_requests_under_fire(is_async, n, clock, on_demand):
    """A tenth of the calls raise, a twentieth hang past the deadline, one extractor is dead."""
    _, given = data(FOREST, 40)
    rng = np.random.default_rng(0)

    def break_up(name, row):
        luck = rng.random()
        if name == "draw" or luck < 0.10:
            raise BrokenError
        if luck < 0.15 and not is_async:
            clock.sleep(0.02)

    extractors = extractors_of(FOREST.costs, is_async=is_async, break_up=break_up, workers=4)
    runner = on_demand(FOREST, extractors, clock=clock)
    known = {"answered", "deadline", *(f"failed:{e.name}" for e in extractors)}
    reasons = set()
    for i in range(n):
        answer = runner.predict(given[i % 40], budget=20.0, deadline=0.005)
        reasons.add(answer.stopped)
        assert answer.elapsed < 0.005 + 1e-8
        assert answer.cost <= 20.0
        assert answer.value in FOREST.classes
    assert reasons <= known | {"budget"}
    assert "failed:draw" in reasons
    clock.sleep(1.0)
    assert runner.running == 0


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

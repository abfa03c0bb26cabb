"""Results kept across requests: by key, for a time, one call in flight for all who ask."""

import asyncio
import threading

import pytest

from miserly.costs import CostTable
from miserly.plan import Node, Plan, RawFeatures
from miserly.runtime import REAL, Cache, OnDemand, extractor

PLAN = Plan(CostTable.per_feature({"x": 1.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.0])


def counted(cache, work=lambda row: None, is_async=False, clock=REAL):
    calls = []

    def plain(row):
        calls.append(row)
        work(row)
        return row[1]

    async def later(row):
        calls.append(row)
        await asyncio.sleep(0.02)
        return row[1]

    function = later if is_async else plain
    return calls, OnDemand(PLAN, [extractor("x", yields="x", cache=cache)(function)], clock=clock)


def key(row):
    return row[0]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_result_is_kept_by_key_for_its_time(is_async, clock):
    calls, runner = counted(Cache(key, ttl=0.3, now=clock.now), is_async=is_async, clock=clock)
    with runner:
        assert runner.predict(("a", 1.0)).value == 1.0
        again = runner.predict(("a", 2.0), deadline=5.0)
        assert again.value == 1.0
        assert again.calls[0].outcome == "cached"
        assert again.cost == 1.0, "the price is the plan's; what was saved shows in the measured time"
        assert runner.predict(("b", 3.0)).value == 3.0
        clock.sleep(0.35)
        assert runner.predict(("a", 4.0)).value == 4.0
    assert len(calls) == 3


def test_the_least_recently_used_goes_first():
    calls, runner = counted(Cache(key, ttl=60.0, size=2))
    with runner:
        for name in "abacab":
            runner.predict((name, 0.0))
    assert [name for name, _ in calls] == ["a", "b", "c", "b"]


def test_requests_for_one_key_share_one_call(release):
    entered, joined = threading.Event(), []

    class Watched(Cache):
        def ask(self, key, *others):
            joined.append(key)
            return super().ask(key, *others)

    def work(row):
        entered.set()
        release.wait(60.0)

    calls, runner = counted(Watched(key, ttl=60.0), work)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(runner.predict(("a", 1.0)))) for _ in range(5)]
    with runner:
        for thread in threads:
            thread.start()
        while len(joined) < 5 or not entered.is_set():
            entered.wait(0.01)
        release.set()
        for thread in threads:
            thread.join()
    assert len(calls) == 1
    assert [a.value for a in answers] == [1.0] * 5
    assert sorted(a.calls[0].outcome for a in answers) == ["cached"] * 4 + ["ok"]


def test_requests_on_an_event_loop_share_one_call():
    calls, runner = counted(Cache(key, ttl=60.0), is_async=True)

    async def ask():
        answers = await asyncio.gather(*(runner.apredict(("a", 1.0)) for _ in range(5)))
        await runner.aclose()
        return answers

    assert [a.value for a in asyncio.run(ask())] == [1.0] * 5
    assert len(calls) == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_that_its_request_gave_up_still_serves_others(is_async, clock):
    cache = Cache(key, ttl=60.0, now=clock.now)
    calls, runner = counted(cache, lambda row: clock.sleep(0.05), is_async, clock)
    with runner:
        assert runner.predict(("a", 1.0), deadline=0.005).stopped == "deadline"
        assert runner.predict(("a", 2.0)).value == 1.0
    assert len(calls) == 1


@pytest.mark.parametrize("deadline", [None, 0.02], ids=["its own time is up", "its request gave up before"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_that_hangs_does_not_hold_its_key(is_async, deadline, clock):
    """All later calls for the key joined it, and failed for as long as it hung."""
    calls = []

    def hangs(row):
        calls.append(row)
        return len(calls) == 1

    def plain(row):
        clock.sleep(3600.0 if hangs(row) else 0.01)
        return row[1]

    async def later(row):
        await asyncio.sleep(3600.0 if hangs(row) else 0.01)
        return row[1]

    cache = Cache(key, ttl=60.0, now=clock.now)
    made = extractor("x", yields="x", cache=cache, timeout=0.05)(later if is_async else plain)

    async def main():
        runner = OnDemand(PLAN, [made], clock=clock)
        first = await runner.apredict(("a", 1.0), deadline=deadline or 10.0)
        await asyncio.sleep(0.1)
        second, third = await asyncio.gather(*(runner.apredict(("a", 2.0), deadline=10.0) for _ in range(2)))
        assert first.stopped == ("deadline" if deadline else "failed:x")
        assert [second.stopped, third.stopped] == ["answered"] * 2
        assert second.value == third.value == 2.0
        if is_async:
            assert runner.running == 0, "the one that hung was cancelled"
        await runner.aclose(10.0)

    clock.run(main())
    assert len(calls) == 2
    assert not cache._flights


def test_a_call_that_fails_late_leaves_those_who_wait_for_the_next():
    cache, got = Cache(key, ttl=60.0), []
    first, second = (lambda: True), (lambda: False)
    assert cache.ask("a", lambda *_: None, first)
    assert cache.ask("a", lambda *_: None, second), "the first is late"
    assert not cache.ask("a", lambda *found: got.append(found), second)
    cache.land("a", None, ValueError("late"), first)
    assert not got
    cache.land("a", 1.0, None, second)
    assert got == [(1.0, None)]


def test_failures_are_not_kept():
    def work(row):
        if len(calls) == 1:
            raise ValueError

    calls, runner = counted(Cache(key, ttl=60.0), work)
    with runner:
        assert runner.predict(("a", 1.0)).stopped == "failed:x"
        assert runner.predict(("a", 1.0)).stopped == "answered"


@pytest.mark.parametrize("bad", [{"ttl": 0.0}, {"ttl": 1.0, "size": 0}])
def test_bad_caches(bad):
    with pytest.raises(ValueError, match="cache"):
        Cache(key, **bad)


@pytest.mark.parametrize("wrong", [lambda row: row.nothing, lambda row: []], ids=["raises", "unhashable"])
def test_a_key_that_does_not_fit_the_row_is_a_failure_of_the_extractor(wrong):
    _, runner = counted(Cache(wrong, ttl=60.0))
    with runner:
        assert runner.predict(("a", 1.0)).stopped == "failed:x"


def test_those_who_joined_a_call_get_an_answer_when_it_is_cancelled(clock):
    """They waited for ever: the call that the closed runner cancelled never ended for its cache."""
    calls, runner = counted(Cache(key, ttl=60.0, now=clock.now), is_async=True, clock=clock)

    async def ask():
        first, second = (asyncio.ensure_future(runner.apredict(("a", 1.0))) for _ in range(2))
        await asyncio.sleep(0.01)
        await runner.aclose()
        return await first, await second

    assert [a.stopped for a in clock.run(ask())] == ["failed:x", "failed:x"]
    assert len(calls) == 1

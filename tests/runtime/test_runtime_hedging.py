"""Second calls: made after the quantile, the first result counts, both are paid, never beyond the budget."""

import asyncio
import itertools

import pytest

from miserly.costs import CostTable
from miserly.plan import Node, Plan, RawFeatures
from miserly.runtime import Cache, OnDemand, extractor
from miserly.runtime._hedging import FEWEST, HedgeTimer

COSTS = CostTable.per_feature({"x": 3.0, "y": 2.0})
PLAN = Plan(COSTS, RawFeatures([0, 1]), (Node([0], [1.0], passed=1), Node([1], [10.0])), [0.0], means=[0.0, 0.0])


class Service:
    """Takes the seconds listed for each call; fails where the time is negative."""

    def __init__(self, *slow):
        self.slow, self.n = dict(slow), itertools.count()
        self.cancelled = 0

    async def __call__(self, row):
        number = next(self.n)
        seconds = self.slow.get(number, 0.010)
        try:
            await asyncio.sleep(abs(seconds))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if seconds < 0:
            raise ConnectionError(f"call {number}")
        return float(number)


def runner_of(clock, service, **how):
    async def x(row):
        return await service(row)

    @extractor("y", yields="y")
    async def y(row):
        return 1.0

    return OnDemand(PLAN, [extractor("x", yields="x", hedge=0.95, **how)(x), y], clock=clock)


def ask(clock, runner, n, **how):
    async def all_of_them():
        return [await runner.apredict({}, **how) for _ in range(n)]

    answers = clock.run(all_of_them())
    return answers


def end(clock, runner):
    clock.run(runner.aclose())


def test_a_slow_call_is_made_again_and_the_first_result_counts(clock):
    service = Service((FEWEST, 10.0))
    runner = runner_of(clock, service)
    before = ask(clock, runner, FEWEST)
    assert {answer.cost for answer in before} == {5.0}
    assert next(service.n) == FEWEST
    service.n = itertools.count(FEWEST)
    (answer,) = ask(clock, runner, 1)
    assert float(answer.value) == FEWEST + 1 + 10.0, "the second call's result"
    assert answer.elapsed == pytest.approx(0.020, abs=0.002), "after the quantile, and then as long as usual"
    assert answer.cost == 8.0, "both calls are paid"
    assert sorted(call.outcome for call in answer.calls if call.name == "x") == ["hedged", "ok"]
    assert [call.price for call in answer.calls if call.name == "x"] == [3.0, 3.0]
    end(clock, runner)
    assert service.cancelled == 1, "nobody waits for the first"


def test_calls_that_are_quick_are_not_repeated(clock):
    service = Service()
    runner = runner_of(clock, service)
    answers = ask(clock, runner, 60)
    assert next(service.n) == 60
    assert {answer.cost for answer in answers} == {5.0}
    end(clock, runner)


@pytest.mark.parametrize(("budget", "n_calls", "cost"), [(8.0, 2, 8.0), (7.0, 2, 6.0), (5.9, 1, 5.0), (4.0, 1, 3.0)])
def test_the_budget_holds_both_calls_or_there_is_one(clock, budget, n_calls, cost):
    service = Service((FEWEST, 0.5))
    runner = runner_of(clock, service)
    ask(clock, runner, FEWEST)
    (answer,) = ask(clock, runner, 1, budget=budget)
    assert next(service.n) == FEWEST + n_calls
    assert answer.cost == cost <= budget
    end(clock, runner)


@pytest.mark.parametrize(
    ("first", "second", "cost", "stopped"),
    [
        (-0.05, 0.1, 5.0, "answered"),  # the first fails while the second runs
        (0.1, -0.01, 5.0, "answered"),  # the second fails while the first runs
        (-0.05, -0.1, 2.0, "failed:x"),  # both fail: nobody pays
    ],
)
def test_failures_of_one_or_both(clock, first, second, cost, stopped):
    service = Service((FEWEST, first), (FEWEST + 1, second))
    runner = runner_of(clock, service)
    ask(clock, runner, FEWEST)
    (answer,) = ask(clock, runner, 1)
    assert (answer.cost, answer.stopped) == (cost, stopped)
    end(clock, runner)


def test_the_first_result_counts_also_if_the_second_call_runs(clock):
    service = Service((FEWEST, 0.015), (FEWEST + 1, 0.5))
    runner = runner_of(clock, service)
    ask(clock, runner, FEWEST)
    (answer,) = ask(clock, runner, 1)
    assert float(answer.value) == FEWEST + 10.0
    assert answer.cost == 8.0
    end(clock, runner)


def test_a_timeout_and_a_deadline_still_count(clock):
    service = Service((FEWEST, 9.0), (FEWEST + 1, 9.0))
    runner = runner_of(clock, service, timeout=0.1)
    ask(clock, runner, FEWEST)
    (answer,) = ask(clock, runner, 1)
    assert answer.stopped == "failed:x"
    assert answer.elapsed == pytest.approx(0.110, abs=0.01)
    service.slow |= dict.fromkeys(range(FEWEST + 2, FEWEST + 10), 9.0)
    (late,) = ask(clock, runner, 1, deadline=0.05)
    assert late.stopped == "deadline"
    end(clock, runner)


def test_the_quantile_follows_the_last_calls():
    timer = HedgeTimer(0.9)
    for i in range(FEWEST):
        assert timer.after == float("inf")
        timer.count(float(i))
    assert timer.after == pytest.approx(1.05 * 17.0)
    for _ in range(300):
        timer.count(1.0)
    assert timer.after == 1.05


def test_what_cannot_be_hedged_is_refused():
    for how in (
        {"hedge": 1.0},
        {"hedge": 0.0},
        {"hedge": 0.9, "cache": Cache(len, 1.0)},
        {"hedge": 0.9, "inline": True},
    ):
        with pytest.raises(ValueError, match="hedge is a quantile"):
            extractor("x", yields="x", **how)

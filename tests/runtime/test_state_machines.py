"""Any order of operations on walks, caches, breakers, menus and reloads: what is promised holds after each."""

import asyncio
import math

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from miserly.costs import CostTable
from miserly.plan import Menu, Node, Plan, RawFeatures
from miserly.runtime import Cache, VirtualClock
from miserly.runtime._breaker import Breaker
from miserly.serve._runner_pool import MOST_ERRORS, RunnerPool
from oracles.hand_built import PLANS, rows
from oracles.policy import random_policy_plan

KEYS, TTL, TIMEOUT = st.sampled_from("ab"), 10.0, 3.0


class CacheMachine(RuleBasedStateMachine):
    """Callers ask, calls end well or badly, early, late or never; nobody gets what is not of the key, and nobody waits
    for a call whose time is up."""

    def __init__(self):
        super().__init__()
        self.time, self.n = 0.0, 0
        self.cache = Cache(lambda row: row, ttl=TTL, now=lambda: self.time)
        self.calls = []  # key, when it began, and what says that it is late
        self.waits = {}  # when each caller that joined began to wait, and for which key

    def arrive(self, caller, key):
        def waiter(result, error):
            assert (result is None) != (error is None)
            assert error is not None or result[0] == key
            self.waits.pop(caller, None)

        return waiter

    @rule(key=KEYS)
    def ask(self, key):
        self.n += 1
        began = self.time

        def is_late():
            return self.time - began > TIMEOUT

        self.waits[self.n] = began, key
        young = [call for call in self.calls if call[0] == key and not call[2]()]
        if self.cache.ask(key, self.arrive(self.n, key), is_late):
            assert not young, "one call in flight"
            del self.waits[self.n]
            self.calls.append((key, began, is_late))
        else:
            assert young or self.n not in self.waits, "who waits has somebody to wait for"

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), is_good=st.booleans())
    def land(self, data, is_good):
        key, began, is_late = self.calls.pop(data.draw(st.integers(0, len(self.calls) - 1)))
        self.cache.land(key, (key, began) if is_good else None, None if is_good else ValueError(), is_late)
        if is_good:
            assert not [k for _, k in self.waits.values() if k == key]

    @rule(seconds=st.sampled_from([0.5, 2.0, 20.0]))
    def wait(self, seconds):
        self.time += seconds

    @invariant()
    def flights_are_calls(self):
        assert set(self.cache._flights) <= {key for key, _, _ in self.calls}


class BreakerMachine(RuleBasedStateMachine):
    """It opens at a rate of one half, lets one call try in each pause, and closes when one returns."""

    def __init__(self):
        super().__init__()
        self.time, self.last = 0.0, []
        self.breaker = Breaker(2, 8.0, lambda: self.time)

    @rule(is_good=st.booleans())
    def call(self, is_good):
        was_open = self.breaker.is_open
        if not self.breaker.allows():
            assert was_open
            assert not self.breaker.allows(), "no second one in a pause"
            return
        self.breaker.count(is_good)
        if was_open:
            assert self.breaker.is_open == (not is_good)
            self.last = []
        elif not is_good or self.breaker.has_failures:
            self.last = [*self.last, is_good][-4:]
            assert self.breaker.is_open == (self.last.count(False) >= 2)

    @rule(seconds=st.sampled_from([0.01, 0.1, 8.0]))
    def wait(self, seconds):
        self.time += seconds

    @invariant()
    def it_recovers(self):
        assert not self.breaker.is_open or self.breaker._retry_at <= self.time + self.breaker.recovery


WALKED = [*(PLANS[name]() for name in ("forest", "anytime", "cascade", "anytime_trees")), random_policy_plan(0)]


class WalkMachine(RuleBasedStateMachine):
    """Values come, fail or are stopped in any order: the budget holds, nothing is bought twice, and there is always a
    prediction; what fails nothing is the batch."""

    @initialize(
        plan=st.sampled_from(WALKED), budget=st.sampled_from([0.0, 1.0, 6.0, 30.0, math.inf]), seed=st.integers(0, 20)
    )
    def begin(self, plan, budget, seed):
        self.plan, self.budget, self.is_disturbed = plan, budget, False
        self.x = rows(1, seed, 0.0, len(plan.costs.features))[0]
        known = {name: self.x[plan.tables.feature_numbers[name]] for name in plan.tables.known_at_first(0)}
        self.walk = plan.start(budget, known)

    @precondition(lambda self: self.walk.needs)
    @rule()
    def supply(self):
        arriving = self.plan.tables.arriving(self.walk.owned, self.walk.asked)
        self.walk.supply({name: self.x[self.plan.tables.feature_numbers[name]] for name in arriving})

    @precondition(lambda self: self.walk.needs)
    @rule(data=st.data())
    def fail(self, data):
        self.is_disturbed = True
        name = data.draw(st.sampled_from(self.plan.costs.acquisitions))
        self.walk.fail(name)
        assert name not in self.walk.needs

    @precondition(lambda self: not self.walk.done)
    @rule()
    def stop(self):
        self.is_disturbed = True
        self.walk.stop("deadline")
        assert self.walk.stopped == "deadline"

    @precondition(lambda self: self.walk.done)
    @rule(name=st.sampled_from(["a", "deadline"]))
    def nothing_changes_the_end(self, name):
        before = self.walk.stopped, self.walk.cost
        self.walk.stop(name)
        self.walk.fail(self.plan.costs.acquisitions[0])
        assert (self.walk.stopped, self.walk.cost) == before

    @invariant()
    def promises(self):
        if not hasattr(self, "walk"):
            return
        walk = self.walk
        assert np.isfinite(walk.best.score).all()
        assert walk.cost <= self.budget or walk.cost == 0.0
        assert len(set(walk.bought)) == len(walk.bought)
        assert walk.done == (not walk.needs)
        if walk.done and not self.is_disturbed:
            run = self.plan.run(self.x[None], budget=None if self.budget == math.inf else self.budget)
            np.testing.assert_array_equal(walk.best.score, run.score[0])
            assert walk.cost == run.cost[0]


def constant(value, price=1.0):
    costs = CostTable.per_feature({"x": price})
    return Plan(costs, RawFeatures([0]), (Node([0], [0.0], value),), [0.0])


class ReloadMachine(RuleBasedStateMachine):
    """New plans come, requests begin, end and fail: each ends with the plan that it began with, and a plan that makes
    requests fail gives way to the one before it."""

    def __init__(self):
        super().__init__()
        self.clock = VirtualClock()
        self.open, self.n = [], 0

        async def make():
            return RunnerPool(constant(0.0), None, 8, clock=self.clock)

        self.pool = self.clock.run(make())
        self.expected = [0.0]

    def do(self, work):
        async def run():
            work()
            await asyncio.sleep(0)

        self.clock.run(run())

    @rule()
    def take_over(self):
        self.n += 1
        self.clock.run(self.pool.take_over(constant(float(self.n))))
        self.expected = [*self.expected[-1:], float(self.n)]

    @rule()
    def begin(self):
        active = self.pool.begin()
        self.open.append((active, self.expected[-1]))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def end(self, data):
        active, value = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        assert active.runner.predict({"x": 1.0}).value == value, "it ends with the plan that it began with"
        self.do(lambda: self.pool.end(active))

    @rule()
    def fail(self):
        def work():
            for _ in range(MOST_ERRORS):
                self.pool.note_error(self.pool.active)

        self.do(work)
        self.expected = self.expected[:1]

    @invariant()
    def the_right_plan_is_at_work(self):
        assert self.pool.active.runner.predict({"x": 1.0}).value == self.expected[-1]
        assert self.pool.active.in_flight == sum(active is self.pool.active for active, _ in self.open)

    def teardown(self):
        for active, _ in self.open:
            self.do(lambda active=active: self.pool.end(active))
        self.clock.run(self.pool.aclose())
        self.clock.close()


class MenuMachine(RuleBasedStateMachine):
    """Budgets in any order: a cap is never above the budget, and what is predicted to be better is never refused."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 3))
        y = X @ [1.0, 2.0, 3.0]
        costs = CostTable.per_feature({"a": 1.0, "b": 3.0, "c": 10.0})
        plans = [
            Plan(costs, RawFeatures(range(3)), (Node(range(k), np.arange(1.0, k + 1)),), [0.0], means=np.zeros(3))
            for k in (1, 2, 3)
        ]
        self.menu = Menu.measured(plans, X, lambda plan, run: -float(np.mean((plan.read(run.z) - y) ** 2)))
        self.X, self.seen = X, []

    @rule(budget=st.floats(0.0, 20.0))
    def ask(self, budget):
        assert (self.menu.predict_cost(self.X, budget=budget) <= budget + 1e-12).all()
        error = np.mean((self.menu.predict(self.X, budget=budget) - self.X @ [1.0, 2.0, 3.0]) ** 2)
        for other, theirs in self.seen:
            assert error <= theirs + 1e-12 if budget >= other else error >= theirs - 1e-12
        self.seen.append((budget, error))


def case(machine, n=40):
    machine.TestCase.settings = settings(max_examples=n, stateful_step_count=25, deadline=None)
    return machine.TestCase


TestCache, TestBreaker = case(CacheMachine), case(BreakerMachine)
TestWalk, TestReload, TestMenu = case(WalkMachine, 25), case(ReloadMachine, 10), case(MenuMachine, 10)

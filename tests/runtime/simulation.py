"""One seeded schedule of the runtime in virtual time: requests, latencies, failures, cancellations, a new plan.

`simulate(seed)` replays a schedule exactly. It raises an AssertionError if a promise is broken. Two schedules in three
are calm, so that most rows are answered and can be compared with the batch; the others are as hostile as can be.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter

import numpy as np

from miserly.plan import Plan
from miserly.runtime import BadRow, Cache, VirtualClock, extractor
from miserly.serve._runner_pool import RunnerPool
from oracles.hand_built import PLANS, rows

NAMES = ("forest", "anytime", "anytime_trees", "anytime_trees_free", "rank")
MADE: dict[str, tuple[Plan, np.ndarray]] = {}


def plan_of(name):
    """A hand-built plan and some rows for it."""
    if name not in MADE:
        plan = PLANS[name]()
        MADE[name] = plan, rows(8, 3, 0.1 if plan.can_miss else 0.0, len(plan.costs.features))
    return MADE[name]


class Behaviour:
    """How one extractor behaves: how long it takes, and how often it fails, hangs or calls a row bad."""

    def __init__(self, draw, hostility):
        is_calm = draw.random() >= hostility
        self.seconds = draw.choice((0.0, 0.001, 0.01, 0.05))
        self.fails = 0.0 if is_calm else draw.choice((0.0, 0.1, 0.5, 1.0))
        self.hangs = 0.0 if is_calm else draw.choice((0.0, 0.05, 0.3))
        self.bad = 0.0 if is_calm else draw.choice((0.0, 0.1))
        self.is_async = draw.random() < 0.5
        self.timeout = draw.choice((None, 0.2) if is_calm else (None, 0.02, 0.1))
        self.retries = draw.choice((0, 0, 1, 2))
        self.workers = draw.choice((1, 2, 8))
        self.has_cache = draw.random() < 0.3
        self.is_reliable = is_calm

    def luck(self, draw):
        """What the next call does: its seconds and whether it raises, and what."""
        luck, seconds = draw.random(), self.seconds * draw.choice((0.5, 1.0, 3.0))
        if luck < self.hangs:
            return (3600.0 if self.is_async else math.inf), None
        if luck < self.hangs + self.bad:
            return seconds, BadRow("bad")
        return seconds, (ValueError("broken") if draw.random() < self.fails else None)


def extractors_of(plan, draw, clock, hostility):
    """One extractor for each acquisition and derived feature of a plan, each with a behaviour of its own."""
    made, reliable = [], set()
    costs = plan.costs
    alone = {a: [f for f in costs.features if costs.needs[f] == (a,)] for a in costs.acquisitions}
    derived = [f for f in costs.features if len(costs.needs[f]) != 1]
    for acquisition, features, needs in [
        *((a, fs, ()) for a, fs in alone.items()),
        *((None, [f], tuple(costs.needs[f])) for f in derived),
    ]:
        how = Behaviour(draw, hostility)
        is_free = acquisition is None and not needs
        made.append(_extractor(acquisition, features, needs, how, draw, clock, is_free))
        if how.is_reliable or is_free:
            reliable.add(made[-1].name)
    return made, reliable


def _extractor(acquisition, features, needs, how, draw, clock, is_free):
    def plain(row, *_):
        if not is_free:
            seconds, error = how.luck(draw)
            clock.sleep(seconds)
            if error is not None:
                raise error
        row = getattr(row, "document", row)
        return {f: row[f] for f in features}

    async def later(row, *_):
        seconds, error = how.luck(draw)
        await asyncio.sleep(seconds)
        if error is not None:
            raise error
        row = getattr(row, "document", row)
        return {f: row[f] for f in features}

    function = plain if is_free or not how.is_async else later
    function.__name__ = acquisition or f"derive_{features[0]}"
    options = {}
    if not is_free:
        options = {"timeout": how.timeout, "retries": how.retries, "workers": how.workers}
        if how.has_cache:
            options["cache"] = Cache(lambda row: getattr(row, "document", row)["#"], ttl=0.05, now=clock.now)
    return extractor(acquisition, yields=features, needs=needs, **options)(function)


def simulate(seed):
    """Run one schedule; return how its requests ended."""
    draw, clock = random.Random(seed), VirtualClock()
    name = draw.choice(NAMES)
    plan, X = plan_of(name)
    hostility = draw.choice((0.0, 0.0, 0.0, 0.0, 0.2, 1.0))
    made, reliable = extractors_of(plan, draw, clock, hostility)
    ends = Counter()
    try:
        clock.run(_schedule(draw, clock, plan, X, made, reliable, ends, hostility))
        left = asyncio.all_tasks(clock.loop)
        assert not left, f"{len(left)} tasks are left"
    finally:
        clock.close()
    return ends


async def _schedule(draw, clock, plan, X, made, reliable, ends, hostility):
    pool = RunnerPool(plan, made, 256, clock=clock)
    whole = ("answered", "budget") if len(reliable) == len(made) else ("answered",)  # nothing failed: as in a batch
    tasks = []
    for _ in range(draw.randint(3, 10)):
        await asyncio.sleep(draw.choice((0.0, 0.0, 0.003, 0.03)))
        asking = _ask_list if plan.n_outputs == 1 and draw.random() < 0.2 else _ask
        task = asyncio.ensure_future(asking(draw.randrange(1 << 30), clock, pool, plan, X, ends, hostility, whole))
        tasks.append(task)
        if draw.random() < 0.15:
            clock.loop.call_later(draw.random() * 0.05, task.cancel)
        if draw.random() < 0.1:
            await pool.take_over(plan)
    done, lost = await asyncio.wait(tasks, timeout=3000.0)
    assert not lost, "a request was lost"
    for task in done:
        if task.cancelled():
            ends["cancelled"] += 1
        else:
            task.result()
    for e, is_alone in pool.active.runner.left_alone.items():
        assert not (is_alone and e in reliable), f"{e} never failed and is left alone"
    await pool.aclose()


def _features(plan, x, i):
    return dict(zip(plan.costs.features, x.tolist())) | {"#": i}


async def _ask(seed, clock, pool, plan, X, ends, hostility, whole):
    draw = random.Random(seed)
    i = draw.randrange(len(X))
    row = _features(plan, X[i], i)
    is_pressed = draw.random() < max(0.1, hostility)
    budget = draw.choice((None, 0.0, 1.0, 5.0, 20.0)) if is_pressed else None
    deadline = draw.choice((0.0, 0.005, 0.03, 0.2, 10.0)) if is_pressed else 1000.0
    given = {f: row[f] for f in plan.costs.features if draw.random() < 0.2} if draw.random() < 0.1 else None
    began = clock.now()
    active = pool.begin()
    try:
        answer = await active.runner.apredict(row, budget, deadline, given)
    finally:
        pool.end(active)
    assert clock.now() - began <= deadline + 1e-6, "the deadline was not kept"
    _check(answer, budget, plan)
    if answer.stopped in whole and not given:
        _check_equal([answer], plan, X[[i]], budget, ends)
    ends[answer.stopped.partition(":")[0]] += 1


async def _ask_list(seed, clock, pool, plan, X, ends, hostility, whole):
    draw = random.Random(seed)
    chosen = [draw.randrange(len(X)) for _ in range(draw.randint(0, 6))]
    documents = [_features(plan, X[i], i) for i in chosen]
    is_pressed = draw.random() < max(0.1, hostility)
    budget = draw.choice((None, 0.0, 1.0, 5.0, 20.0)) if is_pressed else None
    deadline, began = draw.choice((0.0, 0.005, 0.03, 0.2)) if is_pressed else 1000.0, clock.now()
    active = pool.begin()
    try:
        ranking = await active.runner.arank("query", documents, budget, deadline)
    finally:
        pool.end(active)
    assert clock.now() - began <= deadline + 1e-6, "the deadline was not kept"
    assert sorted(ranking.order) == list(range(len(documents)))
    for answer in ranking.answers:
        _check(answer, budget, plan)
        ends[answer.stopped.partition(":")[0]] += 1
    if documents and all(answer.stopped in whole for answer in ranking.answers):
        _check_equal(ranking.answers, plan, X[chosen], budget, ends)


def _check_equal(answers, plan, X, budget, ends):
    """Rows of one request for which nothing failed get what a batch of them gets, to the bit."""
    table = plan.run(X, qid=np.zeros(len(X), int), budget=budget)
    for i, answer in enumerate(answers):
        np.testing.assert_array_equal(answer.score, table.score[i])
        assert answer.cost == table.cost[i]
        ends["equal to the batch"] += 1


def _check(answer, budget, plan):
    """What is true of every answer."""
    reason, _, who = answer.stopped.partition(":")
    assert reason in ("answered", "budget", "deadline", "failed"), answer.stopped
    assert (reason == "failed") == bool(who)
    assert budget is None or answer.cost <= budget or answer.cost == 0.0
    assert np.all(np.isfinite(answer.score))
    assert len(set(answer.acquired)) == len(answer.acquired)
    assert set(answer.acquired) <= set(plan.costs.acquisitions)

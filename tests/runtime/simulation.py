"""One seeded schedule of the runtime in virtual time: requests, latencies, failures, cancellations, a new plan.

`simulate(seed)` replays a schedule exactly. It raises an AssertionError if a promise is broken.
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
        is_calm = draw.random() > hostility
        self.seconds = draw.choice((0.0, 0.001, 0.01, 0.05))
        self.fails = 0.0 if is_calm else draw.choice((0.0, 0.1, 0.5, 1.0))
        self.hangs = 0.0 if is_calm else draw.choice((0.0, 0.05, 0.3))
        self.bad = 0.0 if is_calm else draw.choice((0.0, 0.1))
        self.is_async = draw.random() < 0.5
        self.timeout = draw.choice((None, 0.1) if is_calm else (None, 0.02, 0.1))
        self.retries = draw.choice((0, 0, 1, 2))
        self.workers = draw.choice((1, 2, 8))
        self.has_cache = draw.random() < 0.3
        self.is_reliable = not (self.fails or self.hangs or self.bad) and self.timeout is None

    def luck(self, draw):
        """What the next call does: its seconds and whether it raises, and what."""
        luck, seconds = draw.random(), self.seconds * draw.choice((0.5, 1.0, 3.0))
        if luck < self.hangs:
            return (3600.0 if self.is_async else math.inf), None
        if luck < self.hangs + self.bad:
            return seconds, BadRow("bad")
        return seconds, (ValueError("broken") if draw.random() < self.fails else None)


def extractors_of(plan, draw, clock):
    """One extractor for each acquisition and derived feature of a plan, each with a behaviour of its own."""
    made, reliable, hostility = [], set(), draw.choice((0.0, 0.2, 1.0))
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
    made, reliable = extractors_of(plan, draw, clock)
    ends = Counter()
    try:
        clock.run(_schedule(draw, clock, plan, X, made, reliable, ends))
        left = asyncio.all_tasks(clock.loop)
        assert not left, f"{len(left)} tasks are left"
    finally:
        clock.close()
    return ends


async def _schedule(draw, clock, plan, X, made, reliable, ends):
    pool = RunnerPool(plan, made, 256, clock=clock)
    table = plan.run(X)
    tasks = []
    for _ in range(draw.randint(3, 10)):
        await asyncio.sleep(draw.choice((0.0, 0.0, 0.003, 0.03)))
        asking = _ask_list if plan.n_outputs == 1 and draw.random() < 0.2 else _ask
        task = asyncio.ensure_future(asking(draw.randrange(1 << 30), clock, pool, plan, X, table, ends))
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


async def _ask(seed, clock, pool, plan, X, table, ends):
    draw = random.Random(seed)
    i = draw.randrange(len(X))
    row = _features(plan, X[i], i)
    budget = draw.choice((None, None, 0.0, 1.0, 5.0, 20.0))
    deadline = draw.choice((None, 0.0, 0.005, 0.03, 0.2)) if draw.random() < 0.8 else 10.0
    given = {f: row[f] for f in plan.costs.features if draw.random() < 0.2} if draw.random() < 0.2 else None
    if deadline is None:
        deadline = 1000.0  # whatever hangs without a timeout would hold it for ever
    began = clock.now()
    active = pool.begin()
    try:
        answer = await active.runner.apredict(row, budget, deadline, given)
    finally:
        pool.end(active)
    assert clock.now() - began <= deadline + 1e-6, "the deadline was not kept"
    _check(answer, budget, plan)
    if answer.stopped == "answered" and not given and not plan.by_query:
        np.testing.assert_array_equal(answer.score, table.score[i])
        assert answer.cost == table.cost[i]
    ends[answer.stopped.partition(":")[0]] += 1


async def _ask_list(seed, clock, pool, plan, X, table, ends):
    draw = random.Random(seed)
    documents = [_features(plan, X[i], i) for i in range(draw.randint(0, len(X)))]
    deadline, began = draw.choice((0.0, 0.005, 0.03, 0.2, 1000.0)), clock.now()
    active = pool.begin()
    try:
        ranking = await active.runner.arank("query", documents, None, deadline)
    finally:
        pool.end(active)
    assert clock.now() - began <= deadline + 1e-6, "the deadline was not kept"
    assert sorted(ranking.order) == list(range(len(documents)))
    for answer in ranking.answers:
        _check(answer, None, plan)
        ends[answer.stopped.partition(":")[0]] += 1


def _check(answer, budget, plan):
    """What is true of every answer."""
    reason, _, who = answer.stopped.partition(":")
    assert reason in ("answered", "budget", "deadline", "failed"), answer.stopped
    assert (reason == "failed") == bool(who)
    assert budget is None or answer.cost <= budget or answer.cost == 0.0
    assert np.all(np.isfinite(answer.score))
    assert len(set(answer.acquired)) == len(answer.acquired)
    assert set(answer.acquired) <= set(plan.costs.acquisitions)

"""The on-demand runtime: a plan decides, row by row, what to compute next, and answers in time whatever happens."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import perf_counter
from types import TracebackType
from typing import Any

from miserly.plan import Plan
from miserly.runtime._answer import Answer, Ranking
from miserly.runtime._breaker import Breaker
from miserly.runtime._cache import Cache
from miserly.runtime._extractor import Extractor, Pair
from miserly.runtime._extractor_set import ExtractorSet
from miserly.runtime._given import NOTHING_GIVEN
from miserly.runtime._outcome import Outcome, perform, perform_one
from miserly.runtime._request import Job, Request
from miserly.runtime._session import Session
from miserly.runtime._workers import Deliver, Workers

Features = Mapping[str, Any]
FindLoop = Callable[[], asyncio.AbstractEventLoop]
Delivery = tuple[Job, Sequence[Outcome]]
SHUT = Outcome(None, ConnectionError("left alone after repeated failures"))
LAST_STEPS, STEP = 0.005, 0.0002  # seconds


class OnDemand:
    """Runs a plan with extractors: buys what the plan asks for, within a budget and a deadline.

    An extractor that fails `failures` times in a row is left alone for a while, up to `recovery` seconds; answers do
    without it. Close the runner, or use it in a `with` statement, to end its threads.
    """

    def __init__(
        self, plan: Plan, extractors: Iterable[Extractor], *, failures: int = 8, recovery: float = 30.0
    ) -> None:
        self.plan = plan
        self._kit = ExtractorSet(plan, extractors)
        self._breakers = {e.name: Breaker(failures, recovery) for e in self._kit.extractors}
        self._workers = Workers()
        _warm_up(plan)

    # ---- asking ---------------------------------------------------------------------------------------------------

    def predict(
        self, row: Any, budget: float | None = None, deadline: float | None = None, given: Features | None = None
    ) -> Answer:
        """Answer one row. The budget is in the plan's unit, the deadline in seconds from now. What yields only features
        that are `given` is neither called nor paid."""
        session = self._session(row, budget, given)
        if deadline is None and self._kit.is_plain:
            session.call_plain(self._breakers)
            if not session.done:
                self._call_inline(session)
        else:
            self._drive(Request([session], session.began, deadline))
        return session.answer()

    async def apredict(
        self, row: Any, budget: float | None = None, deadline: float | None = None, given: Features | None = None
    ) -> Answer:
        """The same without blocking the event loop: plain functions run on threads."""
        session = self._session(row, budget, given)
        await self._adrive(Request([session], session.began, deadline))
        return session.answer()

    def predict_many(
        self,
        rows: Iterable[Any],
        budget: float | None = None,
        deadline: float | None = None,
        given: Sequence[Features] | None = None,
    ) -> list[Answer]:
        """Answer rows together, within one deadline: extractors declared with `many` are called once for all. Features
        are `given` for each row."""
        began = perf_counter()
        sessions = [self._session(row, budget, known) for row, known in _each(rows, given)]
        self._drive(Request(sessions, began, deadline))
        return [session.answer() for session in sessions]

    def rank(
        self,
        query: Any,
        documents: Iterable[Any],
        budget: float | None = None,
        deadline: float | None = None,
        given: Sequence[Features] | None = None,
    ) -> Ranking:
        """Rank documents within one deadline; extractors get a `Pair`, and the budget is for each document."""
        round_ = self._list_round(query, documents, budget, deadline, given)
        self._drive(round_)
        return _ranking(round_)

    async def arank(
        self,
        query: Any,
        documents: Iterable[Any],
        budget: float | None = None,
        deadline: float | None = None,
        given: Sequence[Features] | None = None,
    ) -> Ranking:
        """The same without blocking the event loop."""
        round_ = self._list_round(query, documents, budget, deadline, given)
        await self._adrive(round_)
        return _ranking(round_)

    @property
    def running(self) -> int:
        """Calls that are running now, also those for which nobody waits any more."""
        return self._workers.running

    @property
    def left_alone(self) -> dict[str, bool]:
        """Whether each extractor is left alone now, after repeated failures."""
        return {name: breaker.is_open for name, breaker in self._breakers.items()}

    def close(self, timeout: float | None = None) -> int:
        """End the threads, processes and tasks; running calls are let finish, for `timeout` seconds. Tells how many
        calls did not end in time."""
        return self._workers.close(timeout)

    async def aclose(self, timeout: float | None = None) -> int:
        """The same from an event loop, whose tasks end too."""
        await self._workers.end_tasks()
        return await asyncio.to_thread(self.close, timeout)

    async def __aenter__(self) -> OnDemand:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __enter__(self) -> OnDemand:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- drivers --------------------------------------------------------------------------------------------------

    def _session(self, row: Any, budget: float | None, given: Features | None) -> Session:
        session = Session(self._kit, row)
        known = self._kit.given(given) if given else NOTHING_GIVEN
        values = session.first_values(known) if known.values or self._kit.wave(0, 0).extractors else {}
        limit = -1.0 if self._is_lost(session) else budget
        session.begin(self.plan.start(limit, values, self._out_of_reach(), known.owned))
        return session

    def _list_round(
        self,
        query: Any,
        documents: Iterable[Any],
        budget: float | None,
        deadline: float | None,
        given: Sequence[Features] | None,
    ) -> Request:
        began = perf_counter()
        sessions, known, values = [], [], []
        for document, features in _each(documents, given):
            sessions.append(Session(self._kit, Pair(query, document)))
            known.append(self._kit.given(features) if features else NOTHING_GIVEN)
            values.append(sessions[-1].first_values(known[-1]))
        listed = [i for i, session in enumerate(sessions) if not self._is_lost(session)]
        first = [values[i] for i in listed], self._out_of_reach(), [known[i].owned for i in listed]
        walks = self.plan.start_list(len(listed), budget, *first)
        for i, walk in zip(listed, walks.walks):
            sessions[i].begin(walk)
        for i in set(range(len(sessions))) - set(listed):
            sessions[i].begin(self.plan.start(-1.0, values[i], owned=known[i].owned))
        return Request(sessions, began, deadline, walks.settle)

    def _is_lost(self, session: Session) -> bool:
        """Whether a linear plan lacks what was to be free: then it buys nothing, and its constant answers."""
        return session.lacks_free and not self.plan.can_miss

    def _out_of_reach(self) -> list[str]:
        """The acquisitions that nobody may try now."""
        shut = [name for name, breaker in self._breakers.items() if breaker.is_open and breaker.is_shut]
        return [name for name in shut if name in self.plan.costs.prices]

    def _call_inline(self, session: Session) -> None:
        """Without a deadline, plain functions are called one after the other on the caller's thread."""
        session.go_on()
        while not session.done:
            for e in session.wanted():
                session.start(e)
                breaker = self._breakers[e.name]
                if breaker.allows():
                    outcome = perform_one(e, session.arguments(e))
                    breaker.count(outcome.error is None)
                    session.give(e, outcome)
                else:
                    session.give(e, SHUT, is_final=True)

    def _drive(self, round_: Request) -> None:
        inbox: SimpleQueue[Delivery] = SimpleQueue()

        def deliver(job: Job, outcomes: Sequence[Outcome]) -> None:
            inbox.put((job, outcomes))

        try:
            while True:
                while jobs := round_.next_jobs():  # what is left alone is given up at once, and then others are wanted
                    for job in jobs:
                        self._start(job, round_, deliver, self._workers.loop, is_inline=round_.until == math.inf)
                if round_.done:
                    return
                try:
                    round_.deliver(*_receive(inbox, round_.time_left, round_.on_threads))
                except Empty:
                    self._expire(round_)
        finally:
            round_.leave()

    async def _adrive(self, round_: Request) -> None:
        inbox: asyncio.Queue[Delivery] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def deliver(job: Job, outcomes: Sequence[Outcome]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(inbox.put_nowait, (job, outcomes))

        try:
            while True:
                while jobs := round_.next_jobs():
                    for job in jobs:
                        self._start(job, round_, deliver, lambda: loop, is_inline=False)
                if round_.done:
                    return
                try:
                    async with asyncio.timeout(round_.time_left):
                        job, outcomes = await inbox.get()
                except TimeoutError:
                    self._expire(round_)
                else:
                    round_.deliver(job, outcomes)
        finally:
            round_.leave()

    def _start(self, job: Job, round_: Request, deliver: Deliver, loop: FindLoop, is_inline: bool) -> None:
        """Begin a call: here and now, on a worker or the event loop, or by asking the cache.

        Its outcome counts for the breaker also when nobody waits for it any more: late is not dead.
        """
        e = job.extractor
        breaker = self._breakers[e.name]
        if not breaker.allows():
            round_.deliver(job, [SHUT] * len(job.sessions), is_final=True)
            return

        def done(job: Job, outcomes: Sequence[Outcome]) -> None:
            breaker.count(outcomes[0].error is None)
            deliver(job, outcomes)

        arguments = [session.arguments(e) for session in job.sessions]
        if is_inline and e.is_plain:
            done(job, perform(e, arguments))
        elif e.cache is None:
            self._workers.submit(job, arguments, done, loop)
        else:
            land = _by_cache(e.cache, job, done, deliver)
            if land is not None:
                self._workers.submit(job, arguments, land, loop)

    def _expire(self, round_: Request) -> None:
        for job in round_.expire():
            self._breakers[job.extractor.name].count(False)


def _by_cache(cache: Cache, job: Job, done: Deliver, deliver: Deliver) -> Deliver | None:
    """Take the result that is kept, or join the call in flight. None of both: what to do with the call's outcome."""
    try:
        key = cache.key(job.sessions[0].row)
        if not cache.ask(key, lambda result, error: deliver(job, [Outcome(result, error, is_cached=True)])):
            return None
    except Exception as error:  # the user's key is wrong for this row
        deliver(job, [Outcome(None, error)])
        return None

    def land(job: Job, outcomes: Sequence[Outcome]) -> None:
        cache.land(key, outcomes[0].result, outcomes[0].error)
        done(job, outcomes)

    return land


def _warm_up(plan: Plan) -> None:
    """Walk once with nothing but missing values, so that the first request does not wait for compiled code."""
    walk = plan.start(given=dict.fromkeys(plan.arriving(0, 0), math.nan))
    while walk.needs:
        walk.supply(dict.fromkeys(plan.arriving(walk.account.owned, walk.asked), math.nan))
    _ = walk.best


def _each(rows: Iterable[Any], given: Sequence[Features] | None) -> list[tuple[Any, Features | None]]:
    """Rows with what is given for each."""
    listed = list(rows)
    if given is not None and len(given) != len(listed):
        raise ValueError(f"Features are given for each row: got {len(given)} for {len(listed)} rows.")
    return list(zip(listed, given if given is not None else [None] * len(listed)))


def _receive(inbox: SimpleQueue[Delivery], time_left: float | None, in_steps: bool) -> Delivery:
    """The next outcome, or `Empty` when the time is over. Beside threads a wait ends in short steps: a waiter that has
    slept for long may wake on the core where a call computes and stay there until the scheduler's next tick."""
    if time_left is None or not in_steps:
        return inbox.get(timeout=time_left)
    until = perf_counter() + time_left
    wait = time_left - LAST_STEPS
    while True:
        with suppress(Empty):
            return inbox.get(timeout=max(0.0, wait))
        left = until - perf_counter()
        if left <= 0:
            raise Empty
        wait = min(left, STEP)


def _ranking(round_: Request) -> Ranking:
    """Later tiers first, then higher scores; ties go to the document that came first."""
    answers = tuple(session.answer() for session in round_.sessions)
    order = sorted(range(len(answers)), key=lambda i: (-answers[i].tier, -answers[i].score[0]))
    return Ranking(tuple(order), answers, perf_counter() - round_.began)

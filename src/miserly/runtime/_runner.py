"""The on-demand runtime: a plan decides, row by row, what to compute next, and answers in time whatever happens."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import lru_cache
from queue import Empty
from types import TracebackType
from typing import Any, NamedTuple

from miserly.costs import Caps, read_budget, tighter
from miserly.plan import Budget, ListWalk, Menu, Plan, Walk
from miserly.runtime._answer import Answer, Ranking
from miserly.runtime._breaker import Breaker
from miserly.runtime._cache import Cache
from miserly.runtime._calls import BLAMELESS, CallOutcome, perform, perform_one
from miserly.runtime._clock import REAL, Clock
from miserly.runtime._extractor import Extractor, Pair
from miserly.runtime._extractor_set import ExtractorSet
from miserly.runtime._given import NOTHING_GIVEN
from miserly.runtime._hedging import HedgeTimer
from miserly.runtime._request import PendingCall, Request, end_of
from miserly.runtime._session import Session
from miserly.runtime._spending import SpendCap
from miserly.runtime._till import Till, prices_under
from miserly.runtime._workers import Deliver, Workers

Features = Mapping[str, Any]
FindLoop = Callable[[], asyncio.AbstractEventLoop]
Built = Generator[None, None, Request]
LEFT_ALONE = CallOutcome(None, ConnectionError("left alone after repeated failures"))
REMEMBERED = 1024  # budgets whose choice from a menu is kept
SLICE = 0.002  # seconds of computing after which the event loop gets its chance


class Chosen(NamedTuple):
    """The plan that answers a request, the cap under which it runs, and its extractors."""

    plan: Plan
    cap: float | Caps | None
    extractors: ExtractorSet


class OnDemand:
    """Runs a plan or a menu with extractors: buys what the plan asks for, within a budget and a deadline.

    No error of an extractor reaches the caller: every answer has a value and the reason why it stopped. Close the
    runner, or use it in a `with` statement, to end its threads.

    Parameters
    ----------
    plan : Plan or Menu
        What decides. Of a menu, the budget of each request chooses the plan.
    extractors : iterable of Extractor
        Functions for everything that the plan may buy; checked here.
    failures : int, default 8
        An extractor of whose last 2 × `failures` calls so many failed is left alone for a while, 1 or more. Only its
        own errors and its own `timeout` count: not a request's deadline, not a `BadRow`.
    recovery : float, default 30.0
        The longest time in seconds for which an extractor is left alone before it is tried again.
    clock : Clock, default the machine's
        Where time comes from; tests and simulations pass a `VirtualClock`.
    spend_cap : SpendCap, str or None, default None
        The most that calls may cost over time, such as "50USD/day". What it leaves no money for is not bought: the
        prediction goes on with what is free, and `stopped` says "spend-cap:" and the limit.

    Attributes
    ----------
    plan : Plan
        The plan that it runs; of a menu, the one without a cap.
    menu : Menu or None
        The menu that it runs, if it is one.
    spend_cap : SpendCap or None
        The cap, if there is one.
    watch : callable or None
        Gets the values that each row of `apredict` and `predict_many` bought or was given, by feature.

    Examples
    --------
    >>> import miserly as ms
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> plan = Plan(ms.CostTable.per_feature({"n_words": 2.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.0])
    >>> @ms.extractor("n_words", yields="n_words")
    ... def n_words(mail):
    ...     return len(mail.split())
    >>> with ms.OnDemand(plan, [n_words]) as runner:
    ...     answer = runner.predict("two words", budget=5.0)
    >>> float(answer.value), answer.cost, answer.stopped
    (2.0, 2.0, 'answered')
    """

    def __init__(
        self,
        plan: Plan | Menu,
        extractors: Iterable[Extractor],
        *,
        failures: int = 8,
        recovery: float = 30.0,
        clock: Clock = REAL,
        spend_cap: SpendCap | str | None = None,
    ) -> None:
        self.menu = plan if isinstance(plan, Menu) else None
        self.plan = plan.choose().plan if isinstance(plan, Menu) else plan
        given = list(extractors)
        plans = [self.plan] if self.menu is None else list(self.menu.plans)
        self._sets = [ExtractorSet(p, given) for p in plans]
        self._alone = Chosen(plans[0], None, self._sets[0])
        self._from_menu = lru_cache(REMEMBERED)(self._choose_from_menu)
        self._clock, self._now = clock, clock.now
        names = {e.name for known in self._sets for e in known.extractors}
        self._breakers = {e.name: Breaker(failures, recovery, clock.now) for e in given if e.name in names}
        self.spend_cap = SpendCap(spend_cap, now=clock.wall) if isinstance(spend_cap, str) else spend_cap
        self._till = self._open_till()
        self._workers = Workers(clock, self._till)
        self._has_other_costs = bool(self.plan.costs.exchange) or any(
            max(p.costs.evaluation_prices(len(p.dictionary)), default=0.0) > 0 for p in plans
        )
        self._most_paid = max(p.tables.most_expensive for p in plans)
        self._timers = {e.name: HedgeTimer(e.hedge) for e in given if e.hedge is not None and e.name in names}
        self.watch: Callable[[Mapping[str, float]], None] | None = None
        for p in plans:
            _warm_up(p)

    # ---- asking ---------------------------------------------------------------------------------------------------

    def predict(
        self, row: Any, budget: Budget = None, deadline: float | None = None, given: Features | None = None
    ) -> Answer:
        """Answer one row.

        Parameters
        ----------
        row : object
            What the extractors take.
        budget : float, mapping or None, default None
            The most that the row may cost, in the plan's unit, 0 or more; None: no limit.
        deadline : float or None, default None
            Seconds from now until an answer is due, 0 or more; None: no limit.
        given : mapping or None, default None
            Features that the caller has already. What yields only these is neither called nor paid.

        Returns
        -------
        Answer
            The value, its cost and the reason why it stopped.
        """
        session = self._session(row, budget, given)
        if deadline is None and session.extractors.is_plain:
            if self._till is None:
                session.call_plain(self._breakers)
            if not session.done:
                self._call_inline(session)
        else:
            self._drive(Request([session], session.began, self._now, deadline, None, self._hedge_after))
        return session.answer()

    async def apredict(
        self, row: Any, budget: Budget = None, deadline: float | None = None, given: Features | None = None
    ) -> Answer:
        """Answer one row without blocking the event loop: plain functions run on threads.

        Parameters and result are those of `predict`.
        """
        session = self._session(row, budget, given)
        await self._adrive(Request([session], session.began, self._now, deadline, None, self._hedge_after))
        self._show([session])
        return session.answer()

    def predict_many(
        self,
        rows: Iterable[Any],
        budget: Budget = None,
        deadline: float | None = None,
        given: Sequence[Features] | None = None,
    ) -> list[Answer]:
        """Answer rows together: extractors declared with `many` are called once for all that want them.

        Parameters
        ----------
        rows : iterable
            What the extractors take.
        budget : float, mapping or None, default None
            The most that each row may cost.
        deadline : float or None, default None
            Seconds from now until all answers are due.
        given : sequence of mappings or None, default None
            Features that the caller has already, one mapping for each row.

        Returns
        -------
        list of Answer
            One for each row, in their order.
        """
        began = self._now()
        sessions = [self._session(row, budget, known) for row, known in _each(rows, given)]
        self._drive(Request(sessions, began, self._now, deadline, None, self._hedge_after))
        self._show(sessions)
        return [session.answer() for session in sessions]

    def _show(self, sessions: Iterable[Session]) -> None:
        if self.watch is not None:
            for session in sessions:
                self.watch(session.values)

    def rank(
        self,
        query: Any,
        documents: Iterable[Any],
        budget: Budget = None,
        deadline: float | None = None,
        given: Sequence[Features] | None = None,
    ) -> Ranking:
        """Rank the documents of a query.

        Parameters
        ----------
        query : object
            What all documents are compared with; extractors get a `Pair` of it and the document.
        documents : iterable
            What is ranked.
        budget : float, mapping or None, default None
            The most that each document may cost.
        deadline : float or None, default None
            Seconds from now until the ranking is due.
        given : sequence of mappings or None, default None
            Features that the caller has already, one mapping for each document.

        Returns
        -------
        Ranking
            The order, and an answer for each document.
        """
        building = self._list_request(query, documents, budget, deadline, given)
        while True:
            try:
                next(building)
            except StopIteration as built:
                request: Request = built.value
                break
        self._drive(request)
        return _ranking(request, self._now())

    async def arank(
        self,
        query: Any,
        documents: Iterable[Any],
        budget: Budget = None,
        deadline: float | None = None,
        given: Sequence[Features] | None = None,
    ) -> Ranking:
        """Rank the documents of a query without blocking the event loop.

        Parameters and result are those of `rank`.
        """
        building = self._list_request(query, documents, budget, deadline, given)
        until = self._now() + SLICE
        while True:
            try:
                next(building)
            except StopIteration as built:
                request: Request = built.value
                break
            if self._now() > until:
                await asyncio.sleep(0)
                until = self._now() + SLICE
        await self._adrive(request)
        return _ranking(request, self._now())

    @property
    def running(self) -> int:
        """Calls that are running now, also those for which nobody waits any more."""
        return self._workers.running

    @property
    def left_alone(self) -> dict[str, bool]:
        """Whether each extractor is left alone now, after repeated failures."""
        return {name: breaker.is_open for name, breaker in self._breakers.items()}

    @property
    def failure_causes(self) -> dict[tuple[str, str], int]:
        """Failures of each extractor so far, by cause ("error", "timeout")."""
        return {(name, cause): n for name, breaker in self._breakers.items() for cause, n in breaker.causes.items()}

    def close(self, timeout: float | None = None) -> int:
        """End the threads, processes and tasks.

        Parameters
        ----------
        timeout : float or None, default None
            Seconds for which running calls are let finish; None: as long as they take.

        Returns
        -------
        int
            How many calls did not end in time.
        """
        return self._workers.close(timeout)

    async def aclose(self, timeout: float | None = None) -> int:
        """End everything from an event loop, whose tasks end too. Parameter and result are those of `close`."""
        await self._workers.end_tasks(*(() if timeout is None else (timeout,)))
        return await self._clock.beside(lambda: self.close(timeout))

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

    # ---- requests -------------------------------------------------------------------------------------------------

    def _choose(self, budget: float | Caps | None) -> Chosen:
        """The plan that answers under a budget, and the cap that it keeps."""
        return self._alone._replace(cap=budget) if self.menu is None else self._from_menu(budget)

    def _choose_from_menu(self, budget: float | Caps | None) -> Chosen:
        assert self.menu is not None
        choice = self.menu.choose(budget)
        return Chosen(choice.plan, choice.cap, self._sets[choice.number])

    def _open_till(self) -> Till | None:
        """Where calls are paid; None if nobody counts what they really cost."""
        costs, called = self.plan.costs, [e for known in self._sets for e in known.extractors]
        prices = {name: price for known in self._sets for name, price in known.price.items()}
        if self.spend_cap is not None:
            prices = prices_under(self.spend_cap, costs, called, prices)
        till = Till(self.spend_cap, prices)
        return till if any(till.serves(e) for e in called) else None

    def _within(self, budget: Budget) -> tuple[float | Caps | None, str]:
        """The budget of a row that begins now, and the spending limit that makes it smaller, if one does.

        Where evaluating a plan has a price, or prices have other currencies too, the budget stays: that is not what a
        spending limit counts.
        """
        if isinstance(budget, Mapping):
            budget = read_budget(budget, self.plan.costs.exchange, self.plan.costs.unit)
        if self._till is None or self.spend_cap is None:
            return budget, ""
        left, limit = self.spend_cap.left()
        total = budget.total if isinstance(budget, Caps) else budget
        if left >= self._most_paid or (total is not None and total <= left):
            return budget, ""
        return (budget if self._has_other_costs else tighter(budget, left)), limit

    def _session(self, row: Any, budget: Budget, given: Features | None) -> Session:
        budget, spending = self._within(budget)
        plan, cap, extractors = self._choose(budget)
        session = Session(extractors, row, self._now, spending)
        known = extractors.given(given) if given else NOTHING_GIVEN
        values = session.first_values(known) if known.values or extractors.batch(0, 0).extractors else {}
        limit = -1.0 if _is_lost(session, plan) else cap
        session.leave_out(unpaid := self._unpaid(extractors, spending))
        session.begin(_start(plan, limit, values, self._out_of_reach(plan, unpaid), known.owned))
        return session

    def _list_request(
        self,
        query: Any,
        documents: Iterable[Any],
        budget: Budget,
        deadline: float | None,
        given: Sequence[Features] | None,
    ) -> Built:
        """Begin the documents one by one, with a pause after each; those after the deadline get no values at all."""
        began = self._now()
        until = end_of(began, deadline)
        budget, spending = self._within(budget)
        plan, cap, extractors = self._choose(budget)
        walks: ListWalk = plan.start_list(0, cap)
        open_gates = walks.open_gates
        unpaid = self._unpaid(extractors, spending)
        limit, unavailable = math.inf if cap is None else cap, self._out_of_reach(plan, unpaid)
        sessions, late = [], None
        for document, features in _each(documents, given):
            session = Session(extractors, Pair(query, document), self._now, spending)
            session.leave_out(unpaid)
            sessions.append(session)
            known = extractors.given(features) if features else NOTHING_GIVEN
            if session.began >= until:
                late = late or _late_walk(plan)
                session.begin(late)
            else:
                values = session.first_values(known)
                if _is_lost(session, plan):
                    session.begin(plan.start(-1.0, values, owned=known.owned))
                elif plan.by_query:
                    session.begin(walks.add(plan, limit, values, unavailable, known.owned))
                else:
                    session.begin(_start(plan, limit, values, unavailable, known.owned))
            yield
        if self._now() < until:
            open_gates()
        return Request(sessions, began, self._now, deadline, open_gates, self._hedge_after)

    def _hedge_after(self, e: Extractor) -> float:
        return self._timers[e.name].after if e.name in self._timers else math.inf

    def _out_of_reach(self, plan: Plan, unpaid: Sequence[str] = ()) -> list[str]:
        """The acquisitions that nobody may try now, or that cannot be paid."""
        shut = [name for name, breaker in self._breakers.items() if breaker.is_open and breaker.is_shut]
        return [*(name for name in shut if name in plan.costs.prices and name not in unpaid), *unpaid]

    def _unpaid(self, extractors: ExtractorSet, limit: str) -> list[str]:
        """The acquisitions that a spending limit leaves no money for, where it is no budget."""
        if not limit or not self._has_other_costs or self._till is None or self.spend_cap is None:
            return []
        left = self.spend_cap.left()[0]
        return [e.acquisition for e in extractors.extractors if e.acquisition and self._till.exceeds(e, left)]

    # ---- drivers --------------------------------------------------------------------------------------------------

    def _call_inline(self, session: Session) -> None:
        """Without a deadline, plain functions are called one after the other on the caller's thread."""
        session.go_on()
        while not session.done:
            for e in session.wanted():
                session.start(e)
                breaker = self._breakers[e.name]
                if breaker.allows():
                    outcome = perform_one(e, session.arguments(e), self._now, self._till)
                    _count(breaker, outcome)
                    session.give(e, outcome)
                else:
                    session.give(e, LEFT_ALONE, is_final=True)

    def _drive(self, request: Request) -> None:
        inbox = self._clock.inbox()

        def deliver(call: PendingCall, outcomes: Sequence[CallOutcome]) -> None:
            inbox.put((call, outcomes))

        try:
            while True:
                while calls := request.next_calls():  # what is left alone is given up at once: then others are wanted
                    for call in calls:
                        self._start(call, request, deliver, self._workers.loop, is_inline=request.until == math.inf)
                    if request.is_late:
                        break
                if request.done:
                    return
                try:
                    request.deliver(*self._clock.receive(inbox, request.time_left, request.on_threads))
                except Empty:
                    self._expire(request)
        finally:
            request.leave()

    async def _adrive(self, request: Request) -> None:
        inbox: asyncio.Queue[tuple[PendingCall, Sequence[CallOutcome]]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def deliver(call: PendingCall, outcomes: Sequence[CallOutcome]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(inbox.put_nowait, (call, outcomes))

        until = self._now() + SLICE
        try:
            while True:
                while calls := request.next_calls():
                    for call in calls:
                        self._start(call, request, deliver, lambda: loop, is_inline=False)
                        if self._now() > until:
                            await asyncio.sleep(0)
                            until = self._now() + SLICE
                            if request.is_late:
                                break
                    if request.is_late:
                        break
                if request.done:
                    return
                try:
                    async with asyncio.timeout(request.time_left):
                        item = await inbox.get()
                except TimeoutError:
                    self._expire(request)
                else:
                    request.deliver(*item)
                    until = self._now() + SLICE
        finally:
            request.leave()

    def _start(self, call: PendingCall, request: Request, deliver: Deliver, loop: FindLoop, is_inline: bool) -> None:
        """Begin a call: here and now, on a worker or the event loop, or by asking the cache.

        Its outcome counts for the breaker also when nobody waits for it any more: late is not dead.
        """
        e = call.extractor
        breaker = self._breakers[e.name]
        if not breaker.allows():
            request.deliver(call, [LEFT_ALONE] * len(call.sessions), is_final=True)
            return

        def done(call: PendingCall, outcomes: Sequence[CallOutcome]) -> None:
            if not call.is_timed_out:  # that was counted when its time was up
                _count(breaker, outcomes[0])
            if e.name in self._timers and call.started is not None and outcomes[0].error is None:
                self._timers[e.name].count(self._now() - call.started)
            deliver(call, outcomes)

        arguments = [session.arguments(e) for session in call.sessions]
        if e.inline or (is_inline and e.is_plain):
            outcomes = perform(e, arguments, self._now, self._till)
            _count(breaker, outcomes[0])
            request.deliver(call, outcomes)
        elif e.cache is None:
            self._workers.submit(call, arguments, done, loop)
        else:
            land = self._by_cache(e.cache, call, done, deliver)
            if land is not None:
                self._workers.submit(call, arguments, land, loop)

    def _by_cache(self, cache: Cache, call: PendingCall, done: Deliver, deliver: Deliver) -> Deliver | None:
        """Take the result that is kept, or join the call in flight; if there is neither, return what ends a call."""
        timeout = math.inf if call.extractor.timeout is None else call.extractor.timeout

        def is_late() -> bool:
            return call.started is not None and self._now() - call.started > timeout

        def arrive(result: Any, error: BaseException | None) -> None:
            deliver(call, [CallOutcome(result, error, is_cached=True)])

        try:
            key = cache.key(call.sessions[0].row)
            call.started = self._now()  # a call that is joined has begun
            if not cache.ask(key, arrive, is_late):
                return None
            call.started = None
        except Exception as error:  # the user's key is wrong for this row
            deliver(call, [CallOutcome(None, error)])
            return None

        def land(call: PendingCall, outcomes: Sequence[CallOutcome]) -> None:
            cache.land(key, outcomes[0].result, outcomes[0].error, is_late)
            done(call, outcomes)

        return land

    def _expire(self, request: Request) -> None:
        for call in request.expire():
            self._breakers[call.extractor.name].count(False, "timeout")


def _late_walk(plan: Plan) -> Walk:
    """The walk of all documents that nobody looked at before the time was up: it buys nothing and calls nothing."""
    walk = plan.start(-1.0, dict.fromkeys(plan.tables.known_at_first(0), math.nan))
    walk.stopped = "deadline"
    return walk


def _is_lost(session: Session, plan: Plan) -> bool:
    """Whether a linear plan lacks what was to be free: then it buys nothing, and its constant answers."""
    return session.lacks_free and not plan.can_miss


def _count(breaker: Breaker, outcome: CallOutcome) -> None:
    """Count a call for the breaker, unless it says nothing about the extractor."""
    if not isinstance(outcome.error, (*BLAMELESS, asyncio.CancelledError)):
        breaker.count(outcome.error is None)


def _start(plan: Plan, limit: Any, values: Features, without: Sequence[str], owned: Sequence[str]) -> Walk:
    """Begin a row, for which an acquisition without a price is unavailable: no error reaches the caller."""
    if plan.costs.row_prices:
        return plan.start(limit, values, without, owned, tolerant=True)
    return plan.start(limit, values, without, owned)


def _warm_up(plan: Plan) -> None:
    """Walk once with nothing but missing values, so that the first request does not wait for compiled code."""
    walk = _start(plan, None, dict.fromkeys(plan.tables.arriving(0, 0), math.nan), (), ())
    while walk.needs:
        walk.supply(dict.fromkeys(plan.tables.arriving(walk.account.owned, walk.asked), math.nan))
    _ = walk.best


def _each(rows: Iterable[Any], given: Sequence[Features] | None) -> list[tuple[Any, Features | None]]:
    """Rows with what is given for each."""
    listed = list(rows)
    if given is not None and len(given) != len(listed):
        raise ValueError(f"Features are given for each row: got {len(given)} for {len(listed)} rows.")
    return list(zip(listed, given if given is not None else [None] * len(listed)))


def _ranking(request: Request, now: float) -> Ranking:
    """Later tiers first, then higher scores; ties go to the document that came first."""
    answers = tuple(session.answer() for session in request.sessions)
    order = sorted(range(len(answers)), key=lambda i: (-answers[i].tier, -answers[i].score[0]))
    return Ranking(tuple(order), answers, now - request.began)

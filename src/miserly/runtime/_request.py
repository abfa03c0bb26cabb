"""Several rows driven together, without I/O: which calls to start, who gets their outcomes, what time is left."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from miserly.runtime._calls import CallOutcome
from miserly.runtime._clock import LONGEST_WAIT, RESOLUTION
from miserly.runtime._extractor import Extractor
from miserly.runtime._session import Session

STUCK_CHECK = 0.25  # seconds between looks at whether a call that waits for a worker can still hope for one


class PendingCall:
    """One call of an extractor, for one row or, with `many`, for several.

    Attributes
    ----------
    started : float or None
        When a worker began it; its own `timeout` counts from then.
    is_abandoned : bool
        Whether nobody waits for it any more.
    is_timed_out : bool
        Whether its own time is up.
    cancel : callable or None
        Ends it, if it can be ended.
    is_stuck : callable or None
        Whether all workers hang that could begin it.
    twin : PendingCall or None
        The other one of two equal calls, the first of which counts.
    """

    __slots__ = (
        "abandoned_at",
        "cancel",
        "extractor",
        "is_abandoned",
        "is_stuck",
        "is_timed_out",
        "sessions",
        "started",
        "twin",
    )

    def __init__(self, extractor: Extractor, sessions: Sequence[Session]) -> None:
        self.extractor, self.sessions = extractor, sessions
        self.started: float | None = None
        self.is_abandoned = self.is_timed_out = False
        self.cancel: Callable[[], object] | None = None
        self.is_stuck: Callable[[], bool] | None = None
        self.twin: PendingCall | None = None

    def expires(self, now: float) -> float:
        """When its own time is up, at the earliest."""
        if self.extractor.timeout is None:
            return math.inf
        return (now if self.started is None else self.started) + self.extractor.timeout

    def abandon(self) -> None:
        """Note that nobody waits for it any more."""
        self.is_abandoned = True
        if self.cancel is not None:
            self.cancel()


class Request:
    """The sessions of one request and its deadline.

    Parameters
    ----------
    sessions : sequence of Session
        One for each row.
    began : float
        When the request began.
    now : callable
        Gives the time in seconds.
    deadline : float or None
        Seconds from `began`, 0 or more.
    open_gates : callable or None
        Opens gates that compare rows, if it can; returns whether any opened.
    hedge_after : callable or None
        Gives the seconds after which a call of an extractor is made a second time; None: none is.
    """

    def __init__(
        self,
        sessions: Sequence[Session],
        began: float,
        now: Callable[[], float],
        deadline: float | None = None,
        open_gates: Callable[[], bool] | None = None,
        hedge_after: Callable[[Extractor], float] | None = None,
    ) -> None:
        self._hedge_after = hedge_after
        self._second_calls: list[PendingCall] = []
        self.sessions, self.began, self._now, self._open_gates = sessions, began, now, open_gates
        self.until = end_of(began, deadline)
        for session in sessions:
            session.go_on()
        self._ready: list[Session] = list(sessions)
        self._n_done = 0
        self._calls: set[PendingCall] = set()

    @property
    def done(self) -> bool:
        """Whether every row has its answer."""
        while self._n_done < len(self.sessions) and self.sessions[self._n_done].done:
            self._n_done += 1
        return self._n_done == len(self.sessions)

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed."""
        return self._now() >= self.until - RESOLUTION

    @property
    def time_left(self) -> float | None:
        """Seconds until `expire` must be called; None if never."""
        now, first = self._now(), self.until
        for call in self._calls:
            first = min(first, call.expires(now))
            if call.started is None and call.is_stuck is not None:
                first = min(first, now + STUCK_CHECK)
            first = min(first, self._hedge_time(call, now))
        return None if first == math.inf else min(max(0.0, first - now), LONGEST_WAIT)

    @property
    def on_threads(self) -> bool:
        """Whether a call runs that may hold a core."""
        return not all(call.extractor.is_async for call in self._calls)

    def next_calls(self) -> list[PendingCall]:
        """The calls to start now."""
        wanting: dict[Extractor, list[Session]] = {}
        for session in self._ready:
            for e in session.wanted():
                session.start(e)
                wanting.setdefault(e, []).append(session)
        self._ready = []
        calls = []
        for e, sessions in wanting.items():
            together = e.many and e.cache is None
            calls += [PendingCall(e, sessions)] if together else [PendingCall(e, [s]) for s in sessions]
        calls += self._second_calls
        self._second_calls = []
        self._calls.update(calls)
        return calls

    def _hedge_time(self, call: PendingCall, now: float) -> float:
        """When a call is made a second time, at the earliest."""
        if call.extractor.hedge is None or call.twin is not None or self._hedge_after is None:
            return math.inf
        return (now if call.started is None else call.started) + self._hedge_after(call.extractor)

    def _hedge(self, now: float) -> None:
        """Make those calls a second time that take longer than most, if every row can pay for it."""
        for call in [c for c in self._calls if c.started is not None and now >= self._hedge_time(c, now) - RESOLUTION]:
            call.twin = call  # it is asked once only
            if all(session.pay_again(call.extractor) for session in call.sessions):
                second = PendingCall(call.extractor, call.sessions)
                call.twin, second.twin = second, call
                self._second_calls.append(second)

    def _is_beaten(self, call: PendingCall, outcomes: Sequence[CallOutcome]) -> bool:
        """Whether a call failed while its twin still runs; a call that did not fail ends its twin."""
        twin = call.twin
        if twin is None or twin is call or twin not in self._calls:
            return False
        if any(outcome.error is not None for outcome in outcomes):
            for session in call.sessions:
                session.refund(call.extractor)
            return True
        self._calls.discard(twin)
        for session in call.sessions:
            session.note_loser(call.extractor, self._now() if twin.started is None else twin.started)
        twin.abandon()
        return False

    def deliver(self, call: PendingCall, outcomes: Sequence[CallOutcome], is_final: bool = False) -> None:
        """Give the outcomes of a call to its rows, unless nobody waits for it any more."""
        if call.is_abandoned or call not in self._calls:
            return
        self._calls.discard(call)
        if self._is_beaten(call, outcomes):
            return
        for session, outcome in zip(call.sessions, outcomes):
            session.give(call.extractor, outcome, is_final)
        self._ready += call.sessions
        opener = self._open_gates
        if opener is not None and not any(session.walk.needs for session in call.sessions) and opener():
            self._ready = [session for session in self.sessions if not session.done]
            for session in self._ready:
                session.go_on()

    def expire(self) -> list[PendingCall]:
        """Act on the time: end the request at its deadline, give up single calls; return those past their own time."""
        now = self._now()
        if now >= self.until - RESOLUTION:
            self.stop("deadline")
            return []
        late = [call for call in self._calls if now >= call.expires(now) - RESOLUTION]
        for call in late:
            call.is_timed_out = True
            self._give_up(call, now, f"no result within {call.extractor.timeout:g} s")
        for call in [c for c in self._calls if c.started is None and c.is_stuck is not None and c.is_stuck()]:
            self._give_up(call, now, f"all {call.extractor.workers} workers hang")
        self._hedge(now)
        return late

    def _give_up(self, call: PendingCall, now: float, why: str) -> None:
        seconds = 0.0 if call.started is None else now - call.started
        self.deliver(call, [CallOutcome(None, TimeoutError(why), seconds)] * len(call.sessions))
        call.abandon()

    def stop(self, reason: str) -> None:
        """Answer every row with what there is."""
        for call in self._calls:
            for session in call.sessions:
                session.running[call.extractor.name] = call.started
        for session in self.sessions:
            if not session.done:
                session.give_up(reason)
        self.leave()

    def leave(self) -> None:
        """Nobody waits for the answers: end what can be ended."""
        for call in self._calls:
            call.abandon()
        self._calls.clear()
        self._ready.clear()


def end_of(began: float, deadline: float | None) -> float:
    """When a request's time is up; an error for a deadline that is no number of seconds."""
    if deadline is None:
        return math.inf
    if not deadline >= 0:
        raise ValueError(f"The deadline is a number of seconds from now, got {deadline!r}.")
    return began + deadline

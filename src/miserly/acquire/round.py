"""Several rows driven together, without I/O: which calls to start, who gets their outcomes, what time is left."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import perf_counter

from miserly.acquire.extractor import Extractor
from miserly.acquire.outcome import Outcome
from miserly.acquire.session import Session


class Job:
    """One call of an extractor, for one row or, with `many`, for several. `cancel` ends it if it can be ended."""

    __slots__ = ("cancel", "expires", "extractor", "is_abandoned", "sessions")

    def __init__(self, extractor: Extractor, sessions: Sequence[Session]) -> None:
        self.extractor, self.sessions = extractor, sessions
        self.expires = math.inf if extractor.timeout is None else perf_counter() + extractor.timeout
        self.is_abandoned = False
        self.cancel: Callable[[], object] | None = None

    def abandon(self) -> None:
        """Nobody waits for it any more."""
        self.is_abandoned = True
        if self.cancel is not None:
            self.cancel()


class Round:
    """The sessions of one request. `settle` opens gates that compare rows; `until` is the deadline."""

    def __init__(
        self, sessions: Sequence[Session], until: float = math.inf, settle: Callable[[], object] | None = None
    ) -> None:
        self.sessions, self.until, self._settle = sessions, until, settle
        self._fresh: list[Session] = list(sessions)
        self._jobs: set[Job] = set()

    @property
    def done(self) -> bool:
        """Whether every row has its answer."""
        return not self._fresh and all(session.done for session in self.sessions)

    @property
    def time_left(self) -> float | None:
        """Seconds until `expire` must be called; None if never."""
        first = min((job.expires for job in self._jobs), default=math.inf)
        first = min(first, self.until)
        return None if first == math.inf else max(0.0, first - perf_counter())

    def next_jobs(self) -> list[Job]:
        """The calls to start now."""
        wants: dict[Extractor, list[Session]] = {}
        for session in self._fresh:
            for e in session.wanted():
                session.start(e)
                wants.setdefault(e, []).append(session)
        self._fresh = []
        jobs = []
        for e, sessions in wants.items():
            together = e.many and e.cache is None
            jobs += [Job(e, sessions)] if together else [Job(e, [session]) for session in sessions]
        self._jobs.update(jobs)
        return jobs

    def deliver(self, job: Job, outcomes: Sequence[Outcome], is_final: bool = False) -> None:
        """Give the outcomes of a call to its rows, unless nobody waits for it any more."""
        if job.is_abandoned or job not in self._jobs:
            return
        self._jobs.discard(job)
        for session, outcome in zip(job.sessions, outcomes):
            session.give(job.extractor, outcome, is_final)
        self._fresh += job.sessions
        if self._settle is not None and not any(session.walk.needs for session in job.sessions):
            self._settle()
            self._fresh = [session for session in self.sessions if not session.done]
            for session in self._fresh:
                session.go_on()

    def expire(self) -> list[Job]:
        """The time is up: for the whole request, or for single calls; gives the calls that were given up."""
        now = perf_counter()
        late = [job for job in self._jobs if now >= min(job.expires, self.until)]
        if now >= self.until:
            for session in self.sessions:
                if not session.done:
                    session.give_up("deadline")
            self._fresh = []
            for job in late:
                job.abandon()
            self._jobs.clear()
            return []
        for job in late:
            error = TimeoutError(f"no result within {job.extractor.timeout:g} s")
            self.deliver(job, [Outcome(None, error, job.extractor.timeout or 0.0)] * len(job.sessions))
            job.abandon()
        return late

    def leave(self) -> None:
        """Nobody waits for the answers: end what can be ended."""
        for job in self._jobs:
            job.abandon()
        self._jobs.clear()

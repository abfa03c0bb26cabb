"""Several rows driven together, without I/O: which calls to start, who gets their outcomes, what time is left."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import perf_counter

from miserly.runtime._extractor import Extractor
from miserly.runtime._outcome import Outcome
from miserly.runtime._session import Session


class Job:
    """One call of an extractor, for one row or, with `many`, for several. `cancel` ends it if it can be ended."""

    __slots__ = ("began", "cancel", "extractor", "is_abandoned", "sessions")

    def __init__(self, extractor: Extractor, sessions: Sequence[Session]) -> None:
        self.extractor, self.sessions = extractor, sessions
        self.began = perf_counter()
        self.is_abandoned = False
        self.cancel: Callable[[], object] | None = None

    @property
    def expires(self) -> float:
        """When its own time is up."""
        return math.inf if self.extractor.timeout is None else self.began + self.extractor.timeout

    def abandon(self) -> None:
        """Nobody waits for it any more."""
        self.is_abandoned = True
        if self.cancel is not None:
            self.cancel()


class Request:
    """The sessions of one request, which has `deadline` seconds from when it `began`. `settle` opens gates that compare
    rows, if it can."""

    def __init__(
        self,
        sessions: Sequence[Session],
        began: float,
        deadline: float | None = None,
        settle: Callable[[], bool] | None = None,
    ) -> None:
        if deadline is not None and not deadline >= 0:
            raise ValueError(f"The deadline is a number of seconds from now, got {deadline!r}.")
        self.sessions, self.began, self._settle = sessions, began, settle
        self.until = math.inf if deadline is None else began + deadline
        for session in sessions:
            session.go_on()
        self._fresh: list[Session] = list(sessions)
        self._n_done = 0
        self._jobs: set[Job] = set()
        self._timed: set[Job] = set()

    @property
    def done(self) -> bool:
        """Whether every row has its answer."""
        while self._n_done < len(self.sessions) and self.sessions[self._n_done].done:
            self._n_done += 1
        return self._n_done == len(self.sessions)

    @property
    def time_left(self) -> float | None:
        """Seconds until `expire` must be called; None if never."""
        first = min((job.expires for job in self._timed), default=math.inf)
        first = min(first, self.until)
        return None if first == math.inf else max(0.0, first - perf_counter())

    @property
    def on_threads(self) -> bool:
        """Whether a call runs that may hold a core."""
        return not all(job.extractor.is_async for job in self._jobs)

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
        self._timed.update(job for job in jobs if job.extractor.timeout is not None)
        return jobs

    def deliver(self, job: Job, outcomes: Sequence[Outcome], is_final: bool = False) -> None:
        """Give the outcomes of a call to its rows, unless nobody waits for it any more."""
        if job.is_abandoned or job not in self._jobs:
            return
        self._jobs.discard(job)
        self._timed.discard(job)
        for session, outcome in zip(job.sessions, outcomes):
            session.give(job.extractor, outcome, is_final)
        self._fresh += job.sessions
        settle = self._settle
        if settle is not None and not any(session.walk.needs for session in job.sessions) and settle():
            self._fresh = [session for session in self.sessions if not session.done]
            for session in self._fresh:
                session.go_on()

    def expire(self) -> list[Job]:
        """The time is up, for the whole request or for single calls; gives the calls that are to blame: those past
        their own time, and those that took most of the request's."""
        now = perf_counter()
        if now >= self.until:
            for session in self.sessions:
                if not session.done:
                    session.give_up("deadline")
            half = (self.began + self.until) / 2
            late = [job for job in self._jobs if job.began <= half]
            self.leave()
            return late
        late = [job for job in self._timed if now >= job.expires]
        for job in late:
            error = TimeoutError(f"no result within {job.extractor.timeout:g} s")
            self.deliver(job, [Outcome(None, error, now - job.began)] * len(job.sessions))
            job.abandon()
        return late

    def leave(self) -> None:
        """Nobody waits for the answers: end what can be ended."""
        for job in self._jobs:
            job.abandon()
        self._jobs.clear()
        self._timed.clear()
        self._fresh.clear()

"""The plan at work and how a new one takes over: checked first, on probation then, and taken back if it fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter

from miserly.plan import Menu, Plan, content_hash
from miserly.runtime import REAL, Clock, Extractor, OnDemand, SpendCap, readers
from miserly.serve._admission import Admission
from miserly.serve._drift import DriftWatch
from miserly.serve._rollout import Canary, check_canaries, check_compatible
from miserly.serve._rows import RowCheck

log = logging.getLogger("miserly.serve")
GRACE = 5.0  # seconds for calls that hang when their plan is replaced
PROBATION, MOST_ERRORS = 60.0, 3  # a new plan that makes so many requests fail within these seconds is taken back


class ActivePlan:
    """A runner at work. Without extractors, rows bring their features, and reading them never waits.

    Parameters
    ----------
    plan : Plan or Menu
        What answers.
    extractors : sequence of Extractor or None
        What it calls; None: rows bring their features.
    clock : Clock, default the machine's
        Where time comes from.
    spend_cap : SpendCap or None, default None
        The most that calls may cost over time.
    """

    def __init__(
        self,
        plan: Plan | Menu,
        extractors: Sequence[Extractor] | None,
        clock: Clock = REAL,
        spend_cap: SpendCap | None = None,
    ) -> None:
        plans = plan.plans if isinstance(plan, Menu) else [plan]
        self.check = RowCheck(plans)
        self.by_query = any(one.by_query for one in plans)
        self.has_rows_at_hand = extractors is None
        known = readers(plan.costs) if extractors is None else extractors
        self.runner = OnDemand(plan, known, clock=clock, spend_cap=spend_cap)
        self.plan, self.menu = self.runner.plan, self.runner.menu
        self.version = content_hash(plan)
        self.drift = DriftWatch(plan)
        if not self.has_rows_at_hand:
            self.runner.watch = self._look
        self.in_flight = self.n_errors = 0
        self.is_retired = False

    def _look(self, values: Mapping[str, float]) -> None:
        if self.drift.takes_row:
            self.drift.row(values)


class RunnerPool:
    """The plan at work, the places for its requests, and the plans before it that still have some.

    When a new plan takes over, requests that are being answered keep the runner they began with; it is closed after the
    last of them. Calls that hang are waited for some seconds, then left behind.

    Parameters
    ----------
    plan : Plan or Menu
        The first one.
    extractors : iterable of Extractor or None
        What all plans call; None: rows bring their features.
    max_in_flight : int
        Requests answered at once, 1 or more.
    canaries : sequence of Canary, default ()
        Requests with expected answers that every new plan must pass.
    clock : Clock, default the machine's
        Where time comes from.
    spend_cap : SpendCap or None, default None
        The most that calls may cost over time, those of all plans together.
    """

    def __init__(
        self,
        plan: Plan | Menu,
        extractors: Iterable[Extractor] | None,
        max_in_flight: int,
        canaries: Sequence[Canary] = (),
        clock: Clock = REAL,
        spend_cap: SpendCap | None = None,
    ) -> None:
        self._extractors = None if extractors is None else list(extractors)
        self._canaries, self._clock, self.spend_cap = canaries, clock, spend_cap
        self.admission = Admission(max_in_flight, clock.now)
        self.active = ActivePlan(plan, self._extractors, clock, spend_cap)
        self.is_draining = False
        self.close_within = 20.0  # seconds
        self.n_rollbacks = 0
        self.taken_back: set[str] = set()  # versions that made requests fail
        self.on_rollback: Callable[[str], None] | None = None
        self._before: ActivePlan | None = None
        self._probation_ends = 0.0
        self._taking_over = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    def beside(self, plan: Plan | Menu) -> RunnerPool:
        """A pool of another plan with the same extractors, clock and places."""
        pool = RunnerPool(plan, self._extractors, 1, (), self._clock, self.spend_cap)
        pool.admission = self.admission
        return pool

    @property
    def in_flight(self) -> int:
        """Requests that are being answered."""
        return self.admission.in_flight

    def begin(self) -> ActivePlan:
        """Return the runner that answers a request to its end."""
        self.active.in_flight += 1
        return self.active

    def end(self, active: ActivePlan) -> None:
        """Note that a request has its answer."""
        active.in_flight -= 1
        if active.is_retired and not active.in_flight:
            self._close(active)

    async def take_over(self, plan: Plan | Menu) -> None:
        """Answer by another plan or menu from now on.

        One that does not fit the extractors, that clients of the present plan could not ask, or that fails a canary
        is refused with a ValueError, and all stays as it is.
        """
        async with self._taking_over:
            check_compatible(self.active.menu or self.active.plan, plan, needs_features=self._extractors is None)
            new = await self._clock.beside(lambda: ActivePlan(plan, self._extractors, self._clock, self.spend_cap))
            try:
                await check_canaries(new.runner, self._canaries)
            except ValueError:
                self._close(new)
                raise
            old, self.active = self.active, new
            self._forget_before()
            self._before, self._probation_ends = old, perf_counter() + PROBATION

    def note_error(self, active: ActivePlan) -> None:
        """Count a request that failed by an error of the server's; a new plan with several is taken back."""
        active.n_errors += 1
        before = self._before
        is_on_probation = before is not None and active is self.active and perf_counter() < self._probation_ends
        if before is not None and is_on_probation and active.n_errors >= MOST_ERRORS:
            log.error("The new plan made %d requests fail: the one before it is back.", active.n_errors)
            self.take_back(active.version)
            if self.on_rollback is not None:
                self.on_rollback(active.version)

    def take_back(self, version: str) -> None:
        """Answer by the plan before, if this version is at work and there is one before it."""
        self.taken_back.add(version)
        active, before = self.active, self._before
        if before is not None and active.version == version:
            self.n_rollbacks += 1
            self.active, self._before = before, None
            self._retire(active)

    def _forget_before(self) -> None:
        if self._before is not None:
            self._retire(self._before)
        self._before = None

    def end_probation(self) -> None:
        """Close the plan before, once the new one has proved itself (called now and then)."""
        if self._before is not None and perf_counter() > self._probation_ends:
            self._forget_before()

    def _retire(self, active: ActivePlan) -> None:
        active.is_retired = True
        if not active.in_flight:
            self._close(active)

    def _close(self, active: ActivePlan) -> None:
        task = asyncio.get_running_loop().create_task(self._end(active, GRACE))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _end(self, active: ActivePlan, grace: float) -> None:
        left = await active.runner.aclose(grace)
        if left:
            log.warning("%d calls of extractors hang; they are left behind.", left)

    async def aclose(self) -> None:
        """Wait until everything is answered, for at most `close_within` seconds, then end the threads."""
        self.is_draining = True
        until = perf_counter() + self.close_within
        while self.in_flight and perf_counter() < until:
            await asyncio.sleep(0.01)
        self._forget_before()
        grace = min(GRACE, max(0.1, until - perf_counter()))
        await asyncio.gather(self._end(self.active, grace), *self._closing)

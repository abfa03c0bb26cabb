"""The pool at which requests are answered: how many at once, by which runner, and how a new plan takes over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from miserly.plan import Plan
from miserly.runtime import Extractor, OnDemand, readers
from miserly.serve._messages import RefusedError
from miserly.serve._rows import RowCheck

log = logging.getLogger("miserly.serve")
GRACE = 5.0  # seconds


class ActivePlan:
    """A runner at work. Without extractors, rows bring their features, and reading them never waits."""

    def __init__(self, plan: Plan, extractors: Sequence[Extractor] | None) -> None:
        self.plan = plan
        self.check = RowCheck(plan)
        self.has_rows_at_hand = extractors is None
        self.runner = OnDemand(plan, readers(plan.costs) if extractors is None else extractors)
        self.in_flight = 0
        self.is_retired = False


class RunnerPool:
    """Takes at most `max_in_flight` requests at once; the rest are told to come back.

    When a new plan takes over, requests that are being answered keep the runner they began with; it is closed after the
    last of them. Calls that hang are waited for some seconds, then left behind.
    """

    def __init__(self, plan: Plan, extractors: Iterable[Extractor] | None, max_in_flight: int) -> None:
        if max_in_flight < 1:
            raise ValueError("A server answers at least one request at a time: max_in_flight must be 1 or more.")
        self._extractors = None if extractors is None else list(extractors)
        self.max_in_flight = max_in_flight
        self.active = ActivePlan(plan, self._extractors)
        self.in_flight = 0
        self.is_draining = False
        self._taking_over = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    @contextmanager
    def place(self) -> Iterator[ActivePlan]:
        """A place for one request, with the runner that answers it to its end."""
        if self.in_flight >= self.max_in_flight:
            raise RefusedError(
                f"{self.in_flight} requests are being answered already.", "server", "Try again in a second.", 503
            )
        active = self.active
        self.in_flight += 1
        active.in_flight += 1
        try:
            yield active
        finally:
            self.in_flight -= 1
            active.in_flight -= 1
            if active.is_retired and not active.in_flight:
                self._close(active)

    async def take_over(self, plan: Plan) -> None:
        """Answer by another plan from now on. One that does not fit the extractors is refused with a ValueError, and
        all stays as it is."""
        async with self._taking_over:
            new = await asyncio.to_thread(ActivePlan, plan, self._extractors)
            old, self.active = self.active, new
            old.is_retired = True
            if not old.in_flight:
                self._close(old)

    def _close(self, active: ActivePlan) -> None:
        task = asyncio.get_running_loop().create_task(self._end(active))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _end(self, active: ActivePlan) -> None:
        left = await active.runner.aclose(GRACE)
        if left:
            log.warning("%d calls of extractors hang; they are left behind.", left)

    async def aclose(self) -> None:
        """Wait until everything is answered, then end the threads."""
        self.is_draining = True
        while self.in_flight:
            await asyncio.sleep(0.01)
        await asyncio.gather(self._end(self.active), *self._closing)

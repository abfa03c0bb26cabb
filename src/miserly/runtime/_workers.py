"""Where calls run beside the caller: threads or processes of each extractor's own, and an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from time import monotonic

from miserly.runtime._calls import Arguments, CallOutcome, failed, fetched, perform, perform_async
from miserly.runtime._clock import BackgroundLoop, CallPool, Clock
from miserly.runtime._fork import reset_after_fork
from miserly.runtime._pool import PoolClosedError
from miserly.runtime._process_pool import ProcessPool
from miserly.runtime._request import PendingCall
from miserly.runtime._till import Till

Deliver = Callable[[PendingCall, Sequence[CallOutcome]], None]
HANGS_AFTER = 1.0  # seconds: a call without a timeout that nobody waits for is late before, and hangs after
FADING = 0.95  # what a long call counts for after the next one
LINGER = 5.0  # seconds for async functions to end when they are cancelled


class Workers:
    """Threads, processes and the loop of one runner, started when they are first needed.

    Parameters
    ----------
    clock : Clock
        Makes the threads and the loop, and gives the time.
    till : Till or None, default None
        Pays for calls.
    """

    def __init__(self, clock: Clock, till: Till | None = None) -> None:
        self._clock, self._till = clock, till
        self._forget()
        reset_after_fork(self)

    def _forget(self) -> None:
        self._pools: dict[str, CallPool] = {}
        self._left: list[CallPool] = []  # closed, maybe with calls that did not end in time
        self._background: BackgroundLoop | None = None
        self._lock = threading.Lock()
        self._calls: set[PendingCall] = set()
        self._longest: dict[str, float] = {}  # seconds of the longest calls that ended, old ones fading
        self._tasks: set[asyncio.Task[None]] = set()

    def after_fork(self) -> None:
        """Leave the parent's threads, processes and loop to it."""
        self._forget()

    @property
    def running(self) -> int:
        """Calls begun and not ended."""
        return len(self._calls)

    def submit(
        self, call: PendingCall, arguments: Arguments, deliver: Deliver, loop: Callable[[], asyncio.AbstractEventLoop]
    ) -> None:
        """Begin a call where it belongs; `loop` gives the event loop on which async functions run."""
        self._calls.add(call)
        if call.extractor.is_async:
            self._await(call, arguments, deliver, loop())
        else:
            self._run(call, arguments, deliver)

    def _finish(self, call: PendingCall, outcomes: Sequence[CallOutcome], deliver: Deliver) -> None:
        self._calls.discard(call)
        deliver(call, outcomes)

    # ---- threads and processes ------------------------------------------------------------------------------------

    def _run(self, call: PendingCall, arguments: Arguments, deliver: Deliver) -> None:
        e, now = call.extractor, self._clock.now
        pool, context = self._pool(call), copy_context()  # of the request: a trace, for one

        def work() -> list[CallOutcome] | None:
            if call.is_abandoned and e.cache is None:
                return None
            pool.busy_with.add(call)
            try:
                if isinstance(pool, ProcessPool):
                    return self._in_process(pool, call, arguments)
                call.started = now()
                return context.run(perform, e, arguments, now, self._till)
            except BaseException as error:  # the thread goes on with the next call
                return failed(error, arguments)

        def done(outcomes: list[CallOutcome] | None) -> None:
            pool.busy_with.discard(call)
            if call.started is not None:
                self._longest[e.name] = max(now() - call.started, FADING * self._longest.get(e.name, 0.0))
            if outcomes is None:
                self._calls.discard(call)
            else:
                self._finish(call, outcomes, deliver)

        call.is_stuck = lambda: self._n_hanging(pool, e.name) >= e.workers
        try:
            if call.is_stuck():
                raise TimeoutError(f"all {e.workers} workers hang")
            pool.submit(work, done)
        except (TimeoutError, PoolClosedError) as error:
            self._finish(call, failed(error, arguments), deliver)

    def _in_process(self, pool: ProcessPool, call: PendingCall, arguments: Arguments) -> list[CallOutcome]:
        """Make a call in another process, and pay for it here."""
        e, till, now = call.extractor, self._till, self._clock.now
        if till is None or not till.serves(e):
            return pool.call(call, arguments, now)
        if (found := fetched(e, arguments)) is not None:
            return [CallOutcome(found[0], None, is_cached=True, paid=0.0)]
        return till.perform(e, arguments, lambda some: pool.call(call, some, now))

    def _pool(self, call: PendingCall) -> CallPool:
        e = call.extractor
        with self._lock:
            if e.name not in self._pools:
                make = ProcessPool if e.process else self._clock.pool
                self._pools[e.name] = make(e.name, e.workers)
            return self._pools[e.name]

    def _n_hanging(self, pool: CallPool, name: str) -> int:
        """Workers held by calls for which nobody waits, and that are not just late."""
        now, patience = self._clock.now(), max(HANGS_AFTER, 2.0 * self._longest.get(name, 0.0))
        return sum(
            call.is_timed_out or (call.is_abandoned and call.started is not None and now - call.started > patience)
            for call in tuple(pool.busy_with)
        )

    # ---- the event loop -------------------------------------------------------------------------------------------

    def _await(
        self, call: PendingCall, arguments: Arguments, deliver: Deliver, loop: asyncio.AbstractEventLoop
    ) -> None:
        e = call.extractor
        limit = None if e.cache is None else e.timeout  # others are cancelled once nobody waits for them

        async def work() -> None:
            call.started = self._clock.now()
            try:
                async with asyncio.timeout(limit):
                    outcomes = await perform_async(e, arguments, self._clock.now, self._till)
            except TimeoutError:
                outcomes = failed(TimeoutError(f"no result within {limit:g} s"), arguments, limit or 0.0)
            except asyncio.CancelledError as error:
                self._finish(call, failed(error, arguments), deliver)  # those who joined it by a cache get it too
                raise
            self._finish(call, outcomes, deliver)

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if call in self._calls:  # cancelled before it began
                self._finish(call, failed(asyncio.CancelledError(), arguments), deliver)

        def begin() -> None:
            task = loop.create_task(work())
            self._tasks.add(task)
            task.add_done_callback(ended)
            if e.cache is None:
                call.cancel = lambda: loop.call_soon_threadsafe(task.cancel) if not loop.is_closed() else None
                if call.is_abandoned:
                    task.cancel()

        if self._background is not None and loop is self._background.loop:
            try:
                loop.call_soon_threadsafe(begin)
            except RuntimeError as error:  # the runner was closed meanwhile
                self._finish(call, failed(error, arguments), deliver)
        else:
            begin()

    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop for plain code that calls async functions."""
        with self._lock:
            if self._background is None:
                self._background = self._clock.background_loop()
            return self._background.loop

    # ---- the end --------------------------------------------------------------------------------------------------

    async def end_tasks(self, timeout: float = LINGER) -> None:
        """Cancel the tasks on the caller's event loop and wait until they are gone, for `timeout` seconds."""
        here = asyncio.get_running_loop()
        mine = [task for task in self._tasks if task.get_loop() is here]
        for task in mine:
            task.cancel()
        if mine:
            await asyncio.wait(mine, timeout=timeout)

    def close(self, timeout: float | None) -> int:
        """End everything; running calls on threads are let finish. Return how many did not end in time."""
        until = None if timeout is None else monotonic() + timeout

        def left() -> float | None:
            return None if until is None else max(0.0, until - monotonic())

        with self._lock:
            pools, background = [*self._left, *self._pools.values()], self._background
            self._pools, self._left, self._background = {}, [], None
        if background is not None:
            linger = LINGER if timeout is None else min(LINGER, timeout)
            background.stop(lambda: self.end_tasks(linger), linger + 0.5)
        n_busy = sum(pool.close(left()) for pool in pools)
        if timeout is not None:
            self._left += pools
        return n_busy + len(self._tasks)

"""Where time comes from: the machine's clock, or a virtual one in which a test or a simulation runs without waiting.

Everything in this package that reads the time, waits, or starts a thread asks a `Clock` for it. With a `VirtualClock`
one thread does all the work, time passes only when everybody waits, and the same calls give the same history.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import perf_counter, time
from typing import Any, Protocol, TypeVar

from miserly.runtime._pool import Pool

T = TypeVar("T")
RESOLUTION = 1e-9  # seconds; a timer may fire this much early because sums of floats are rounded
LONGEST_WAIT = 86_400.0  # seconds; the system refuses much longer waits, so they are split
LAST_STEPS, STEP = 0.005, 0.0002  # seconds


class Inbox(Protocol):
    """Where finished calls arrive for the thread that waits for them."""

    def put(self, item: Any) -> None:
        """Add an item; never waits."""

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take an item, or raise `queue.Empty` after `timeout` seconds."""


class CallPool(Protocol):
    """Runs calls beside the caller, at most `workers` at once."""

    busy_with: set[Any]

    def submit(self, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """Run `work`, then `done` with its result; neither raises."""

    def close(self, timeout: float | None = None) -> int:
        """Let running calls finish for `timeout` seconds; return how many did not."""


class BackgroundLoop:
    """An event loop on a thread of its own, for plain code that calls async functions."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="miserly-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_stopping:  # a function may stop the loop; the others go on
            self.loop.run_forever()

    def stop(self, ending: Callable[[], Coroutine[Any, Any, None]], timeout: float) -> None:
        """Run `ending` on the loop and end it; a loop that a function blocks is left behind after `timeout` seconds."""
        with suppress(TimeoutError, asyncio.CancelledError):
            asyncio.run_coroutine_threadsafe(ending(), self.loop).result(timeout)
        self._is_stopping = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout)
        if not self._thread.is_alive():
            self.loop.close()


class Clock:
    """The machine's own clock, threads and event loop."""

    now: Callable[[], float] = staticmethod(perf_counter)
    wall: Callable[[], float] = staticmethod(time)  # seconds since 1970, for days and months

    def inbox(self) -> Inbox:
        """A queue between threads."""
        return SimpleQueue[Any]()

    def receive(self, inbox: Inbox, seconds: float | None, in_steps: bool) -> Any:
        """Return the next item, or raise `Empty` when the time is over.

        Beside threads (`in_steps`) a wait ends in short steps: a waiter that has slept for long may wake on the core
        where a call computes and stay there until the scheduler's next tick.
        """
        if seconds is None or not in_steps:
            return inbox.get(timeout=seconds)
        until = self.now() + seconds
        wait = seconds - LAST_STEPS
        while True:
            with suppress(Empty):
                return inbox.get(timeout=max(0.0, wait))
            left = until - self.now()
            if left <= 0:
                raise Empty
            wait = min(left, STEP)

    def pool(self, name: str, workers: int) -> CallPool:
        """Threads for the calls of one extractor."""
        return Pool(f"miserly-{name}", workers)

    async def beside(self, function: Callable[[], T]) -> T:
        """Run a function that waits without blocking the event loop."""
        return await asyncio.to_thread(function)

    def background_loop(self) -> BackgroundLoop:
        """An event loop beside the caller."""
        return BackgroundLoop()


REAL = Clock()


class VirtualClock(Clock):
    """Time that passes only while everybody waits. For tests and simulations.

    Plain functions that the runtime calls take time with `sleep`; async ones use `asyncio.sleep` as ever. `run` drives
    a coroutine to its end.

    Examples
    --------
    >>> import asyncio
    >>> clock = VirtualClock()
    >>> clock.run(asyncio.sleep(3600.0))
    >>> round(clock.now())
    3600
    """

    def __init__(self) -> None:
        self._time = 0.0
        self._taken: float | None = None  # what the call that is running on a virtual worker has taken so far
        self.loop = _VirtualLoop(self)
        self.now = self.wall = self._now

    def _now(self) -> float:
        return self._time + (self._taken or 0.0)

    def sleep(self, seconds: float) -> None:
        """Take this many seconds (for ever: `math.inf`)."""
        if self._taken is not None:
            self._taken += seconds
        elif self.loop.is_running():  # blocks the event loop, as a real sleep would
            self._time += seconds
        else:
            self.loop.run_until_complete(asyncio.sleep(seconds))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Drive a coroutine on the virtual event loop."""
        return self.loop.run_until_complete(coroutine)

    def close(self) -> None:
        """End the event loop."""
        self.loop.close()

    def inbox(self) -> Inbox:
        """A queue whose reader lets virtual time pass."""
        return _VirtualInbox(self)

    def receive(self, inbox: Inbox, seconds: float | None, in_steps: bool) -> Any:
        """Return the next item, or raise `Empty` when the time is over."""
        return inbox.get(timeout=seconds)

    def pool(self, name: str, workers: int) -> CallPool:
        """Virtual workers: their calls run one after the other, and end when their time is over."""
        return _VirtualPool(self, workers)

    async def beside(self, function: Callable[[], T]) -> T:
        """Run a function; nothing waits really."""
        return function()

    def background_loop(self) -> BackgroundLoop:
        """The virtual event loop itself, which runs while the caller waits."""
        return _VirtualBackground(self.loop)

    def measure(self, work: Callable[[], T]) -> tuple[T, float]:
        """Run a call at once; return its result and the virtual seconds that it takes."""
        before, self._taken = self._taken, 0.0
        try:
            return work(), self._taken
        finally:
            self._taken = before

    def pass_time(self, seconds: float) -> None:
        """Let time pass (called by the event loop when nothing else is to do)."""
        self._time += max(seconds, RESOLUTION)


class _VirtualSelector(selectors.DefaultSelector):
    """Does not wait: the time for which it was to wait has passed when it returns."""

    clock: VirtualClock

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if found or (timeout is not None and timeout <= 0):
            return found
        if timeout is None:
            raise RuntimeError("Everybody waits and no timer is set: this would wait for ever.")
        self.clock.pass_time(timeout)
        return found


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: VirtualClock) -> None:
        selector = _VirtualSelector()
        selector.clock = clock
        self._clock = clock
        super().__init__(selector)

    def time(self) -> float:
        return self._clock.now()


class _VirtualInbox:
    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._items: deque[Any] = deque()
        self._arrived: asyncio.Future[None] | None = None

    def put(self, item: Any) -> None:
        self._items.append(item)
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if not self._items:
            self._arrived = self._clock.loop.create_future()
            self._clock.run(self._wait(self._arrived, timeout))
        if not self._items:
            raise Empty
        return self._items.popleft()

    async def _wait(self, arrived: asyncio.Future[None], timeout: float | None) -> None:
        await asyncio.wait([arrived], timeout=timeout)


class _VirtualPool:
    def __init__(self, clock: VirtualClock, workers: int) -> None:
        self._clock, self._n_free = clock, workers
        self._queue: deque[tuple[Callable[[], Any], Callable[[Any], None]]] = deque()
        self.busy_with: set[Any] = set()

    def submit(self, work: Callable[[], T], done: Callable[[T], None]) -> None:
        self._queue.append((work, done))
        self._clock.loop.call_soon(self._begin)

    def _begin(self) -> None:
        while self._n_free and self._queue:
            work, done = self._queue.popleft()
            self._n_free -= 1
            result, seconds = self._clock.measure(work)
            if seconds < math.inf:
                self._clock.loop.call_later(seconds, self._end, done, result)

    def _end(self, done: Callable[[Any], None], result: Any) -> None:
        self._n_free += 1
        done(result)
        self._begin()

    def close(self, timeout: float | None = None) -> int:
        return len(self.busy_with)


class _VirtualBackground(BackgroundLoop):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    def stop(self, ending: Callable[[], Coroutine[Any, Any, None]], timeout: float) -> None:
        if not self.loop.is_running():
            self.loop.run_until_complete(ending())

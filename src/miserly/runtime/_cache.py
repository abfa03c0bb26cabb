"""Results kept across requests: by key, for a time, and never computed twice at once."""

from __future__ import annotations

import threading
from asyncio import to_thread
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from miserly.runtime._fork import reset_after_fork

Waiter = Callable[[Any, BaseException | None], None]
IsLate = Callable[[], bool]


def _never() -> bool:
    return False


@dataclass
class _Flight:
    """A call that is being made, and those who wait for its result."""

    is_late: IsLate
    waiters: list[Waiter] = field(default_factory=list)


class Cache:
    """Keeps the results of an extractor across requests.

    A call in flight is joined, not repeated, until its time is up. Failures are not kept.

    Parameters
    ----------
    key : callable
        Takes the row, returns what its result is kept under (hashable).
    ttl : float
        Seconds for which a result is kept, above 0.
    size : int, default 10000
        How many results are kept, 1 or more; the least recently used one is dropped first.
    now : callable, default time.perf_counter
        Gives the time in seconds; tests pass a virtual one.

    Examples
    --------
    >>> from miserly.runtime import Cache
    >>> len(Cache(key=lambda doc: doc["site"], ttl=60.0))
    0
    """

    def __init__(
        self,
        key: Callable[[Any], Hashable],
        ttl: float,
        size: int = 10_000,
        now: Callable[[], float] = perf_counter,
    ) -> None:
        if ttl <= 0 or size < 1:
            raise ValueError("A cache keeps at least one result for a time above zero.")
        self.key, self.ttl, self.size = key, ttl, size
        self._now = now
        self._kept: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        self._flights: dict[Hashable, _Flight] = {}
        self._lock = threading.Lock()
        reset_after_fork(self)

    def __len__(self) -> int:
        return len(self._kept)

    def after_fork(self) -> None:
        """Forget calls in flight: the parent's threads make them."""
        self._lock = threading.Lock()
        self._flights.clear()

    def ask(self, key: Hashable, waiter: Waiter, is_late: IsLate = _never) -> bool:
        """Give the waiter the result, now or when the call in flight ends.

        Returns True if there is neither: then the caller makes the call and reports its end with `land`. `is_late` says
        when its time is up; from then on the next who asks makes the call again, so that one that hangs holds nobody.
        """
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept[0] < self._now():
                flight = self._flights.get(key)
                if flight is None:
                    self._flights[key] = _Flight(is_late)
                    return True
                if flight.is_late():
                    flight.is_late = is_late
                    return True
                flight.waiters.append(waiter)
                return False
            self._kept.move_to_end(key)
        waiter(kept[1], None)
        return False

    def fetch(self, key: Hashable, fingerprint: str) -> tuple[Any] | None:
        """Return what another process kept, in a tuple; called where the extractor would run, so it may wait."""
        return None

    async def afetch(self, key: Hashable, fingerprint: str) -> tuple[Any] | None:
        """Do the same on an event loop."""
        return await to_thread(self.fetch, key, fingerprint)

    def share(self, key: Hashable, fingerprint: str, result: Any) -> None:
        """Let other processes have a result."""

    async def ashare(self, key: Hashable, fingerprint: str, result: Any) -> None:
        """Do the same on an event loop."""
        await to_thread(self.share, key, fingerprint, result)

    def land(self, key: Hashable, result: Any, error: BaseException | None, is_late: IsLate | None = None) -> None:
        """Keep the result of a call, unless it failed, and give it to all who joined it. `is_late` is that of `ask`."""
        with self._lock:
            waiters = self._landed(key, error, is_late)
            if error is None:
                self._kept[key] = (self._now() + self.ttl, result)
                self._kept.move_to_end(key)
                while len(self._kept) > self.size:
                    self._kept.popitem(last=False)
        for waiter in waiters:
            waiter(result, error)

    def _landed(self, key: Hashable, error: BaseException | None, is_late: IsLate | None) -> list[Waiter]:
        """Those who wait for a call that has ended; nobody, if it failed late and is being made again."""
        flight = self._flights.get(key)
        if flight is None or (error is not None and is_late is not None and flight.is_late is not is_late):
            return []
        del self._flights[key]
        return flight.waiters

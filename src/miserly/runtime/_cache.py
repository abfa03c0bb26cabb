"""Results kept across requests: by key, for a time, and never computed twice at once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from time import perf_counter
from typing import Any

from miserly.runtime._fork import reset_after_fork

Waiter = Callable[[Any, BaseException | None], None]


class Cache:
    """Keeps the results of an extractor across requests.

    A call in flight is joined, not repeated. Failures are not kept.

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
        self._flights: dict[Hashable, list[Waiter]] = {}
        self._lock = threading.Lock()
        reset_after_fork(self)

    def __len__(self) -> int:
        return len(self._kept)

    def after_fork(self) -> None:
        """Forget calls in flight: the parent's threads make them."""
        self._lock = threading.Lock()
        self._flights.clear()

    def ask(self, key: Hashable, waiter: Waiter) -> bool:
        """Give the waiter the result, now or when the call in flight ends.

        Returns True if there is neither: then the caller makes the call and reports its end with `land`.
        """
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept[0] < self._now():
                flight = self._flights.get(key)
                if flight is None:
                    self._flights[key] = []
                    return True
                flight.append(waiter)
                return False
            self._kept.move_to_end(key)
        waiter(kept[1], None)
        return False

    def fetch(self, key: Hashable, fingerprint: str) -> tuple[Any] | None:
        """Return what another process kept, in a tuple; called where the extractor would run, so it may wait."""
        return None

    def share(self, key: Hashable, fingerprint: str, result: Any) -> None:
        """Let other processes have a result."""

    def land(self, key: Hashable, result: Any, error: BaseException | None) -> None:
        """Keep the result of a call, unless it failed, and give it to all who joined it."""
        with self._lock:
            waiters = self._flights.pop(key, [])
            if error is None:
                self._kept[key] = (self._now() + self.ttl, result)
                self._kept.move_to_end(key)
                while len(self._kept) > self.size:
                    self._kept.popitem(last=False)
        for waiter in waiters:
            waiter(result, error)

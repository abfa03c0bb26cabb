"""Results kept across requests: by key, for a time, and never computed twice at once."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

Waiter = Callable[[Any, BaseException | None], None]


class Cache:
    """Keeps what an extractor returned for `ttl` seconds by `key(row)`, the `size` most recently used ones.

    A call in flight is joined, not repeated. Failures are not kept.
    """

    def __init__(self, key: Callable[[Any], Hashable], ttl: float, size: int = 10_000) -> None:
        if ttl <= 0 or size < 1:
            raise ValueError("A cache keeps at least one result for a time above zero.")
        self.key, self.ttl, self.size = key, ttl, size
        self._kept: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        self._flights: dict[Hashable, list[Waiter]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def ask(self, key: Hashable, waiter: Waiter) -> bool:
        """Tell the waiter the result (and that it is another's), now or when the call in flight lands; True if the
        caller must make the call itself, and then tell what came of it (`land`)."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept[0] < time.monotonic():
                flight = self._flights.get(key)
                if flight is None:
                    self._flights[key] = []
                    return True
                flight.append(waiter)
                return False
            self._kept.move_to_end(key)
        waiter(kept[1], None)
        return False

    def fetch(self, key: Hashable) -> tuple[Any] | None:
        """What another process kept, in a tuple; asked where the call would run, so it may take its time."""
        return None

    def share(self, key: Hashable, result: Any) -> None:
        """Let other processes have a result."""

    def land(self, key: Hashable, result: Any, error: BaseException | None) -> None:
        """Keep the result of a call, unless it failed, and tell all who joined it."""
        with self._lock:
            waiters = self._flights.pop(key, [])
            if error is None:
                self._kept[key] = (time.monotonic() + self.ttl, result)
                self._kept.move_to_end(key)
                while len(self._kept) > self.size:
                    self._kept.popitem(last=False)
        for waiter in waiters:
            waiter(result, error)

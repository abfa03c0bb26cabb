"""A circuit breaker: an extractor that keeps failing is left alone for a while, then tried once."""

from __future__ import annotations

import threading
import time

SHORTEST = 0.01


class Breaker:
    """Opens after `failures` in a row; then one call may try again, after a hundredth of the `recovery` seconds, twice
    as long after each trial that fails, up to all of it. `has_failed` tells of the last call."""

    def __init__(self, failures: int, recovery: float) -> None:
        self.failures, self.recovery = failures, recovery
        self.is_open = False
        self.has_failed = False
        self._in_a_row = 0
        self._pause = 0.0
        self._retry_at = 0.0
        self._lock = threading.Lock()

    @property
    def is_shut(self) -> bool:
        """Whether nobody may call now. Asking does not use up the trial."""
        return self.is_open and time.monotonic() < self._retry_at

    def allows(self) -> bool:
        """Whether a call may be made; while open, one caller in each pause is let through."""
        if not self.is_open:
            return True
        with self._lock:
            if time.monotonic() < self._retry_at:
                return False
            self._retry_at = time.monotonic() + self._pause
            return True

    def count(self, is_good: bool) -> None:
        """A call came back, which closes it, or failed."""
        if is_good and not self.has_failed:
            return
        with self._lock:
            self._in_a_row = 0 if is_good else self._in_a_row + 1
            self.has_failed = not is_good
            self.is_open = self._in_a_row >= self.failures
            if self.is_open:
                n_pauses = self._in_a_row - self.failures
                self._pause = min(self.recovery, self.recovery * SHORTEST * 2.0 ** min(n_pauses, 10))
                self._retry_at = time.monotonic() + self._pause

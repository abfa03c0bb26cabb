"""A circuit breaker: an extractor that keeps failing is left alone for a while, then tried once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from time import perf_counter

from miserly.runtime._fork import reset_after_fork

SHORTEST = 0.01  # of the recovery: the first pause, so that a short disturbance is over soon


class Breaker:
    """Opens when `failures` of the last 2 × `failures` calls failed, that is at a rate of one half.

    Only what an extractor does itself is counted: its errors and its own time-outs. While open, one call may try again
    after a hundredth of the `recovery` seconds, twice as long after each trial that fails, up to all of it.

    Parameters
    ----------
    failures : int
        How many calls must fail, 1 or more.
    recovery : float
        The longest pause in seconds.
    now : callable
        Gives the time in seconds.

    Attributes
    ----------
    is_open : bool
        Whether the extractor is left alone.
    causes : Counter
        Failures so far, by cause ("error", "timeout").
    """

    def __init__(self, failures: int, recovery: float, now: Callable[[], float] = perf_counter) -> None:
        self.failures, self.recovery = failures, recovery
        self.is_open = False
        self.causes: Counter[str] = Counter()
        self._now = now
        self._history = 0  # the last calls as bits, the youngest lowest; 1 is a failure
        self._mask = (1 << 2 * failures) - 1
        self._n_trials = 0
        self._is_on_trial = False
        self._pause = self._retry_at = 0.0
        self._lock = threading.Lock()
        reset_after_fork(self)

    def after_fork(self) -> None:
        """Another thread may have held the lock."""
        self._lock = threading.Lock()

    @property
    def has_failures(self) -> bool:
        """Whether one of the last calls failed, so that successes must be counted too."""
        return self._history != 0

    @property
    def is_shut(self) -> bool:
        """Whether nobody may call now. Asking does not use up the trial."""
        return self.is_open and self._now() < self._retry_at

    def allows(self) -> bool:
        """Whether a call may be made; while open, one caller in each pause may try."""
        if not self.is_open:
            return True
        with self._lock:
            if self._now() < self._retry_at:
                return False
            self._retry_at = self._now() + self._pause
            self._is_on_trial = True
            return True

    def count(self, is_good: bool, cause: str = "error") -> None:
        """Count a call that returned, which closes an open breaker, or that failed."""
        if is_good and not self._history:
            return
        with self._lock:
            if not is_good:
                self.causes[cause] += 1
            if self.is_open:
                self._count_while_open(is_good)
                return
            self._history = (self._history << 1 | (not is_good)) & self._mask
            if self._history.bit_count() >= self.failures:
                self.is_open, self._n_trials = True, 0
                self._leave_alone()

    def _count_while_open(self, is_good: bool) -> None:
        """Calls that began before it opened and fail only now say nothing new."""
        if is_good:
            self.is_open, self._history = False, 0
        elif self._is_on_trial:
            self._n_trials += 1
            self._leave_alone()
        self._is_on_trial = False

    def _leave_alone(self) -> None:
        self._is_on_trial = False
        self._pause = min(self.recovery, self.recovery * SHORTEST * 2.0 ** min(self._n_trials, 10))
        self._retry_at = self._now() + self._pause

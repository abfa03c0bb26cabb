"""Which requests are answered when there are too many: few enough at once, the newest first, the rest refused early.

A request that waited too long before anybody looked at it, or for whom no place gets free in time, is refused with a
503. Refusing is cheap, so the rest of the time goes to requests that can still be answered within their deadline.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from time import perf_counter

from miserly.serve._messages import RefusedError

FEWEST = 8.0  # places; below this a limit learned from few samples would starve the extractors' workers
TARGET = 0.05  # seconds that a request may wait while there is a standing queue: more than two full turns of the loop
LONGEST = 0.1  # seconds that a request waits for a place
INTERVAL = 0.1  # seconds over which delays are compared
TOLERANCE, SLACK = 2.0, 0.005  # the delay may double, plus this many seconds, before the limit falls
DRIFT = 1.01  # growth of the remembered best delay in each interval, so that it follows a slower machine


class Admission:
    """Places for requests, at most `most`, fewer when the server's own delays grow.

    The limit follows the gradient of the delay, as in Envoy: `limit × best / now + √limit`. The delay is what the
    server itself adds (the event loop, the queues of workers), not what extractors take: a slow extractor is no
    reason to refuse requests.

    Parameters
    ----------
    most : int
        The largest limit, 1 or more.
    now : callable, default time.perf_counter
        Gives the time in seconds.

    Attributes
    ----------
    in_flight : int
        Requests that have a place.
    limit : float
        How many may have one now.
    n_shed : int
        Requests refused so far.
    """

    def __init__(self, most: int, now: Callable[[], float] = perf_counter) -> None:
        if most < 1:
            raise ValueError("A server answers at least one request at a time: max_in_flight must be 1 or more.")
        self._most, self._now = most, now
        self.limit = float(most)
        self.in_flight = self.n_shed = 0
        self._waiting: deque[asyncio.Future[bool]] = deque()
        self._best, self._sum, self._n = math.inf, 0.0, 0
        self._interval_ends = -math.inf
        self._shortest_wait, self._n_looked, self._has_standing_queue = math.inf, 0, False

    @property
    def n_waiting(self) -> int:
        """Requests that wait for a place."""
        return len(self._waiting)

    def check(self, arrived: float) -> float:
        """Refuse a request that waited too long before anybody looked at it; return the seconds that it waited."""
        wait = self._now() - arrived
        self._shortest_wait = min(self._shortest_wait, wait)
        self._n_looked += 1
        if self._now() >= self._interval_ends:
            self._end_interval()
        if wait > TARGET and self._has_standing_queue:
            self.n_shed += 1
            raise overloaded()
        return wait

    async def enter(self) -> None:
        """Take a place, waiting for one for a moment; a newcomer goes first, and the oldest is refused first."""
        if self.in_flight < self.limit:
            self.in_flight += 1
            return
        if len(self._waiting) >= self.limit:
            _refuse(self._waiting.popleft())
        mine: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        timer = asyncio.get_running_loop().call_later(LONGEST, _refuse, mine)
        try:
            has_place = await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled() and mine.result():
                self.leave(None)
            raise
        finally:
            timer.cancel()
            if mine in self._waiting:
                self._waiting.remove(mine)
        if not has_place:
            self.n_shed += 1
            raise overloaded()

    def leave(self, delay: float | None) -> None:
        """Give a place back; `delay` is what the server itself added to the request, if it was answered."""
        self.in_flight -= 1
        if delay is not None:
            self._sum += delay
            self._n += 1
            self._best = min(self._best, delay)
        if self._now() >= self._interval_ends:
            self._end_interval()
        while self._waiting and self.in_flight < self.limit:
            waiter = self._waiting.pop()
            if not waiter.done():
                self.in_flight += 1
                waiter.set_result(True)

    def _end_interval(self) -> None:
        """Look at the last interval: adapt the limit, and note whether every request had to wait."""
        self._interval_ends = self._now() + INTERVAL
        self._has_standing_queue = self._n_looked >= FEWEST and self._shortest_wait > TARGET
        self._shortest_wait, self._n_looked = math.inf, 0
        if self._n >= FEWEST:
            delay = self._sum / self._n
            gradient = min(1.0, max(0.5, (TOLERANCE * self._best + SLACK) / max(delay, SLACK)))
            self._best *= DRIFT
            fewest = min(FEWEST, self._most)
            self.limit = min(float(self._most), max(fewest, self.limit * gradient + math.sqrt(self.limit)))
            self._sum, self._n = 0.0, 0


def overloaded() -> RefusedError:
    """What a client gets whose request is not looked at."""
    return RefusedError("The server has too much to do.", "server", "Try again after Retry-After seconds.", 503)


def _refuse(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)

"""A bounded pool of threads for one extractor. Its threads die with the program, so a call that hangs holds nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from time import monotonic
from typing import Any, TypeVar

T = TypeVar("T")
Work = tuple[Callable[[], Any], Callable[[Any], None]]


class PoolClosedError(RuntimeError):
    """Work was submitted to a pool that is closed."""


class Pool:
    """At most `workers` threads, started when they are first needed; work waits in a queue.

    Parameters
    ----------
    name : str
        Its threads are called after it.
    workers : int
        How many threads there are at most, 1 or more.
    """

    def __init__(self, name: str, workers: int) -> None:
        self.name, self.workers = name, workers
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._idle = threading.Semaphore(0)
        self._closed = False
        self._working: set[threading.Thread] = set()
        self.busy_with: set[Any] = set()

    def submit(self, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """Run `work` on one of the threads, then `done` with its result; neither raises."""
        with self._lock:
            if self._closed:
                raise PoolClosedError(f"The pool {self.name!r} is closed.")
            if not self._idle.acquire(blocking=False) and len(self._threads) < self.workers:
                number = len(self._threads)
                thread = threading.Thread(target=self._work, name=f"{self.name}-{number}", daemon=True)
                self._threads.append(thread)
                thread.start()
            self._queue.put((work, done))

    def close(self, timeout: float | None = None) -> int:
        """Let the work finish, for at most `timeout` seconds in all; return how many threads are still busy."""
        with self._lock:
            self._closed = True
            for _ in self._threads:
                self._queue.put(None)
        until = None if timeout is None else monotonic() + timeout
        for thread in self._threads:
            thread.join(None if until is None else max(0.0, until - monotonic()))
        return len(self._working)

    def _work(self) -> None:
        while True:
            item = self._queue.get()
            if item is None:
                return
            work, done = item
            self._working.add(threading.current_thread())
            done(work())
            self._working.discard(threading.current_thread())
            del item, work, done  # a waiting thread keeps nothing alive
            self._idle.release()

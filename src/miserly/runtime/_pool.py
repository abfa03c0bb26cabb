"""A bounded pool of threads for one extractor. Its threads die with the program, so a call that hangs holds nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any


class Pool:
    """At most `workers` threads, started when they are first needed; jobs wait in a queue."""

    def __init__(self, name: str, workers: int) -> None:
        self.name, self.workers = name, workers
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._idle = threading.Semaphore(0)
        self._closed = False
        self.busy_with: set[Any] = set()

    def submit(self, job: Callable[[], None]) -> None:
        """Run a job on one of the threads. The job catches its own errors."""
        with self._lock:
            if self._closed:
                raise RuntimeError(f"The pool of extractor {self.name!r} is closed.")
            if not self._idle.acquire(blocking=False) and len(self._threads) < self.workers:
                number = len(self._threads)
                thread = threading.Thread(target=self._work, name=f"miserly-{self.name}-{number}", daemon=True)
                self._threads.append(thread)
                thread.start()
        self._jobs.put(job)

    def close(self, timeout: float | None = None) -> int:
        """Let the jobs finish, for at most `timeout` seconds each; tells how many threads are still busy."""
        with self._lock:
            self._closed = True
            for _ in self._threads:
                self._jobs.put(None)
        for thread in self._threads:
            thread.join(timeout)
        return sum(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            job()
            del job  # a waiting thread keeps nothing alive
            self._idle.release()

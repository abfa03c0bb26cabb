"""Several fits at once: kernels run without the interpreter's lock, so that two fits take little more than one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from miserly.kernels.threads import n_threads, threads

LEAST_ROWS = 1000  # with fewer rows a fit is mostly Python, of which one thread runs at a time


def in_parallel(work: Callable[[Any], Any], given: Sequence[Any], n_rows: int, goes_on: Iterable[bool] = ()) -> int:
    """Do something with each of the things given, some at once; `goes_on` is asked before each, as long as it lasts.
    Returns how many were begun. What is done must not depend on the order."""
    n_workers = n_threads(None) if n_rows >= LEAST_ROWS else 1
    asked = iter(goes_on)
    begun = 0
    with ThreadPoolExecutor(n_workers) as pool:
        running: deque[Future[Any]] = deque()
        for thing in given:
            if len(running) == n_workers:
                running.popleft().result()
            if not next(asked, True):
                break
            running.append(pool.submit(_alone, work, thing))
            begun += 1
        for future in running:
            future.result()
    return begun


def _alone(work: Callable[[Any], Any], thing: Any) -> Any:
    with threads(1):
        return work(thing)

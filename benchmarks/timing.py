"""Best of several runs, in CPU time (all threads) and on the wall clock (ratios are reported), and peaks of memory."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

from benchmarks.table import record


@dataclass(frozen=True)
class Best:
    cpu: float
    wall: float
    result: Any


def best_of(n: int, *works: Callable[[], Any]) -> list[Best]:
    """Run some works alternately, n times; of each the least CPU time, the least wall-clock time, the last result."""
    times: list[list[tuple[float, float]]] = [[] for _ in works]
    results: list[Any] = [None] * len(works)
    for _ in range(n):
        for i, work in enumerate(works):
            cpu, wall = time.process_time(), time.perf_counter()
            results[i] = work()
            times[i].append((time.process_time() - cpu, time.perf_counter() - wall))
    return [Best(min(c for c, _ in t), min(w for _, w in t), result) for t, result in zip(times, results)]


def stolen() -> float:
    """Seconds that the cores have waited for whoever else runs on the host, since the machine began."""
    return float(getattr(psutil.cpu_times(), "steal", 0.0))


class Peak:
    """Resident memory of this process, in bytes: before, and at most since."""

    def __init__(self) -> None:
        self.before = self.most = psutil.Process().memory_info().rss

    @property
    def extra(self) -> int:
        return self.most - self.before


@contextmanager
def memory_watched(every: float = 0.01) -> Iterator[Peak]:
    """Look at the memory again and again while the block runs."""
    process, peak, done = psutil.Process(), Peak(), threading.Event()

    def watch() -> None:
        while not done.wait(every):
            peak.most = max(peak.most, process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def line(what: str, ours: float, theirs: float, goal: float | None = None) -> None:
    """Seconds of both sides and how many times faster we are; with a goal, also a line of the README's table."""
    print(f"  {what:<34} ours {ours:7.3f} s   peer {theirs:7.3f} s   {theirs / ours:5.2f}×")
    if goal is not None:
        record(what, theirs / ours, "times as fast", least=goal)

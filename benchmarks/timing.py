"""Best of several runs, in CPU time (all threads) and on the wall clock; ratios are what is reported."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Best:
    cpu: float
    wall: float
    result: Any


def best_of(n: int, *works: Callable[[], Any]) -> list[Best]:
    """Run some works in turn, n times; of each the least CPU time, the least wall-clock time, the last result."""
    times: list[list[tuple[float, float]]] = [[] for _ in works]
    results: list[Any] = [None] * len(works)
    for _ in range(n):
        for i, work in enumerate(works):
            cpu, wall = time.process_time(), time.perf_counter()
            results[i] = work()
            times[i].append((time.process_time() - cpu, time.perf_counter() - wall))
    return [Best(min(c for c, _ in t), min(w for _, w in t), result) for t, result in zip(times, results)]


def line(what: str, ours: float, theirs: float, goal: float | None = None) -> None:
    """One line of a table: seconds of both sides and how many times faster we are."""
    aim = "" if goal is None else f"  (goal {goal:g}: {'met' if theirs / ours >= goal else 'MISSED'})"
    print(f"  {what:<34} ours {ours:7.3f} s   peer {theirs:7.3f} s   {theirs / ours:5.2f}×{aim}")

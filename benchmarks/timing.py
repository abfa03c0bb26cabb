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


def best_of(n: int, work: Callable[[], Any]) -> Best:
    """Run some work n times; the least CPU time, the least wall-clock time, the last result."""
    cpu = wall = float("inf")
    result = None
    for _ in range(n):
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        result = work()
        cpu = min(cpu, time.process_time() - cpu_start)
        wall = min(wall, time.perf_counter() - wall_start)
    return Best(cpu, wall, result)


def line(what: str, ours: float, theirs: float, goal: float | None = None) -> None:
    """One line of a table: seconds of both sides and how many times faster we are."""
    aim = "" if goal is None else f"  (goal {goal:g}: {'met' if theirs / ours >= goal else 'MISSED'})"
    print(f"  {what:<34} ours {ours:7.3f} s   peer {theirs:7.3f} s   {theirs / ours:5.2f}×{aim}")

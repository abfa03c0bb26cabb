"""Worker processes: requests a second of two against one; what tracing costs in CPU time of the server.

`python -m benchmarks.workers [workers] [tracing]`. Runs alternate, so that other work on the machine meets both sides
alike; ratios are medians over the pairs.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchmarks.http_client import request
from benchmarks.pipelined import Load, ask
from benchmarks.serve import make_plans

N_CONNECTIONS, DEPTH, SECONDS, N_PAIRS = 16, 2, 2.0, 5
TRACED = "import benchmarks.traced"  # sets an SDK up that exports nowhere
KINDS = {"rows at hand": [], "five extractors": ["--extractors", "benchmarks/five.py:extractors"]}


def main() -> None:
    """Print both tables, or those that are named."""
    asked = sys.argv[1:] or ["workers", "tracing"]
    with tempfile.TemporaryDirectory() as folder:
        plans, row = make_plans(Path(folder))
        message = request("/v1/predict", json.dumps({"row": row}).encode())
        if "workers" in asked:
            workers(plans["learner"], message)
        if "tracing" in asked:
            tracing(plans["learner"], message)


@contextmanager
def serving(plan: Path, *args: str, before: str = "") -> Iterator[tuple[list[psutil.Process], int]]:
    """The command, its processes and its port."""
    code = f"{before}\nfrom miserly.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", str(plan), "--port", "0", *args]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        lines = iter(process.stderr)
        port = next(int(found[1]) for line in lines if (found := re.search(r"http://127\.0\.0\.1:(\d+)", line)))
        n = int(args[args.index("--workers") + 1]) if "--workers" in args else 1
        for _ in range(n if n > 1 else 0):
            next(line for line in lines if "startup complete" in line)
        own = psutil.Process(process.pid)
        yield [own, *own.children()], port
    finally:
        process.terminate()
        process.wait(30)


def measured(processes: list[psutil.Process], port: int, message: bytes) -> tuple[Load, float]:
    """A load, and the server's CPU seconds for a good answer."""
    before = sum(sum(p.cpu_times()[:2]) for p in processes)
    load = ask(port, message, N_CONNECTIONS, DEPTH, SECONDS)
    cpu = sum(sum(p.cpu_times()[:2]) for p in processes) - before
    return load, cpu / max(1, load.n_good)


def workers(plan: Path, message: bytes) -> None:
    """Two workers against one, alternately."""
    for kind, args in KINDS.items():
        with serving(plan, *args) as one, serving(plan, "--workers", "2", *args) as two:
            for server in (one, two):
                ask(server[1], message, N_CONNECTIONS, DEPTH, 1.0)
            pairs = [(measured(*one, message), measured(*two, message)) for _ in range(N_PAIRS)]
        spent = [statistics.median(cpu for _, cpu in side) for side in zip(*pairs)]
        ratios = [two[0].rate / one[0].rate for one, two in pairs]
        rates = [statistics.median(load.rate for load, _ in side) for side in zip(*pairs)]
        generator = statistics.median(load.cpu / load.n_good for (load, _), _ in pairs)
        goal = f"(goal 1.4: {'met' if statistics.median(ratios) >= 1.4 else 'MISSED'})"
        print(
            f"  {kind}: {rates[0]:.0f} requests/s by one, {rates[1]:.0f} by two workers, ratio "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) {goal}; "
            f"CPU {1e6 * spent[0]:.0f} and {1e6 * spent[1]:.0f} µs a request, so with two free cores "
            f"{2 * spent[0] / spent[1]:.2f}; the generator takes {1e6 * generator:.0f} µs, "
            f"load of the machine {psutil.getloadavg()[0]:.1f}"
        )


def tracing(plan: Path, message: bytes) -> None:
    """Without a set-up SDK and with one, against a server that cannot trace."""
    never = "import sys; sys.modules['opentelemetry'] = None"
    for kind, args in KINDS.items():
        found: dict[str, list[float]] = {"never": [], "off": [], "on": []}
        with (
            serving(plan, *args, before=never) as first,
            serving(plan, *args) as second,
            serving(plan, *args, before=TRACED) as third,
        ):
            servers = dict(zip(found, (first, second, third)))
            for server in servers.values():
                ask(server[1], message, N_CONNECTIONS, DEPTH, 1.0)
            for _ in range(2 * N_PAIRS):
                for name, server in servers.items():
                    found[name].append(measured(*server, message)[1])
        base = statistics.median(found["never"])
        for name, goal in (("off", 0.02), ("on", 0.15)):
            over = statistics.median(found[name]) / base - 1.0
            verdict = "met" if over <= goal else "MISSED"
            print(
                f"  {kind}, tracing {name}: {100 * over:+.1f} % of {1e6 * base:.0f} µs (goal {100 * goal:g}: {verdict})"
            )


if __name__ == "__main__":
    main()

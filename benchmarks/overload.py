"""Too many clients: how much is answered in time, against the best that the server does with fewer.

`python -m benchmarks.overload`. The server has one core, the generator another. Each client asks again when it has its
answer, and a moment after a refusal; requests have a deadline of 100 ms. Saturation is the number of clients from which
more of them get no more answers. Loads alternate, so that other work on the machine meets all of them alike; answers
are counted in a second of the server's CPU time too, which other work hardly changes.
"""

from __future__ import annotations

import heapq
import json
import os
import selectors
import socket
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from benchmarks.http_client import PAUSE, request
from benchmarks.serve import make_plans, serving

DEADLINE_MS, SECONDS, N_ROUNDS = 100, 1.0, 3
CLIENTS = (4, 8, 16, 32, 64)  # among these is the saturation
FACTORS = (3, 10, 30)
KINDS = ("rows", "threads")  # that bring their features; for which five plain extractors are called
READ = 1 << 16


@dataclass
class Outcome:
    """What the clients of one load got."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    n_lost: int = 0
    wall: float = 0.0
    server_cpu: float = 0.0

    @property
    def n_in_time(self) -> int:
        """Answers with 200 that came within the deadline."""
        return sum(1e3 * taken <= DEADLINE_MS for taken in self.seconds)

    @property
    def p99(self) -> float:
        """Milliseconds that 99 in 100 answers took at most."""
        return 1e3 * float(np.quantile(self.seconds, 0.99)) if self.seconds else float("nan")


class _Client:
    """One connection with at most one request on its way."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10.0)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.asked, self._data = 0.0, b""

    def answered(self) -> int | None:
        """The status of the answer, once it is complete; 0 if the connection ended before."""
        data = self.socket.recv(READ)
        self._data += data
        head, end, body = self._data.partition(b"\r\n\r\n")
        if not data:
            return 0
        if not end or len(body) < int(head.lower().partition(b"content-length:")[2].partition(b"\r")[0]):
            return None
        self._data = b""
        return int(head[9:12])

    def ask(self, message: bytes) -> None:
        self.asked = time.perf_counter()
        self.socket.sendall(message)


def clients(port: int, message: bytes, n: int, seconds: float) -> Outcome:
    """So many clients for some seconds; every request is followed to its end."""
    found, chooser = Outcome(), selectors.DefaultSelector()
    waiting: list[tuple[float, int, _Client]] = []  # those who were refused: when they ask again
    began = time.perf_counter()
    until = began + seconds
    n_open = 0
    for _ in range(n):
        client = _Client(port)
        chooser.register(client.socket, selectors.EVENT_READ, client)
        client.ask(message)
        n_open += 1
    while True:
        now = time.perf_counter()
        while waiting and waiting[0][0] <= now:
            if now < until:
                waiting[0][2].ask(message)
                n_open += 1
            heapq.heappop(waiting)
        if not n_open and not waiting:
            break
        pause = max(0.0, waiting[0][0] - now) if waiting else 5.0
        for key, _ in chooser.select(pause):
            client = key.data
            status = client.answered()
            if status is None:
                continue
            n_open -= 1
            if status == 0:
                found.n_lost += 1
                chooser.unregister(client.socket)
                continue
            now = time.perf_counter()
            found.statuses[status] += 1
            if status == 200:
                found.seconds.append(now - client.asked)
                if now < until:
                    client.ask(message)
                    n_open += 1
            else:
                heapq.heappush(waiting, (now + PAUSE, id(client), client))
    found.wall = time.perf_counter() - began
    for key in list(chooser.get_map().values()):
        key.data.socket.close()
    return found


def measured(server: psutil.Process, port: int, message: bytes, n: int) -> Outcome:
    """One load, with the CPU time that the server took for it."""
    before = sum(server.cpu_times()[:2])
    found = clients(port, message, n, SECONDS)
    found.server_cpu = sum(server.cpu_times()[:2]) - before
    return found


def main() -> None:
    """A table for each kind of server."""
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        plans, row = make_plans(Path(folder))
        message = request("/v1/predict", json.dumps({"row": row, "deadline_ms": DEADLINE_MS}).encode())
        for kind in sys.argv[1:] or KINDS:
            os.sched_setaffinity(0, cores[:1])  # the server inherits it
            with serving(kind, plans["learner"]) as (process, port):
                os.sched_setaffinity(0, cores[-1:])
                table(kind, psutil.Process(process.pid), port, message)


def table(kind: str, server: psutil.Process, port: int, message: bytes) -> None:
    """Loads by the number of clients: find the saturation, then measure it and its multiples."""
    clients(port, message, CLIENTS[2], 1.0)
    found = {n: [measured(server, port, message, n)] for n in CLIENTS}
    best = max(by_cpu(outcomes) for outcomes in found.values())
    saturation = next(n for n in CLIENTS if by_cpu(found[n]) >= 0.95 * best)
    for _ in range(N_ROUNDS):
        for n in (saturation, *(factor * saturation for factor in FACTORS)):
            found.setdefault(n, []).append(measured(server, port, message, n))
    best = max(by_cpu(outcomes) for outcomes in found.values())
    print(f"{kind}: clients, answers in time a second, a CPU second, of the best, refused, p99 ms, CPU used")
    for n, outcomes in sorted(found.items()):
        statuses = sum((o.statuses for o in outcomes), Counter[int]())
        assert set(statuses) <= {200, 503}, statuses
        assert not any(o.n_lost for o in outcomes)
        print(
            f"  {n:4d} {statistics.median(o.n_in_time / o.wall for o in outcomes):8.0f} {by_cpu(outcomes):8.0f} "
            f"{by_cpu(outcomes) / best:6.2f} {100 * statuses[503] / statuses.total():5.1f} % "
            f"{statistics.median(o.p99 for o in outcomes):6.1f} "
            f"{statistics.median(o.server_cpu / o.wall for o in outcomes):5.2f}"
            + (" saturation" if n == saturation else " three times that" if n == 3 * saturation else "")
        )


def by_cpu(outcomes: list[Outcome]) -> float:
    """Answers in time in a second of the server's CPU time."""
    return statistics.median(o.n_in_time / o.server_cpu for o in outcomes)


if __name__ == "__main__":
    main()

"""A bounded HTTP client: so many connections, each asking again when it has its answer; nothing is lost uncounted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

PAUSE = 0.05  # seconds before asking again after a 503: less than the server asks for


@dataclass
class Tally:
    """What came back: statuses, seconds of the answered ones, and requests sent that nobody answered."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    n_lost: int = 0
    wall: float = 0.0

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.statuses[200] / self.wall

    def quantile(self, q: float) -> float:
        """Milliseconds that a share of the answers took at most."""
        return 1e3 * float(np.quantile(self.seconds, q))


def request(path: str, body: bytes) -> bytes:
    """A POST as it goes over the wire."""
    return b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (path.encode(), len(body), body)


async def ask(
    port: int, message: bytes, n_connections: int, until: Callable[[], bool], keep_bodies: bool = False
) -> Tally:
    """Ask on all connections until asked to stop, or until the server takes no more connections."""
    tally, began = Tally(), perf_counter()
    await asyncio.gather(*(_ask_on_one(port, message, until, tally, keep_bodies) for _ in range(n_connections)))
    tally.wall = perf_counter() - began
    return tally


async def _ask_on_one(port: int, message: bytes, until: Callable[[], bool], tally: Tally, keep_bodies: bool) -> None:
    while not until():
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:  # the server takes no more connections
            return
        is_open = True
        while is_open and not until():
            began = perf_counter()
            try:
                writer.write(message)
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                body = await reader.readexactly(int(head.partition(b"content-length:")[2].partition(b"\r")[0]))
            except (OSError, asyncio.IncompleteReadError):
                tally.n_lost += 1
                break
            status = int(head[9:12])
            tally.statuses[status] += 1
            if status == 200:
                tally.seconds.append(perf_counter() - began)
                if keep_bodies:
                    tally.bodies.append(body)
            elif status == 503:
                await asyncio.sleep(PAUSE)
            is_open = b"connection: close" not in head
        writer.close()

"""`python -m benchmarks.serving KIND PLAN [REDIS]`: the servers that are measured, each a process of its own."""

from __future__ import annotations

import asyncio
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from miserly.runtime import Extractor, RedisCache, extractor
from miserly.serve import serve
from miserly.serve._request_handler import RequestHandler

ANSWER = (
    b'{"value":false,"probabilities":[0.9,0.1],"cost":176.0,"measured_ms":0.01,"stopped":"answered",'
    b'"acquired":["a0","a1","a2","a3","a4"],"tier":0}'
)
N_ACQUISITIONS = 5
OWN_TIMEOUT, HANGS = 0.05, 0.05  # the soak's extractors: seconds that a call may take, and the share of calls that hang


async def _constant(self: RequestHandler, body: bytes, headers: object, arrived: float, waited: float) -> bytes:
    return ANSWER


def extractors(work: Callable[[int], None] | None = None, wait: float | None = None) -> list[Extractor]:
    """Five that read two features each, after some work of theirs on a thread, or after a wait on the event loop."""

    def made(a: int) -> Extractor:
        names = [f"f{2 * a}", f"f{2 * a + 1}"]

        def plain(row: dict[str, Any]) -> list[float]:
            if work is not None:
                work(a)
            return [row[name] for name in names]

        async def later(row: dict[str, Any]) -> list[float]:
            await asyncio.sleep(wait or 0.0)
            return [row[name] for name in names]

        return extractor(f"a{a}", yields=names)(plain if wait is None else later)

    return [made(a) for a in range(N_ACQUISITIONS)]


def trouble(a: int) -> None:
    """One call in ten fails; the third extractor hangs for ever."""
    if a == 2:
        threading.Event().wait()
    if random.random() < 0.1:
        raise ConnectionError("one in ten")
    time.sleep(0.001)


def hostile(redis: str) -> list[Extractor]:
    """Five that hang in one call of twenty: two wait on the event loop, two on threads, one is kept in Redis."""

    def made(a: int) -> Extractor:
        names = [f"f{2 * a}", f"f{2 * a + 1}"]

        async def later(row: dict[str, Any]) -> list[float]:
            await asyncio.sleep(3600.0 if random.random() < HANGS else 0.002)
            return [row[name] for name in names]

        def plain(row: dict[str, Any]) -> list[float]:
            if random.random() < HANGS:
                time.sleep(10 * OWN_TIMEOUT)
            return [row[name] for name in names]

        if a in (1, 3):
            return extractor(f"a{a}", yields=names, timeout=OWN_TIMEOUT, workers=64)(plain)
        cache = RedisCache("a0", lambda row: random.randrange(1000), ttl=1.0, url=redis, join=0.02) if a == 0 else None
        return extractor(f"a{a}", yields=names, timeout=OWN_TIMEOUT, cache=cache)(later)

    return [made(a) for a in range(N_ACQUISITIONS)]


def main(kind: str, path: str, redis: str = "") -> None:
    """Serve until the end."""
    if kind == "constant":
        RequestHandler.predict = _constant  # type: ignore[method-assign]
    kits = {
        "threads": lambda: extractors(),
        "soak": lambda: hostile(redis),
        "trouble": lambda: extractors(trouble),
    }
    kit = kits[kind]() if kind in kits else None
    serve(path, kit, port=0, max_in_flight=32 if kind == "soak" else 256)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Calls of a worker's store from a client or another worker: straight to it, and an error as soon as it is gone.

Dask's own handle of an actor waits for ever, in a worker, once the other worker has died.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from distributed import Client, get_worker
from distributed.actor import ProxyRPC
from distributed.protocol import to_serialize


@dataclass(frozen=True)
class Handle:
    """Where a store is."""

    address: str
    key: str

    def call_from_worker(self, what: str, *arguments: Any) -> Future[Any]:
        """Begin a call; the answer comes with `result()`."""
        worker = get_worker()
        return _begin(worker.loop, _call(worker.rpc(self.address), self.key, what, arguments))

    def call(self, client: Client, what: str, *arguments: Any, straight: bool = True, **options: Any) -> Future[Any]:
        """The same from a client; by way of the scheduler where the client cannot reach the workers."""
        to = client.rpc(self.address) if straight else ProxyRPC(client.scheduler, self.address)
        return _begin(client.loop, _call(to, self.key, what, arguments, options))


def _begin(loop: Any, work: Any) -> Future[Any]:
    return asyncio.run_coroutine_threadsafe(work, loop.asyncio_loop)


async def _call(to: Any, key: str, what: str, arguments: tuple[Any, ...], options: Any = None) -> Any:
    packed = [to_serialize(argument) for argument in arguments]
    answer = await to.actor_execute(function=what, actor=key, args=packed, kwargs=options or {})
    if answer["status"] != "OK":
        raise answer["exception"]
    return answer["result"]

"""HTTP connections with limits: how many, how long a head may take and how large it is, and when a request arrived."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from miserly.serve._app import ARRIVED
from miserly.serve._metrics import Telemetry

HEAD_SECONDS, HEAD_BYTES = 10.0, 1 << 16  # a client sends the head of a request at once; 64 kB hold any proxy's


class ArrivalClock:
    """Says when data arrived that the event loop reads only now.

    What is read in one turn of the loop arrived after the turn before had looked for data. Turns are short unless
    there is much to do, and then this is how long requests waited before anybody saw them.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
        Which loop.
    now : callable, default time.perf_counter
        Gives the time in seconds.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, now: Callable[[], float] = perf_counter) -> None:
        self._loop, self._now = loop, now
        self._this_turn: float | None = None
        self._turn_before: float | None = None

    def arrived(self) -> float:
        """When data arrived, at the earliest, that is read now."""
        if self._this_turn is None:
            self._this_turn = self._now()
            self._loop.call_soon(self._next_turn)
        return self._this_turn if self._turn_before is None else self._turn_before

    def _next_turn(self) -> None:
        self._turn_before, self._this_turn = self._this_turn, None
        self._loop.call_soon(self._forget, self._turn_before)

    def _forget(self, turn: float | None) -> None:
        if self._turn_before is turn:
            self._turn_before = None


def limited_protocol(max_connections: int, telemetry: Telemetry) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with limits.

    Parameters
    ----------
    max_connections : int
        Connections beyond that are closed at once.
    telemetry : Telemetry
        Counts those.
    """
    clocks: list[ArrivalClock] = []

    class LimitedProtocol(HttpToolsProtocol):
        """A connection that is closed if there are too many, or if it does not send a request."""

        _n_head_bytes = 0
        _head_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > max_connections:
                telemetry.n_connections_refused += 1
                transport.abort()
                return
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self.parser is None:
                return
            if self._head_timer is not None:
                self._n_head_bytes += len(data)
            super().data_received(data)
            if self._head_timer is not None and self._n_head_bytes > HEAD_BYTES:
                self._give_up()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            if not clocks:
                clocks.append(ArrivalClock(self.loop))
            self.scope[ARRIVED] = clocks[0].arrived()  # type: ignore[literal-required]
            if self._head_timer is None:
                self._head_timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

        def on_headers_complete(self) -> None:
            self._stop_timer()
            super().on_headers_complete()

        def _stop_timer(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer, self._n_head_bytes = None, 0

        def _give_up(self) -> None:
            if not self.transport.is_closing():
                self.transport.abort()

    return LimitedProtocol


def quiet_about_descriptors(loop: asyncio.AbstractEventLoop, log: Callable[[str], None]) -> None:
    """Report that the process is out of file descriptors once a second, not once for every waiting connection."""
    last = [-1.0]

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and "accept" in context.get("message", ""):
            if loop.time() - last[0] >= 1.0:
                last[0] = loop.time()
                log(f"No connection can be accepted: {error.strerror}. Lower --max-connections or raise the limit.")
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)

"""HTTP connections with limits: how many, how long a head may take and how large it is, and when a request arrived."""

from __future__ import annotations

import asyncio
import math
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any

from uvicorn._types import HTTPScope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from miserly.serve._app import ARRIVED
from miserly.serve._metrics import Telemetry

HEAD_SECONDS, HEAD_BYTES = 10.0, 1 << 16  # a client sends the head of a request at once; 64 kB hold any proxy's

SHORT_TURN = 0.0002  # seconds of an event loop with little to do
FULL_TURN = 0.02  # seconds of requests that run in one turn of the event loop
FEWEST = 8  # requests that run in one turn whatever they cost
REMEMBERED = 100  # requests over which their cost is averaged
LONGEST_TURN = 1.0  # seconds: a listener that was readable longer ago was empty meanwhile


class LoopTurns:
    """Follows the turns of an event loop: when the data arrived that is read in one, and how many requests fit into it.

    What is read in one turn of the loop arrived after the turn before had looked for data. Turns are short unless
    there is much to do, and then this is how long requests waited before anybody saw them. Requests that are read in
    one turn all run in the next, so those that do not fit can be refused before anything was done for them.

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
        self._n_begun = self._n_running = 0
        self._running_since: float | None = None
        self._cost = 0.0  # seconds that the loop spends on a request, lately

    def arrived(self) -> float:
        """When data arrived, at the earliest, that is read now."""
        if self._this_turn is None:
            self._this_turn = self._now()
            self._note_cost(self._this_turn)
            self._loop.call_soon(self._next_turn)
        return self._this_turn if self._turn_before is None else self._turn_before

    def takes(self) -> bool:
        """Whether one more request fits into the next turn; then it counts as begun."""
        if self._n_begun >= FEWEST and self._n_begun * self._cost >= FULL_TURN:
            return False
        self._n_begun += 1
        return True

    def _next_turn(self) -> None:
        self._turn_before, self._this_turn = self._this_turn, None
        self._running_since, self._n_running, self._n_begun = self._now(), self._n_begun, 0
        self._loop.call_soon(self._forget, self._turn_before)

    def _forget(self, turn: float | None) -> None:
        self._note_cost(self._now())
        if self._turn_before is turn:
            self._turn_before = None

    def _note_cost(self, now: float) -> None:
        """The requests of this turn have run; one that takes long by chance counts little among many."""
        if self._running_since is not None and self._n_running:
            cost = (now - self._running_since) / self._n_running
            self._cost += (cost - self._cost) * min(1.0, self._n_running / REMEMBERED)
        self._running_since = None


class Acceptor:
    """Accepts connections beside an event loop that accepts one in each of its turns, as libuv does.

    Turns take long when there is much to do; then connections that nobody has accepted yet would wait for seconds.
    This takes as many more as a loop with short turns would have taken: an idle process leaves the others to the
    processes that share the socket.

    Parameters
    ----------
    listener : socket.socket
        What connections come from; it is duplicated.
    protocol : callable
        Makes the protocol of a connection.
    now : callable, default time.perf_counter
        Gives the time in seconds.
    """

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        now: Callable[[], float] = perf_counter,
    ) -> None:
        self._listener = socket.socket(fileno=os.dup(listener.fileno()))
        self._listener.setblocking(False)
        self._loop, self._protocol, self._now = asyncio.get_running_loop(), protocol, now
        self._seen = -math.inf
        self._beginning: set[asyncio.Task[Any]] = set()
        self._loop.add_reader(self._listener.fileno(), self._look)

    def _look(self) -> None:
        """Connections wait; so they did before this turn, if it comes soon after another look."""
        now = self._now()
        turn, self._seen = now - self._seen, now
        if turn > LONGEST_TURN:
            return
        for _ in range(int(turn / SHORT_TURN)):
            try:
                connection, _ = self._listener.accept()
            except OSError:  # none is left, or no descriptor; the loop's own accepting says so
                return
            task = self._loop.create_task(self._begin(connection))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)

    async def _begin(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.setblocking(False)
            await self._loop.connect_accepted_socket(self._protocol, connection)

    def close(self) -> None:
        """Accept no more."""
        self._loop.remove_reader(self._listener.fileno())
        self._listener.close()


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is closed if there are too many, or if it does not send a request.

    The parameters are those of uvicorn's protocol; `limited_protocol` says what the class attributes are.
    """

    max_connections: int
    telemetry: Telemetry
    refusal: Callable[[HTTPScope], bytes | None]
    turns: list[LoopTurns]  # one, from the first request on
    _n_head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            self.telemetry.n_connections_refused += 1
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
        if not self.turns:
            self.turns.append(LoopTurns(self.loop))
        self.scope[ARRIVED] = self.turns[0].arrived()  # type: ignore[literal-required]
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def on_headers_complete(self) -> None:
        self._stop_timer()
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Answer a request or, if the loop has too much to do, refuse it without a task of its own."""
        refused = None
        if not (self.turns[0].takes() or self.pipeline or self.flow.write_paused):
            refused = self.refusal(cycle.scope)
        if refused is None:
            super()._start_asgi_task(cycle, app)
            return
        cycle.response_started = cycle.response_complete = True
        self.transport.write(refused)
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer, self._n_head_bytes = None, 0

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()


def limited_protocol(
    max_connections: int, telemetry: Telemetry, refusal: Callable[[HTTPScope], bytes | None]
) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with limits.

    Parameters
    ----------
    max_connections : int
        Connections beyond that are closed at once.
    telemetry : Telemetry
        Counts those.
    refusal : callable
        Gives the whole response to a request for which there is no time; None if it is answered nevertheless.
    """
    own = {"max_connections": max_connections, "telemetry": telemetry, "refusal": staticmethod(refusal), "turns": []}
    return type("OwnProtocol", (LimitedProtocol,), own)


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

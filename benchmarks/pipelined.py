"""A load generator that takes little of the machine: several requests on their way on each connection."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

READ = 1 << 18
MARK = b"HTTP/1.1 "


@dataclass
class Load:
    """What came back: answers by status, connections that broke, and what was on its way on those."""

    statuses: dict[bytes, int] = field(default_factory=dict)
    n_broken: int = 0
    n_in_flight_when_broken: int = 0
    n_refused: int = 0
    wall: float = 0.0
    cpu: float = 0.0

    @property
    def n_good(self) -> int:
        """Answers with 200."""
        return self.statuses.get(b"200", 0)

    @property
    def rate(self) -> float:
        """Good answers a second."""
        return self.n_good / self.wall


class _Connection:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10.0)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.in_flight = 0
        self.tail = b""


def ask(
    port: int,
    message: bytes,
    n_connections: int,
    depth: int,
    seconds: float,
    is_over: Callable[[], bool] = lambda: False,
) -> Load:
    """Keep `depth` requests on their way on each connection for some seconds, then wait for all answers.

    A connection that breaks is made again; the requests that were on their way on it are counted as lost, as those of
    any client are that sends the next request before it has the answer.
    """
    load, chooser = Load(), selectors.DefaultSelector()
    began, cpu = time.monotonic(), time.process_time()
    until = began + seconds
    ends = False

    def connect() -> None:
        try:
            connection = _Connection(port)
        except OSError:
            load.n_refused += 1
            return
        chooser.register(connection.socket, selectors.EVENT_READ, connection)
        connection.socket.sendall(depth * message)
        connection.in_flight = depth

    def drop(connection: _Connection) -> None:
        load.n_broken += 1
        load.n_in_flight_when_broken += connection.in_flight
        chooser.unregister(connection.socket)
        connection.socket.close()

    for _ in range(n_connections):
        connect()
    while chooser.get_map():
        ends = ends or time.monotonic() > until or is_over()
        for key, _ in chooser.select(5.0):
            connection: _Connection = key.data
            try:
                data = connection.socket.recv(READ)
                if not data:
                    raise ConnectionResetError
                n = _count(load, connection, data)
                connection.in_flight -= n
                if n and not ends:
                    connection.socket.sendall(n * message)
                    connection.in_flight += n
            except OSError:
                drop(connection)
                if not ends:
                    connect()
                continue
            if ends and connection.in_flight == 0:
                chooser.unregister(connection.socket)
                connection.socket.close()
    load.wall, load.cpu = time.monotonic() - began, time.process_time() - cpu
    return load


def _count(load: Load, connection: _Connection, data: bytes) -> int:
    """Count the answers that begin in some data; a status may be cut in two."""
    data = connection.tail + data
    n = at = 0
    while (at := data.find(MARK, at)) >= 0 and at + 12 <= len(data):
        status = data[at + 9 : at + 12]
        load.statuses[status] = load.statuses.get(status, 0) + 1
        n, at = n + 1, at + 12
    connection.tail = data[at:] if at >= 0 else data[-(len(MARK) - 1) :]
    return n

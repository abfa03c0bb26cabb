"""Reading the body of a request: within a size, a time, and a budget for all bodies that are not complete."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from miserly.serve._admission import overloaded
from miserly.serve._messages import RefusedError, shorten

Receive = Callable[[], Awaitable[Any]]


class ClientGoneError(Exception):
    """The client closed the connection before it was answered."""


class Bodies:
    """The bodies that are being read.

    Parameters
    ----------
    most : int
        Bytes of one body.
    most_in_all : int
        Bytes of all that are not complete; beyond that the largest is refused.
    seconds : float
        Time that a body may take to arrive.
    """

    def __init__(self, most: int, most_in_all: int, seconds: float) -> None:
        self.most, self._most_in_all, self._seconds = most, most_in_all, seconds
        self._readers: dict[asyncio.Task[Any], int] = {}
        self._refused: set[asyncio.Task[Any]] = set()

    @property
    def n_buffered(self) -> int:
        """Bytes of bodies that are not complete."""
        return sum(self._readers.values())

    async def read(self, receive: Receive, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        """Return a whole body, or refuse it."""
        for name, value in headers:
            if name == b"content-length" and value.isdigit() and int(value) > self.most:
                raise self._too_large()
            if name == b"content-encoding" and value not in (b"", b"identity"):
                what = f"The body is compressed ({shorten(value.decode('latin-1'))})."
                raise RefusedError(what, "header content-encoding", "Send it as it is.", 415)
        message = await self._first(receive)
        if not message.get("more_body", False):
            body: bytes = message.get("body", b"")
            if len(body) > self.most:
                raise self._too_large()
            return body
        return await self._read_slowly(receive, message.get("body", b""))

    async def _first(self, receive: Receive) -> Any:
        try:
            async with asyncio.timeout(self._seconds):
                return _checked(await receive())
        except TimeoutError:
            raise self._too_slow() from None

    async def _read_slowly(self, receive: Receive, first: bytes) -> bytes:
        """The body comes in several parts."""
        task = asyncio.current_task()
        assert task is not None
        parts, size, is_complete = [first], len(first), False
        self._readers[task] = size
        try:
            async with asyncio.timeout(self._seconds):
                while not is_complete:
                    message = _checked(await receive())
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    is_complete = not message.get("more_body", False)
                    if size > self.most:
                        raise self._too_large()
                    self._readers[task] = 0 if is_complete else size
                    self._keep_within_budget()
        except TimeoutError:
            raise self._too_slow() from None
        except asyncio.CancelledError:
            if task in self._refused:
                task.uncancel()
                raise overloaded() from None
            raise
        finally:
            del self._readers[task]
            self._refused.discard(task)
        return b"".join(parts)

    def _keep_within_budget(self) -> None:
        while self.n_buffered > self._most_in_all and len(self._refused) < len(self._readers):
            largest = max((t for t in self._readers if t not in self._refused), key=self._readers.__getitem__)
            self._refused.add(largest)
            self._readers[largest] = 0
            if largest is asyncio.current_task():
                raise overloaded()
            largest.cancel()

    def _too_large(self) -> RefusedError:
        remedy = "Send less at once, or start the server with a higher --max-body."
        return RefusedError(f"The body has more than {self.most} bytes.", "body", remedy, 413)

    def _too_slow(self) -> RefusedError:
        what = f"The body did not arrive within {self._seconds:g} seconds."
        return RefusedError(what, "body", "Send the whole request at once.", 408)


def _checked(message: Any) -> Any:
    if message["type"] == "http.disconnect":
        raise ClientGoneError
    return message

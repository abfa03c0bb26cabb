"""The access log: one JSON object for each request, written by a thread so that a slow disk holds up nobody."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Iterable
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from uuid import uuid4

import msgspec

log = logging.getLogger("miserly.serve")
FACTS: ContextVar[dict[str, Any] | None] = ContextVar("facts of the request", default=None)
REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")  # what a client may call its request: printable, and no longer


def note(**facts: Any) -> None:
    """Add facts about the present request to its line in the log."""
    known = FACTS.get()
    if known is not None:
        known.update(facts)


def request_id(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The id that the client sent in `X-Request-Id`, or a new one if there is none that can be used."""
    for name, value in headers:
        if name == b"x-request-id" and REQUEST_ID.fullmatch(value):
            return value.decode("ascii")
    return uuid4().hex


class AccessLog:
    """Lines of JSON at the end of a file.

    Each line is written at once, so several processes can share a file. A file that was moved away is made again.

    Parameters
    ----------
    path : str or Path
        The file; "-" is the standard output.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = None if str(path) == "-" else Path(path)
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._file = self._open()
        self._thread = threading.Thread(target=self._write, name="miserly-access-log", daemon=True)
        self._thread.start()

    def record(self, **facts: Any) -> None:
        """Add a line with these facts and the time; never waits."""
        self._lines.put(msgspec.json.encode({"time": datetime.now(UTC).isoformat(), **facts}) + b"\n")

    def close(self) -> None:
        """Write what is left, and end."""
        self._lines.put(None)
        self._thread.join(5.0)

    def _open(self) -> int:
        if self._path is None:
            return sys.stdout.fileno()
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                if self._path is not None and not self._path.exists():
                    os.close(self._file)
                    self._file = self._open()
                os.write(self._file, line)
            except OSError as error:
                log.error("The access log cannot be written: %s.", error)
        if self._path is not None:
            os.close(self._file)

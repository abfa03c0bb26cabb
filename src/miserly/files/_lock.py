"""One process at a time in a folder or at a file; the lock goes with the process that holds it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # no locks on Windows
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)


@contextmanager
def locked(place: str | Path, refusal: str | None = None) -> Iterator[None]:
    """Hold a folder or file that exists. If another holds it, wait, or raise the `refusal` if there is one."""
    if fcntl is None:
        yield
        return
    handle = os.open(place, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if refusal is None else fcntl.LOCK_NB))
        except BlockingIOError:
            raise ValueError(refusal) from None
        except OSError:
            logger.debug("no locks in '%s'", place)
        yield
    finally:
        os.close(handle)

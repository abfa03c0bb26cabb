"""A file is written beside its place and moved there when it is complete: a kill or a full disk leaves the old one."""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

ABANDONED = 3600.0  # seconds: no write takes that long


@contextmanager
def whole_file(path: str | Path, encoding: str | None = None, newline: str | None = None) -> Iterator[IO[Any]]:
    """A file to write, of text if there is an encoding, which takes the place of `path` when all of it is written.

    If that fails, the old file stays and nothing else is left. A new file has the permissions of the old one. What a
    program that was killed left beside it is removed after an hour. Devices and pipes are written to as they are.
    """
    path = Path(path)
    how = "b" if encoding is None else ""
    if path.exists() and not path.is_file():
        with writing(path), path.open(f"w{how}", encoding=encoding, newline=newline) as file:
            yield file
        return
    path = path.resolve()
    if not path.parent.is_dir():
        raise FileNotFoundError(f"Cannot write '{path}': the folder '{path.parent}' does not exist.")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        with temporary.open(f"x{how}", encoding=encoding, newline=newline) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError):
            os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
        os.replace(temporary, path)
        _remove_leftovers(path)
    except OSError as error:
        raise _cannot_write(path, error, "Nothing was changed.") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Remove unfinished copies of a file that are older than any write takes."""
    with suppress(OSError):
        for name in os.listdir(path.parent):
            if re.fullmatch(rf"\.{re.escape(path.name)}\.[0-9a-f]{{12}}", name):
                with suppress(OSError):
                    if time.time() - (path.parent / name).stat().st_mtime > ABANDONED:
                        (path.parent / name).unlink()


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write text or bytes, all or nothing."""
    with whole_file(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def writing(path: str | Path, then: str = "") -> Iterator[None]:
    """Errors in here that name no file, as those of a full disk, name this one, and say what is left."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise _cannot_write(path, error, then) from error


def _cannot_write(path: str | Path, error: OSError, then: str) -> OSError:
    return OSError(error.errno, f"Cannot write '{path}': {error.strerror or error}. {then}".rstrip())

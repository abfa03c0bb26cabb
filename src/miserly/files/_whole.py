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

try:
    import fcntl
except ImportError:  # no locks on Windows
    fcntl = None  # type: ignore[assignment]

ABANDONED = 3600.0  # seconds, where there are no locks: no write takes that long


@contextmanager
def whole_file(path: str | Path, encoding: str | None = None, newline: str | None = None) -> Iterator[IO[Any]]:
    """A file to write, of text if there is an encoding, which takes the place of `path` when all of it is written.

    If that fails, the old file stays and nothing else is left. A new file has the permissions of the old one. What a
    program that was killed left beside it is removed. Devices and pipes are written to as they are.
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
    temporary: Path | None = None
    try:
        file, temporary = _beside(path, f"x{how}", encoding, newline)
        with file:
            _keep_rights(path, temporary)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # an open file cannot be moved on Windows
            os.replace(temporary, path)
        _remove_leftovers(path)
    except OSError as error:
        raise _cannot_write(path, error, "Nothing was changed.") from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _beside(path: Path, mode: str, encoding: str | None, newline: str | None) -> tuple[IO[Any], Path]:
    """A new file beside a path, locked while it is open: one without a lock was left by a program that was killed."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        file = temporary.open(mode, encoding=encoding, newline=newline)
        if fcntl is None:
            return file, temporary
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file, temporary
        file.close()  # removed by another writer between the two lines above


def _keep_rights(path: Path, temporary: Path) -> None:
    """Give the new file the permissions and the group of the old one before anything is written to it."""
    with suppress(OSError):
        old, new = path.stat(), temporary.stat()
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            with suppress(OSError):
                os.chown(temporary, old.st_uid, old.st_gid)
        os.chmod(temporary, stat.S_IMODE(old.st_mode))


def _remove_leftovers(path: Path) -> None:
    """Remove unfinished copies of a file that nobody is writing."""
    with suppress(OSError):
        for name in os.listdir(path.parent):
            if re.fullmatch(rf"\.{re.escape(path.name)}\.[0-9a-f]{{12}}", name):
                with suppress(OSError):
                    _remove_abandoned(path.parent / name)


def _remove_abandoned(left: Path) -> None:
    """Remove a file if its writer is gone: it has no lock, or, where locks are not known, is old."""
    if fcntl is None:
        if time.time() - left.stat().st_mtime > ABANDONED:
            left.unlink()
        return
    with left.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        left.unlink()


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

"""Packed files, within the size that honest ones unpack to: a small file must not fill the memory."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

SMALL = 1 << 26  # bytes that any file may unpack to
MOST_GROWTH = 200  # times its size beyond that: tables of numbers shrink to a tenth, of zeros to a hundredth
GZIP_MARK = b"\x1f\x8b"


def is_gzip(path: str | Path) -> bool:
    """Whether a file is gzipped, by its first bytes."""
    with Path(path).open("rb") as file:
        return file.read(2) == GZIP_MARK


def open_gzip(path: str | Path) -> BinaryIO:
    """The content of a gzipped file; a ValueError that names it where it is damaged or unpacks to far too much."""
    return io.BufferedReader(_Unpacked(path), 1 << 18)


def check_zip(path: str | Path) -> None:
    """Refuse a zip that unpacks to far more than its size."""
    try:
        with zipfile.ZipFile(path) as archive:
            total = sum(entry.file_size for entry in archive.infolist())
    except zipfile.BadZipFile:
        return  # its reader says so
    if total > _most(path):
        raise _too_large(path)


class _Unpacked(io.RawIOBase):
    """Counts what a gzipped file unpacks to."""

    def __init__(self, path: str | Path) -> None:
        self._path, self._most, self._total = path, _most(path), 0
        self._file = gzip.open(path)  # noqa: SIM115 (closed with this)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            n = self._file.readinto(buffer)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"'{self._path}' is a damaged gzip file: {error}. Fetch it again.") from error
        self._total += n
        if self._total > self._most:
            raise _too_large(self._path)
        return n

    def close(self) -> None:
        self._file.close()
        super().close()


def _most(path: str | Path) -> int:
    return SMALL + MOST_GROWTH * Path(path).stat().st_size


def _too_large(path: str | Path) -> ValueError:
    return ValueError(
        f"'{path}' unpacks to more than {MOST_GROWTH} times its size, as no table does. If it is meant, unpack it "
        "first."
    )

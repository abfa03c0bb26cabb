"""A reader of UBJSON, the binary JSON of XGBoost: a damaged file is an error, not a crash."""

from __future__ import annotations

from typing import Any

import numpy as np

NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
CONSTANTS = {"Z": None, "T": True, "F": False}
MOST_LEVELS = 100


def read_ubjson(data: bytes) -> Any:
    """The value that the bytes hold.

    Raises
    ------
    ValueError
        If they end too early or are not UBJSON.
    """
    return _UbjsonBytes(data).value(0)


class _UbjsonBytes:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, n: int) -> bytes:
        part = self.data[self.at : self.at + n]
        if n < 0 or len(part) < n:
            raise ValueError("Its bytes end too early: it was cut off or damaged. Save the model again.")
        self.at += n
        return part

    def mark(self) -> str:
        return chr(self.take(1)[0])

    def numbers(self, kind: str, n: int) -> Any:
        if kind not in NUMBERS:
            raise ValueError(f"It has the mark {kind!r} where UBJSON has a number. Save the model again.")
        dtype = np.dtype(NUMBERS[kind])
        return np.frombuffer(self.take(n * dtype.itemsize), dtype)

    def length(self) -> int:
        n = int(self.numbers(self.mark(), 1)[0])
        if not 0 <= n <= len(self.data):
            raise ValueError("It counts more parts than it has bytes: it is damaged. Save the model again.")
        return n

    def text(self) -> str:
        return self.take(self.length()).decode("utf-8")

    def value(self, level: int, kind: str | None = None) -> Any:
        kind = kind or self.mark()
        if level > MOST_LEVELS:
            raise ValueError("Its parts are nested too deeply: it is damaged. Save the model again.")
        if kind in CONSTANTS:
            return CONSTANTS[kind]
        if kind == "S":
            return self.text()
        if kind == "C":
            return self.mark()
        if kind in "[{":
            return self.container(kind, level + 1)
        return self.numbers(kind, 1)[0].item()

    def container(self, bracket: str, level: int) -> Any:
        """A list or an object; either may give its length, and the kind of all its values, ahead."""
        kind, n = None, None
        if self.data[self.at : self.at + 1] == b"$":
            self.take(1)
            kind = self.mark()
        if self.data[self.at : self.at + 1] == b"#":
            self.take(1)
            n = self.length()
        if bracket == "[" and kind in NUMBERS and n is not None:
            return self.numbers(str(kind), n).tolist()
        items: list[Any] = []
        end = b"]" if bracket == "[" else b"}"
        while len(items) < n if n is not None else self.data[self.at : self.at + 1] != end:
            name = self.text() if bracket == "{" else None
            found = self.value(level, kind)
            items.append(found if name is None else (name, found))
        if n is None:
            self.take(1)
        return items if bracket == "[" else dict(items)

"""SVMlight/LETOR files, `label qid:ID 1:0.5 2:0.1 … # comment`, plain or gzipped.

The file is read twice: once to learn the shape, once to fill the arrays, block by block. Beyond the arrays only
one block and one entry per query are in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, NoReturn

import numpy as np

from miserly.datasets._tables import Table, whole_if_possible
from miserly.files import is_gzip, open_gzip

_BLOCK_BYTES = 1 << 16
_MOST_FEATURES = 10_000_000
_AS_BLANKS = bytes.maketrans(b":\t", b"  ")
_POWERS = 10.0 ** np.arange(16)
_DECIMAL = rb"[-+]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?+\d++)?+"
_NUMBER = rb"(?:" + _DECIMAL + rb"|[nN][aA][nN])"
_QUERY = rb"\d{1,18}"
_LINE = re.compile(
    rb"[ \t]*+(?:(" + _DECIMAL + rb")(?:[ \t]++qid:(" + _QUERY + rb"))?+"
    rb"((?:[ \t]++\d++:" + _NUMBER + rb")*+)[ \t]*+)?+(?:#.*+)?+\r?\n?",
    re.DOTALL,
)


class _Block(NamedTuple):
    """The rows of some lines: `numbers` and `value` of all their features, `owner` the row of each."""

    lines: np.ndarray
    labels: np.ndarray
    queries: list[int | None]
    owner: np.ndarray
    numbers: np.ndarray
    value: np.ndarray


def read_letor(path: str | Path, n_features: int | None = None, *, absent: Literal["zero", "error"] = "zero") -> Table:
    """Read an SVMlight/LETOR file into a dense float32 X whose features are named "1" to "n".

    The rows of a query must stand together; a file without any qid is read with `qid=None`. `nan` is a missing value.

    Parameters
    ----------
    path : str or Path
        The file, plain or gzipped.
    n_features : int, default=None
        How many features there are, 1 or more; None takes the greatest feature number of the file.
    absent : {"zero", "error"}, default="zero"
        What features are that a line does not list: 0.0, as the format has it, or a mistake.

    Returns
    -------
    Table
        X, grades and query ids.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.letor"
    >>> _ = file.write_text("2 qid:7 1:0.5 3:1\\n0 qid:7 2:0.25\\n")
    >>> read_letor(file).X.tolist()
    [[0.5, 0.0, 1.0], [0.0, 0.25, 0.0]]
    """
    if absent not in ("zero", "error"):
        raise ValueError(f"absent must be 'zero' or 'error', got {absent!r}.")
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features must be 1 or more, got {n_features}.")
    return _read(path, n_features, absent == "error")


def stream_letor(path: str | Path, n_features: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """The rows of a file of known width, block by block: X, labels, query ids."""
    queries = _Queries(path)
    for first, lines in _blocks(path):
        block = _parse(path, first, lines)
        _check(path, block, n_features, False)
        X = np.zeros((len(block.lines), n_features), np.float32)
        X[block.owner, block.numbers - 1] = block.value
        qid = np.array(queries.take(block), np.int64)
        yield X, block.labels, qid if queries.given else None


def letor_width(path: str | Path) -> int:
    """The greatest feature number of a file."""
    return _survey(path)[1]


def _read(path: str | Path, n_features: int | None, complete: bool) -> Table:
    n_rows, widest, widest_line = _survey(path)
    if n_rows == 0:
        raise ValueError(f"'{path}' has no rows. Expected lines like '2 qid:10 1:0.5 2:0.1'.")
    n = widest if n_features is None else n_features
    if n > _MOST_FEATURES:
        source = f"line {widest_line} has feature number {n}" if n_features is None else f"n_features is {n}"
        raise ValueError(f"'{path}': {source}, a dense table has at most {_MOST_FEATURES}. Is that number meant?")
    X, y, qid = np.zeros((n_rows, n), dtype=np.float32), np.empty(n_rows), np.empty(n_rows, dtype=np.int64)
    queries = _Queries(path)
    at = 0
    for first, lines in _blocks(path):
        block = _parse(path, first, lines)
        rows = slice(at, at + len(block.lines))
        if rows.stop > n_rows:
            break
        _check(path, block, n, complete)
        y[rows] = block.labels
        qid[rows] = queries.take(block)
        if len(block.numbers) == len(block.lines) * n:
            X[rows] = block.value.reshape(len(block.lines), n)
        else:
            X[rows][block.owner, block.numbers - 1] = block.value
        at = rows.stop
    if at != n_rows:
        raise ValueError(f"'{path}' changed while it was read. Read it again when it is complete.")
    if n == 0:
        raise ValueError(f"'{path}' has no features. Expected lines like '2 qid:10 1:0.5 2:0.1'.")
    names = tuple(str(j + 1) for j in range(n))
    return Table(X, names, whole_if_possible(y), qid if queries.given else None)


def _open(path: str | Path) -> BinaryIO:
    return open_gzip(path) if is_gzip(path) else Path(path).open("rb")


def _blocks(path: str | Path) -> Iterator[tuple[int, list[bytes]]]:
    """The lines of the file, some thousands of values at a time, with the number of the first."""
    number = 1
    with _open(path) as file:
        while lines := file.readlines(_BLOCK_BYTES):
            yield number, lines
            number += len(lines)


def _survey(path: str | Path) -> tuple[int, int, int]:
    """The number of rows, the greatest last feature number and its line; errors are left to the second reading."""
    n_rows = widest = widest_line = 0
    for first, lines in _blocks(path):
        for number, line in enumerate(lines, start=first):
            content = line.partition(b"#")[0]
            if content.isspace() or not content:
                continue
            n_rows += 1
            last = content.rpartition(b":")[0].rpartition(b" ")[2].rpartition(b"\t")[2]
            if last.isdigit() and len(last) < 20 and int(last) > widest:
                widest, widest_line = int(last), number
    return n_rows, widest, widest_line


def _parse(path: str | Path, first: int, lines: list[bytes]) -> _Block:
    found = [_LINE.fullmatch(line) for line in lines]
    if None in found:
        bad = found.index(None)
        _explain(path, first + bad, lines[bad])
    rows = [(number, m) for number, m in enumerate(found, start=first) if m is not None and m[1] is not None]
    features = [m[3] for _, m in rows]
    pairs = _numbers(b"".join(features).translate(_AS_BLANKS)).reshape(-1, 2)
    counts = np.array([text.count(b":") for text in features], dtype=np.intp)
    return _Block(
        lines=np.array([number for number, _ in rows], dtype=np.int64),
        labels=np.array([float(m[1]) for _, m in rows], dtype=np.float64),
        queries=[None if m[2] is None else int(m[2]) for _, m in rows],
        owner=np.repeat(np.arange(len(rows)), counts),
        numbers=np.minimum(pairs[:, 0], 2.0**62).astype(np.int64),
        value=pairs[:, 1],
    )


def _numbers(text: bytes) -> np.ndarray:
    """The numbers of a valid text that begins with a blank, to the bits of `float`.

    Plain decimals of up to 15 digits, nearly all there are, are a whole number over a power of ten: both are exact
    in float64, so one division rounds correctly. Anything else is left to numpy's slower parser, block by block.
    """
    if not text or text.translate(None, b"0123456789.- "):
        return np.fromstring(text.decode("ascii"), sep=" ")
    raw = np.frombuffer(text + b" ", dtype=np.uint8)
    blank = raw == ord(" ")
    starts, ends = (np.flatnonzero(blank[1:] != blank[:-1]) + 1).reshape(-1, 2).T
    dots = np.flatnonzero(raw == ord("."))
    dotted = np.searchsorted(starts, dots, side="right") - 1
    negative = np.searchsorted(starts, np.flatnonzero(raw == ord("-")))
    decimals, digits = np.zeros(len(starts), dtype=np.intp), ends - starts
    decimals[dotted] = ends[dotted] - dots - 1
    digits[dotted] -= 1
    digits[negative] -= 1
    if digits.max() > 15:
        return np.fromstring(text.decode("ascii"), sep=" ")
    stops = np.cumsum(digits)
    power = np.repeat(stops - 1, digits) - np.arange(stops[-1])
    whole = np.add.reduceat((raw[raw >= ord("0")] - ord("0")) * _POWERS[power], stops - digits)
    whole[negative] *= -1
    return whole / _POWERS[decimals]


def _check(path: str | Path, block: _Block, n: int, complete: bool) -> None:
    """Feature numbers rise from 1 to n within every row, and labels and values are finite in float32."""
    index, owner = block.numbers, block.owner
    falls = np.flatnonzero((index[1:] <= index[:-1]) & (owner[1:] == owner[:-1]))
    if len(falls):
        i = falls[0]
        _refuse(path, block.lines[owner[i]], "rising feature numbers", f"{index[i + 1]} after {index[i]}")
    outside = np.flatnonzero((index < 1) | (index > n))
    if len(outside):
        i = outside[0]
        _refuse(path, block.lines[owner[i]], f"feature numbers from 1 to {n}", f"feature {index[i]}")
    if complete and len(index) < len(block.lines) * n:
        counts = np.bincount(owner, minlength=len(block.lines))
        row = int(np.argmax(counts < n))
        missing = np.setdiff1d(np.arange(1, n + 1), index[owner == row])[0]
        _refuse(path, block.lines[row], f"{n} features", f"{counts[row]}: feature {missing} is missing")
    large = np.flatnonzero(np.abs(block.value) > np.finfo(np.float32).max)
    if len(large):
        i = large[0]
        _refuse(path, block.lines[owner[i]], f"a float32 number for feature {index[i]}", f"{block.value[i]:g}")
    endless = np.flatnonzero(np.isinf(block.labels))
    if len(endless):
        _refuse(path, block.lines[endless[0]], "a finite label", "one beyond 1e308")


class _Queries:
    """Sees the query ids in order and refuses a query that comes back, and a qid on some lines only."""

    def __init__(self, path: str | Path) -> None:
        self.given: bool | None = None
        self._path = path
        self._last_line: dict[int, int] = {}
        self._current: int | None = None
        self._first_line = 0

    def take(self, block: _Block) -> list[int]:
        """The query of each row, 0 in a file without any."""
        if self.given is None and block.queries:
            self.given = block.queries[0] is not None
            self._first_line = int(block.lines[0])
        ids = [-1 if query is None else query for query in block.queries]
        for number, query in zip(block.lines.tolist(), ids):
            if (query >= 0) is not self.given:
                wanted, got = ("a qid", "none") if self.given else ("no qid", f"qid:{query}")
                _refuse(self._path, number, f"{wanted}, as on line {self._first_line}", got)
            if query != self._current and query in self._last_line:
                _refuse(
                    self._path,
                    number,
                    "the rows of a query together",
                    f"qid:{query} again, whose rows ended on line {self._last_line[query]}. Sort the file by query",
                )
            self._current = query
            self._last_line[query] = number
        return ids


def _explain(path: str | Path, number: int, line: bytes) -> NoReturn:
    """Name the first thing on a line that does not match the format."""
    words = line.partition(b"#")[0].split()
    if not words or not re.fullmatch(_DECIMAL, words[0]):
        _refuse(path, number, "a number as the label", _shown(words[0] if words else line))
    for place, word in enumerate(words[1:]):
        name, colon, value = word.partition(b":")
        if not colon:
            _refuse(path, number, "feature:value", _shown(word))
        if name == b"qid":
            if place > 0:
                _refuse(path, number, "the qid once, directly after the label", _shown(word))
            if not re.fullmatch(_QUERY, value):
                _refuse(path, number, "a whole number of up to 18 digits as the qid", _shown(value))
        elif not re.fullmatch(rb"\d+", name):
            _refuse(path, number, "a feature number before ':'", _shown(word))
        elif not re.fullmatch(_NUMBER, value):
            _refuse(path, number, f"a number for feature {name.decode()}", _shown(value))
    _refuse(path, number, "'label qid:ID 1:value 2:value …', parted by blanks", _shown(line.strip()))


def _refuse(path: str | Path, number: int, expected: str, got: str) -> NoReturn:
    raise ValueError(f"'{path}', line {number}: expected {expected}, got {got}.")


def _shown(text: bytes) -> str:
    return repr(text[:60].decode("utf-8", "replace"))

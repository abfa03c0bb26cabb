"""CSV tables with a header, in and out: empty cells, `NA`, `nan` and `?` are missing values."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

MISSING = {"", "na", "nan", "null", "none", "?"}


@dataclass(frozen=True)
class Table:
    """A table read from a file: feature columns as numbers, the label and the query ids apart."""

    X: np.ndarray
    features: tuple[str, ...]
    y: np.ndarray | None
    qid: np.ndarray | None


def read_csv(path: str | Path, label: str | None = None, qid: str | None = None) -> Table:
    """Read a CSV file. All columns but the label and the query id must be numbers; labels may be words."""
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        header = [name.strip() for name in next(reader, [])]
        if not header:
            raise ValueError(f"'{path}' is empty. The first line must name the columns.")
        lines = [line for line in reader if line]
    if not lines:
        raise ValueError(f"'{path}' has a header but no rows.")
    for name in (label, qid):
        if name is not None and name not in header:
            raise ValueError(f"'{path}' has no column {name!r}. It has: {', '.join(header[:20])}.")
    for number, line in enumerate(lines, start=2):
        if len(line) != len(header):
            raise ValueError(f"'{path}', line {number}: {len(line)} cells, the header has {len(header)}.")
    columns = dict(zip(header, zip(*lines)))
    y = _label(columns.pop(label), str(path), label) if label is not None else None
    ids = np.array(columns.pop(qid)) if qid is not None else None
    X = np.column_stack([_numbers(cells, str(path), name) for name, cells in columns.items()])
    return Table(X, tuple(columns), y, ids)


def write_csv(target: str | Path | TextIO, header: Sequence[str], columns: Sequence[Any]) -> None:
    """Write columns under a header, to a path or an open file; reading gives the same bits."""
    if isinstance(target, (str, Path)):
        with Path(target).open("w", newline="", encoding="utf-8") as file:
            write_csv(file, header, columns)
        return
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(*(np.asarray(column).tolist() for column in columns)))


def _numbers(cells: Sequence[str], path: str, name: str) -> np.ndarray:
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        pass
    values = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        if cell.strip().lower() in MISSING:
            continue
        try:
            values[i] = float(cell)
        except ValueError:
            raise ValueError(
                f"'{path}', line {i + 2}, column {name!r}: {cell!r} is not a number. Encode words as numbers first."
            ) from None
    return values


def _label(cells: Sequence[str], path: str, name: str) -> np.ndarray:
    empty = [i + 2 for i, cell in enumerate(cells) if cell.strip().lower() in MISSING]
    if empty:
        raise ValueError(f"'{path}', line {empty[0]}: the label {name!r} is missing. Remove such rows.")
    try:
        numbers = np.array(cells, dtype=np.float64)
    except ValueError:
        return np.array(cells)
    return numbers.astype(np.int64) if (numbers == np.round(numbers)).all() else numbers

"""CSV tables with a header, in and out: empty cells, `NA`, `nan` and `?` are missing values."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

MISSING = {"", "na", "nan", "null", "none", "?"}
_SPELLINGS = sorted({spell(word) for word in MISSING for spell in (str.lower, str.upper, str.title)} | {"NaN"})
_FAST_FROM_BYTES = 1 << 20


@dataclass(frozen=True)
class Table:
    """A table read from a file: feature columns as numbers, the label and the query ids apart."""

    X: np.ndarray
    features: tuple[str, ...]
    y: np.ndarray | None
    qid: np.ndarray | None


def read_csv(path: str | Path, label: str | None = None, qid: str | None = None) -> Table:
    """Read a CSV file. All columns but the label and the query id must be numbers; labels may be words.

    Large files are read by pyarrow where it is installed, to the same bits; what it refuses is read here.
    """
    if Path(path).stat().st_size >= _FAST_FROM_BYTES:
        table = _read_csv_fast(path, label, qid)
        if table is not None:
            return table
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
    y = labels(columns.pop(label), str(path), label) if label is not None else None
    ids = query_ids(columns.pop(qid), str(path), qid) if qid is not None else None
    if not columns:
        raise ValueError(f"'{path}' has no feature columns.")
    X = np.column_stack([numbers(cells, str(path), name) for name, cells in columns.items()])
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


def whole_if_possible(numbers: np.ndarray) -> np.ndarray:
    """The numbers as int64 where all of them are whole, as they are otherwise."""
    whole = (numbers == np.round(numbers)).all() and (np.abs(numbers) < 2.0**63).all()
    return numbers.astype(np.int64) if whole else numbers


def _read_csv_fast(path: str | Path, label: str | None, qid: str | None) -> Table | None:
    """The table by pyarrow, or None where it is not installed, finds an error, or the file has quotes."""
    try:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv
    except ImportError:
        return None
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        first = file.readline()
    header = [name.strip() for name in next(csv.reader([first]), [])]
    words = [name for name in (label, qid) if name is not None]
    features = [name for name in header if name not in words]
    if '"' in first or len(set(header)) != len(header) or not features or not set(words) <= set(header):
        return None
    try:
        frame = arrow_csv.read_csv(
            path,
            read_options=arrow_csv.ReadOptions(column_names=header, skip_rows=1),
            parse_options=arrow_csv.ParseOptions(quote_char=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types={name: pa.string() if name in words else pa.float64() for name in header},
                null_values=_SPELLINGS,
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowException:
        return None
    cells = {name: frame.column(name).to_pylist() for name in words}
    if not frame.num_rows or any('"' in cell for column in cells.values() for cell in column):
        return None
    X = np.empty((frame.num_rows, len(features)))
    for j, name in enumerate(features):
        X[:, j] = frame.column(name).to_numpy()
    y = labels(cells[label], str(path), label) if label is not None else None
    ids = query_ids(cells[qid], str(path), qid) if qid is not None else None
    return Table(X, tuple(features), y, ids)


def numbers(cells: Sequence[str], path: str, name: str, first: int = 2) -> np.ndarray:
    """The cells of a feature as numbers; the first stands on line `first`."""
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
                f"'{path}', line {i + first}, column {name!r}: {cell!r} is not a number. "
                "Encode words as numbers first, or leave the column out."
            ) from None
    return values


def labels(cells: Sequence[str], path: str, name: str, first: int = 2) -> np.ndarray:
    """Labels: numbers, whole ones if all are, or words."""
    _refuse_missing(cells, path, f"the label {name!r}", first)
    try:
        values = np.array(cells, dtype=np.float64)
    except ValueError:
        return np.array(cells)
    return whole_if_possible(values)


def query_ids(cells: Sequence[str], path: str, name: str, first: int = 2) -> np.ndarray:
    """Query ids as words."""
    _refuse_missing(cells, path, f"the query id {name!r}", first)
    return np.array(cells)


def _refuse_missing(cells: Sequence[str], path: str, what: str, first: int) -> None:
    for i, cell in enumerate(cells):
        if cell.strip().lower() in MISSING:
            raise ValueError(f"'{path}', line {i + first}: {what} is missing. Remove such rows.")

"""CSV tables with a header, in and out: empty cells, `NA`, `nan` and `?` are missing values."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from miserly.datasets._csv_lines import Line, csv_lines
from miserly.files import whole_file
from miserly.schema import Schema

MISSING = {"", "na", "nan", "null", "none", "?"}
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
_SPELLINGS = sorted({spell(word) for word in MISSING for spell in (str.lower, str.upper, str.title)} | {"NaN"})
_FAST_FROM_BYTES = 1 << 20


@dataclass(frozen=True)
class Table:
    """A table read from a file: feature columns as numbers, everything else apart.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The features as numbers; words are the places of their categories in `schema`, NaN is a missing value.
    features : tuple of str
        Their names.
    y : ndarray of shape (n_rows,) or None
        The label: numbers or words.
    qid : ndarray of shape (n_rows,) or None
        Query ids.
    ids : ndarray of str, default=None
        The identifier of each row.
    groups : ndarray of str, default=None
        The group of each row; splits keep groups together.
    times : ndarray of float, default=None
        When each row was recorded; splits by time put the latest rows into validation.
    schema : Schema, default=None
        What the columns mean; `replace(plan, schema=table.schema)` makes a plan read rows as this file has them.
    notes : tuple of str, default=()
        What was found: dialect, types that were not obvious, columns that are ignored.

    Examples
    --------
    >>> schema = Schema.of_names(["sex"], {"sex": ["f", "m"]})
    >>> Table(np.array([[1.0], [0.0]]), ("sex",), None, None, schema=schema).frame()
      sex
    0   m
    1   f
    """

    X: np.ndarray
    features: tuple[str, ...]
    y: np.ndarray | None
    qid: np.ndarray | None
    ids: np.ndarray | None = None
    groups: np.ndarray | None = None
    times: np.ndarray | None = None
    schema: Schema | None = None
    notes: tuple[str, ...] = ()

    def take(self, rows: np.ndarray) -> Table:
        """Some of the rows, by number or by a mask."""
        parts = {name: getattr(self, name) for name in ("X", "y", "qid", "ids", "groups", "times")}
        return replace(self, **{name: part[rows] for name, part in parts.items() if part is not None})

    def frame(self) -> Any:
        """The features as a pandas data frame with words, truth values and dates, as the estimators take it."""
        import pandas as pd

        schema = self.schema or Schema.of_names(self.features)
        columns: dict[str, Any] = {}
        for column, values in zip(schema.columns, self.X.T):
            if column.kind == "category":
                codes = np.where(np.isnan(values), -1, values).astype(int)
                columns[column.name] = pd.Categorical.from_codes(codes, list(column.categories))
            else:
                columns[column.name] = values
        return pd.DataFrame(columns)


def read_csv(path: str | Path, label: str | None = None, qid: str | None = None) -> Table:
    """Read a CSV file with commas and decimal points whose columns are numbers; `read_table` reads everything else.

    Large files are read by pyarrow where it is installed, to the same bits; what it refuses is read here.

    Parameters
    ----------
    path : str or Path
        The file. All columns but the label and the query id must be numbers; labels may be words.
    label : str, default=None
        The column to predict; no value may be missing.
    qid : str, default=None
        The column of query ids.

    Returns
    -------
    Table
        Empty cells, `NA`, `nan`, `null`, `none` and `?` are NaN.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> write_csv(file, ["a", "y"], [[1.5, 2.5], ["no", "yes"]])
    >>> read_csv(file, label="y").X.tolist()
    [[1.5], [2.5]]
    """
    if Path(path).stat().st_size >= _FAST_FROM_BYTES:
        table = _read_csv_fast(path, label, qid)
        if table is not None:
            return table
    with csv_lines(path) as (header, lines):
        rows = list(lines)
    if not rows:
        raise ValueError(f"'{path}' has a header but no rows.")
    return table_of(path, header, rows, label, qid)


def feature_names(path: str | Path, header: Sequence[str], label: str | None, qid: str | None) -> tuple[str, ...]:
    """The columns that are neither label nor query id; a file that lacks one of these, or has no others, is refused."""
    for name in (label, qid):
        if name is not None and name not in header:
            raise ValueError(f"'{path}' has no column {name!r}. It has: {', '.join(header[:20])}.")
    features = tuple(name for name in header if name not in (label, qid))
    if not features:
        raise ValueError(f"'{path}' has no feature columns.")
    return features


def table_of(
    path: str | Path, header: Sequence[str], rows: Sequence[Line], label: str | None, qid: str | None
) -> Table:
    """The table of some lines of a CSV file."""
    features = feature_names(path, header, label, qid)
    places, lines = zip(*rows)
    columns = dict(zip(header, zip(*lines)))
    where = Where(str(path), places)
    y = _labels(columns[label], label, where) if label is not None else None
    ids = _query_ids(columns[qid], qid, where) if qid is not None else None
    return Table(np.column_stack([_numbers(columns[name], name, where) for name in features]), features, y, ids)


def write_csv(
    target: str | Path | IO[str], header: Sequence[str], columns: Sequence[Any], escape_formulas: bool = False
) -> None:
    """Write columns under a header; reading gives the same bits.

    Parameters
    ----------
    target : str, Path or open text file
        Where to write; a path is written whole or not at all.
    header : sequence of str
        The names of the columns.
    columns : sequence of arrays
        Their values, all of one length.
    escape_formulas : bool, default=False
        Whether words that a spreadsheet would compute as a formula, as `=1+1`, get a quote (') before them.

    Examples
    --------
    >>> import io
    >>> file = io.StringIO()
    >>> write_csv(file, ["a", "b"], [[1, 2], ["x", "y"]])
    >>> file.getvalue()
    'a,b\\n1,x\\n2,y\\n'
    """
    if isinstance(target, (str, Path)):
        with whole_file(target, encoding="utf-8", newline="") as file:
            write_csv(file, header, columns, escape_formulas)
        return
    writer = csv.writer(target, lineterminator="\n")
    cells = [safe_cells(column) if escape_formulas else np.asarray(column).tolist() for column in columns]
    writer.writerow(safe_cells(header) if escape_formulas else header)
    writer.writerows(zip(*cells))


def safe_cells(column: Any) -> list[Any]:
    """The cells of a column; words that a spreadsheet would compute get a quote before them."""
    values = np.asarray(column)
    cells: list[Any] = values.tolist()
    return cells if values.dtype.kind in "biuf" else [_not_a_formula(cell) for cell in cells]


def _not_a_formula(cell: Any) -> Any:
    """Signs alone and numbers stay as they are."""
    if not isinstance(cell, str) or cell[:1] not in _FORMULA_SIGNS or len(cell) < 2:
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


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
    with csv_lines(path) as (header, _), Path(path).open("rb") as file:
        is_quoted = b'"' in file.readline()
    words = [name for name in (label, qid) if name is not None]
    features = [name for name in header if name not in words]
    if is_quoted or not features or not set(words) <= set(header):
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
    if not frame.num_rows or any(
        '"' in cell or "\0" in cell or _is_missing(cell) for column in cells.values() for cell in column
    ):
        return None
    X = np.empty((frame.num_rows, len(features)))
    for j, name in enumerate(features):
        X[:, j] = frame.column(name).to_numpy()
    y = _number_labels(cells[label]) if label is not None else None
    ids = np.array(cells[qid]) if qid is not None else None
    return Table(X, tuple(features), y, ids)


class Where(NamedTuple):
    """A file and the number of each row's line."""

    path: str
    lines: Sequence[int]

    def __call__(self, row: int) -> str:
        return f"'{self.path}', line {self.lines[row]}"


def _numbers(cells: Sequence[str], name: str, where: Where) -> np.ndarray:
    """The cells of a feature as numbers."""
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        pass
    values = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        if _is_missing(cell):
            continue
        try:
            values[i] = float(cell)
        except ValueError:
            raise ValueError(
                f"{where(i)}, column {name!r}: {cell!r} is not a number. "
                "Encode words as numbers first, or leave the column out."
            ) from None
    return values


def _labels(cells: Sequence[str], name: str, where: Where) -> np.ndarray:
    _refuse_missing(cells, f"the label {name!r}", where)
    return _number_labels(cells)


def _number_labels(cells: Sequence[str]) -> np.ndarray:
    """Labels: numbers, whole ones if all are, or words."""
    try:
        values = np.array(cells, dtype=np.float64)
    except ValueError:
        return np.array(cells)
    return whole_if_possible(values)


def _query_ids(cells: Sequence[str], name: str, where: Where) -> np.ndarray:
    """Query ids as words."""
    _refuse_missing(cells, f"the query id {name!r}", where)
    return np.array(cells)


def _refuse_missing(cells: Sequence[str], what: str, where: Where) -> None:
    for i, cell in enumerate(cells):
        if _is_missing(cell):
            raise ValueError(f"{where(i)}: {what} is missing. Remove such rows.")


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING

"""The cells of a file before they mean anything: a reader for each format, by the suffix of the file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from miserly.datasets import _fast_text
from miserly.datasets._dialect import Dialect, find_dialect, read_text
from miserly.datasets._excel import read_sheet
from miserly.datasets._problems import TableError, TableProblem
from miserly.schema import CellRules

_LETOR_LINE = re.compile(r"\s*[-+\d.eE]+\s+(qid:\d+\s+)?\d+:\S+")
_MOST_RAGGED = 5  # lines of another length that are named; the rest is counted


@dataclass(frozen=True)
class FileFormat:
    """What the user says about the way a file is written; None where it is to be found."""

    separator: str | None = None
    quote: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None


@dataclass
class RawTable:
    """Columns by name, each a list of cells or an array of typed values, and where each row stands in the file."""

    path: str
    columns: dict[str, Any]
    lines: Sequence[int]
    decimal: str = "."
    notes: list[str] = field(default_factory=list)
    problems: list[TableProblem] = field(default_factory=list)
    line_word: str = "line"
    is_quick: bool = False

    def where(self, row: int) -> str:
        """The place of a row."""
        return f"{self.line_word} {self.lines[row]}"


def is_letor(path: str | Path) -> bool:
    """Whether a file is LETOR: by its suffix, and for .txt by its first line."""
    suffix = format_suffix(path)
    if suffix != ".txt" or not Path(path).is_file():
        return suffix in (".svm", ".letor")
    lines = (line for line in read_text(path)[0].splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return _LETOR_LINE.match(next(lines, "0 1:0")) is not None


def format_suffix(path: str | Path) -> str:
    """The suffix that decides how a file is read, without `.gz`."""
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix


def raw_table(path: str | Path, form: FileFormat) -> RawTable:
    """The cells of a file, by the reader for its suffix."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no file '{path}'.")
    return READERS[format_suffix(path)](path, form)


def raw_text(path: str | Path, form: FileFormat, is_quick: bool = True) -> RawTable:
    """A text file with a header; its dialect is found where it is not given. pyarrow reads large ones."""
    if is_quick and form.encoding in (None, "utf-8") and Path(path).stat().st_size >= _fast_text.FROM_BYTES:
        quick = _fast_text.fast_columns(path, form.separator, form.quote, form.decimal)
        if quick is not None:
            columns, n_rows, dialect = quick
            lines = range(2, n_rows + 2)
            return RawTable(str(path), columns, lines, dialect.decimal, [str(dialect)], is_quick=True)
    text, encoding = read_text(path, form.encoding)
    dialect = find_dialect(text, encoding, form.separator, form.quote, form.decimal)
    rows = _parsed(path, text, dialect)
    raw = _with_header(path, rows)
    raw.decimal = dialect.decimal
    raw.notes.insert(0, str(dialect))
    return raw


def _parsed(path: str | Path, text: str, dialect: Dialect) -> list[tuple[int, list[str]]]:
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=dialect.separator, quotechar=dialect.quote, strict=True
    )
    rows = []
    try:
        for row in reader:
            if row:
                rows.append((reader.line_num, row))
    except csv.Error as error:
        remedy = "Close the quotes there, or say which character quotes (--quote)."
        raise TableError([TableProblem(str(path), f"line {reader.line_num}", f"{error}.", remedy)]) from None
    return rows


def raw_excel(path: str | Path, form: FileFormat) -> RawTable:
    """A sheet of an Excel file."""
    return _with_header(path, read_sheet(path, form.sheet), "row")


def raw_parquet(path: str | Path, form: FileFormat) -> RawTable:
    """A Parquet file. It needs pyarrow."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError(f"Reading '{path}' needs pyarrow. Install it with: pip install 'miserly[io]'.") from None
    try:
        frame = pq.ParquetFile(path).read()
    except pa.ArrowInvalid as error:
        raise ValueError(f"'{path}' is not a Parquet file or is damaged: {error}") from error
    return raw_frame(frame, str(path))


def raw_frame(native: Any, name: str) -> RawTable:
    """A pandas, polars or pyarrow table."""
    import narwhals as nw

    frame = nw.from_native(native, eager_only=True)
    columns: dict[str, Any] = {}
    for column in frame.columns:
        values, dtype = frame.get_column(column), frame.get_column(column).dtype
        if dtype.is_numeric():
            columns[str(column)] = np.array(values.cast(nw.Float64).to_numpy(), dtype=np.float64)
        elif dtype == nw.Date or dtype == nw.Datetime:
            columns[str(column)] = np.array(values.to_list(), dtype="datetime64[us]")
        else:
            columns[str(column)] = ["" if v is None or v != v else str(v) for v in values.to_list()]
    return RawTable(name, columns, range(1, len(frame) + 1), line_word="row")


READERS: dict[str, Callable[[str | Path, FileFormat], RawTable]] = {
    ".csv": raw_text,
    ".tsv": raw_text,
    ".txt": raw_text,
    ".parquet": raw_parquet,
    ".pq": raw_parquet,
    ".xlsx": raw_excel,
    ".xlsm": raw_excel,
}


def _with_header(path: str | Path, rows: list[tuple[int, list[str]]], line_word: str = "line") -> RawTable:
    """The first row names the columns; rows of another length and bad names are problems."""
    name = str(path)
    if not rows:
        raise TableError([TableProblem(name, "", "The file is empty.", "The first line must name the columns.")])
    first, header = rows[0][0], [cell.strip() for cell in rows[0][1]]
    header, body, notes = _without_empty_columns(header, rows[1:])
    problems = _header_problems(name, f"{line_word} {first}", header)
    ragged = [(line, len(row)) for line, row in body if len(row) != len(header)]
    if len(ragged) > 0.5 * len(body):
        usual = max({n for _, n in ragged}, key=[n for _, n in ragged].count)
        what = f"{len(header)} names, but most lines have {usual} cells."
        remedy = "Remove lines before the header, or say the separator (--sep)."
        problems.append(TableProblem(name, f"{line_word} {first}", what, remedy))
    else:
        for line, n in ragged[:_MOST_RAGGED]:
            remedy = "Add the missing cells." if n < len(header) else "Put cells that hold a separator in quotes."
            what = f"{n} cells, the header has {len(header)}."
            problems.append(TableProblem(name, f"{line_word} {line}", what, remedy))
        if len(ragged) > _MOST_RAGGED:
            what = f"{len(ragged) - _MOST_RAGGED} more lines have another number of cells."
            problems.append(TableProblem(name, "", what, "Correct these too."))
    if not body:
        problems.append(TableProblem(name, "", "It has a header but no rows.", "Add rows."))
    good = [(line, row) for line, row in body if len(row) == len(header)]
    cells = list(zip(*(row for _, row in good))) if good else [()] * len(header)
    columns = {column: list(values) for column, values in zip(header, cells)}
    raw = RawTable(name, columns, [line for line, _ in good], notes=notes, problems=problems, line_word=line_word)
    return _without_counter(raw)


def _without_empty_columns(
    header: list[str], body: list[tuple[int, list[str]]]
) -> tuple[list[str], list[tuple[int, list[str]]], list[str]]:
    """Without cells behind the last name that are empty in every row."""
    width = len(header)
    while width > 1 and not header[width - 1] and all(not "".join(row[width - 1 :]).strip() for _, row in body):
        width -= 1
    if width == len(header) and all(len(row) == width + 1 and not row[-1].strip() for _, row in body) and body:
        return header, [(line, row[:-1]) for line, row in body], ["every line ends with a separator"]
    if width == len(header):
        return header, body, []
    note = f"{len(header) - width} empty columns at the end are left out"
    return header[:width], [(line, row[:width] if len(row) >= width else row) for line, row in body], [note]


def _header_problems(name: str, place: str, header: Sequence[str]) -> list[TableProblem]:
    problems = []
    rules = CellRules()
    seen: set[str] = set()
    if header and all(rules.number(cell) is not None and not rules.is_missing(cell) for cell in header):
        what = "Names of columns are expected, all of these are numbers."
        problems.append(TableProblem(name, place, what, "Add a first line with names."))
    for place_of, column in enumerate(header):
        if not column and place_of:
            what = f"Column {place_of + 1} has no name."
            problems.append(TableProblem(name, place, what, "Name it in the first line."))
        elif column in seen:
            what = f"Two columns are called {column!r}."
            problems.append(TableProblem(name, place, what, "Give each its own name."))
        seen.add(column)
    return problems


def _without_counter(raw: RawTable) -> RawTable:
    """Without a first column that has no name and only counts the rows, as pandas writes it."""
    if "" not in raw.columns or next(iter(raw.columns)) != "":
        return raw
    cells = raw.columns[""]
    start = 1 if cells[:1] == ["1"] else 0
    if all(cell.strip() == str(i) for i, cell in enumerate(cells, start)):
        raw.columns = {name: values for name, values in raw.columns.items() if name}
        raw.notes.append("the first column has no name and counts the rows: it is left out")
    else:
        problem = TableProblem(raw.path, "line 1", "Column 1 has no name.", "Name it in the first line.")
        raw.problems.append(problem)
    return raw


def unknown_suffix(path: str | Path) -> ValueError:
    """The error for a file that no reader takes."""
    known = ", ".join((*READERS, ".svm", ".letor"))
    return ValueError(
        f"'{path}': the format is chosen by the suffix: {known} (text also with .gz). "
        "Rename the file, or save it as CSV."
    )

"""One way in for every file: dialect, types and roles of the columns are found, and said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from miserly.datasets._columns import (
    FoundColumn,
    find_column,
    looks_like_identifier,
    read_column,
    typed_column,
    unit_of,
)
from miserly.datasets._letor import read_letor
from miserly.datasets._problems import TableError, TableProblem, did_you_mean
from miserly.datasets._raw import (
    READERS,
    FileFormat,
    RawTable,
    format_suffix,
    is_letor,
    raw_table,
    raw_text,
    unknown_suffix,
)
from miserly.datasets._tables import Table, whole_if_possible
from miserly.schema import MISSING, CellRules, Column, Schema


@dataclass(frozen=True)
class Roles:
    """Which columns are not features: the label, query ids, identifiers, groups, times, and those left out."""

    label: str | None = None
    qid: str | None = None
    id: str | None = None
    group: str | None = None
    time: str | None = None
    drop: tuple[str, ...] = ()

    @property
    def named(self) -> dict[str, str]:
        """The column of each role that has one."""
        return {r: n for r in ("label", "qid", "id", "group", "time") if (n := getattr(self, r)) is not None}


@dataclass
class Scan:
    """A table with everything that was noticed about it: problems, and columns that look like identifiers or text."""

    table: Table
    raw: RawTable
    problems: list[TableProblem] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def read_table(
    path: str | Path,
    label: str | None = None,
    qid: str | None = None,
    *,
    id: str | None = None,
    drop: Sequence[str] = (),
    group: str | None = None,
    time: str | None = None,
    features: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    missing: Iterable[str] = (),
    not_missing: Iterable[str] = (),
    limits: Literal["value", "missing", "error"] = "value",
    sep: str | None = None,
    decimal: str | None = None,
    quote: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    schema: Schema | None = None,
) -> Table:
    """Read a table: CSV and other separated text (also gzipped), Parquet, Excel, LETOR.

    Separator, decimal mark, quotes and encoding are found, and so is the type of each column: numbers, words (as
    categories), truth values, dates (as days). `Table.notes` says what was found. Everything that is wrong with a file
    is in one `TableError`, with line, column and remedy.

    Parameters
    ----------
    path : str or Path
        The file; its suffix decides the format.
    label : str, default=None
        The column to predict.
    qid : str, default=None
        The column of query ids, for ranking.
    id : str, default=None
        The column that names each row. It is kept in `Table.ids` and is no feature.
    drop : sequence of str, default=()
        Columns to leave out.
    group : str, default=None
        A column whose rows belong together (a patient with several visits): splits keep them together.
    time : str, default=None
        A column to split by: later rows are validation rows.
    features : sequence of str, default=None
        The columns to read as features, in this order; None reads all that have no other role. For LETOR, their names.
    types : mapping of str to str, default=None
        Types by column, in place of those found: "number", "category", "boolean", "date", "date:%d/%m/%Y".
    missing : iterable of str, default=()
        More marks of missing values, beside `n/a`, `-`, `?` and the others of `miserly.schema.MISSING`.
    not_missing : iterable of str, default=()
        Marks of that list that are words of their own here, such as "none".
    limits : {"value", "missing", "error"}, default="value"
        What cells such as `>15` are: their number, a missing value, or a mistake.
    sep, decimal, quote, encoding : str, default=None
        How the text is written; None finds it.
    sheet : str, default=None
        The sheet of an Excel file; None takes the first.
    schema : Schema, default=None
        Read the columns as this schema has them (`Plan.schema`): found by name in any order, others ignored, unknown
        categories missing.

    Returns
    -------
    Table
        X as numbers (words as the places of their categories), y, the schema, and notes.

    Raises
    ------
    TableError
        With all problems of the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "patients.csv"
    >>> _ = file.write_text("patient;sex;crp;died\\nA1;male;1,5;no\\nA2;female;n/a;yes\\nA3;male;>15;no\\n")
    >>> data = read_table(file, label="died", id="patient")
    >>> data.features, data.X.tolist()
    (('sex', 'crp'), [[1.0, 1.5], [0.0, nan], [1.0, 15.0]])
    >>> print(data.notes[0])
    separator semicolon, decimal mark ',', encoding utf-8
    """
    roles = Roles(label, qid, id, group, time, tuple(drop))
    if is_letor(path):
        return _letor(path, roles, features)
    scan = scan_table(
        path,
        roles,
        FileFormat(sep, quote, decimal, encoding, sheet),
        features=features,
        types=types,
        rules=(missing, not_missing, limits),
        schema=schema,
    )
    problems = scan.problems + [_text_problem(scan, name) for name in scan.texts if schema is None]
    if problems:
        raise TableError(problems)
    return scan.table


def scan_table(
    path: str | Path,
    roles: Roles,
    form: FileFormat | None = None,
    *,
    features: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    rules: tuple[Iterable[str], Iterable[str], Any] = ((), (), "value"),
    schema: Schema | None = None,
) -> Scan:
    """Read a table and note its problems instead of raising them."""
    if format_suffix(path) not in READERS:
        raise unknown_suffix(path)
    raw = raw_table(path, form or FileFormat())
    scan = scan_raw(raw, roles, features, types or {}, rules, schema)
    if scan.problems and raw.is_quick:  # read it again, for the numbers of lines
        scan = scan_raw(raw_text(path, form or FileFormat(), False), roles, features, types or {}, rules, schema)
    return scan


def scan_raw(
    raw: RawTable,
    roles: Roles,
    features: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    rules: tuple[Iterable[str], Iterable[str], Any] = ((), (), "value"),
    schema: Schema | None = None,
) -> Scan:
    """The table of cells that were read already, with its problems."""
    types = types or {}
    cell_rules = schema.rules if schema is not None else _rules(raw, *rules)
    if schema is not None and raw.decimal != cell_rules.decimal:
        cell_rules = replace(cell_rules, decimal=raw.decimal)  # type: ignore[arg-type]  # this file's own mark
    problems = list(raw.problems)
    roles, lost = _present(raw, roles, optional=schema is not None)
    problems += lost
    aside = {*roles.named.values(), *roles.drop}
    wanted = _wanted(raw, features if schema is None else schema.names, aside, problems)
    found = [_column(raw, name, cell_rules, types, schema) for name in wanted]
    problems += [problem for column in found for problem in column.problems]
    if not wanted and not problems:
        problems.append(TableProblem(raw.path, "", "It has no feature columns.", "Add some."))
    notes = raw.notes + [note for column in found for note in column.notes]
    if schema is not None or features is not None:
        notes += _ignored(raw, wanted, aside)
    columns = tuple(column.column for column in found)
    own = Schema(columns, cell_rules, roles.id, roles.label, roles.drop, roles.qid) if schema is None else schema
    y, ids, groups, times, queries = _aside_columns(raw, roles, cell_rules, problems)
    X = np.column_stack([c.values for c in found]) if found and raw.lines else np.empty((len(raw.lines), len(found)))
    table = Table(X, tuple(wanted), y, queries, ids, groups, times, own, tuple(notes))
    return Scan(table, raw, problems, [c.column.name for c in found if c.is_text])


def _letor(path: str | Path, roles: Roles, features: Sequence[str] | None) -> Table:
    if roles.named or roles.drop:
        raise ValueError(
            f"'{path}' is a LETOR file: label and qid stand first on every line and have no name. "
            "Leave label and qid out."
        )
    table = read_letor(path, None if features is None else len(features))
    if features is None or set(features) == set(table.features):
        return table
    return replace(table, features=tuple(features))


def _rules(raw: RawTable, missing: Iterable[str], not_missing: Iterable[str], limits: Any) -> CellRules:
    marks = (MISSING | {m.strip().lower() for m in missing}) - {m.strip().lower() for m in not_missing}
    if limits not in ("value", "missing", "error"):
        raise ValueError(f"limits is 'value', 'missing' or 'error', not {limits!r}.")
    return CellRules("," if raw.decimal == "," else ".", frozenset(marks), limits)


def _present(raw: RawTable, roles: Roles, optional: bool) -> tuple[Roles, list[TableProblem]]:
    """The roles whose columns are there; for the others a problem, unless they may be absent."""
    problems = []
    for role, name in roles.named.items():
        if name not in raw.columns:
            roles = replace(roles, **{role: None})  # type: ignore[arg-type]
            if not optional:
                what = f"There is no column {name!r} for the {role}."
                problems.append(TableProblem(raw.path, "", what, did_you_mean(name, raw.columns)))
    for name in roles.drop:
        if name not in raw.columns and not optional:
            what = f"There is no column {name!r} to leave out."
            problems.append(TableProblem(raw.path, "", what, did_you_mean(name, raw.columns)))
    return roles, problems


def _wanted(raw: RawTable, features: Sequence[str] | None, aside: set[str], problems: list[TableProblem]) -> list[str]:
    if features is None:
        return [name for name in raw.columns if name not in aside and name]
    lost = [name for name in features if name not in raw.columns]
    for name in lost:
        what = f"There is no column {name!r}, which the model reads."
        problems.append(TableProblem(raw.path, "", what, did_you_mean(name, raw.columns)))
    return [name for name in features if name in raw.columns]


def _ignored(raw: RawTable, wanted: Sequence[str], aside: set[str]) -> list[str]:
    extra = [name for name in raw.columns if name not in wanted and name not in aside and name]
    if not extra:
        return []
    shown = ", ".join(repr(name) for name in extra[:5]) + (" …" if len(extra) > 5 else "")
    subject = "1 column that is not read is" if len(extra) == 1 else f"{len(extra)} columns that are not read are"
    return [f"{subject} ignored: {shown}"]


def _column(raw: RawTable, name: str, rules: CellRules, types: Mapping[str, str], schema: Schema | None) -> FoundColumn:
    cells = raw.columns[name]
    if schema is not None:
        return _known(raw, name, cells, rules, schema)
    if isinstance(cells, np.ndarray) and types.get(name, "number").partition(":")[0] in ("number", "date"):
        return _typed(name, cells)
    if isinstance(cells, np.ndarray):
        cells = ["" if value != value else f"{value:g}" for value in cells.tolist()]
    if name in types:
        return read_column(typed_column(name, types[name], cells, rules), cells, rules, raw.path, raw.where)
    return find_column(name, cells, rules, raw.path, raw.where)


def _known(raw: RawTable, name: str, cells: Any, rules: CellRules, schema: Schema) -> FoundColumn:
    if isinstance(cells, np.ndarray):
        return FoundColumn(schema[name], schema.numbers(name, cells))
    return read_column(schema[name], cells, rules, raw.path, raw.where)


def _typed(name: str, values: np.ndarray) -> FoundColumn:
    if values.dtype.kind != "M":
        return FoundColumn(Column(name, unit=unit_of(name)), values)
    column = Column(name, "date")
    return FoundColumn(column, Schema((column,)).numbers(name, values))


def _aside_columns(
    raw: RawTable, roles: Roles, rules: CellRules, problems: list[TableProblem]
) -> tuple[Any, Any, Any, Any, Any]:
    """The label, identifiers, groups, times and query ids."""
    y = None if roles.label is None else _labels(raw, roles.label, rules, problems)
    ids = None if roles.id is None else np.array(_words(raw, roles.id), str)
    groups, queries = (
        None if name is None else _complete(raw, name, role, rules, problems)
        for name, role in ((roles.group, "group"), (roles.qid, "query id"))
    )
    times = None
    if roles.time is not None:
        found = _column(raw, roles.time, rules, {}, None)
        times = found.values
        if found.column.kind not in ("number", "date"):
            what = f"The time {roles.time!r} is neither a date nor a number."
            problems.append(TableProblem(raw.path, "", what, "Use dates such as 2024-01-31."))
    return y, ids, groups, times, queries


def _words(raw: RawTable, name: str) -> list[str]:
    cells = raw.columns[name]
    if isinstance(cells, np.ndarray):
        whole = whole_if_possible(cells) if cells.dtype.kind == "f" and not np.isnan(cells).any() else cells
        return [str(value) for value in whole.tolist()]
    return [cell.strip() for cell in cells]


def _labels(raw: RawTable, name: str, rules: CellRules, problems: list[TableProblem]) -> np.ndarray:
    cells = raw.columns[name]
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "f":
        _refuse_missing(raw, np.flatnonzero(np.isnan(cells)), f"The label {name!r}", problems)
        return whole_if_possible(cells) if not np.isnan(cells).any() else cells
    words = _complete(raw, name, "label", rules, problems)
    numbers = [rules.number(word) for word in words.tolist()]
    if any(number is None for number in numbers):
        return words
    values = np.array(numbers, dtype=np.float64)
    return values if np.isnan(values).any() else whole_if_possible(values)


def _complete(raw: RawTable, name: str, what: str, rules: CellRules, problems: list[TableProblem]) -> np.ndarray:
    words = _words(raw, name)
    gone = np.flatnonzero([rules.is_missing(word) for word in words])
    _refuse_missing(raw, gone, f"The {what} {name!r}", problems)
    return np.array(words, str)


def _refuse_missing(raw: RawTable, rows: np.ndarray, what: str, problems: list[TableProblem]) -> None:
    if len(rows):
        more = f" and on {len(rows) - 1} more" if len(rows) > 1 else ""
        remedy = "Remove these rows, or correct them."
        problems.append(TableProblem(raw.path, raw.where(int(rows[0])) + more, f"{what} is missing.", remedy))


def _text_problem(scan: Scan, name: str) -> TableProblem:
    n_different = len(scan.table.schema[name].categories) if scan.table.schema is not None else 0
    n_rows = len(scan.raw.lines)
    what = f"{n_different} different words in {n_rows} rows look like an identifier or free text."
    remedy = f"Give --id {name} or --drop {name}; to use it all the same, --type {name}=category."
    assert looks_like_identifier(n_different, n_rows)
    return TableProblem(scan.raw.path, f"column {name!r}", what, remedy)

"""The columns of a table, and its rows as numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import msgspec
import numpy as np

from miserly._typing import Floats
from miserly.schema._cells import CellRules, Limits, days
from miserly.schema._names import nearest_names

Kind = Literal["number", "category", "boolean", "date"]
BOOLEANS = (("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"), ("nein", "ja"), ("non", "oui"), ("off", "on"))
_TRUTH = {word: float(place) for pair in BOOLEANS for place, word in enumerate(pair)}


@dataclass(frozen=True)
class Column:
    """One feature column.

    Parameters
    ----------
    name : str
        Its name.
    kind : {"number", "category", "boolean", "date"}, default="number"
        What its values are. A category becomes its place in `categories`, a boolean 0 or 1, a date its days since
        1970-01-01.
    categories : tuple, default=()
        The known values of a category, in order. Others become missing values.
    unit : str, default=""
        For people.
    format : str, default=""
        How dates are written, in the codes of `datetime.strptime`; empty for ISO dates.

    Examples
    --------
    >>> Column("sex", "category", ("female", "male")).number("male", CellRules())
    1.0
    """

    name: str
    kind: Kind = "number"
    categories: tuple[Any, ...] = ()
    unit: str = ""
    format: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(
                f"Column {self.name!r}: the kind is one of {', '.join(get_args(Kind))}, not {self.kind!r}."
            )
        object.__setattr__(self, "categories", tuple(self.categories))

    @cached_property
    def codes(self) -> dict[Any, float]:
        """The number of each category."""
        return {value: float(place) for place, value in enumerate(self.categories)}

    def number(self, value: Any, rules: CellRules) -> float:
        """A value in the user's terms as the number that a plan reads; NaN if it is missing.

        Raises
        ------
        ValueError
            If the value is of another kind. An unknown category is a missing value, not an error.
        """
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return math.nan
        if isinstance(value, np.generic):
            value = value.item()
            if value is None or value != value:
                return math.nan
        found = self._by_kind(value, rules)
        if found is None:
            raise ValueError(f"{self.name!r}: {value!r} is not a {self.kind}. {self._remedy(rules)}")
        return found

    def is_unknown(self, value: Any, rules: CellRules) -> bool:
        """Whether a value is a word that the column does not know, so that it counts as missing."""
        if self.kind != "category" or value is None or (isinstance(value, str) and rules.is_missing(value)):
            return False
        return value == value and math.isnan(self.number(value, rules))

    def _by_kind(self, value: Any, rules: CellRules) -> float | None:
        if self.kind == "category":
            return self._code(value, rules)
        if isinstance(value, str):
            if rules.is_missing(value):
                return math.nan
            if self.kind == "boolean":
                return _TRUTH.get(value.strip().lower())
            if self.kind == "date":
                return days(value, self.format or "%Y-%m-%d")
            return rules.number(value)
        if self.kind == "date" and not isinstance(value, int | float):
            return days(value, "")
        if isinstance(value, bool | int | float):
            number = float(value)
            return None if self.kind == "boolean" and number not in (0.0, 1.0) else number
        return None

    def _code(self, value: Any, rules: CellRules) -> float:
        if isinstance(value, bool) and value not in self.codes:
            value = str(value).lower()
        try:
            code = self.codes.get(value)
        except TypeError:
            return math.nan
        if code is None and isinstance(value, str):
            code = math.nan if rules.is_missing(value) else self.codes.get(value.strip())
        if code is None and not isinstance(value, str):
            code = self.codes.get(str(value))
        return math.nan if code is None else code

    def _remedy(self, rules: CellRules) -> str:
        if self.kind == "boolean":
            return "Write true or false, yes or no, 1 or 0."
        if self.kind == "date":
            return f"Write it as {self.format or '%Y-%m-%d'}."
        return f"Write a number with the decimal mark {rules.decimal!r}, or leave it empty."


@dataclass(frozen=True)
class Schema:
    """The feature columns of a table in the order that a plan reads them, and how their cells are written.

    Parameters
    ----------
    columns : tuple of Column
        The features.
    rules : CellRules, default=CellRules()
        Decimal mark, missing marks and limits.
    id : str, default=None
        The column that names each row; predictions copy it.
    label : str, default=None
        The column that is predicted.
    drop : tuple of str, default=()
        Columns that are known and not read.
    qid : str, default=None
        The column that names the query of each row.

    Attributes
    ----------
    names : tuple of str
        The names of the features.
    categories : dict
        The values of each categorical feature, in the order of their codes.

    Examples
    --------
    >>> schema = Schema((Column("age"), Column("sex", "category", ("female", "male"))))
    >>> schema.matrix([{"sex": "male", "age": "61"}, {"sex": "unknown", "age": None}])
    array([[61.,  1.],
           [nan, nan]])
    """

    columns: tuple[Column, ...]
    rules: CellRules = field(default_factory=CellRules)
    id: str | None = None
    label: str | None = None
    drop: tuple[str, ...] = ()
    qid: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "drop", tuple(self.drop))
        if len(set(self.names)) < len(self.names):
            twice = next(name for i, name in enumerate(self.names) if name in self.names[:i])
            raise ValueError(f"A schema has two columns {twice!r}. Give each its own name.")

    @classmethod
    def of_names(cls, names: Iterable[str], categories: Mapping[str, Sequence[Any]] | None = None) -> Schema:
        """Columns of numbers, and of these categories."""
        known = categories or {}
        return cls(tuple(Column(n, "category", tuple(known[n])) if n in known else Column(n) for n in map(str, names)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def categories(self) -> dict[str, tuple[Any, ...]]:
        return {c.name: c.categories for c in self.columns if c.kind == "category"}

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers."""
        return all(column.kind == "number" for column in self.columns)

    def number(self, name: str, value: Any) -> float:
        """One value of a row as a number."""
        return self._by_name[name].number(value, self.rules)

    def row(self, row: Mapping[str, Any]) -> dict[str, float]:
        """The known features of a row as numbers; other entries are left out."""
        return {name: self.number(name, value) for name, value in row.items() if name in self._by_name}

    def unknown_words(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """The columns of a row whose words were not seen in training, so that they count as missing."""
        return tuple(n for n in self.categories if n in row and self[n].is_unknown(row[n], self.rules))

    def word(self, name: str, number: float) -> Any:
        """The value behind a number, in the user's terms: the category, the truth value, the date; None if missing."""
        column = self._by_name[name]
        if math.isnan(number):
            return None
        if column.kind == "category":
            return column.categories[int(number)] if 0 <= number < len(column.categories) else None
        if column.kind == "boolean":
            return bool(number)
        if column.kind == "date":
            return str(np.datetime64(0, "D") + int(number // 1))
        return number

    def matrix(self, rows: Any) -> Floats:
        """A frame (pandas, polars, pyarrow), a dict of columns or a list of rows as a matrix for the plan.

        Columns are found by name, in any order; others are ignored.
        """
        columns, n_rows = _as_columns(rows, self.names)
        X = np.empty((n_rows, len(self.columns)))
        for j, column in enumerate(self.columns):
            X[:, j] = self.numbers(column.name, columns[column.name])
        return X

    def numbers(self, name: str, values: Any) -> Floats:
        """All values of a column as numbers."""
        column = self._by_name[name]
        array = np.asarray(values)
        if column.kind == "number" and array.dtype.kind in "fiub":
            return array.astype(np.float64)
        if array.dtype.kind == "M" and column.kind == "date":
            found = array.astype("datetime64[us]").astype(np.int64) / 86_400e6
            found[np.isnat(array)] = np.nan
            return np.asarray(found, np.float64)
        seen: dict[Any, float] = {}
        result = np.empty(len(array))
        for i, value in enumerate(array.tolist()):
            key = value if isinstance(value, str) else None
            if key is None or key not in seen:
                number = _one(column, value, self.rules, i)
                if key is None:
                    result[i] = number
                    continue
                seen[key] = number
            result[i] = seen[key]
        return result

    def restrict(self, names: Sequence[str]) -> Schema:
        """The schema of these columns, in this order."""
        return replace(self, columns=tuple(self._by_name[str(name)] for name in names))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as a plan file keeps it; `Schema.from_dict` gives the schema back."""
        columns = []
        for c in self.columns:
            entry: dict[str, Any] = {"name": c.name, "kind": c.kind}
            if c.categories:
                entry["categories"] = list(c.categories)
            entry |= {key: text for key, text in (("unit", c.unit), ("format", c.format)) if text}
            columns.append(entry)
        rules = {"decimal": self.rules.decimal, "missing": sorted(self.rules.missing), "limits": self.rules.limits}
        fields = {"columns": columns, "rules": rules, "id": self.id, "label": self.label, "drop": list(self.drop)}
        return fields if self.qid is None else {**fields, "qid": self.qid}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Schema:
        """The schema of `to_dict`; a ValueError for what is none."""
        known = msgspec.convert(fields, _SchemaFields)
        columns = tuple(Column(c.name, c.kind, c.categories, c.unit, c.format) for c in known.columns)
        rules = CellRules(known.rules.decimal, frozenset(known.rules.missing), known.rules.limits)
        return cls(columns, rules, known.id, known.label, known.drop, known.qid)


class _ColumnFields(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    kind: Kind = "number"
    categories: tuple[str | float | int | bool | None, ...] = ()
    unit: str = ""
    format: str = ""


class _RuleFields(msgspec.Struct, forbid_unknown_fields=True):
    decimal: Literal[".", ","]
    missing: tuple[str, ...]
    limits: Limits


class _SchemaFields(msgspec.Struct, forbid_unknown_fields=True):
    """What `Schema.to_dict` writes."""

    columns: tuple[_ColumnFields, ...]
    rules: _RuleFields
    id: str | None
    label: str | None
    drop: tuple[str, ...]
    qid: str | None = None


def _one(column: Column, value: Any, rules: CellRules, row: int) -> float:
    try:
        return column.number(value, rules)
    except ValueError as error:
        raise ValueError(f"Row {row} (from 0), column {error}") from None


def _as_columns(rows: Any, names: Sequence[str]) -> tuple[Mapping[str, Any], int]:
    """The named columns of a frame, a dict of lists or a list of dicts, and how many rows there are."""
    if isinstance(rows, list | tuple) and all(isinstance(row, Mapping) for row in rows):
        return {name: _objects([row.get(name) for row in rows]) for name in names}, len(rows)
    if isinstance(rows, Mapping):
        found = {str(name): rows[name] for name in rows}
    elif hasattr(rows, "column_names"):  # pyarrow
        found = {str(name): rows.column(i) for i, name in enumerate(rows.column_names)}
    else:
        found = {str(name): rows[name] for name in rows.columns}
    lost = [name for name in names if name not in found]
    if lost:
        near = [f"{name!r}{_hint(name, found)}" for name in lost[:5]]
        more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        raise ValueError(f"X lacks the features {', '.join(near)}{more} that the plan reads. Add these columns.")
    columns = {name: _objects(found[name]) for name in names}
    return columns, len(next(iter(columns.values()))) if columns else 0


def _objects(values: Any) -> Any:
    """An array of numbers or of dates as it is, everything else as objects."""
    if hasattr(values, "to_pandas") or hasattr(values, "to_pylist"):  # polars, pyarrow
        listed = values.to_pylist() if hasattr(values, "to_pylist") else values.to_list()
    else:
        array = np.asarray(values)
        if array.dtype.kind in "fiubM":
            return array
        listed = list(array)
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in listed):
        return np.array(listed, np.float64)
    objects = np.empty(len(listed), object)
    for i, value in enumerate(listed):
        objects[i] = None if value is not None and _is_na(value) else value
    return objects


def _is_na(value: Any) -> bool:
    """pandas' missing value, which is neither equal to itself nor different from itself."""
    same = value == value
    return not isinstance(same, bool | np.bool_) or not same


def _hint(name: str, known: Iterable[str]) -> str:
    near = nearest_names(name, known, 1)
    return f" (did you mean {near[0]!r}?)" if near else ""

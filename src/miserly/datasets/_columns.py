"""What the cells of a column are: numbers, words, truth values, dates; and their numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from miserly._typing import Floats
from miserly.datasets._problems import TableProblem
from miserly.schema import BOOLEANS, CellRules, Column, Kind, date_format, days

FEW_NUMBERS = 20  # a column with more different numbers than this is not a category, whatever words stand in it
RARE = 3  # a word that occurs less often than this among numbers is taken for a slip, not for a category
MANY_WORDS = 50  # more different words than this, most of them once, are names or free text
_UNIT = re.compile(r".*\S\s*[\[(]([^\])]{1,12})[\])]")
Where = Callable[[int], str]


@dataclass
class FoundColumn:
    """A column with its numbers, and what was noticed about it."""

    column: Column
    values: Floats
    problems: list[TableProblem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_text: bool = False


def find_column(name: str, cells: Sequence[str], rules: CellRules, path: str, where: Where) -> FoundColumn:
    """The kind of a column, by its cells."""
    fast = _all_numbers(cells, rules)
    unit = unit_of(name)
    if fast is not None:
        return FoundColumn(Column(name, unit=unit), fast)
    counts = Counter(cells)
    numbers = {cell: rules.number(cell) for cell in counts}
    words = {cell.strip(): 0 for cell, number in numbers.items() if number is None}
    for cell, n in counts.items():
        if numbers[cell] is None:
            words[cell.strip()] += n
    if not words:
        return _numbers(Column(name, unit=unit), cells, numbers, counts, rules)
    n_numbers = sum(n for cell, n in counts.items() if numbers[cell] is not None and not rules.is_missing(cell))
    if not n_numbers:
        return _words(name, cells, words, rules)
    kinds_of_numbers = len({v for cell, v in numbers.items() if v is not None and v == v})
    if (kinds_of_numbers <= FEW_NUMBERS and min(words.values()) >= RARE) or n_numbers < sum(words.values()):
        found_column = read_column(_category(name, counts, rules), cells, rules, path, where)
        found_column.notes.append(f"column {name!r} has numbers and words: read as a category")
        return found_column
    return read_column(Column(name, unit=unit), cells, rules, path, where)


def unit_of(name: str) -> str:
    """The unit that a name ends with, as in "crp [mg/l]"."""
    found = _UNIT.fullmatch(name)
    return found[1].strip() if found else ""


def read_column(column: Column, cells: Sequence[str], rules: CellRules, path: str, where: Where) -> FoundColumn:
    """A column of a known kind; cells of another kind are problems, unknown categories missing values."""
    counts = Counter(cells)
    numbers: dict[str, float | None] = {}
    for cell in counts:
        try:
            numbers[cell] = column.number(cell, rules)
        except ValueError:
            numbers[cell] = None
    wrong = {cell for cell, number in numbers.items() if number is None}
    found = _numbers(column, cells, {c: np.nan if n is None else n for c, n in numbers.items()}, counts, rules)
    if wrong:
        found.problems = _slips(column, cells, wrong, path, where)
    if column.kind == "category":
        new = {cell.strip() for cell in counts if not rules.is_missing(cell) and np.isnan(numbers[cell] or 0.0)}
        if new:
            rows = sum(n for cell, n in counts.items() if cell.strip() in new)
            shown = ", ".join(repr(w) for w in sorted(new)[:3]) + (" …" if len(new) > 3 else "")
            found.notes.append(f"column {column.name!r}: {shown} in {rows} rows is new and counts as missing")
    return found


def typed_column(name: str, kind: str, cells: Sequence[str], rules: CellRules) -> Column:
    """A column of the kind that the user asks for; `date:%d/%m/%Y` says the format too."""
    base, _, known = kind.partition(":")
    if base == "category":
        return _category(name, Counter(cells), rules)
    if base == "date":
        present = [cell for cell in dict.fromkeys(cells) if not rules.is_missing(cell)]
        return Column(name, "date", format=known or date_format(present) or "%Y-%m-%d")
    if base not in ("number", "boolean"):
        raise ValueError(f"Column {name!r}: the type is number, category, boolean, date or date:FORMAT, not {kind!r}.")
    as_kind: Kind = "number" if base == "number" else "boolean"
    return Column(name, as_kind)


def looks_like_identifier(n_different: int, n_rows: int) -> bool:
    """Whether nearly every row has a word of its own."""
    return n_different > MANY_WORDS and n_different > 0.5 * n_rows


def _all_numbers(cells: Sequence[str], rules: CellRules) -> Floats | None:
    """The quick way for columns without any mark."""
    if rules.decimal == ",":
        return None
    try:
        values = np.array(cells, dtype=np.float64)
    except ValueError:
        return None
    return values if np.isfinite(values).all() and not any("_" in cell for cell in cells) else None


def _numbers(
    column: Column, cells: Sequence[str], numbers: dict[str, float | None], counts: Counter[str], rules: CellRules
) -> FoundColumn:
    values = np.array([numbers[cell] for cell in cells], dtype=np.float64)
    found = FoundColumn(column, values)
    if column.kind == "number":
        limits = [(cell, n) for cell, n in counts.items() if rules.is_limit(cell)]
        if limits:
            how = "their number" if rules.limits == "value" else "missing values"
            n = sum(n for _, n in limits)
            found.notes.append(f"column {column.name!r}: {n} cells such as {limits[0][0].strip()!r} are read as {how}")
    return found


def _words(name: str, cells: Sequence[str], words: dict[str, int], rules: CellRules) -> FoundColumn:
    """A column without any number: truth values, dates or categories."""
    lowered = {word.lower() for word in words}
    for pair in BOOLEANS:
        if lowered <= set(pair):
            codes = {cell: float(cell.strip().lower() == pair[1]) for cell in set(cells) if not rules.is_missing(cell)}
            return FoundColumn(Column(name, "boolean"), np.array([codes.get(cell, np.nan) for cell in cells]))
    known = date_format(words)
    if known is not None:
        dates = {cell: days(cell, known) for cell in set(cells) if not rules.is_missing(cell)}
        values = np.array([dates.get(cell, np.nan) for cell in cells], np.float64)
        found = FoundColumn(Column(name, "date", format=known), values)
        found.notes.append(f"column {name!r}: dates as {known}, read as days")
        return found
    column = _category(name, Counter(cells), rules)
    codes = {cell: column.codes.get(cell.strip(), np.nan) for cell in set(cells)}
    found = FoundColumn(column, np.array([codes[cell] for cell in cells]))
    found.is_text = looks_like_identifier(len(words), len(cells))
    return found


def _category(name: str, counts: Counter[str], rules: CellRules) -> Column:
    values = {cell.strip() for cell in counts if not rules.is_missing(cell)}
    return Column(name, "category", tuple(sorted(values, key=_natural)))


def _natural(word: str) -> tuple[float, str]:
    """Words in the order of a leading number, if they have one: "5-9" before "10-14"."""
    number = re.match(r"[<>]?=?\s*(-?\d+(?:\.\d+)?)", word)
    return (float(number[1]) if number else np.inf, word)


def _slips(column: Column, cells: Sequence[str], wrong: set[str], path: str, where: Where) -> list[TableProblem]:
    """A problem for each of the first few cells that are of another kind, with the lines on which they stand."""
    lines: dict[str, list[int]] = {}
    for i, cell in enumerate(cells):
        if cell in wrong:
            lines.setdefault(cell.strip(), []).append(i)
    problems = []
    for word, rows in list(lines.items())[:3]:
        more = f" ({len(rows)} times)" if len(rows) > 1 else ""
        what = f"{word!r} is not a {column.kind}{more}."
        mark = repr(word) if " " in word else word
        remedy = f"Correct it, or read it as a missing value (--missing {mark}), or the column as words"
        remedy += f" (--type {column.name}=category)."
        problems.append(TableProblem(path, f"{where(rows[0])}, column {column.name!r}", what, remedy))
    if len(lines) > 3:
        what = f"{len(lines) - 3} more words stand among the {column.kind}s."
        problems.append(TableProblem(path, f"column {column.name!r}", what, "Correct these too."))
    return problems

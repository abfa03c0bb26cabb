"""The questions of trees in the user's words: categories by name, dates as dates, numbers with their unit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

import numpy as np

from miserly.frontiers import figure
from miserly.plan import Plan

FEW_CATEGORIES = 4
EPOCH = date(1970, 1, 1)


class SplitWords(NamedTuple):
    """A split in words: `yes` is the left side, `no` the right one. `name` and `sign` stand before a number."""

    yes: str
    no: str


def question(plan: Plan, feature: int, threshold: float, values: np.ndarray | None = None) -> SplitWords:
    """Both sides of a split. `values`, those of the column, tell apart 0 or 1 from other numbers."""
    name = plan.costs.features[feature]
    column = plan.schema[name] if plan.schema is not None and name in plan.schema else None
    if column is not None and column.kind == "boolean":
        return SplitWords(f"{name} is no", f"{name} is yes")
    if column is not None and column.categories:
        return _of_categories(name, column.categories, threshold)
    if column is not None and column.kind == "date":
        day = _day(threshold, column.format)
        return SplitWords(f"{name} up to {day}", f"{name} after {day}")
    if values is not None and np.isin(values, (0.0, 1.0)).all() and 0 <= threshold < 1:
        return SplitWords(f"{name} = 0", f"{name} = 1")
    number = figure(threshold) + (f" {column.unit}" if column is not None and column.unit else "")
    return SplitWords(f"{name} ≤ {number}", f"{name} > {number}")


def _of_categories(name: str, categories: Sequence[Any], threshold: float) -> SplitWords:
    below = [str(c) for i, c in enumerate(categories) if i <= threshold]
    above = [str(c) for i, c in enumerate(categories) if i > threshold]
    if not below or not above:
        return SplitWords(f"{name} is {_or(below or above)}", f"{name} is something else")
    return SplitWords(_is(name, below, above), _is(name, above, below))


def _is(name: str, these: list[str], others: list[str]) -> str:
    if len(these) <= FEW_CATEGORIES or len(these) <= len(others):
        return f"{name} is {_or(these)}"
    return f"{name} is not {_or(others)}"


def _or(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _day(days: float, written: str) -> str:
    """A number of days since 1970 as the user writes dates: the last day that lies on the left side."""
    try:
        day = EPOCH + timedelta(days=float(np.floor(days)))
    except (OverflowError, ValueError):
        return figure(days)
    return day.strftime(written.split(" %H")[0].split("T%H")[0]) if written else day.isoformat()

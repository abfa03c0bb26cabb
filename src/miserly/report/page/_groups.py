"""For whom: what groups of rows pay, how often predictions about them are wrong, how they differ from the others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import stdtrit

from miserly.report._intervals import CONFIDENCE, wilson
from miserly.report._observed import LabelledRows, Observed
from miserly.report.page._trust import share
from miserly.schema import Schema

MOST_GROUPS = 12
Group = dict[str, np.ndarray]


def named_groups(columns: Mapping[str, Any], rows: LabelledRows) -> dict[str, Group]:
    """The rows of each group of each column; numbers with many values are cut into quarters."""
    return {str(name): _parts(str(name), values, len(rows)) for name, values in columns.items()}


def column_of(rows: LabelledRows, name: str, features: tuple[str, ...], schema: Schema | None) -> np.ndarray:
    """A feature's values, in the words of the user, as a column to group by."""
    if name not in features:
        raise ValueError(
            f"The run has no feature {name!r}. Give the validation table with --rows, or values to write_report."
        )
    values = rows.X[:, features.index(name)]
    if np.isnan(values).all():
        raise ValueError(
            f"The run does not keep {name!r}, since no model reads it. Give the validation table with --rows."
        )
    if schema is None or name not in schema or schema[name].kind == "number":
        return values
    words = [schema.word(name, float(v)) for v in values]
    return np.array(["missing" if w is None else _plain(w) for w in words])


def fairness(seen: Observed, groups: Mapping[str, Group]) -> list[dict[str, Any]]:
    """One record for each group: what its rows pay and how often they are predicted wrongly, each with its interval and
    that of the difference from all other rows."""
    records = []
    cost, wrong = seen.cost, _wrong(seen)
    for by, parts in groups.items():
        for name, here in parts.items():
            record: dict[str, Any] = {
                "by": by,
                "group": name,
                "rows": int(here.sum()),
                "cost": _mean(cost[here]),
                "share": float(cost[here].sum() / cost.sum()) if cost.sum() else 0.0,
                "costGap": _mean_gap(cost[here], cost[~here]),
            }
            if wrong is not None and seen.plan.classes is not None:
                counts = [int(wrong[here].sum()), int(here.sum()), int(wrong[~here].sum()), int((~here).sum())]
                record |= {"wrong": share(*counts[:2]), "wrongGap": _share_gap(*counts), **_two_classes(seen, here)}
            elif wrong is not None:
                record |= {"off": _mean(wrong[here]), "offGap": _mean_gap(wrong[here], wrong[~here])}
            records.append(record)
    return records


def _wrong(seen: Observed) -> np.ndarray | None:
    """Whether each class is wrong, how far each number is off; scores of lists are neither."""
    if seen.plan.classes is not None:
        return np.asarray(seen.answers != seen.rows.y)
    return None if seen.rows.qid is not None else np.abs(seen.answers - seen.rows.y)


def _two_classes(seen: Observed, here: np.ndarray) -> dict[str, Any]:
    """How often the second of two classes is found and missed in a group."""
    classes = seen.plan.classes
    if classes is None or len(classes) != 2:
        return {}
    is_so, says_so = (seen.rows.y == classes[1])[here], (seen.answers == classes[1])[here]
    found = np.sum(is_so & says_so), np.sum(is_so)
    spared = np.sum(~is_so & ~says_so), np.sum(~is_so)
    return {"sensitivity": share(*found), "specificity": share(*spared)}


def _parts(by: str, values: Any, n: int) -> Group:
    listed = list(values)
    column = (
        np.array([math.nan if v is None else v for v in listed]) if _are_numbers(listed) else np.array(listed, object)
    )
    if column.shape != (n,):
        raise ValueError(
            f"The column {by!r} has {len(column)} values for {n} validation rows. Give one for each row, in order."
        )
    if column.dtype.kind in "fiu" and len(np.unique(column[np.isfinite(column)])) > MOST_GROUPS:
        return _quarters(column.astype(np.float64))
    names = np.array([_plain(v) for v in column.tolist()])
    distinct = np.unique(names)
    if len(distinct) > MOST_GROUPS:
        raise ValueError(
            f"The column {by!r} has {len(distinct)} groups; the page shows at most {MOST_GROUPS}. Put some together."
        )
    return {name: names == name for name in distinct.tolist()}


def _are_numbers(values: list[Any]) -> bool:
    return all(v is None or (isinstance(v, int | float | np.number) and not isinstance(v, bool)) for v in values)


def _quarters(column: np.ndarray) -> Group:
    """Numbers in four groups of about as many rows, named by their ends."""
    known = np.isfinite(column)
    cuts = np.quantile(column[known], [0.0, 0.25, 0.5, 0.75, 1.0])
    place = np.clip(np.searchsorted(cuts[1:-1], column, side="right"), 0, 3)
    ends = [f"{low:.4g} to {high:.4g}" for low, high in pairwise(cuts)]
    found = {f"{name}": known & (place == i) for i, name in enumerate(ends)}
    return {name: here for name, here in found.items() if here.any()} | ({"missing": ~known} if (~known).any() else {})


def _plain(value: Any) -> str:
    if value is None or value != value:
        return "missing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _mean(values: np.ndarray) -> list[float]:
    """A mean with the ends of its interval."""
    mean = float(values.mean())
    half = _half(values)
    return [mean, mean - half, mean + half]


def _half(values: np.ndarray) -> float:
    n = len(values)
    return float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2) * values.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0


def _mean_gap(here: np.ndarray, others: np.ndarray) -> list[float] | None:
    """The difference of two means with the ends of its interval, by Welch; None without others."""
    if len(here) < 2 or len(others) < 2:
        return None
    parts = [values.var(ddof=1) / len(values) for values in (here, others)]
    gap, variance = float(here.mean() - others.mean()), parts[0] + parts[1]
    if not variance:
        return [gap, gap, gap]
    freedom = variance**2 / (parts[0] ** 2 / (len(here) - 1) + parts[1] ** 2 / (len(others) - 1))
    half = float(stdtrit(freedom, 0.5 + CONFIDENCE / 2) * np.sqrt(variance))
    return [gap, gap - half, gap + half]


def _share_gap(hits: int, n: int, others: int, n_others: int) -> list[float] | None:
    """The difference of two shares with the ends of its interval, by Newcombe from Wilson's; None without others."""
    if not n or not n_others:
        return None
    (p, low, high), (q, q_low, q_high) = wilson(hits, n), wilson(others, n_others)
    gap = p - q
    return [gap, gap - float(np.hypot(p - low, q_high - q)), gap + float(np.hypot(high - p, q - q_low))]

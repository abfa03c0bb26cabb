"""What each column of a table looks like, and which ones should not be learned from: identifiers, constants, leaks."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from miserly.datasets._columns import looks_like_identifier
from miserly.datasets._tables import Table
from miserly.schema import Column, Schema

MOST_EXPLAINED = 0.9  # a single column that explains more of the label than this was recorded after it, as a rule
MOST_MISSING_GAP = 0.3  # a difference of missing shares between labels that is not chance in tables of some size
_FEWEST_ROWS = 50  # below that, a column can explain a label by chance
_BINS = 20
_FEWEST_IN_PART = 20  # rows of a quarter of another column, to say which share of them lacks a value
_MOST_LOOKED_AT = 5000  # rows, to see by what values are missing
_NAMES_OF_IDENTIFIERS = re.compile(r"(?i)(^|[_\s.-])(id|nr|no|number|key|case|patient|record)($|[_\s.-])|id$")


@dataclass(frozen=True)
class ColumnSurvey:
    """A column: its share of missing values, its values in words, and why it should be left out, if it should."""

    column: Column
    missing: float
    values: str
    doubt: str = ""
    warning: str = ""


def survey_table(table: Table) -> list[ColumnSurvey]:
    """Look at every feature column of a table, beside its label."""
    schema = table.schema or Schema.of_names(table.features)
    codes = None if table.y is None else _label_codes(table.y)
    others = _gaps_by_others(schema, table.X)
    return [_look(column, values, codes, more) for column, values, more in zip(schema.columns, table.X.T, others)]


def _look(column: Column, values: np.ndarray, codes: np.ndarray | None, by_others: str) -> ColumnSurvey:
    gone = np.isnan(values)
    present = values[~gone]
    missing = float(gone.mean()) if len(gone) else 0.0
    warning = _gap(gone, codes, missing) or by_others
    return ColumnSurvey(column, missing, _in_words(column, present), _doubt(column, values, codes), warning)


def _in_words(column: Column, present: np.ndarray) -> str:
    if not len(present):
        return "no values"
    if column.kind == "category":
        shown = ", ".join(str(c) for c in column.categories[:4])
        return f"{len(column.categories)} words: {shown}{' …' if len(column.categories) > 4 else ''}"
    if column.kind == "boolean":
        return f"{present.mean():.0%} true"
    if column.kind == "date":
        first, last = (np.datetime64(0, "D") + int(day) for day in (present.min(), present.max()))
        return f"{first} to {last}"
    return f"{present.min():.4g} to {present.max():.4g}"


def _doubt(column: Column, values: np.ndarray, codes: np.ndarray | None) -> str:
    """Why a column should be left out; empty if nothing speaks against it."""
    present = values[~np.isnan(values)]
    n_different = len(np.unique(present))
    if n_different == 0:
        return "it has no values"
    if n_different == 1 and not np.isnan(values).any():
        return "it is constant"
    if column.kind == "category" and looks_like_identifier(n_different, len(values)):
        return "nearly every row has its own word: an identifier or free text"
    whole = column.kind == "number" and bool((present == np.round(present)).all())
    if whole and n_different == len(values) > 20 and _NAMES_OF_IDENTIFIERS.search(column.name):
        return "every row has its own number: an identifier"
    if codes is not None and len(values) >= _FEWEST_ROWS:
        share = explained(values, codes)
        if share > MOST_EXPLAINED:
            return f"it alone explains {share:.0%} of the label and may be known only after it"
    return ""


def _gap(gone: np.ndarray, codes: np.ndarray | None, missing: float) -> str:
    """A warning where values are missing for one label more than for another."""
    if codes is None or not 0.02 < missing < 0.98 or len(gone) < _FEWEST_ROWS:
        return ""
    counts = np.bincount(codes)
    shares = np.bincount(codes, weights=gone)[counts >= 10] / counts[counts >= 10]
    if len(shares) < 2 or shares.max() - shares.min() < MOST_MISSING_GAP:
        return ""
    return f"missing in {shares.min():.0%} to {shares.max():.0%} of the rows, by label: who orders it knows something"


def _gaps_by_others(schema: Schema, X: np.ndarray) -> list[str]:
    """For each column a warning if its values are missing for some values of another column more than for others."""
    X = X[:: max(1, len(X) // _MOST_LOOKED_AT)]
    gone = np.isnan(X)
    some = (gone.mean(axis=0) > 0.02) & (gone.mean(axis=0) < 0.98)
    warnings = [""] * X.shape[1]
    if len(X) < _FEWEST_ROWS or not some.any():
        return warnings
    low, high = np.ones((X.shape[1],) * 2), np.zeros((X.shape[1],) * 2)  # shares missing: of a column, by another
    codes = np.full(X.shape, -1, np.int8)
    for f, (column, missing) in enumerate(zip(X.T, gone.T)):
        if not missing.all():
            cuts = np.unique(np.quantile(column[~missing], (0.25, 0.5, 0.75), method="lower"))
            codes[~missing, f] = np.searchsorted(cuts, column[~missing], side="left")
    for part in range(4):
        here = (codes == part).astype(np.float32)
        counts = here.sum(axis=0)
        shares = (gone.T.astype(np.float32) @ here) / np.maximum(counts, 1)
        enough = counts >= _FEWEST_IN_PART
        low, high = np.where(enough, np.minimum(low, shares), low), np.where(enough, np.maximum(high, shares), high)
    for f in np.flatnonzero(some).tolist():
        by = int(np.argmax(high[f] - low[f]))
        if high[f, by] - low[f, by] >= MOST_MISSING_GAP:
            name = schema.columns[by].name
            shares = f"{low[f, by]:.0%} to {high[f, by]:.0%}"
            warnings[f] = f"missing in {shares} of the rows, by {name!r}: who orders it looks at that"
    return warnings


def _label_codes(y: np.ndarray) -> np.ndarray:
    """Labels as numbers from 0; numbers of many kinds as ten quantiles."""
    distinct, codes = np.unique(y, return_inverse=True)
    if y.dtype.kind == "f" or len(distinct) > _BINS:
        cuts = np.unique(np.quantile(np.unique(y, return_inverse=True)[1], np.linspace(0, 1, 11)[1:-1]))
        return np.searchsorted(cuts, codes, side="right")
    return codes


def explained(values: np.ndarray, codes: np.ndarray) -> float:
    """The share of the label's entropy that a column in bins takes away, with a bin for missing values."""
    known = ~np.isnan(values)
    bins = np.zeros(len(values), np.int64)
    if known.any():
        cuts = np.unique(np.quantile(values[known], np.linspace(0, 1, _BINS + 1)[1:-1]))
        bins[known] = 1 + np.searchsorted(cuts, values[known], side="left")
    table = np.zeros((bins.max() + 1, codes.max() + 1))
    np.add.at(table, (bins, codes), 1.0)
    whole = _entropy(table.sum(axis=0))
    if whole == 0.0:
        return 0.0
    weights = table.sum(axis=1) / table.sum()
    return float(1.0 - sum(w * _entropy(row) for w, row in zip(weights, table)) / whole)


def _entropy(counts: np.ndarray) -> float:
    shares = counts[counts > 0] / max(counts.sum(), 1.0)
    return float(-(shares * np.log(shares)).sum())

"""One partition: what it must look like, what the client knows about it, its part in finding cuts. All are tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_array

from miserly.boosting import cut_columns, no_cuts
from miserly.estimators import as_codes
from miserly.plan import missing

LEAST_OF_CLASS = 3  # rows of a class that a partition gives to a sample: a class of few rows must not be lost


@dataclass(frozen=True)
class Expected:
    """What all partitions have in common; `missing` says whether values may be missing."""

    n_features: int
    columns: tuple[Any, ...] | None
    categories: Mapping[str, tuple[Any, ...]]
    numeric: bool
    missing: bool = True


class Partition(NamedTuple):
    """A partition as arrays, without rows of weight zero."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray | None
    weight: np.ndarray | None


@dataclass(frozen=True)
class About:
    """What the client must know about a partition. `labels` are all distinct ones, or the least and largest number."""

    n_rows: int
    labels: np.ndarray
    queries: np.ndarray | None
    largest_weight: float
    weighted: bool


def cleaned(number: int, x: Any, y: Any, qid: Any, weight: Any, expected: Expected) -> Partition:
    """Check a partition and make arrays of it."""
    try:
        return _cleaned(x, y, qid, weight, expected)
    except (ValueError, TypeError) as error:
        raise ValueError(f"Partition {number} (from 0): {error}") from None


def _cleaned(x: Any, y: Any, qid: Any, weight: Any, expected: Expected) -> Partition:
    columns = tuple(x.columns) if hasattr(x, "columns") else None
    if columns != expected.columns:
        raise ValueError(_other_columns(columns, expected.columns))
    x = as_codes(x, expected.categories)
    finite: Any = "allow-nan" if expected.missing else True
    kinds = {"dtype": [np.float64, np.float32], "ensure_all_finite": finite, "ensure_min_samples": 0}
    x = x.toarray() if hasattr(x, "toarray") else x
    X = check_array(x, input_name="X", **kinds)
    if X.shape[1] != expected.n_features:
        raise ValueError(f"{X.shape[1]} columns, the others have {expected.n_features}.")
    labels = _column(y, "y", len(X), np.float64 if expected.numeric else None)
    ids = None if qid is None else _column(qid, "qid", len(X), None)
    weights = None if weight is None else _column(weight, "sample_weight", len(X), np.float64)
    if weights is not None and (weights < 0).any():
        raise ValueError(f"sample_weight holds {weights.min():g}. Weights are finite numbers, 0 or more.")
    part = Partition(X, labels, ids, weights)
    if weights is None or weights.all():
        return part
    present = np.flatnonzero(weights)
    return Partition(*(None if column is None else column[present] for column in part))  # type: ignore[arg-type]


def _column(values: Any, name: str, n_rows: int, dtype: Any) -> np.ndarray:
    column = np.asarray(values) if dtype is None else np.asarray(values, dtype)
    column = column[:, 0] if column.ndim == 2 and column.shape[1] == 1 else column
    if column.shape != (n_rows,):
        raise ValueError(f"X has {n_rows} rows, {name} the shape {column.shape}. Give both with the same partitions.")
    if missing(column).any() or (column.dtype.kind == "f" and not np.isfinite(column).all()):
        raise ValueError(f"{name} holds NaN or infinity. Remove such rows.")
    if column.dtype == object and n_rows:
        column = np.array(column.tolist())
    return column


def _other_columns(got: tuple[Any, ...] | None, expected: tuple[Any, ...] | None) -> str:
    if got is None or expected is None:
        return "an array, where others are data frames." if got is None else "a data frame, where others are arrays."
    missing = [name for name in expected if name not in set(got)]
    extra = [name for name in got if name not in set(expected)]
    besides = f"it has {extra[:5]} besides" if extra else "their order is another"
    what = f"it lacks {missing[:5]}" if missing else besides
    return f"other columns than the collection says: {what}. All partitions must have the same columns."


def about(part: Partition, numeric: bool) -> About:
    """What the client must know."""
    y = part.y
    labels = np.unique(y) if not numeric else np.array([y.min(), y.max()] if len(y) else [])
    queries = None
    if part.qid is not None:
        first = np.concatenate([[True], part.qid[1:] != part.qid[:-1]]) if len(y) else np.zeros(0, bool)
        queries = part.qid[first]
    largest = float(part.weight.max(initial=0.0)) if part.weight is not None else 1.0
    return About(len(y), labels, queries, largest, part.weight is not None)


def sample(part: Partition, rows: np.ndarray | None, first: int, last: int) -> np.ndarray:
    """Some rows of some features: feature × row."""
    columns = part.X[:, first:last]
    return np.ascontiguousarray((columns if rows is None else columns[rows]).T)


def drawn(part: Partition, share: float, seed: tuple[int, int], numeric: bool) -> Partition:
    """A share of the rows by chance, or of the queries; and the first few rows of each class."""
    rng = np.random.default_rng(seed)
    if part.qid is not None:
        _, query = np.unique(part.qid, return_inverse=True)
        kept = (rng.random(query.max(initial=0) + 1) < share)[query]
    else:
        kept = rng.random(len(part.y)) < share
        for label in [] if numeric else np.unique(part.y):
            kept[np.flatnonzero(part.y == label)[:LEAST_OF_CLASS]] = True
    rows = np.flatnonzero(kept)
    return Partition(*(None if column is None else column[rows] for column in part))  # type: ignore[arg-type]


def cuts_of(max_bins: int, *samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cuts of some features, from the samples of all partitions."""
    columns = np.concatenate(samples, axis=1, dtype=np.float64)
    cuts, n_bins = no_cuts(len(columns))
    cut_columns(columns, max_bins, 0, cuts, n_bins)
    return cuts, n_bins

"""The border of a plan: matrices and frames in, one C-ordered array of floats out."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from miserly.schema import Schema

NO_CONFIDENCE = (
    "confidence is the probability of a class, and this plan predicts numbers. Leave confidence out. Rankers stop "
    "early with EarlyExitRanker(plan) or plan.lazy(keep='order')."
)


def as_matrix(X: Any, features: Sequence[str], named: bool = True, schema: Schema | None = None) -> NDArray[Any]:
    """Rows × features as float32 or float64. A frame or a list of dicts is read by the plan's feature names, if it has
    any, in any order and in the words of its schema; other columns are ignored."""
    if not isinstance(X, np.ndarray):
        X = _from_frame(X, features if named else None, schema)
    if X.ndim != 2 or X.shape[1] != len(features):
        got = f"{X.shape[1]} columns" if X.ndim == 2 else f"an array of {X.ndim} dimensions"
        raise ValueError(f"The plan reads {len(features)} features, X has {got}. Give one column per feature.")
    if X.dtype not in (np.float32, np.float64):
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError("X holds values that are not numbers. Encode strings as numbers first.") from None
    return np.ascontiguousarray(X)


def _from_frame(X: Any, features: Sequence[str] | None, schema: Schema | None) -> NDArray[Any]:
    if features is not None and isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
        return (schema or Schema.of_names(features)).matrix(X)
    is_arrow = hasattr(X, "column_names")
    names = X.column_names if is_arrow else getattr(X, "columns", None)
    if names is None:
        return np.asarray(X)
    names = list(names)
    has_names = any(isinstance(name, str) for name in names)
    is_foreign = names != list(features or ()) or (schema is not None and not schema.is_plain)
    if features is not None and has_names and is_foreign:
        return (schema or Schema.of_names(features)).matrix(X)
    if is_arrow:
        return np.column_stack([np.asarray(X.column(i)) for i in range(len(names))])
    try:
        return np.asarray(X.to_numpy(dtype=np.float64, na_value=np.nan))  # pandas: nullable columns too
    except (TypeError, ValueError):
        return np.asarray(X)


def query_numbers(qid: Any, n_rows: int) -> NDArray[np.intp]:
    """A number for the query of each row; without query ids all rows are one query."""
    if qid is None:
        return np.zeros(n_rows, np.intp)
    ids = np.asarray(qid)
    if ids.shape != (n_rows,):
        raise ValueError(f"qid must give one query id per row: {n_rows} rows, got shape {ids.shape}.")
    refuse_missing(ids, "qid", "query id")
    return np.unique(ids, return_inverse=True)[1].astype(np.intp)


def compared_queries(plan: Any, qid: Any, n_rows: int) -> NDArray[np.intp]:
    """The same; it warns if a plan that compares documents has to take all rows as one query."""
    if qid is None and n_rows > 1 and plan.by_query:
        frame, level = sys._getframe(), 1
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("miserly."):
            frame, level = frame.f_back, level + 1
        warnings.warn(
            f"The plan compares the documents of a query and got no qid: all {n_rows} rows count as one query. Give "
            "qid, the query of each row.",
            stacklevel=level,
        )
    return query_numbers(qid, n_rows)


def refuse_missing(column: NDArray[Any], what: str, value: str) -> None:
    """Refuse a column in which a row has no value."""
    absent = missing(column)
    if absent.any():
        raise ValueError(
            f"{what} lacks the {value} of row {int(absent.argmax())} (from 0). Give one per row, or leave the row out."
        )


def missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a column has no value: None, or what does not equal itself, as NaN."""
    if column.dtype.kind != "O":
        return np.asarray(column != column)
    return np.array([v is None or not isinstance(v == v, (bool, np.bool_)) or v != v for v in column], bool)

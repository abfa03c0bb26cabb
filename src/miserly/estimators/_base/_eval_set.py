"""Validation data as the user gives them, checked in one place."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from miserly.boosting import BinnedDataset, fetch, warn_of_seen_rows
from miserly.estimators._base._base import PlanEstimator
from miserly.plan import Plan, refuse_missing


def check_eval_set(
    model: PlanEstimator, eval_set: Any, parts: tuple[str, ...] = ("X", "y"), qid: bool | str = False
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """X, y and the query ids (or None) of `eval_set`, which has these parts.

    `qid=True` allows query ids that `parts` does not name; a metric's name says that it needs them.
    """
    sizes = (len(parts), len(parts) + 1) if qid else (len(parts),)
    if not isinstance(eval_set, tuple) or len(eval_set) not in sizes:
        also = " or, for metrics of queries, (X, y, qid)" if qid else ""
        raise ValueError(f"eval_set is validation data: ({', '.join(parts)}){also}.")
    eval_set = tuple(map(fetch, eval_set))
    named = hasattr(eval_set[0], "columns") or isinstance(eval_set[0], BinnedDataset)
    if hasattr(model, "feature_names_in_") and not named:
        raise ValueError(
            "The training data have feature names, the X of eval_set has none. Give it as a frame with the same "
            "columns, so that they cannot be mixed up."
        )
    X, *columns = model._checked(eval_set[0]), *(column_or_1d(part) for part in eval_set[1:])
    if any(len(column) != X.shape[0] for column in columns):
        raise ValueError(f"eval_set has {X.shape[0]} rows in X and {len(columns[0])} in y. Give one label per row.")
    y = columns[0]
    refuse_missing(y, "the y of eval_set", "label")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("eval_set holds infinity in y. Remove such rows.")
    classes = getattr(model, "classes_", None)
    if classes is not None and len(unknown := np.setdiff1d(y, classes)):
        raise ValueError(f"The validation data have classes that the training data have not: {unknown[:5]}.")
    if isinstance(qid, str) and len(columns) < 2:
        raise ValueError(f"{qid} compares the rows of a query: give eval_set=(X, y, qid).")
    query = columns[1] if len(columns) > 1 else None
    if isinstance(getattr(model, "dictionary", None), Plan) and isinstance(X, np.ndarray):
        warn_of_seen_rows(model.dictionary, X, y, "validation rows", query)
    return X, y, query

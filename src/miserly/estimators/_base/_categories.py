"""Columns of categories in data frames: each value becomes its place in the column's own order of categories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def find_categories(X: Any) -> dict[str, tuple[Any, ...]]:
    """The categories of each categorical column of a data frame, in order; none for anything else."""
    if not hasattr(X, "columns") and not hasattr(X, "column_names"):
        return {}
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return {}
    kinds = {name: dtype for name, dtype in frame.schema.items() if dtype in (nw.Categorical, nw.Enum)}
    return {name: _in_order(frame.get_column(name), dtype) for name, dtype in kinds.items()}


def _in_order(column: Any, dtype: Any) -> tuple[Any, ...]:
    """The order that the column itself declares; of the words where it declares none."""
    declared = getattr(dtype, "categories", None)
    if declared is None:
        declared = getattr(getattr(column.to_native(), "cat", None), "categories", None)
    return tuple(sorted(column.drop_nulls().unique().to_list()) if declared is None else declared)


def as_codes(X: Any, categories: Mapping[str, tuple[Any, ...]]) -> Any:
    """The frame with codes in the place of these columns; a value that was not there at fit is a missing one."""
    if not categories or not (hasattr(X, "columns") or hasattr(X, "column_names")):
        return X
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    codes = []
    for name in categories:
        if name in frame.columns:
            code = {value: float(place) for place, value in enumerate(categories[name])}
            values = np.array([code.get(v, np.nan) for v in frame.get_column(name).to_list()], np.float64)
            codes.append(nw.new_series(name, values, nw.Float64, backend=frame.implementation))
    return frame.with_columns(*codes).to_native()

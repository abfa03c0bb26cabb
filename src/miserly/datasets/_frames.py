"""Tables from data frames (pandas, polars, Arrow) and from Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from miserly.datasets._tables import Table, whole_if_possible

if TYPE_CHECKING:
    import narwhals as nw


def from_frame(frame: Any, label: str | None = None, qid: str | None = None) -> Table:
    """Take a pandas, polars or pyarrow table apart; null and NaN are missing values, labels may be words.

    Parameters
    ----------
    frame : data frame
        All columns but label and query id are numbers or truth values.
    label : str, default=None
        The column to predict; no value may be missing.
    qid : str, default=None
        The column of query ids: whole numbers or words, none missing.

    Returns
    -------
    Table
        X is float32 where every feature column is, float64 otherwise.

    Examples
    --------
    >>> import pandas as pd
    >>> from_frame(pd.DataFrame({"a": [1.0, 2.0], "y": ["no", "yes"]}), label="y").y.tolist()
    ['no', 'yes']
    """
    return as_table(frame, label, qid, f"The {type(frame).__module__.partition('.')[0]} table")


def read_parquet(path: str | Path, label: str | None = None, qid: str | None = None) -> Table:
    """Read a Parquet file of numbers, as `from_frame` would. It needs pyarrow.

    Parameters
    ----------
    path : str or Path
        The file.
    label : str, default=None
        The column to predict.
    qid : str, default=None
        The column of query ids.

    Returns
    -------
    Table
        See `read_table` for files with words, dates or marks.

    Examples
    --------
    >>> table = read_parquet("train.parquet", label="y")  # doctest: +SKIP
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError(f"Reading '{path}' needs pyarrow. Install it with: pip install 'miserly[io]'.") from None
    try:
        frame = pq.ParquetFile(path).read()
    except pa.ArrowInvalid as error:
        raise ValueError(f"'{path}' is not a Parquet file or is damaged: {error}") from error
    return as_table(frame, label, qid, f"'{path}'")


def as_table(native: Any, label: str | None, qid: str | None, source: str, empty: bool = False) -> Table:
    """Take a table apart; `source` is what errors call it. It must have rows, unless it may be empty."""
    import narwhals as nw

    try:
        frame = nw.from_native(native, eager_only=True)
    except TypeError:
        raise TypeError(
            f"from_frame takes a pandas, polars or pyarrow table, got {type(native).__name__}. "
            "Collect a lazy frame first; give an array to the estimator as it is."
        ) from None
    except ValueError as error:
        raise ValueError(f"{source} has two columns of one name. Rename one. ({error})") from None
    for name in (label, qid):
        if name is not None and name not in frame.columns:
            raise ValueError(f"{source} has no column {name!r}. It has: {', '.join(map(str, frame.columns[:20]))}.")
    features = [name for name in frame.columns if name not in (label, qid)]
    if not (len(frame) or empty) or not features:
        raise ValueError(f"{source} has no {'feature columns' if len(frame) else 'rows'}.")
    for name in features:
        dtype = frame.get_column(name).dtype
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise ValueError(
                f"{source}, column {name!r}: {dtype} is not a number. "
                "Encode words as numbers first, or leave the column out."
            )
    single = all(frame.get_column(name).dtype == nw.Float32 for name in features)
    X = np.empty((len(frame), len(features)), dtype=np.float32 if single else np.float64)
    for j, name in enumerate(features):
        X[:, j] = _floats(frame.get_column(name), X.dtype)
    y = None if label is None else exact(frame.get_column(label), source, f"the label {label!r}")
    ids = None if qid is None else exact(frame.get_column(qid), source, f"the query id {qid!r}")
    if ids is not None and ids.dtype.kind == "f":
        raise ValueError(f"{source}: the query id {qid!r} has fractions. Use whole numbers or words.")
    return Table(X, tuple(map(str, features)), y, ids)


def _floats(column: nw.Series[Any], dtype: np.dtype[Any]) -> np.ndarray:
    import narwhals as nw

    wanted = nw.Float32 if dtype == np.float32 else nw.Float64
    if column.dtype != wanted:
        column = column.cast(wanted)
    return np.asarray(column.to_numpy(), dtype=dtype)


def exact(column: nw.Series[Any], source: str, what: str) -> np.ndarray:
    """Labels or ids: whole numbers as int64, other numbers as float64, words as strings; none may be missing."""
    import narwhals as nw

    words = column.dtype in (nw.String, nw.Categorical, nw.Enum)
    if not (words or column.dtype.is_numeric() or column.dtype == nw.Boolean):
        raise ValueError(f"{source}: {what} is {column.dtype}. Use numbers or words.")
    gone = np.asarray(column.is_null().to_numpy(), dtype=bool)
    if column.dtype.is_float():
        gone = gone | np.isnan(_floats(column, np.dtype(np.float64)))
    if gone.any():
        raise ValueError(f"{source}, row {int(gone.argmax())} (from 0): {what} is missing. Remove such rows.")
    if words:
        return np.array(column.cast(nw.String).to_list(), dtype=str)
    if column.dtype.is_integer() or column.dtype == nw.Boolean:
        return np.array(column.cast(nw.Int64).to_numpy(), dtype=np.int64)
    return whole_if_possible(_floats(column, np.dtype(np.float64)).copy())

"""Where partitions come from, so that they can be had again: the graph of a collection, or arrays of the client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask
import numpy as np
from distributed import Client, Future

Columns = Sequence[Any]


class CollectionSource:
    """The partitions of Dask arrays or data frames: X, y, and query ids and weights or None."""

    def __init__(self, X: Any, columns: Columns) -> None:
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions. Give rows × features.")
        X = X.rechunk({1: -1}) if hasattr(X, "rechunk") else X
        self._parts = [_delayed("X", X, None)] + [
            _delayed(name, column, X) for name, column in zip(("y", "qid", "sample_weight"), columns)
        ]
        n_parts = len(self._parts[0] or ())
        for name, part in zip(("y", "qid", "sample_weight"), self._parts[1:]):
            if part is not None and len(part) != n_parts:
                raise ValueError(
                    f"X has {n_parts} partitions, {name} {len(part)}. Give both with the same partitions, for example "
                    "as columns of one data frame."
                )
        self.n_parts = n_parts

    def fetch(self, client: Client, number: int) -> list[Future | None]:
        """The parts of a partition, being computed."""
        return [None if part is None else client.compute(part[number]) for part in self._parts]


class LocalSource:
    """Arrays or frames of this process, cut into parts of about equal size; queries stay whole."""

    def __init__(self, X: Any, columns: Columns, n_parts: int) -> None:
        X = X if hasattr(X, "shape") else np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions. Give rows × features.")
        n_rows = X.shape[0]
        self._data = [X, *(None if column is None else np.asarray(column) for column in columns)]
        for name, column in zip(("y", "qid", "sample_weight"), self._data[1:]):
            if column is not None and len(column) != n_rows:
                raise ValueError(f"X has {n_rows} rows, {name} {len(column)}. Give one value per row.")
        borders = np.linspace(0, n_rows, min(n_parts, n_rows) + 1).astype(int)
        qid = self._data[2]
        if qid is not None:
            starts = np.concatenate([[0], np.flatnonzero(qid[1:] != qid[:-1]) + 1, [n_rows]])
            borders = np.unique(starts[np.searchsorted(starts, borders)])
        self._borders = borders
        self.n_parts = len(borders) - 1

    def fetch(self, client: Client, number: int) -> list[Future | None]:
        """The parts of a partition, sent to a worker."""
        rows = slice(self._borders[number], self._borders[number + 1])
        parts = [None if d is None else d.iloc[rows] if hasattr(d, "iloc") else d[rows] for d in self._data]
        return [None if part is None else client.scatter(part, hash=False) for part in parts]


def is_collection(X: Any) -> bool:
    """Whether X is a Dask array or data frame."""
    return dask.is_dask_collection(X)


def _delayed(name: str, data: Any, like: Any) -> list[Any] | None:
    if data is None:
        return None
    if not dask.is_dask_collection(data) or not hasattr(data, "to_delayed"):
        raise ValueError(
            f"X is a Dask collection, {name} is of {type(data).__name__}. Give a Dask array or series with the "
            "same partitions."
        )
    if like is not None and hasattr(data, "rechunk") and hasattr(like, "chunks") and _known(like) and _known(data):
        if data.shape[0] != like.shape[0]:
            raise ValueError(f"X has {like.shape[0]} rows, {name} {data.shape[0]}. Give one value per row.")
        data = data.rechunk({0: like.chunks[0]})
    return list(np.ravel(np.array(data.to_delayed(), object)))


def _known(array: Any) -> bool:
    return not any(np.isnan(size) for size in array.chunks[0])

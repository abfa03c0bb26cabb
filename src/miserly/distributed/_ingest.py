"""Where data enter the cluster: all partitions are checked, and what they have in common is learnt."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from distributed import Client, Future

from miserly.boosting import BackendLostError, RowsLostError
from miserly.distributed._partition import About, Expected, about, cleaned
from miserly.distributed._source import CollectionSource, LocalSource, is_collection
from miserly.distributed._timeouts import GO_ON, losses_named, results_of, wait_for, workers
from miserly.estimators import find_categories

logger = logging.getLogger(__name__)
ATTEMPTS = 3  # to read lost partitions again
LEAST_WEIGHT = 1e-100  # of the largest: below it, and beyond its inverse, products are not ordinary numbers
UNKNOWN = "__UNKNOWN_CATEGORIES__"


class Ingest:
    """The partitions of X, y, query ids and weights. `sizes` and `first` are rows by the number of a partition; empty
    ones have none. `parts` are the arrays, while they are needed."""

    def __init__(
        self, client: Client, X: Any, columns: Sequence[Any], numeric: bool, timeout: float, missing: bool = True
    ) -> None:
        self._client, self._timeout = client, timeout
        self._source = (
            CollectionSource(X, columns) if is_collection(X) else LocalSource(X, columns, len(workers(client)) or 1)
        )
        self._expected = _expected(X, numeric, missing)
        self.n_features, self.categories = self._expected.n_features, dict(self._expected.categories)
        self.names = _names(self._expected.columns)
        self.parts: dict[int, Future] = {}
        self.sizes = dict.fromkeys(range(self._source.n_parts), 0)
        found: list[About] = self.ask(about, dict.fromkeys(self.sizes, (numeric,)))
        self.sizes = {number: one.n_rows for number, one in enumerate(found) if one.n_rows}
        if not self.sizes:
            raise ValueError("X has no rows, or all weights are zero: nothing is left to learn from.")
        self.n_rows = sum(self.sizes.values())
        self.first = dict(zip(self.sizes, accumulate(self.sizes.values(), initial=0)))
        self.labels = _labels([found[number] for number in self.sizes], numeric)
        self.weighted = found[0].weighted
        self.largest_weight = max(one.largest_weight for one in found)
        if self.weighted and not LEAST_WEIGHT < self.largest_weight < 1.0 / LEAST_WEIGHT:
            remedy = "Divide all weights by the largest."
            raise ValueError(f"The largest of sample_weight is {self.largest_weight:g}: sums are lost. {remedy}")
        self.has_queries = columns[1] is not None
        _check_queries(found)

    def fetch(self, numbers: Iterable[int] | None = None) -> None:
        """Begin to fetch some partitions, or all, from where they come from."""
        with losses_named(self._client):
            for number in self.sizes if numbers is None else numbers:
                raw = self._source.fetch(self._client, number)
                self.parts[number] = self._client.submit(cleaned, number, *raw, self._expected, pure=False)

    def places(self) -> dict[int, Sequence[str]]:
        """Which workers have the data of the partitions."""
        wait_for(self._client, self.parts.values(), (), self._timeout)
        with losses_named(self._client):
            who = self._client.who_has(list(self.parts.values()))
        return {number: tuple(who.get(future.key, ())) for number, future in self.parts.items()}

    def results(self, futures: Iterable[Future]) -> list[Any]:
        """What tasks made of partitions."""
        return results_of(self._client, futures, self._timeout)

    def ask(self, function: Callable[..., Any], given: Mapping[int, tuple[Any, ...]] | None = None) -> list[Any]:
        """What tasks make of all partitions, each with what is given for it; those that are lost are fetched again."""
        given, lost = given or {}, None
        for _ in range(ATTEMPTS):
            try:
                if lost is not None or len(self.parts) < len(self.sizes):
                    self.fetch()
                parts = [(number, self.parts[number]) for number in self.sizes]
                return self.results(self._client.submit(function, p, *given.get(n, ()), pure=False) for n, p in parts)
            except RowsLostError as error:
                logger.warning("%s", error)
                lost = error
        raise BackendLostError(
            f"Workers were lost {ATTEMPTS} times while they read their rows. Find a cluster that stays. {GO_ON}"
        ) from lost

    def release(self) -> None:
        """The arrays are needed no more."""
        self.parts = {}


def _expected(X: Any, numeric: bool, missing: bool) -> Expected:
    meta = X._meta if hasattr(X, "_meta") and hasattr(X, "columns") else X
    columns = tuple(meta.columns) if hasattr(meta, "columns") else None
    categories = find_categories(meta)
    for name, known in categories.items():
        if UNKNOWN in known:
            raise ValueError(f"The categories of {name!r} are not known. Use X.categorize() before.")
    n_features = len(columns) if columns is not None else X.shape[1]
    return Expected(n_features, columns, categories, numeric, missing)


def _names(columns: tuple[Any, ...] | None) -> tuple[str, ...] | None:
    """The names of features, where there are any, as scikit-learn has it."""
    words = [isinstance(name, str) for name in columns or ()]
    if any(words) and not all(words):
        raise TypeError("Some names of columns are words and others are not. Use X.columns = X.columns.astype(str).")
    return columns if any(words) else None


def _labels(found: Sequence[About], numeric: bool) -> np.ndarray:
    """All distinct labels; the least and the largest number."""
    words = {one.labels.dtype.kind in "US" for one in found}
    if len(words) > 1:
        raise ValueError("y holds words in some partitions and numbers in others. Make all of them the same.")
    labels = np.unique(np.concatenate([one.labels for one in found]))
    return labels[[0, -1]] if numeric else labels


def _check_queries(found: Sequence[About]) -> None:
    """Refuse a query that is in two places."""
    holders = [(number, one.queries) for number, one in enumerate(found) if one.queries is not None and one.n_rows]
    if not holders:
        return
    ids = np.concatenate([queries for _, queries in holders])
    numbers = np.concatenate([np.full(len(queries), number) for number, queries in holders])
    names, times = np.unique(ids, return_counts=True)
    if not (times > 1).any():
        return
    query = names[times > 1][0].item()
    where = np.unique(numbers[ids == query])
    if len(where) > 1:
        raise ValueError(
            f"The query {query!r} is cut over the partitions {where[0]} and {where[1]}. It must lie whole in one: sort "
            "by query and repartition at the borders of queries."
        )
    raise ValueError(
        f"qid comes back to query {query!r} after others, in partition {where[0]}. Sort the rows by query."
    )

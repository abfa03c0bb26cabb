"""Designs whose rows are on the workers of a Dask cluster: products, sums and Gram matrices per partition.

The client has what is one number per row and output (targets, weights, gates, scores); columns stay where they are.
Results of partitions are added up in the order of the partitions, so they do not depend on who holds which.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from distributed import Client, Future
from numpy.typing import ArrayLike, NDArray

from miserly._typing import Floats
from miserly.boosting import BackendLostError, RowsLostError
from miserly.distributed._ingest import Ingest
from miserly.distributed._partition import Partition
from miserly.distributed._placement import WorkerStores
from miserly.distributed._traffic import Traffic
from miserly.distributed._worker_store import put_in_store, size
from miserly.estimators import FIRST_ROWS, RemoteTable, order_of_columns
from miserly.plan import Trees
from miserly.solvers import RawRows, TreeRows, as_table, shares, standardise_features, standardise_trees

logger = logging.getLogger(__name__)
MOST_REPAIRS = 5  # of one question: a cluster that loses more does not stay


class DaskTable(RemoteTable):
    """The rows of a fit on a cluster; labels and weights are here too. `traffic` gets a record of what was sent."""

    def __init__(
        self, client: Client, ingest: Ingest, fit: Callable[[Any, bool], Any], traffic: list[Traffic], timeout: float
    ) -> None:
        self._client, self._ingest, self._fit, self._traffic, self._timeout = client, ingest, fit, traffic, timeout
        self.shape = (ingest.n_rows, ingest.n_features)
        columns = ingest.ask(labels_and_weights)
        self.y = np.concatenate([y for y, _ in columns])
        self.weight = np.concatenate([weight for _, weight in columns]) if ingest.weighted else None

    def order(self) -> NDArray[np.intp]:
        """The order of the columns that one machine would find: workers compare theirs where heads tie."""
        head = np.concatenate(self._ingest.ask(head_of, {n: (FIRST_ROWS - f,) for n, f in self._ingest.first.items()}))

        def ranks() -> Sequence[Any]:
            return list(zip(*self._ingest.ask(ranks_of_columns)))

        return order_of_columns(head, ranks)

    def raw_design(self, order: NDArray[np.intp]) -> DaskDesign:
        """Raw features as learners."""
        design = DaskDesign(self._pinned(partial(RawRows, columns=order)), self.shape[0], len(order))
        standardise_features(design, shares(self.weight, self.shape[0]))
        return design

    def tree_design(self, trees: Trees) -> DaskDesign:
        """Trees as learners; rows become numbers of leaves where they are."""
        design = DaskDesign(self._pinned(partial(TreeRows, trees)), self.shape[0], len(trees))
        standardise_trees(design, trees, shares(self.weight, self.shape[0]))
        return design

    def fitted(self, model: Any, weighted: bool) -> Any:
        """A model fitted to the same rows, on the same cluster."""
        return self._fit(model, weighted)

    def _pinned(self, make: Callable[[np.ndarray], Any]) -> PinnedRows:
        return PinnedRows(self._client, self._ingest, make, self._traffic, self._timeout)


class DaskDesign:
    """A design whose rows are remote partitions (`miserly.solvers.Design`)."""

    far = True

    def __init__(self, rows: PinnedRows, n_rows: int, n_columns: int) -> None:
        self._rows, self.n_rows, self.n_columns = rows, n_rows, n_columns
        self.centre, self.scale = np.zeros(n_columns), np.ones(n_columns)
        self.varies = np.ones(n_columns, bool)

    def standardise_with(self, centre: Floats, scale: Floats, varies: NDArray[np.bool_]) -> None:
        """How columns are standardised from now on."""
        self.centre, self.scale, self.varies = centre, scale, varies
        self._rows.standardise_with(centre, scale, varies)

    def totals(self, share: Floats) -> Floats:
        """Σ share · value of each column."""
        return self._added(totals, share)

    def extent(self, share: Floats) -> Floats:
        """The largest and the negated smallest of each column, and the totals."""
        parts = self._rows.each(extent, share)
        return np.array([*np.max([part[:2] for part in parts], axis=0), reduce(add, [part[2] for part in parts])])

    def squares(self, share: Floats) -> Floats:
        """Σ share · value² of each column."""
        return self._added(squares, share)

    def mass(self, share: Floats) -> Floats:
        """The shares of the rows in each leaf, tree × leaf."""
        return self._added(mass, share)

    def scores(self, weights: ArrayLike) -> Floats:
        """H @ weights; columns whose weights are all zero are skipped."""
        table, shape = as_table(weights, self.n_columns)
        used = np.flatnonzero(table.any(axis=1))
        if not len(used):
            return np.zeros((self.n_rows, *shape))
        return np.concatenate(self._rows.each(products, None, used, table[used])).reshape(self.n_rows, *shape)

    def sums(self, values: ArrayLike, columns: ArrayLike | None = None) -> Floats:
        """H.T @ values for some columns, or all."""
        return self._added(sums, np.asarray(values, np.float64), columns)

    def gram(self, weight: ArrayLike, columns: ArrayLike | None = None) -> Floats:
        """H.T @ diag(weight) @ H for some columns, or all."""
        return self._added(gram, np.asarray(weight, np.float64), columns)

    def column(self, j: int) -> Floats:
        """One column of H."""
        return np.concatenate(self._rows.each(column, None, j))

    def close(self) -> None:
        """Let the workers forget the rows."""
        self._rows.close()

    def _added(self, call: Callable[..., Any], values: Floats, *common: Any) -> Floats:
        return np.asarray(reduce(add, self._rows.each(call, values, *common)))


class PinnedRows:
    """Partitions pinned to workers, each called by itself. A lost one is fetched from its source, the call repeated.

    `make` turns the values of a partition into the rows that are kept.
    """

    def __init__(
        self,
        client: Client,
        ingest: Ingest,
        make: Callable[[np.ndarray], Any],
        traffic: list[Traffic],
        timeout: float,
    ) -> None:
        self._ingest, self._complete, self._n_repairs = ingest, False, 0
        self._stores = WorkerStores(client, ingest.sizes, partial(_put, client, ingest, make), timeout)
        self._standard: tuple[Any, ...] | None = None
        self._traffic = traffic
        traffic[:] = [Traffic()]

    @property
    def placement(self) -> dict[int, str]:
        """Which worker holds each partition."""
        return dict(self._stores.holder)

    def close(self) -> None:
        """Let go of the stores, whose actors end with them."""
        del self._stores

    def standardise_with(self, *standard: Any) -> None:
        """How columns are standardised, for all partitions, those that are fetched again later too."""
        self._standard = standard
        self.each(standardise_with, None, *standard)

    def each(self, call: Callable[..., Any], values: Floats | None, *common: Any) -> list[Any]:
        """What a function makes of all partitions, in their order, given the `values` of their rows."""
        sizes, first = self._ingest.sizes, self._ingest.first
        rows = {n: None if values is None else values[first[n] : first[n] + sizes[n]] for n in sizes}
        while True:
            try:
                if not self._complete:
                    self._place()
                results = self._call(call, rows, *common)
                self._n_repairs = 0
                return results
            except RowsLostError as error:
                logger.warning("%s", error)
                self._complete = False
                self._n_repairs += 1
                if self._n_repairs > MOST_REPAIRS:
                    raise BackendLostError(
                        f"Workers were lost {self._n_repairs} times before one call was done. Fit again on a "
                        "cluster that stays."
                    ) from error

    def _call(self, call: Callable[..., Any], rows: Mapping[int, Any], *common: Any) -> list[Any]:
        started = time.perf_counter()
        results, seconds = self._stores.each(call, rows, common)
        took = time.perf_counter() - started
        sent = size([*rows.values()]) + len(set(self._stores.holder.values())) * size(common)
        self._traffic[0] = self._traffic[0].and_message(sent + size([*results.values()]), took, seconds)
        return [results[number] for number in rows]

    def _place(self) -> None:
        """Give the partitions that nobody holds to workers; from their source, unless they were just checked."""
        missing = self._stores.drop_lost()
        if self._n_repairs:
            logger.info("%d of %d partitions are fetched again.", len(missing), len(self._ingest.sizes))
            self._ingest.release()
            self._ingest.fetch(missing)
        self._stores.fill(self._ingest.places())
        self._ingest.release()
        if self._standard is not None:
            self._call(standardise_with, dict.fromkeys(self._ingest.sizes), *self._standard)
        self._complete = True


def _put(client: Client, ingest: Ingest, make: Callable[[np.ndarray], Any], fit: str, number: int, at: str) -> Future:
    where = {"workers": [at], "allow_other_workers": False, "pure": False}
    return client.submit(put_rows, fit, number, ingest.parts[number], make, **where)


def put_rows(fit: str, number: int, part: Partition, make: Callable[[np.ndarray], Any]) -> int:
    """A task: make the rows of a partition and put it in the store of the worker that runs it."""
    return put_in_store(fit, number, make(part.X))


def labels_and_weights(part: Partition) -> tuple[np.ndarray, np.ndarray | None]:
    """What the client keeps of a partition."""
    return part.y, part.weight


def head_of(part: Partition, n_rows: int) -> np.ndarray:
    """The first rows."""
    return part.X[: max(0, n_rows)]


def ranks_of_columns(part: Partition) -> list[int]:
    """The place of each column among all, by the bytes of its values."""
    contents = [np.ascontiguousarray(column, np.float64).tobytes() for column in part.X.T]
    place = {content: i for i, content in enumerate(sorted(set(contents)))}
    return [place[content] for content in contents]


def totals(rows: Any, share: Floats) -> Floats:
    """Σ share · value of each column of some rows."""
    return rows.totals(share)


def extent(rows: Any, share: Floats) -> Floats:
    """The largest and the negated smallest of each column, and the totals, of some rows."""
    return rows.extent(share)


def squares(rows: Any, share: Floats) -> Floats:
    """Σ share · value² of each column of some rows."""
    return rows.squares(share)


def mass(rows: Any, share: Floats) -> Floats:
    """The shares of some rows in each leaf."""
    return rows.mass(share)


def products(rows: Any, columns: NDArray[np.intp], weights: Floats) -> Floats:
    """Scores of some rows."""
    return rows.products(columns, weights)


def sums(rows: Any, values: Floats, columns: ArrayLike | None) -> Floats:
    """H.T @ values of some rows."""
    return rows.sums(values, columns)


def gram(rows: Any, weight: Floats, columns: ArrayLike | None) -> Floats:
    """H.T @ diag(weight) @ H of some rows."""
    return rows.gram(weight, columns)


def column(rows: Any, j: int) -> Floats:
    """One column of some rows."""
    return rows.column(j)


def standardise_with(rows: Any, *standard: Any) -> None:
    """How columns of some rows are standardised from now on."""
    rows.standardise_with(*standard)

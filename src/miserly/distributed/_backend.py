"""The backend whose rows are on the workers of a Dask cluster.

Every worker keeps its partitions in bins; per split one message goes out and one joint answer comes back: the sums of
both children and the histograms of the smaller one. Sums are integers: the trees are those of one machine, to the bit.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from distributed import Client, Future, default_client

from miserly.boosting import (
    COLUMNS_AT_ONCE,
    Ahead,
    BackendLostError,
    BackendOfRows,
    BinnedData,
    LambdaRankLoss,
    NodeSums,
    RowsLostError,
    SummedLoss,
    TreeSplit,
    check_row_count,
    chosen_rows,
    is_steady,
    mean_of_sums,
    weight_unit,
)
from miserly.distributed._gram import DaskTable
from miserly.distributed._ingest import Border
from miserly.distributed._partition import cuts_of, sample
from miserly.distributed._placement import Shelves
from miserly.distributed._points import points_on_cluster
from miserly.distributed._timeouts import GO_ON
from miserly.distributed._traffic import Traffic
from miserly.distributed._worker_store import put_partition
from miserly.frontiers import Job, Point

logger = logging.getLogger(__name__)
MOST_REPAIRS = 5
NEAR = {"allow_other_workers": True, "pure": False}


class DaskBackend(BackendOfRows):
    """Rows on the workers of a Dask cluster: `model.fit(X, y, backend=DaskBackend(client))`.

    X, y and the rest are Dask collections with the same partitions, or arrays, which are sent to the workers. Without
    a client it is the one in use. `timeout` is how long, in seconds, any answer may take. `traffic` has a record for
    every tree that was grown, or one for a whole fit that is not of trees.
    """

    def __init__(self, client: Client | None = None, timeout: float = 600.0) -> None:
        if client is None:
            try:
                client = default_client()
            except ValueError:
                raise ValueError("No Dask cluster is connected. Start one: client = distributed.Client(...).") from None
        self._client, self._timeout = client, timeout
        self._shelves: Shelves | None = None
        self.traffic: list[Traffic] = []

    # ---- data -------------------------------------------------------------------------------------------------

    def take(
        self, X: Any, y: Any, qid: Any = None, weight: Any = None, *, numeric: bool = True, missing: bool = True
    ) -> None:
        """Check all partitions, and count their rows; `missing` says whether values may be missing."""
        self._given = (X, y, weight)
        self._border = Border(self._client, X, (y, qid, weight), numeric, self._timeout, missing)
        self.features, self.categories = self._border.names, self._border.categories
        self.shape = (self._border.n_rows, self._border.n_features)
        self.labels = self._border.labels
        self.n_rows = self._border.n_rows

    def table(self) -> DaskTable:
        """The rows for a model that is not boosted: it asks for products, sums and Gram matrices."""
        return DaskTable(self._client, self._border, self._fit_there, self.traffic, self._timeout)

    def points(
        self, job: Job, grid: Sequence[Mapping[str, Any]], numbers: Sequence[int]
    ) -> Iterator[tuple[int, Point]]:
        """Points of a sweep, each a task of a worker: `miserly.frontier(…, backend=backend)`. None is ever late."""
        return points_on_cluster(self._client, job, grid, numbers)

    def _fit_there(self, model: Any, weighted: bool) -> Any:
        """Fit a model to the data that were taken, on the same cluster."""
        X, y, weight = self._given
        more = {"sample_weight": weight} if weighted else {}
        return model.fit(X, y, **more, backend=DaskBackend(self._client, self._timeout))

    def open(self, loss: Any, classes: np.ndarray | None, max_bins: int, subsample: float = 1.0, seed: int = 0) -> None:
        """Put the partitions in bins, each on a worker."""
        check_row_count(self.n_rows)
        if not isinstance(loss, SummedLoss):
            raise TypeError(
                f"{type(loss).__name__} has no `terms` and `averaged`, which a loss on a cluster needs: derive it from "
                "miserly.boosting.SummedLoss."
            )
        self._loss, self._classes = loss, classes
        self._subsample, self._seed = subsample, seed
        self._queue: list[tuple[str, tuple[Any, ...]]] = []
        self._repairs = 0
        self._forget()
        self._next_largest: np.ndarray | None = None
        self._of_roots = (np.empty(0, np.int32),) * 2
        self.traffic, self._tree, self._growing = [], Traffic(), False
        if isinstance(loss, LambdaRankLoss) and not self._border.has_queries:
            raise ValueError("lambdarank compares the rows of a query: on a cluster give qid.")
        cuts, n_bins = self._find_cuts(max_bins)
        self.data = BinnedData(np.empty((0, 0), "<u8"), cuts, n_bins)
        self._cuts = (cuts, n_bins)
        self._shelves = Shelves(self._client, self._border.sizes, self._put, self._timeout)
        try:
            self._shelves.fill(self._border.places())
            self._weigh()
        except RowsLostError as error:
            logger.warning("%s", error)
            self.repair()
        self._border.release()

    def repair(self) -> None:
        """After a loss: fetch lost partitions from their source and give them to other workers."""
        assert self._shelves is not None
        while True:
            self._repairs += 1
            if self._repairs > MOST_REPAIRS:
                raise BackendLostError(
                    f"Workers were lost {self._repairs} times without a round in between. Find a cluster that stays. "
                    f"{GO_ON}"
                )
            try:
                self._queue.clear()
                self._forget()
                self._growing = False
                lost = self._shelves.drop_lost()
                logger.info("%d of %d partitions are fetched again.", len(lost), len(self._border.sizes))
                self._border.fetch(lost)
                self._shelves.fill(self._border.places())
                self._border.release()
                self._weigh()
                return
            except RowsLostError as error:
                logger.warning("%s", error)

    def close(self) -> None:
        """Let the workers forget everything."""
        self._note_tree()
        self._shelves = None
        self._border.release()

    @property
    def placement(self) -> dict[int, str]:
        """Which worker holds each partition."""
        return {} if self._shelves is None else dict(self._shelves.holder)

    def _find_cuts(self, max_bins: int) -> tuple[np.ndarray, np.ndarray]:
        """Every block of features is cut by one task, from the samples of all partitions."""
        for _ in range(MOST_REPAIRS):
            try:
                return self._try_to_find_cuts(max_bins)
            except RowsLostError as error:
                logger.warning("%s", error)
                self._border.fetch()
        return self._try_to_find_cuts(max_bins)

    def _try_to_find_cuts(self, max_bins: int) -> tuple[np.ndarray, np.ndarray]:
        border, n_features = self._border, self.shape[1]
        chosen = chosen_rows(self.n_rows)
        rows: dict[int, np.ndarray | None] = dict.fromkeys(border.sizes)
        if chosen is not None:
            for number, first in border.first.items():
                begin, end = np.searchsorted(chosen, [first, first + border.sizes[number]])
                rows[number] = chosen[begin:end] - first
        blocks = [(f, min(f + COLUMNS_AT_ONCE, n_features)) for f in range(0, n_features, COLUMNS_AT_ONCE)]
        places, found = border.places(), []
        for first, last in blocks:
            parts = [
                self._client.submit(sample, border.parts[n], rows[n], first, last, workers=places[n], **NEAR)
                for n in border.sizes
            ]
            found.append(self._client.submit(cuts_of, max_bins, *parts, pure=False))
        border.wait(found)
        cuts, n_bins = zip(*self._client.gather(found))
        return np.concatenate(cuts), np.concatenate(n_bins)

    def _put(self, fit: str, number: int, address: str) -> Future:
        border = self._border
        what = (*self._cuts, self._loss, self._classes, border.first[number])
        where = {"workers": [address], "allow_other_workers": False, "pure": False}
        return self._client.submit(put_partition, fit, number, border.parts[number], *what, **where)

    def _weigh(self) -> None:
        self.weight, self._unit = self.n_rows, 1.0
        self._steady = is_steady(self._loss, self._border.weighted)
        if self._border.weighted:
            self._unit = weight_unit(self._border.largest_weight, self.n_rows)
            self.weight = self._ask("weigh", self._unit)

    # ---- asking -----------------------------------------------------------------------------------------------

    def _ask(self, what: str, *arguments: Any) -> Any:
        return self._send([(what, arguments)])[0]

    def _tell(self, what: str, *arguments: Any) -> None:
        self._queue.append((what, arguments))

    def _send(self, commands: list[tuple[str, tuple[Any, ...]]]) -> list[Any]:
        """The answers to some commands, after those that were put off because they have none."""
        assert self._shelves is not None
        started = time.perf_counter()
        reply = self._shelves.ask([*self._queue, *commands])
        n_put_off = len(self._queue)
        self._queue.clear()
        self._tree = self._tree.and_message(reply.n_bytes, time.perf_counter() - started, reply.seconds)
        return reply.answers[n_put_off:]

    def _forget(self) -> None:
        """What was asked ahead is not true any more."""
        self._known: dict[int, NodeSums] = {}
        self._split: tuple[TreeSplit, Ahead | None] | None = None
        self._counted: tuple[int, np.ndarray, np.ndarray] | None = None

    def _note_tree(self) -> None:
        if self._growing:
            tree = self._tree
            self.traffic.append(tree)
            what = "tree %d: %d messages, %d bytes, %.3f s, of which %.0f %% not computing"
            logger.info(what, len(self.traffic) - 1, tree.n_messages, tree.n_bytes, tree.seconds, 100 * tree.share)
        self._tree = Traffic()

    # ---- what differs from one machine: several things are asked at once ------------------------------------------

    def start(self) -> np.ndarray:
        self._next_largest = None
        means = [mean_of_sums(*pair) for pair in self._ask("constant_sums")]
        constant = self._loss.constant_of(means, self.n_rows)
        self._tell("start", constant)
        return constant

    def replay(self, constant: np.ndarray, trees: Sequence[Any], needs: Sequence[Sequence[int]]) -> None:
        self._next_largest = None
        super().replay(constant, trees, needs)

    def loss(self) -> float:
        """The mean loss; with the gradients of the next round, which most likely comes."""
        sums, self._next_largest = self._send([("loss_sums", ()), ("gradients", ())])
        self._repairs = 0
        return mean_of_sums(*sums)

    def gradients(self, number: int = 0) -> None:
        self._largest = self._ask("gradients") if self._next_largest is None else self._next_largest
        self._draw(number)

    def begin(self, outputs: Sequence[int] = (0,)) -> tuple[NodeSums, float]:
        """The sums of the root; with its histograms, if the last roots asked for the same features, or ever fewer."""
        self._note_tree()
        self._growing = True
        self._forget()
        return super().begin(outputs)

    def _begin(self, outputs: list[int], scale: float) -> NodeSums:
        before, last = self._of_roots
        if not len(last) or not np.isin(last, before).all():
            return super()._begin(outputs, scale)
        sums, counted = self._send([("begin", (outputs, scale)), ("histograms", ([0], last))])
        self._counted = (0, last, counted)
        return sums

    def apply(self, split: TreeSplit, ahead: Callable[[], Ahead] | None = None) -> None:
        self._tell("apply", split)
        self._split = (split, None if ahead is None else ahead())

    def sums(self, node: int) -> NodeSums:
        """The sums of a child; with those of the other, and with the histograms that will be asked next."""
        if node not in self._known:
            assert self._split is not None
            split, ahead = self._split
            commands: list[tuple[str, tuple[Any, ...]]] = [("sums", (split.left,)), ("sums", (split.left + 1,))]
            if ahead is not None and len(ahead.features):
                commands.append(("histograms", ([ahead.node], ahead.features)))
            left, right, *counted = self._send(commands)
            self._known = {split.left: left, split.left + 1: right}
            self._counted = (ahead.node, ahead.features, counted[0]) if ahead is not None and counted else None
        return self._known[node]

    def histograms(self, nodes: Sequence[int], features: np.ndarray) -> np.ndarray:
        if 0 in nodes:
            self._of_roots = (self._of_roots[1], features)
        if self._counted is not None and list(nodes) == [self._counted[0]]:
            _, known, counted = self._counted
            if np.isin(features, known).all():
                return counted[:, :, np.searchsorted(known, features)]
        return super().histograms(nodes, features)

    def add(self, leaf: int, values: Sequence[float]) -> None:
        self._next_largest = None
        super().add(leaf, values)

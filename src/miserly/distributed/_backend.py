"""The backend whose rows are on the workers of a Dask cluster.

Every worker keeps its partitions in bins; per split one message goes out and one joint reply comes back: the sums of
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
    Table,
    TreeSplit,
    check_row_count,
    chosen_rows,
    is_steady,
    mean_of_sums,
    weight_unit,
)
from miserly.distributed._commands import (
    AddLeaf,
    ApplySplit,
    Begin,
    Command,
    ComputeGradients,
    CountHistograms,
    CountLacking,
    Draw,
    Own,
    Renumber,
    Replay,
    Start,
    SumForConstant,
    SumLeaves,
    SumLoss,
    SumNode,
    Weigh,
)
from miserly.distributed._gram import DaskTable
from miserly.distributed._ingest import Ingest
from miserly.distributed._partition import cuts_of, drawn, sample
from miserly.distributed._placement import WorkerStores
from miserly.distributed._points import points_on_cluster
from miserly.distributed._timeouts import GO_ON
from miserly.distributed._traffic import Traffic
from miserly.distributed._worker_store import put_partition
from miserly.frontiers import Job, Point

logger = logging.getLogger(__name__)
MOST_REPAIRS = 5  # without a round in between: a cluster that loses more does not stay
MOST_LOST = "Workers were lost {} times without a round in between. Find a cluster that stays."
NEAR = {"allow_other_workers": True, "pure": False}


class DaskBackend(BackendOfRows):
    """Rows on the workers of a Dask cluster: `model.fit(X, y, backend=DaskBackend(client))`.

    X, y and the rest are Dask collections with the same partitions, or arrays, which are sent to the workers.

    Parameters
    ----------
    client : distributed.Client, default=None
        The connection to the cluster. By default the one in use; without any it is a ValueError.
    timeout : float, default=600.0
        How long any reply may take, in seconds, above 0. A later one is a BackendLostError.

    Attributes
    ----------
    traffic : list of Traffic
        A record for every tree that was grown, or one for a whole fit that is not of trees.
    placement : dict of int to str
        Which worker holds each partition, while a fit of trees runs.

    Examples
    --------
    >>> from distributed import Client
    >>> client = Client("tcp://scheduler:8786")  # doctest: +SKIP
    >>> backend = DaskBackend(client, timeout=120.0)  # doctest: +SKIP
    >>> model.fit(X, y, backend=backend)  # doctest: +SKIP
    >>> sum(tree.n_bytes for tree in backend.traffic)  # doctest: +SKIP
    """

    def __init__(self, client: Client | None = None, timeout: float = 600.0) -> None:
        if client is None:
            try:
                client = default_client()
            except ValueError:
                raise ValueError("No Dask cluster is connected. Start one: client = distributed.Client(...).") from None
        self._client, self._timeout = client, timeout
        self._stores: WorkerStores | None = None
        self.traffic: list[Traffic] = []

    # ---- data -------------------------------------------------------------------------------------------------

    def take(
        self, X: Any, y: Any, qid: Any = None, weight: Any = None, *, numeric: bool = True, missing: bool = True
    ) -> None:
        """Check all partitions, and count their rows; `missing` says whether values may be missing."""
        self._given = (X, y, weight)
        self._ingest = Ingest(self._client, X, (y, qid, weight), numeric, self._timeout, missing)
        self.features, self.categories = self._ingest.names, self._ingest.categories
        self.shape = (self._ingest.n_rows, self._ingest.n_features)
        self.labels = self._ingest.labels
        self.n_rows = self._ingest.n_rows

    def table(self) -> DaskTable:
        """The rows for a model that is not boosted: it asks for products, sums and Gram matrices."""
        return DaskTable(self._client, self._ingest, self._fit_there, self.traffic, self._timeout)

    def sample(self, most: int, seed: int, numeric: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """About `most` of the rows that were taken, by chance: X, y and query ids. Queries stay whole; of a class each
        partition gives a few rows at least."""
        share = min(1.0, most / self.n_rows)
        given = {number: (share, (seed, number), numeric) for number in self._ingest.sizes}
        parts = self._ingest.ask(drawn, given)
        X, y = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        qid = None if parts[0][2] is None else np.concatenate([part[2] for part in parts])
        return X.astype(np.float64), y, qid

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
        self._queue: list[Command] = []
        self._repairs = 0
        self._forget()
        self._next_largest: np.ndarray | None = None
        self._of_roots = (np.empty(0, np.int32),) * 2
        self.traffic, self._tree, self._growing = [], Traffic(), False
        if isinstance(loss, LambdaRankLoss) and not self._ingest.has_queries:
            raise ValueError("lambdarank compares the rows of a query: on a cluster give qid.")
        cuts, n_bins = self._find_cuts(max_bins)
        self.data = BinnedData(np.empty((0, 0), "<u8"), cuts, n_bins)
        self._cuts = (cuts, n_bins)
        self._stores = WorkerStores(self._client, self._ingest.sizes, self._put, self._timeout)
        try:
            self._stores.fill(self._ingest.places())
            self._weigh()
        except RowsLostError as error:
            logger.warning("%s", error)
            self.repair()
        self._ingest.release()

    def repair(self) -> None:
        """After a loss: fetch lost partitions from their source and give them to other workers."""
        assert self._stores is not None
        while True:
            self._repairs += 1
            if self._repairs > MOST_REPAIRS:
                raise BackendLostError(f"{MOST_LOST.format(self._repairs)} {GO_ON}")
            try:
                self._queue.clear()
                self._forget()
                self._growing = False
                lost = self._stores.drop_lost()
                logger.info("%d of %d partitions are fetched again.", len(lost), len(self._ingest.sizes))
                self._ingest.release()
                self._ingest.fetch(lost)
                self._stores.fill(self._ingest.places())
                self._ingest.release()
                self._weigh()
                return
            except RowsLostError as error:
                logger.warning("%s", error)

    def close(self) -> None:
        """Let the workers forget everything."""
        self._note_tree()
        self._stores = None
        self._ingest.release()

    @property
    def placement(self) -> dict[int, str]:
        """Which worker holds each partition."""
        return {} if self._stores is None else dict(self._stores.holder)

    def _find_cuts(self, max_bins: int) -> tuple[np.ndarray, np.ndarray]:
        """Every block of features is cut by one task, from the samples of all partitions."""
        lost: RowsLostError | None = None
        for _ in range(MOST_REPAIRS):
            try:
                if lost is not None:
                    self._ingest.fetch()
                return self._try_to_find_cuts(max_bins)
            except RowsLostError as error:
                logger.warning("%s", error)
                lost = error
        raise BackendLostError(f"{MOST_LOST.format(MOST_REPAIRS)} {GO_ON}") from lost

    def _try_to_find_cuts(self, max_bins: int) -> tuple[np.ndarray, np.ndarray]:
        ingest, n_features = self._ingest, self.shape[1]
        chosen = chosen_rows(self.n_rows)
        rows: dict[int, np.ndarray | None] = dict.fromkeys(ingest.sizes)
        if chosen is not None:
            for number, first in ingest.first.items():
                begin, end = np.searchsorted(chosen, [first, first + ingest.sizes[number]])
                rows[number] = chosen[begin:end] - first
        blocks = [(f, min(f + COLUMNS_AT_ONCE, n_features)) for f in range(0, n_features, COLUMNS_AT_ONCE)]
        places, found = ingest.places(), []
        for first, last in blocks:
            parts = [
                self._client.submit(sample, ingest.parts[n], rows[n], first, last, workers=places[n], **NEAR)
                for n in ingest.sizes
            ]
            found.append(self._client.submit(cuts_of, max_bins, *parts, pure=False))
        cuts, n_bins = zip(*ingest.results(found))
        return np.concatenate(cuts), np.concatenate(n_bins)

    def _put(self, fit: str, number: int, address: str) -> Future:
        ingest = self._ingest
        what = (*self._cuts, self._loss, self._classes, ingest.first[number])
        where = {"workers": [address], "allow_other_workers": False, "pure": False}
        return self._client.submit(put_partition, fit, number, ingest.parts[number], *what, **where)

    def _weigh(self) -> None:
        self.weight, self._unit = self.n_rows, 1.0
        self._steady = is_steady(self._loss, self._ingest.weighted)
        if self._ingest.weighted:
            self._unit = weight_unit(self._ingest.largest_weight, self.n_rows)
            self.weight = self._ask(Weigh(self._unit))

    # ---- commands ---------------------------------------------------------------------------------------------

    def _ask(self, command: Command) -> Any:
        """The joint reply to a command, sent with those in the queue."""
        return self._send([command])[0]

    def _send(self, commands: list[Command]) -> list[Any]:
        """The replies to some commands, after those that wait in the queue because they have none."""
        assert self._stores is not None
        started = time.perf_counter()
        reply = self._stores.run([*self._queue, *commands])
        n_queued = len(self._queue)
        self._queue.clear()
        self._tree = self._tree.and_message(reply.n_bytes, time.perf_counter() - started, reply.seconds)
        return reply.replies[n_queued:]

    def _forget(self) -> None:
        """What was counted ahead is not true any more."""
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

    # ---- what the grower needs; what has no reply waits for the next message, and several things go in one ----------

    def start(self) -> np.ndarray:
        self._next_largest = None
        means = [mean_of_sums(*pair) for pair in self._ask(SumForConstant())]
        constant = self._loss.constant_of(means, self.n_rows)
        self._queue.append(Start(constant))
        return constant

    def replay(self, constant: np.ndarray, trees: Sequence[tuple[int, Table]], needs: Sequence[Sequence[int]]) -> None:
        self._next_largest = None
        self._queue.append(Replay(constant, list(trees), needs))

    def loss(self) -> float:
        """The mean loss; with the gradients of the next round, which most likely comes."""
        sums, self._next_largest = self._send([SumLoss(), ComputeGradients()])
        self._repairs = 0
        return mean_of_sums(*sums)

    def gradients(self, number: int = 0) -> None:
        self._largest_now = self._ask(ComputeGradients()) if self._next_largest is None else self._next_largest
        if self._subsample < 1.0:
            self._queue.append(Draw(self._draw_seed(number), self._subsample))

    def _largest(self) -> np.ndarray:
        return self._largest_now

    def begin(self, outputs: Sequence[int] = (0,)) -> tuple[NodeSums, float]:
        self._note_tree()
        self._growing = True
        self._forget()
        return super().begin(outputs)

    def _begin(self, outputs: list[int], scale: float) -> NodeSums:
        """The sums of the root; with its histograms, if the last roots needed the same features, or ever fewer."""
        before, last = self._of_roots
        if not len(last) or not np.isin(last, before).all():
            sums: NodeSums = self._ask(Begin(outputs, scale))
            return sums
        sums, counted = self._send([Begin(outputs, scale), CountHistograms(0, last)])
        self._counted = (0, last, counted)
        return sums

    def apply(self, split: TreeSplit, ahead: Callable[[], Ahead] | None = None) -> None:
        self._queue.append(ApplySplit(split))
        self._split = (split, None if ahead is None else ahead())

    def sums(self, node: int) -> NodeSums:
        """The sums of a child; with those of the other, and with the histograms that will be needed next."""
        if node not in self._known:
            assert self._split is not None
            split, ahead = self._split
            commands: list[Command] = [SumNode(split.left), SumNode(split.left + 1)]
            if ahead is not None and len(ahead.features):
                commands.append(CountHistograms(ahead.node, ahead.features))
            left, right, *counted = self._send(commands)
            self._known = {split.left: left, split.left + 1: right}
            self._counted = (ahead.node, ahead.features, counted[0]) if ahead is not None and counted else None
        return self._known[node]

    def histograms(self, node: int, features: np.ndarray) -> np.ndarray:
        if node == 0:
            self._of_roots = (self._of_roots[1], features)
        if self._counted is not None and node == self._counted[0]:
            _, known, counted = self._counted
            if np.isin(features, known).all():
                return counted[:, np.searchsorted(known, features)]
        found: np.ndarray = self._ask(CountHistograms(node, features))
        return found

    def lacking(self, node: int, acquisitions: Sequence[int]) -> tuple[int, list[int]]:
        weight, *lacking = self._ask(CountLacking(node, list(acquisitions))).tolist()
        return weight, lacking

    def own(self, purchases: Sequence[tuple[int, Sequence[int]]]) -> None:
        self._queue.append(Own(list(purchases)))

    def renumber(self, kept: Mapping[int, int]) -> None:
        self._queue.append(Renumber(dict(kept)))

    def _fixed_sums(self, leaves: Sequence[int], scales: np.ndarray) -> np.ndarray:
        sums: np.ndarray = self._ask(SumLeaves(list(leaves), scales))
        return sums

    def add(self, leaf: int, values: Sequence[float]) -> None:
        self._next_largest = None
        self._queue.append(AddLeaf(leaf, list(values)))

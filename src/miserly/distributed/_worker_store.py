"""What a worker keeps: the rows of its partitions, and how the workers' replies become one.

The stores of all workers are a tree under the client. A store passes commands on to the two below it, runs them on its
own rows meanwhile, and hands up one joint reply, so nobody ever receives many.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from distributed import get_worker

from miserly.boosting import BinnedData, SummedLoss, TrainingRows, encode_rows
from miserly.distributed._commands import Command
from miserly.distributed._partition import Partition
from miserly.distributed._rpc import Handle
from miserly.kernels.threads import threads

_STORES: WeakValueDictionary[tuple[str, str], WorkerStore] = WeakValueDictionary()


@dataclass(frozen=True)
class Reply:
    """Joint replies; the bytes that were sent up for it so far, and the longest time that one of them computed."""

    replies: list[Any]
    n_bytes: int
    seconds: float


class WorkerStore:
    """An actor: the partitions of one fit on one worker, as whatever stands for their rows."""

    def __init__(self, fit: str) -> None:
        self._rows: dict[int, Any] = {}
        self._below: Sequence[Handle] = ()
        self._n_threads = get_worker().state.nthreads
        _STORES[fit, get_worker().address] = self

    def put(self, number: int, rows: Any) -> None:
        """Keep a partition."""
        self._rows[number] = rows

    def link(self, below: Sequence[Handle], numbers: Sequence[int]) -> None:
        """The stores whose replies this one collects, and the partitions that are its own: no row counts twice."""
        self._below = below
        self._rows = {number: self._rows[number] for number in numbers}

    def partitions(self) -> list[int]:
        """The numbers of what is here."""
        return sorted(self._rows)

    def run(self, commands: Sequence[Command]) -> Reply:
        """Run commands on all rows, here and below; the joint reply to each."""
        waiting = [store.call_from_worker("run", commands) for store in self._below]
        started = time.perf_counter()
        with threads(self._n_threads):
            mine = [command.join_all([command.run(rows) for rows in self._rows.values()]) for command in commands]
        seconds = time.perf_counter() - started
        reply = joint(commands, [Reply(mine, 0, seconds), *(future.result() for future in waiting)])
        return replace(reply, n_bytes=reply.n_bytes + size(reply.replies))

    def each(
        self, call: Callable[..., Any], rows: Mapping[int, Any], common: Sequence[Any]
    ) -> tuple[dict[int, Any], float]:
        """Call a function on some partitions here, each with the values of its rows, if any; and how long it took."""
        started, replies = time.perf_counter(), {}
        with threads(self._n_threads):
            for number, values in rows.items():
                given = common if values is None else (values, *common)
                replies[number] = call(self._rows[number], *given)
        return replies, time.perf_counter() - started


def put_partition(
    fit: str,
    number: int,
    part: Partition,
    cuts: np.ndarray,
    n_bins: np.ndarray,
    loss: SummedLoss,
    classes: np.ndarray | None,
    first: int,
) -> int:
    """A task: put a partition in bins and in the store of the worker that runs it."""
    words = encode_rows(part.X, cuts, get_worker().state.nthreads)
    target = part.y if classes is None else np.searchsorted(classes, part.y)
    rows = TrainingRows(
        BinnedData(words, cuts, n_bins), target.astype(np.float64), loss.on(part.qid), part.weight, first
    )
    return put_in_store(fit, number, rows)


def put_in_store(fit: str, number: int, rows: Any) -> int:
    """Give what stands for a partition to the store of this worker."""
    _STORES[fit, get_worker().address].put(number, rows)
    return number


def joint(commands: Sequence[Command], parts: Sequence[Reply]) -> Reply:
    """One reply from several."""
    by_command = zip(*(part.replies for part in parts))
    replies = [command.join_all(of_all) for command, of_all in zip(commands, by_command)]
    return Reply(replies, sum(part.n_bytes for part in parts), max(part.seconds for part in parts))


def size(replies: Sequence[Any]) -> int:
    """The bytes of the arrays in some replies; all else is small."""
    return sum(answer.nbytes for answer in replies if isinstance(answer, np.ndarray))

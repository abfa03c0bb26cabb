"""What a worker keeps: the rows of its partitions, and how the workers' answers become one.

The shelves of all workers are a tree under the client. A shelf passes what it is asked on to the two below it, answers
for its own rows meanwhile, and hands up one joint answer, so nobody ever receives many.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from distributed import get_worker

from miserly.boosting import BinnedData, SummedLoss, TrainingRows, encode_rows
from miserly.distributed._partition import Part
from miserly.distributed._rpc import Handle
from miserly.kernels.threads import threads

Command = tuple[str, tuple[Any, ...]]
_STORES: WeakValueDictionary[tuple[str, str], WorkerStore] = WeakValueDictionary()


@dataclass(frozen=True)
class Reply:
    """Joint answers; the bytes that were sent up for it so far, and the longest time that one of them computed."""

    answers: list[Any]
    n_bytes: int
    seconds: float


class WorkerStore:
    """An actor: the partitions of one fit on one worker, as whatever answers for their rows."""

    def __init__(self, fit: str) -> None:
        self._rows: dict[int, Any] = {}
        self._below: Sequence[Handle] = ()
        self._n_threads = get_worker().state.nthreads
        _STORES[fit, get_worker().address] = self

    def put(self, number: int, rows: Any) -> None:
        """Keep a partition."""
        self._rows[number] = rows

    def link(self, below: Sequence[Handle], numbers: Sequence[int]) -> None:
        """The shelves whose answers this one collects, and the partitions that are its own: no row counts twice."""
        self._below = below
        self._rows = {number: self._rows[number] for number in numbers}

    def partitions(self) -> list[int]:
        """The numbers of what is here."""
        return sorted(self._rows)

    def ask(self, commands: Sequence[Command]) -> Reply:
        """Have all rows, here and below, do something; the joint answers to each command."""
        waiting = [shelf.call_from_worker("ask", commands) for shelf in self._below]
        started = time.perf_counter()
        with threads(self._n_threads):
            mine = [self._answer(*command) for command in commands]
        seconds = time.perf_counter() - started
        reply = joint(commands, [Reply(mine, 0, seconds), *(future.result() for future in waiting)])
        return replace(reply, n_bytes=reply.n_bytes + size(reply.answers))

    def each(self, what: str, rows: Mapping[int, Any], common: Sequence[Any]) -> tuple[dict[int, Any], float]:
        """What some partitions here say, each by itself, given the values of its rows, if any; and how long it took."""
        started, answers = time.perf_counter(), {}
        with threads(self._n_threads):
            for number, values in rows.items():
                given = common if values is None else (values, *common)
                answers[number] = getattr(self._rows[number], what)(*given)
        return answers, time.perf_counter() - started

    def _answer(self, what: str, arguments: tuple[Any, ...]) -> Any:
        answers = (getattr(rows, what)(*arguments) for rows in self._rows.values())
        return reduce(lambda a, b: joined(what, a, b), answers)


def put_partition(
    fit: str,
    number: int,
    part: Part,
    cuts: np.ndarray,
    n_bins: np.ndarray,
    loss: SummedLoss,
    classes: np.ndarray | None,
    first: int,
) -> int:
    """A task: put a partition in bins and on the shelf of the worker that runs it."""
    words = encode_rows(part.X, cuts, get_worker().state.nthreads)
    target = part.y if classes is None else np.searchsorted(classes, part.y)
    rows = TrainingRows(
        BinnedData(words, cuts, n_bins), target.astype(np.float64), loss.on(part.qid), part.weight, first
    )
    return put_on_shelf(fit, number, rows)


def put_on_shelf(fit: str, number: int, rows: Any) -> int:
    """Give what answers for a partition to the shelf of this worker."""
    _STORES[fit, get_worker().address].put(number, rows)
    return number


def joint(commands: Sequence[Command], replies: Sequence[Reply]) -> Reply:
    """One reply from several."""
    answers = [
        reduce(lambda a, b: joined(command[0], a, b), of_all)
        for command, of_all in zip(commands, zip(*(reply.answers for reply in replies)))
    ]
    return Reply(answers, sum(reply.n_bytes for reply in replies), max(reply.seconds for reply in replies))


def joined(what: str, one: Any, other: Any) -> Any:
    """One answer from two: their sum, the larger of maxima, nothing of nothings."""
    if one is None:
        return None
    return np.maximum(one, other) if what == "gradients" else one + other


def size(answers: Sequence[Any]) -> int:
    """The bytes of the arrays in some answers; all else is small."""
    return sum(answer.nbytes for answer in answers if isinstance(answer, np.ndarray))

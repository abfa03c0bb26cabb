"""Partitions on workers: who holds which, and what became of those that do not respond."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from typing import Any

from distributed import Client, Future

from miserly.boosting import BackendLostError, RowsLostError
from miserly.distributed._commands import Command
from miserly.distributed._rpc import Handle
from miserly.distributed._timeouts import CHECK_SECONDS, GO_ON, PATIENCE, late, wait_for, workers
from miserly.distributed._worker_store import Reply, WorkerStore, joint

logger = logging.getLogger(__name__)
FAN_OUT = 2  # stores below a store: it computes while they do
FAN_OUT_OF_CLIENT = 8  # the client only waits, and can listen to more
MOST_OF_A_SHARE = 1.05  # of the rows: data move to another worker rather than make one worker slower than this
Put = Callable[[str, int, str], Future]


class WorkerStores:
    """The stores of one fit, linked as trees whose roots get the commands. `put(fit, number, address)` fills them."""

    def __init__(self, client: Client, sizes: Mapping[int, int], put: Put, timeout: float) -> None:
        self._client, self._sizes, self._put, self._timeout = client, sizes, put, timeout
        self._fit = uuid.uuid4().hex
        self._actors: dict[str, Future] = {}
        self._stores: dict[str, Handle] = {}
        self._straight = True
        self.holder: dict[int, str] = {}

    def fill(self, near: Mapping[int, Sequence[str]]) -> None:
        """Place the partitions that nobody holds, if possible where their data are (`near`), and link all stores."""
        missing = [number for number in self._sizes if number not in self.holder]
        targets = self._targets(missing, near)
        made = {address: self._new_store(address) for address in set(targets.values()) - set(self._stores)}
        wait_for(self._client, made.values(), made, self._timeout)
        self._actors |= made
        self._stores |= {address: Handle(address, str(future.key)) for address, future in made.items()}
        self._straight = all(self._responds(store, straight=True) for store in self._stores.values())
        puts = [self._put(self._fit, number, address) for number, address in targets.items()]
        wait_for(self._client, puts, set(targets.values()), self._timeout)
        self.holder |= targets
        order = sorted(set(self.holder.values()))
        self._roots = order[:FAN_OUT_OF_CLIENT]
        for i, address in enumerate(order):
            first = FAN_OUT_OF_CLIENT + FAN_OUT * i
            below = [self._stores[a] for a in order[first : first + FAN_OUT]]
            self._call([address], "link", below, [number for number, a in self.holder.items() if a == address])

    def run(self, commands: list[Command]) -> Reply:
        """The joint reply of all partitions."""
        return joint(commands, self._call(self._roots, "run", commands))

    def each(
        self, call: Callable[..., Any], rows: Mapping[int, Any], common: Sequence[Any]
    ) -> tuple[dict[int, Any], float]:
        """What a function makes of partitions, each by itself, and the longest time that a worker computed."""
        by_holder: dict[str, dict[int, Any]] = {}
        for number, values in rows.items():
            by_holder.setdefault(self.holder[number], {})[number] = values
        replies = self._calls("each", {address: (call, mine, common) for address, mine in by_holder.items()})
        results = {number: result for mine, _ in replies for number, result in mine.items()}
        return results, max(seconds for _, seconds in replies)

    def drop_lost(self) -> list[int]:
        """Forget the stores that do not respond; the partitions that nobody holds now."""
        for address in self._lost():
            del self._stores[address], self._actors[address]
            self.holder = {number: a for number, a in self.holder.items() if a != address}
        return [number for number in self._sizes if number not in self.holder]

    def _new_store(self, address: str) -> Future:
        where = {"workers": [address], "allow_other_workers": False, "pure": False}
        return self._client.submit(WorkerStore, self._fit, actor=True, **where)

    def _targets(self, numbers: Sequence[int], near: Mapping[int, Sequence[str]]) -> dict[int, str]:
        """A worker for each of some partitions: one that has its data, unless it has its share already."""
        load = dict.fromkeys(workers(self._client), 0)
        if not load:
            raise BackendLostError(f"The cluster has no workers. Start some. {GO_ON}")
        for number, address in self.holder.items():
            load[address] = load.get(address, 0) + self._sizes[number]
        share = MOST_OF_A_SHARE * sum(self._sizes.values()) / len(load)
        targets = {}
        for number in sorted(numbers, key=lambda number: -self._sizes[number]):
            close = [a for a in near.get(number, ()) if a in load and load[a] + self._sizes[number] <= share]
            targets[number] = min(close or load, key=lambda address: (load[address], address))
            load[targets[number]] += self._sizes[number]
        return targets

    def _lost(self) -> list[str]:
        known = workers(self._client)
        return [address for address, store in self._stores.items() if address not in known or not self._responds(store)]

    def _call(self, addresses: Sequence[str], what: str, *arguments: Any) -> list[Any]:
        """What stores reply to the same call."""
        return self._calls(what, dict.fromkeys(addresses, arguments))

    def _calls(self, what: str, arguments: Mapping[str, tuple[Any, ...]]) -> list[Any]:
        """What stores reply; an error that says so if one of them, or one below, or the scheduler is gone."""
        try:
            calls = [
                self._stores[address].call(self._client, what, *given, straight=self._straight)
                for address, given in arguments.items()
            ]
            return self._results(calls)
        except (RowsLostError, BackendLostError):
            raise
        except Exception as error:
            lost = self._lost()
            if lost:
                raise RowsLostError(f"The worker {lost[0]} was lost; its rows are fetched again.") from error
            if isinstance(error, OSError):
                raise RowsLostError(f"A connection in the cluster broke ({error}); the round is repeated.") from error
            raise

    def _results(self, calls: Sequence[futures.Future[Any]]) -> list[Any]:
        """What calls bring; a store whose worker went meanwhile is not waited for."""
        deadline = time.monotonic() + self._timeout
        while True:
            done, waiting = futures.wait(calls, min(CHECK_SECONDS, self._timeout), futures.FIRST_EXCEPTION)
            for call in done:
                call.result()
            if not waiting:
                return [call.result() for call in calls]
            gone = set(self._stores) - set(workers(self._client))
            if gone:
                raise RowsLostError(f"The worker {min(gone)} was lost; its rows are fetched again.")
            if time.monotonic() > deadline:
                raise late(self._timeout)

    def _responds(self, store: Handle, straight: bool | None = None) -> bool:
        way = self._straight if straight is None else straight
        try:
            store.call(self._client, "partitions", straight=way, separate_thread=False).result(PATIENCE)
        except Exception as error:
            logger.debug("A store does not respond: %s", error)
            return False
        return True

"""Partitions on workers: who holds which, and what became of those that do not answer."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from distributed import Client, Future

from miserly.boosting import BackendLostError, RowsLostError
from miserly.distributed._rpc import Handle
from miserly.distributed._timeouts import GO_ON, PATIENCE, late, wait_for, workers
from miserly.distributed._worker_store import Command, Reply, WorkerStore, joint

logger = logging.getLogger(__name__)
FAN_OUT = 2
FAN_OUT_OF_CLIENT = 8
MOST_OF_A_SHARE = 1.05
Put = Callable[[str, int, str], Future]


class Shelves:
    """The shelves of one fit, linked as trees whose roots are asked. `put(fit, number, address)` fills them."""

    def __init__(self, client: Client, sizes: Mapping[int, int], put: Put, timeout: float) -> None:
        self._client, self._sizes, self._put, self._timeout = client, sizes, put, timeout
        self._fit = uuid.uuid4().hex
        self._actors: dict[str, Future] = {}
        self._shelves: dict[str, Handle] = {}
        self._straight = True
        self.holder: dict[int, str] = {}

    def fill(self, near: Mapping[int, Sequence[str]]) -> None:
        """Place the partitions that nobody holds, if possible where their data are (`near`), and link all shelves."""
        missing = [number for number in self._sizes if number not in self.holder]
        targets = self._targets(missing, near)
        made = {address: self._new_shelf(address) for address in set(targets.values()) - set(self._shelves)}
        wait_for(self._client, made.values(), made, self._timeout)
        self._actors |= made
        self._shelves |= {address: Handle(address, str(future.key)) for address, future in made.items()}
        self._straight = all(self._answers(shelf, straight=True) for shelf in self._shelves.values())
        puts = [self._put(self._fit, number, address) for number, address in targets.items()]
        wait_for(self._client, puts, set(targets.values()), self._timeout)
        self.holder |= targets
        order = sorted(set(self.holder.values()))
        self._roots = order[:FAN_OUT_OF_CLIENT]
        for i, address in enumerate(order):
            first = FAN_OUT_OF_CLIENT + FAN_OUT * i
            below = [self._shelves[a] for a in order[first : first + FAN_OUT]]
            self._call([address], "link", below, [number for number, a in self.holder.items() if a == address])

    def ask(self, commands: list[Command]) -> Reply:
        """The joint answer of all partitions."""
        return joint(commands, self._call(self._roots, "ask", commands))

    def each(self, what: str, rows: Mapping[int, Any], common: Sequence[Any]) -> tuple[dict[int, Any], float]:
        """The answers of partitions, each by itself, and the longest time that a worker computed."""
        by_holder: dict[str, dict[int, Any]] = {}
        for number, values in rows.items():
            by_holder.setdefault(self.holder[number], {})[number] = values
        replies = self._calls("each", {address: (what, mine, common) for address, mine in by_holder.items()})
        answers = {number: answer for mine, _ in replies for number, answer in mine.items()}
        return answers, max(seconds for _, seconds in replies)

    def drop_lost(self) -> list[int]:
        """Forget the shelves that do not answer; the partitions that nobody holds now."""
        for address in self._lost():
            del self._shelves[address], self._actors[address]
            self.holder = {number: a for number, a in self.holder.items() if a != address}
        return [number for number in self._sizes if number not in self.holder]

    def _new_shelf(self, address: str) -> Future:
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
        return [address for address, shelf in self._shelves.items() if address not in known or not self._answers(shelf)]

    def _call(self, addresses: Sequence[str], what: str, *arguments: Any) -> list[Any]:
        """What shelves answer to the same question."""
        return self._calls(what, dict.fromkeys(addresses, arguments))

    def _calls(self, what: str, arguments: Mapping[str, tuple[Any, ...]]) -> list[Any]:
        """What shelves answer; an error that says so if one of them, or one below, or the scheduler is gone."""
        try:
            calls = [
                self._shelves[address].call(self._client, what, *given, straight=self._straight)
                for address, given in arguments.items()
            ]
            return [call.result(self._timeout) for call in calls]
        except TimeoutError:
            workers(self._client)
            raise late(self._timeout) from None
        except Exception as error:
            lost = self._lost()
            if lost:
                raise RowsLostError(f"The worker {lost[0]} was lost; its rows are fetched again.") from error
            if isinstance(error, OSError):
                raise RowsLostError(f"A connection in the cluster broke ({error}); the round is repeated.") from error
            raise

    def _answers(self, shelf: Handle, straight: bool | None = None) -> bool:
        way = self._straight if straight is None else straight
        try:
            shelf.call(self._client, "partitions", straight=way, separate_thread=False).result(PATIENCE)
        except Exception as error:
            logger.debug("A shelf does not answer: %s", error)
            return False
        return True

"""Results kept in Redis, for all processes that ask for the same things."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Hashable
from contextlib import suppress
from secrets import token_hex
from time import monotonic, sleep
from typing import Any

import msgspec

from miserly.runtime._cache import Cache, IsLate
from miserly.runtime._pool import Pool
from miserly.runtime._redis_link import RedisLink

log = logging.getLogger("miserly.runtime")
PAUSE = 0.005  # seconds between looks for a result that another process computes
FLIGHT = b":flight"  # after a name: the mark of the call that is being made
Step = Callable[[], Any] | float  # a question to Redis, or a pause in seconds


class RedisCache(Cache):
    """Keeps what an extractor returned in Redis, as JSON.

    A call in flight is joined, not repeated: in a process at once, in other processes (the workers of a server) by a
    mark in Redis, for at most `join` seconds. Redis is asked where the call would run. While it does not answer,
    everything is computed as if nothing were kept. An entry carries the extractor's fingerprint (its name,
    what it yields and needs, its `version`): an entry of another fingerprint, or one that cannot be read, counts as
    absent and is replaced. What JSON cannot say is not kept.

    Parameters
    ----------
    name : str
        Caches of one name share their results.
    key : callable
        Takes the row, returns what its result is kept under (JSON must be able to say it).
    ttl : float
        Seconds for which a result is kept, above 0.
    url : str, default "redis://127.0.0.1:6379/0"
        Where Redis listens.
    timeout : float, default 0.05
        Seconds that one question may take in all, above 0.
    join : float, default 1.0
        Seconds that a call waits for the same call of another process, which is then made here too; 0: none waits. It
        should be less than the extractor's `timeout`: another process's call that hangs would make this one late.

    Examples
    --------
    >>> import miserly as ms
    >>> cache = ms.RedisCache("sites", key=lambda doc: doc["site"], ttl=60.0)
    >>> cache.name, cache.ttl, cache.timeout
    ('sites', 60.0, 0.05)
    """

    def __init__(
        self,
        name: str,
        key: Callable[[Any], Hashable],
        ttl: float,
        url: str = "redis://127.0.0.1:6379/0",
        timeout: float = 0.05,
        join: float = 1.0,
    ) -> None:
        super().__init__(key, ttl)
        if not join >= 0:
            raise ValueError(f"join is a number of seconds, 0 or more, got {join!r}.")
        self._join = join
        self._marks: dict[Hashable, str] = {}  # of the calls that are made here
        self.name, self.timeout = name, timeout
        self._link = RedisLink(name, url, timeout, "is computed")
        self._redis = self._link.redis
        self._is_logged = False

    def fetch(self, key: Hashable, fingerprint: str) -> tuple[Any] | None:
        """Return what any process kept under a key, in a tuple; None if there is nothing that fits."""
        steps, answer = self._look_up(key, fingerprint), None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if isinstance(step, float):
                sleep(step)
            else:
                answer = self._ask(step)

    async def afetch(self, key: Hashable, fingerprint: str) -> tuple[Any] | None:
        """Do the same on an event loop."""
        steps, answer = self._look_up(key, fingerprint), None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if isinstance(step, float):
                await asyncio.sleep(step)
            else:
                answer = await self._aask(step)

    def _look_up(self, key: Hashable, fingerprint: str) -> Generator[Step, Any, tuple[Any] | None]:
        """The questions to Redis, and the pauses between them, that find a result or mark a call as in flight; None: it
        is to be made here. Another process that marked it is waited for."""
        name, mark = self._name_of(key), token_hex(8)
        found = self._read((yield lambda: self._redis.get(name)), fingerprint)
        milliseconds = max(1, round(1e3 * self._join))
        until = monotonic() + self._join
        while found is None and monotonic() < until:
            is_ours = yield lambda: self._redis.set(name + FLIGHT, mark, nx=True, px=milliseconds) or False
            if is_ours:
                self._marks[key] = mark
            if is_ours is not False:  # None: Redis does not answer
                return None
            yield PAUSE
            found = self._read((yield lambda: self._redis.get(name)), fingerprint)
        return found

    def _read(self, text: Any, fingerprint: str) -> tuple[Any] | None:
        if text is None:
            return None
        try:
            kept, result = msgspec.json.decode(text, type=tuple[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # not ours
            return None
        return (result,) if kept == fingerprint else None

    def share(self, key: Hashable, fingerprint: str, result: Any) -> None:
        """Keep a result for all."""
        if (text := self._written(fingerprint, result)) is not None:
            self._ask(lambda: self._redis.set(self._name_of(key), text, px=max(1, round(1e3 * self.ttl))))

    async def ashare(self, key: Hashable, fingerprint: str, result: Any) -> None:
        """Do the same on an event loop."""
        if (text := self._written(fingerprint, result)) is not None:
            await self._aask(lambda: self._redis.set(self._name_of(key), text, px=max(1, round(1e3 * self.ttl))))

    def _written(self, fingerprint: str, result: Any) -> bytes | None:
        """A result as it is kept; None if it cannot be."""
        try:
            return msgspec.json.encode((fingerprint, _plain(result)))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            if not self._is_logged:
                log.warning("Results of %r are not kept in Redis: %s.", self.name, error)
            self._is_logged = True
            return None

    def land(self, key: Hashable, result: Any, error: BaseException | None, is_late: IsLate | None = None) -> None:
        """Give the result to all who joined a call; Redis has it already."""
        with self._lock:
            waiters = self._landed(key, error, is_late)
        mark = self._marks.pop(key, None)
        if mark is not None:
            self._pool.submit(lambda: self._unmark(key, mark), lambda _: None)
        for waiter in waiters:
            waiter(result, error)

    def _unmark(self, key: Hashable, mark: str) -> None:
        """The call has ended: another process that waits for a result that will not come may make it."""
        with suppress(Exception):  # the mark ends by itself
            name = self._name_of(key) + FLIGHT
            if self._redis.get(name) == mark.encode():
                self._redis.delete(name)

    def _name_of(self, key: Hashable) -> bytes:
        return b"miserly:%b:%b" % (self.name.encode(), msgspec.json.encode(key))

    @property
    def _pool(self) -> Pool:
        return self._link.pool

    def _ask(self, command: Callable[[], Any]) -> Any:
        return self._link.ask(lambda _: command())

    async def _aask(self, command: Callable[[], Any]) -> Any:
        return await self._link.aask(lambda _: command())


def _plain(value: Any) -> Any:
    """A result as JSON has it; an error for what would come back as something else, such as bytes."""
    kind = type(value)
    if kind in (float, int, str, bool) or value is None:
        return value
    if kind in (list, tuple):
        return [_plain(part) for part in value]
    if kind is dict and all(type(key) is str for key in value):
        return {key: _plain(part) for key, part in value.items()}
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return _plain(value.tolist())
    raise TypeError(f"JSON cannot say {kind.__name__}")

"""Results kept in Redis, for all processes that ask for the same things."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from miserly.runtime._breaker import Breaker
from miserly.runtime._cache import Cache

log = logging.getLogger("miserly.runtime")


class RedisCache(Cache):
    """Keeps what an extractor returned in Redis, for `ttl` seconds, under `name` and `key(row)`, as JSON.

    In a process, a call in flight is joined, not repeated. Redis is asked where the call would run, for at most
    `timeout` seconds; while it cannot be reached, all goes on as if nothing were kept. Caches of one name share their
    results: change it when the function changes. What JSON cannot say is not kept.
    """

    def __init__(
        self,
        name: str,
        key: Callable[[Any], Hashable],
        ttl: float,
        url: str = "redis://127.0.0.1:6379/0",
        timeout: float = 0.05,
    ) -> None:
        super().__init__(key, ttl)
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            raise ImportError("A cache in Redis needs the client: pip install 'miserly[redis]'.") from None
        self.name = name
        limits = {"socket_timeout": timeout, "socket_connect_timeout": timeout, "retry": Retry(NoBackoff(), 0)}
        self._redis = redis.Redis.from_url(url, **limits)
        self._trouble = redis.RedisError
        self._breaker = Breaker(failures=1, recovery=5.0)
        self._is_told = False

    def fetch(self, key: Hashable) -> tuple[Any] | None:
        """What any process kept under a key."""
        text = self._ask(lambda: self._redis.get(self._name_of(key)))
        if text is None:
            return None
        try:
            return (msgspec.json.decode(text),)
        except msgspec.DecodeError:  # not ours
            return None

    def share(self, key: Hashable, result: Any) -> None:
        """Keep a result for all."""
        try:
            text = msgspec.json.encode(_plain(result))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            if not self._is_told:
                log.warning("Results of %r are not kept in Redis: %s.", self.name, error)
            self._is_told = True
            return
        self._ask(lambda: self._redis.set(self._name_of(key), text, px=max(1, round(1e3 * self.ttl))))

    def land(self, key: Hashable, result: Any, error: BaseException | None) -> None:
        """Tell all who joined a call; Redis has the result already."""
        with self._lock:
            waiters = self._flights.pop(key, [])
        for waiter in waiters:
            waiter(result, error)

    def _name_of(self, key: Hashable) -> bytes:
        return b"miserly:%b:%b" % (self.name.encode(), msgspec.json.encode(key))

    def _ask(self, command: Callable[[], Any]) -> Any:
        """Redis' answer; None while it cannot be reached, and for a while after."""
        if not self._breaker.allows():
            return None
        try:
            answer = command()
        except (self._trouble, OSError) as error:
            if not self._breaker.has_failed:
                log.warning("Redis is away, so %r is computed anew: %s.", self.name, error)
            self._breaker.count(False)
            return None
        self._breaker.count(True)
        return answer


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

"""Questions to Redis that take a limited time in all, and are not asked while it does not answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from miserly.runtime._breaker import Breaker
from miserly.runtime._fork import reset_after_fork
from miserly.runtime._pool import Pool

Found = tuple[Any, BaseException | None]
log = logging.getLogger("miserly.runtime")
CONNECTIONS = 8  # threads that talk to Redis; more requests than that wait, and give up in time


class RedisLink:
    """Asks Redis on threads of its own, so that a question takes at most `timeout` seconds.

    Parameters
    ----------
    name : str
        What the log calls it.
    url : str
        Where Redis listens.
    timeout : float
        Seconds that one question may take in all, above 0.
    instead : str
        What is done while Redis does not answer, for the log: "is computed".
    """

    def __init__(self, name: str, url: str, timeout: float, instead: str) -> None:
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            raise ImportError("What is kept in Redis needs its client: pip install 'miserly[redis]'.") from None
        self.name, self.timeout, self._instead = name, timeout, instead
        limits = {"socket_timeout": timeout, "socket_connect_timeout": timeout, "retry": Retry(NoBackoff(), 0)}
        self.redis = redis.Redis.from_url(url, **limits)
        self._errors = (redis.RedisError, OSError)
        self._refusals = redis.ResponseError
        self._breaker = Breaker(failures=1, recovery=5.0)
        self.pool = Pool(f"redis-{name}", CONNECTIONS)
        reset_after_fork(self)

    def after_fork(self) -> None:
        """Make new threads and connections."""
        self.pool = Pool(f"redis-{self.name}", CONNECTIONS)

    def ask(self, command: Callable[[Any], Any]) -> Any:
        """Return Redis' answer; None if it refuses, and while it does not answer in time."""
        if not self._breaker.allows():
            return None
        inbox: SimpleQueue[Found] = SimpleQueue()
        self.pool.submit(lambda: self._found(command), inbox.put)
        try:
            found = inbox.get(timeout=self.timeout)
        except Empty:
            found = self._too_late()
        return self._judged(*found)

    async def aask(self, command: Callable[[Any], Any]) -> Any:
        """Do the same on an event loop, which goes on meanwhile."""
        if not self._breaker.allows():
            return None
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Found] = loop.create_future()

        def arrive(found: Found) -> None:
            if not answered.done():
                answered.set_result(found)

        def done(found: Found) -> None:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(arrive, found)

        self.pool.submit(lambda: self._found(command), done)
        try:
            async with asyncio.timeout(self.timeout):
                found = await answered
        except TimeoutError:
            found = self._too_late()
        return self._judged(*found)

    def _found(self, command: Callable[[Any], Any]) -> Found:
        try:
            return command(self.redis), None
        except Exception as error:
            return None, error

    def _too_late(self) -> Found:
        """The client's own limit is for each read: an answer that drips would take for ever."""
        self.redis.connection_pool.disconnect()
        return None, TimeoutError(f"no answer within {self.timeout:g} s")

    def _judged(self, answer: Any, error: BaseException | None) -> Any:
        """The answer, after the breaker has counted how it went."""
        if error is None or isinstance(error, self._refusals):  # it refuses a value of another type: that is an answer
            self._breaker.count(True)
        elif isinstance(error, self._errors):
            if not self._breaker.is_open:
                log.warning("Redis does not answer, so %r %s: %s.", self.name, self._instead, error)
            self._breaker.count(False)
        else:
            raise error
        return answer

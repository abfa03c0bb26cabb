"""Where spending is counted: in this process, in a file that processes share, or in Redis. Every change is one step
that either happens whole or not at all."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from miserly.runtime._fork import reset_after_fork
from miserly.runtime._redis_link import RedisLink

T = TypeVar("T")
EXACT = 2**53  # Redis compares as floats: above this some quanta are left unspent
_left_to_parents: list[sqlite3.Connection] = []  # closing a parent's connection in a child would end its locks


class Want(NamedTuple):
    """What one call takes of one limit: its key, the slot in which it is counted, the first that counts with it, the
    limit and the amount in quanta."""

    key: str
    slot: int
    first: int
    most: int
    amount: int


class Change(NamedTuple):
    """A later change of what was counted in a slot: negative for a refund."""

    key: str
    slot: int
    amount: int


class StoreError(Exception):
    """The store does not answer: then nothing may be spent."""


class SpendStore(Protocol):
    """Counts by key and slot."""

    is_instant: bool

    def take(self, wants: Sequence[Want], n: int) -> tuple[int, list[int]]:
        """Count as many of n equal calls as fit all limits; return how many, and what is spent of each limit."""

    def change(self, changes: Iterable[Change]) -> None:
        """Correct what was counted."""


class MemoryStore:
    """Counts of this process alone."""

    is_instant = True

    def __init__(self) -> None:
        self._counts: dict[str, dict[int, int]] = {}
        self._lock = threading.Lock()
        reset_after_fork(self)

    def after_fork(self) -> None:
        """Another thread may have held the lock."""
        self._lock = threading.Lock()

    def take(self, wants: Sequence[Want], n: int) -> tuple[int, list[int]]:
        """See `SpendStore`."""
        with self._lock:
            spent = []
            for want in wants:
                kept = {s: v for s, v in self._counts.get(want.key, {}).items() if s >= want.first}
                self._counts[want.key] = kept
                spent.append(sum(kept.values()))
            n = how_many(wants, spent, n)
            for k, want in enumerate(wants):
                kept = self._counts[want.key]
                kept[want.slot] = kept.get(want.slot, 0) + n * want.amount
                spent[k] += n * want.amount
        return n, spent

    def change(self, changes: Iterable[Change]) -> None:
        """See `SpendStore`."""
        with self._lock:
            for key, slot, amount in changes:
                kept = self._counts.setdefault(key, {})
                kept[slot] = max(0, kept.get(slot, 0) + amount)


class FileStore:
    """Counts in a SQLite file, for the processes of one machine; they survive its end.

    Parameters
    ----------
    path : str or Path
        The file, made if it is not there, in a folder that can be written.
    timeout : float
        Seconds to wait for other processes.
    """

    is_instant = False

    def __init__(self, path: str | Path, timeout: float) -> None:
        self.path, self.timeout = Path(path), timeout
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()
        reset_after_fork(self)
        try:
            self._do(lambda connection: None)
        except StoreError as error:
            raise ValueError(
                f"Spending cannot be counted in '{path}': {error}. Name a file of its own in a folder that can be "
                "written, or a redis:// address."
            ) from None

    def after_fork(self) -> None:
        """Open the file again."""
        if self._connection is not None:
            _left_to_parents.append(self._connection)
        self._connection, self._lock = None, threading.Lock()

    def take(self, wants: Sequence[Want], n: int) -> tuple[int, list[int]]:
        """See `SpendStore`."""

        def work(connection: sqlite3.Connection) -> tuple[int, list[int]]:
            asked = "SELECT coalesce(sum(amount), 0) FROM spent WHERE key = ? AND slot >= ?"
            spent = [int(connection.execute(asked, (w.key, w.first)).fetchone()[0]) for w in wants]
            granted = how_many(wants, spent, n)
            if granted:
                _add(connection, [Change(w.key, w.slot, granted * w.amount) for w in wants])
                connection.executemany(
                    "DELETE FROM spent WHERE key = ? AND slot < ?", [(w.key, w.first) for w in wants]
                )
            return granted, [s + granted * w.amount for s, w in zip(spent, wants)]

        return self._do(work)

    def change(self, changes: Iterable[Change]) -> None:
        """See `SpendStore`."""
        listed = list(changes)
        self._do(lambda connection: _add(connection, listed))

    def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """One transaction, alone in the file."""
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._open()
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    result = work(self._connection)
                except BaseException:
                    self._connection.execute("ROLLBACK")
                    raise
                self._connection.execute("COMMIT")
                return result
            except (sqlite3.Error, OSError) as error:
                raise StoreError(f"{error}") from error

    def _open(self) -> sqlite3.Connection:
        options: dict[str, Any] = {"timeout": self.timeout, "isolation_level": None, "check_same_thread": False}
        connection: sqlite3.Connection = sqlite3.connect(self.path, **options)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")  # survives a crash of the process without a wait for the disk
        connection.execute(
            "CREATE TABLE IF NOT EXISTS spent (key TEXT NOT NULL, slot INTEGER NOT NULL, amount INTEGER NOT NULL, "
            "PRIMARY KEY (key, slot)) WITHOUT ROWID"
        )
        connection.execute("SELECT key, slot, amount FROM spent LIMIT 1")  # a table of that name may be another's
        return connection


def _add(connection: sqlite3.Connection, changes: Sequence[Change]) -> None:
    for key, slot, amount in changes:
        if amount > 0:
            connection.execute(
                "INSERT INTO spent VALUES (?, ?, ?) "
                "ON CONFLICT (key, slot) DO UPDATE SET amount = amount + excluded.amount",
                (key, slot, amount),
            )
        else:  # of a slot that counts no more nothing need be given back
            connection.execute(
                "UPDATE spent SET amount = max(0, amount + ?) WHERE key = ? AND slot = ?", (amount, key, slot)
            )


TAKE = """
local n, spent = tonumber(ARGV[1]), {}
for k, key in ipairs(KEYS) do
  local slot, first, most, amount = unpack(ARGV, 4 * k - 2, 4 * k + 1)
  local sum, flat = 0, redis.call('HGETALL', key)
  for i = 1, #flat, 2 do
    if tonumber(flat[i]) < tonumber(first) then
      redis.call('HDEL', key, flat[i])
    else
      sum = sum + tonumber(flat[i + 1])
    end
  end
  local left = tonumber(most) - sum
  if left <= 0 then n = 0 elseif tonumber(amount) > 0 then n = math.min(n, math.floor(left / tonumber(amount))) end
  spent[k] = string.format('%.0f', sum)
end
if n > 0 then
  for k, key in ipairs(KEYS) do
    for i = 1, n do redis.call('HINCRBY', key, ARGV[4 * k - 2], ARGV[4 * k + 1]) end
    redis.call('EXPIRE', key, 3000000)
  end
end
return {n, spent}
"""
CHANGE = """
for k, key in ipairs(KEYS) do
  if redis.call('HINCRBY', key, ARGV[2 * k - 1], ARGV[2 * k]) < 0 then redis.call('HSET', key, ARGV[2 * k - 1], 0) end
end
"""


class RedisStore:
    """Counts in Redis, for all machines that ask it.

    Parameters
    ----------
    url : str
        Where Redis listens.
    name : str
        Caps of one name count together.
    timeout : float
        Seconds that one question may take.
    """

    is_instant = False

    def __init__(self, url: str, name: str, timeout: float) -> None:
        self._link = RedisLink(f"spending-{name}", url, timeout, "buys nothing")
        self._prefix = f"miserly:spending:{name}:"

    def take(self, wants: Sequence[Want], n: int) -> tuple[int, list[int]]:
        """See `SpendStore`."""
        flat: list[int] = [n]
        for want in wants:
            margin = 8 if want.most > EXACT else 0
            flat += [want.slot, want.first, want.most - margin * (want.most // EXACT), want.amount]
        granted, spent = self._ask(TAKE, [want.key for want in wants], flat)
        return int(granted), [int(s) + int(granted) * w.amount for s, w in zip(spent, wants)]

    def change(self, changes: Iterable[Change]) -> None:
        """See `SpendStore`."""
        listed = list(changes)
        self._ask(CHANGE, [c.key for c in listed], [part for c in listed for part in c[1:]])

    def _ask(self, script: str, keys: Sequence[str], arguments: Sequence[int]) -> Any:
        named = [self._prefix + key for key in keys]
        answer = self._link.ask(lambda redis: (redis.eval(script, len(named), *named, *arguments),))
        if answer is None:
            raise StoreError("Redis does not answer")
        return answer[0]


def how_many(wants: Sequence[Want], spent: Sequence[int], n: int) -> int:
    """How many of n equal calls fit all limits. One that costs nothing yet fits while anything is left."""
    for want, already in zip(wants, spent):
        left = want.most - already
        n = 0 if left <= 0 else min(n, left // want.amount) if want.amount else n
    return max(0, n)

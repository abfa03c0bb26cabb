"""Caps on what paid services may cost over time: reserved before a call, corrected after it.

A reservation is one step in the store, so that calls which run at once never exceed the cap together.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from miserly.runtime._fork import reset_after_fork
from miserly.runtime._spend_limits import QUANTA, SpendLimit, as_quanta
from miserly.runtime._spend_stores import Change, FileStore, MemoryStore, RedisStore, SpendStore, StoreError, Want

log = logging.getLogger("miserly.runtime")
FRESH = 1.0  # seconds for which what a store said last is believed by requests that begin
UNKNOWN = "unknown"


class SpendCapReached(Exception):  # noqa: N818 - nothing is wrong with the program
    """A call was not made because a spending cap left no money for it. `limit` names the limit."""

    def __init__(self, words: str, limit: str) -> None:
        super().__init__(words)
        self.limit = limit

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (str(self), self.limit)


class Spent(NamedTuple):
    """How one limit stands.

    Parameters
    ----------
    limit : str
        As it was written, "50USD/day".
    amount : float
        The most.
    spent : float
        What counts now, calls that run included.
    left : float
        What may still be spent.
    until : float
        When what was spent last counts no more, in seconds since 1970.

    Examples
    --------
    >>> from miserly.runtime import SpendCap
    >>> SpendCap("50USD/day").status()[0].left
    50.0
    """

    limit: str
    amount: float
    spent: float
    left: float
    until: float


class Reservation(NamedTuple):
    """What was reserved: for how many calls, at which price each, and in which slots."""

    n: int
    price: float
    slots: tuple[tuple[str, int], ...]


class SpendCap:
    """The most that paid services may cost in a day, a month, or any minute.

    The price of a call is reserved before it is made, and corrected by what it really cost. A call for which no money
    is left is not made: the prediction goes on with what is free.

    Parameters
    ----------
    limits : str or iterable of str
        One or several limits, such as "50USD/day" and "2USD/minute". Periods are second, minute, hour (in no hour more
        than that), day and month (of the calendar, in UTC). The unit is that of the prices, or left out; "100calls/min"
        counts calls. All limits hold together.
    store : str, Path or None, default=None
        Where spending is counted: a file, which the processes of one machine share, or a redis:// address; both survive
        a restart. None: in this process alone.
    name : str, default="spending"
        Caps of one name in one Redis count together.
    timeout : float, default=0.25
        Seconds to wait for the store, above 0. While it does not answer nothing is bought.
    now : callable, default=time.time
        Gives the time in seconds since 1970; tests pass a virtual one.

    Attributes
    ----------
    limits : tuple
        The limits, read.
    refused : Counter
        Calls that were not made, by extractor.
    overrun : float
        What calls cost beyond what was reserved for them.

    Examples
    --------
    >>> from miserly.runtime import SpendCap
    >>> cap = SpendCap(["1000USD/month", "50USD/day"])
    >>> cap.left()
    (50.0, '50USD/day')
    """

    def __init__(
        self,
        limits: str | Iterable[str],
        store: str | Path | None = None,
        name: str = "spending",
        timeout: float = 0.25,
        now: Callable[[], float] = time.time,
    ) -> None:
        texts = [limits] if isinstance(limits, str) else list(limits)
        if not texts:
            raise ValueError("A spending cap has at least one limit, such as 50USD/day.")
        if not timeout > 0:
            raise ValueError(f"The timeout of a spending cap is a number of seconds above 0, got {timeout!r}.")
        self.limits = tuple(SpendLimit.parse(text) for text in texts)
        twice = [key for key, n in Counter(limit.key for limit in self.limits).items() if n > 1]
        if twice:
            raise ValueError(f"Two spending limits have the period {twice[0].partition('/')[2]!r}: keep the lower one.")
        self.refused: Counter[str] = Counter()
        self.overrun = 0.0
        self.now = now
        self._store = _store_of(store, name, timeout)
        self._known: tuple[float, list[int] | None] | None = None  # when the store said what is spent; None: it failed
        self._owed: Counter[tuple[str, int]] = Counter()  # changes that the store did not take yet
        self._lock = threading.Lock()
        reset_after_fork(self)

    def after_fork(self) -> None:
        """Another thread may have held the lock."""
        self._lock = threading.Lock()

    @property
    def is_instant(self) -> bool:
        """Whether asking the store never waits."""
        return self._store.is_instant

    def check_unit(self, unit: str, currencies: Collection[str] = ()) -> str:
        """The unit of the limits; an error if it is neither that of the prices nor one of their currencies."""
        money = sorted({limit.unit or unit for limit in self.limits if not limit.counts_calls})
        if len(money) > 1:
            raise ValueError(f"All limits of a spending cap are in one currency, got {', '.join(money)}.")
        for limit in self.limits:
            if limit.unit and not limit.counts_calls and limit.unit not in (unit, *currencies):
                raise ValueError(
                    f"The spending limit {limit.name} is in {limit.unit!r}, and the plan's prices are in {unit!r}. "
                    f"Write the limit in {unit!r}, or leave its unit out."
                )
        return money[0] if money else unit

    def left(self) -> tuple[float, str]:
        """What may still be spent now, and the limit that says so. What another process spent in the last second may
        be missing: only `take` is exact."""
        if self._store.is_instant:
            self._look()
        known = self._known
        if known is None or not 0 <= self.now() - known[0] <= FRESH:
            return math.inf, ""
        if known[1] is None:
            return 0.0, UNKNOWN
        return min((self._left_of(limit, spent), limit.name) for limit, spent in zip(self.limits, known[1]))

    def status(self) -> list[Spent]:
        """How each limit stands; empty while the store does not answer."""
        spent = self._look()
        if spent is None:
            return []
        now = self.now()
        return [
            Spent(limit.name, limit.amount, s / QUANTA, max(0, limit.quanta - s) / QUANTA, limit.ends(now))
            for limit, s in zip(self.limits, spent)
        ]

    # ---- for those who call -----------------------------------------------------------------------------------

    def take(self, price: float, n: int = 1) -> Reservation:
        """Reserve the price of up to n calls; how many it is for is in the result."""
        now = self.now()
        wants = self._wants(now, price)
        try:
            self._pay_owed()
            granted, spent = self._store.take(wants, n)
        except StoreError as error:
            if self._known is None or self._known[1] is not None:
                log.error("Spending cannot be counted, so nothing is bought: %s.", error)
            self._known = (now, None)
            return Reservation(0, price, ())
        self._known = (now, spent)
        return Reservation(granted, price, tuple((want.key, want.slot) for want in wants))

    def correct(self, reservation: Reservation, paid: float) -> None:
        """Say what the calls of a reservation really cost together."""
        difference = as_quanta(paid) - reservation.n * as_quanta(reservation.price)
        if difference > 0:
            with self._lock:
                self.overrun += difference / QUANTA
        changes = {slot: difference for limit, slot in zip(self.limits, reservation.slots) if not limit.counts_calls}
        if not difference or not changes:
            return
        with self._lock:
            self._owed.update(changes)
            if self._known is not None and self._known[1] is not None:  # requests that begin now know it too
                spent = [s + changes.get(slot, 0) for s, slot in zip(self._known[1], reservation.slots)]
                self._known = (self._known[0], spent)
        try:
            self._pay_owed()
        except StoreError as error:
            log.error("Spending is corrected later: %s.", error)

    def refusal(self, name: str, n: int = 1) -> SpendCapReached:
        """The error for calls of an extractor that were not made."""
        with self._lock:
            self.refused[name] += n
        left, limit = self.left()
        if limit in ("", UNKNOWN):
            return SpendCapReached("spending cannot be counted now, so nothing is bought", UNKNOWN)
        ends = next(found.ends(self.now()) for found in self.limits if found.name == limit)
        until = datetime.fromtimestamp(math.ceil(ends), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return SpendCapReached(f"{limit} leaves {max(0.0, left):g} until {until}", limit)

    # ---- inside -----------------------------------------------------------------------------------------------

    def _look(self) -> list[int] | None:
        now = self.now()
        try:
            self._pay_owed()
            spent = self._store.take(self._wants(now, 0.0), 0)[1]
        except StoreError:
            self._known = (now, None)
            return None
        self._known = (now, spent)
        return spent

    def _wants(self, now: float, price: float) -> list[Want]:
        found = []
        for limit in self.limits:
            slot = limit.slot(now)
            amount = QUANTA if limit.counts_calls else as_quanta(price)
            found.append(Want(limit.key, slot, limit.first(slot), limit.quanta, amount))
        return found

    def _pay_owed(self) -> None:
        if not self._owed:
            return
        with self._lock:
            owed, self._owed = self._owed, Counter()
        changes = [Change(*slot, amount) for slot, amount in owed.items() if amount]
        try:
            self._store.change(changes)
        except StoreError:
            with self._lock:
                self._owed.update(owed)
            raise

    @staticmethod
    def _left_of(limit: SpendLimit, spent: int) -> float:
        left = max(0, limit.quanta - spent) / QUANTA
        if limit.counts_calls:
            return math.inf if left >= 1 else 0.0
        return left


def _store_of(store: str | Path | None, name: str, timeout: float) -> SpendStore:
    if store is None:
        return MemoryStore()
    if isinstance(store, str) and store.partition("://")[0] in ("redis", "rediss", "unix"):
        return RedisStore(store, name, timeout)
    return FileStore(store, timeout)

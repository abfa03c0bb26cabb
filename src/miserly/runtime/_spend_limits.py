"""Limits of spending over time, such as 50USD/day, and the windows in which they count. Amounts are whole quanta, so
that sums are exact in every store."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime

QUANTA = 10**9  # of a unit: prices of a token are far above a billionth
MOST = 9e9  # units: beyond it quanta do not fit into the 64 bits of a store
SLOTS = 60  # parts of a sliding window
CALLS = "calls"
SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86_400.0, "month": 0.0}
SHORT = {"s": "second", "min": "minute", "h": "hour", "d": "day"}
_TEXT = re.compile(r"\s*(?P<amount>\d[\d_]*(?:\.\d*)?(?:e[+-]?\d+)?)\s*(?P<unit>[^/]*?)\s*/\s*(?P<period>[a-z]+)\s*")


@dataclass(frozen=True)
class SpendLimit:
    """The most that may be spent in a period.

    Days and months are those of the calendar, in UTC. Seconds, minutes and hours slide: in no 60 seconds is more spent
    than a limit for a minute says.

    Parameters
    ----------
    amount : float
        The most, above 0.
    unit : str
        The unit of the prices; empty: that of the plan. "calls" counts calls instead of money.
    period : {"second", "minute", "hour", "day", "month"}
        How long it holds.
    """

    amount: float
    unit: str
    period: str

    @classmethod
    def parse(cls, text: str) -> SpendLimit:
        """Read "50USD/day", "2.5/minute" or "100calls/min"."""
        found = _TEXT.fullmatch(text)
        period = "" if found is None else SHORT.get(found["period"], found["period"])
        if found is None or period not in SECONDS:
            raise ValueError(
                f"A spending limit is an amount, a unit and a period, as in 50USD/day; got {text!r}. "
                f"Periods are {', '.join(SECONDS)}."
            )
        amount = float(found["amount"])
        if not 0 < amount <= MOST:
            raise ValueError(f"A spending limit lies above 0 and is at most {MOST:g}, got {text!r}.")
        return cls(amount, found["unit"], period)

    @property
    def name(self) -> str:
        """The limit as it is written."""
        return f"{self.amount:.15g}{self.unit}/{self.period}"

    @property
    def key(self) -> str:
        """What its counts are kept under: an amount that changes goes on with what was spent."""
        return f"{CALLS if self.counts_calls else 'spent'}/{self.period}"

    @property
    def counts_calls(self) -> bool:
        """Whether it counts calls instead of money."""
        return self.unit == CALLS

    @property
    def quanta(self) -> int:
        """The most, in quanta, rounded down."""
        return math.floor(self.amount * QUANTA + 1e-3)

    def slot(self, time: float) -> int:
        """The number of the slot in which a time lies: a day, a month, or a part of a sliding window."""
        if self.period == "month":
            then = datetime.fromtimestamp(time, UTC)
            return 12 * then.year + then.month - 1
        return math.floor(time / (SECONDS["day"] if self.period == "day" else SECONDS[self.period] / SLOTS))

    def first(self, slot: int) -> int:
        """The first slot that still counts in this one. Later ones count too: a clock may have been set back."""
        return slot if self.period in ("day", "month") else slot - SLOTS

    def ends(self, time: float) -> float:
        """When what was spent last counts no more: the end of the day or the month, or a period from now."""
        slot = self.slot(time)
        if self.period == "month":
            year, month = divmod(slot + 1, 12)
            return datetime(year, month + 1, 1, tzinfo=UTC).timestamp()
        if self.period == "day":
            return (slot + 1) * SECONDS["day"]
        return time + SECONDS[self.period]


def as_quanta(amount: float) -> int:
    """An amount in quanta, rounded up: what is counted is never less than what is spent."""
    return math.ceil(amount * QUANTA - 1e-3)

"""Rows that come with all their features: for a server without extractors. They are checked before they are read, so
that a bad row is the client's mistake and not a failure of the server's."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

from miserly.plan import Plan
from miserly.runtime import BadRow, did_you_mean
from miserly.serve._messages import LONGEST_ECHO, RefusedError, shorten

log = logging.getLogger("miserly.serve")
LARGEST = int(sys.float_info.max)
SLOW, REMEMBERED = 0.001, 1000  # seconds of a reading that goes to a thread, for this many rows
MOST_NAMES = 10  # that are missing and named
READING = "See how this server reads rows."
UNREAD: Any = object()


class RowCheck:
    """What plans may look at: features by name, each with a number, null for a missing value, or a category.

    Parameters
    ----------
    plans : sequence of Plan
        Know their features, whether they can miss values, and their schema.
    """

    def __init__(self, plans: Sequence[Plan]) -> None:
        plan = plans[0]
        self._names = plan.costs.features
        self._known = frozenset(self._names)
        self._used = frozenset(plan.costs.features[f] for p in plans for f in p.used_features)
        self._can_miss = all(p.can_miss for p in plans)
        self._schema = plan.schema
        schema = plan.schema
        self._aside = frozenset(() if schema is None else (schema.id, schema.label, schema.qid, *schema.drop))

    def row(self, row: Any, where: str = "row") -> Mapping[str, Any]:
        """A whole row: every feature that the plan may look at is there."""
        if not isinstance(row, dict):
            raise RefusedError(
                f"Expected an object of features, got {type(row).__name__}.",
                where,
                'This server reads rows as features: {"age": 0.5, "pulse": null}.',
            )
        found = self.features(row, where)
        if not self._used <= found.keys():
            raise self._lacking([name for name in self._names if name in self._used - found.keys()], where)
        return found

    def _lacking(self, lost: Sequence[str], where: str) -> RefusedError:
        shown = ", ".join(repr(shorten(name)) for name in lost[:MOST_NAMES])
        more = f" and {len(lost) - MOST_NAMES} more" if len(lost) > MOST_NAMES else ""
        what = f"The row lacks {len(lost)} features that the plan may look at: {shown}{more}."
        kind = "a number" if self._schema is None or self._schema.is_plain else "a number or a word"
        null = ", or null if it was bought and has no result" if self._can_miss else ""
        remedy = f"Send {kind} for each{null}. POST /v1/next says what to buy while not all is known."
        return RefusedError(what, where, remedy)

    def unknown_words(self, *rows: Any) -> tuple[str, ...]:
        """The columns of one row, in one part or several, whose words were not seen in training."""
        schema = self._schema
        if schema is None or schema.is_plain:
            return ()
        return tuple(name for row in rows if isinstance(row, Mapping) for name in schema.unknown_words(row))

    def features(self, features: Mapping[str, Any], where: str = "features") -> Mapping[str, Any]:
        """Some features: each is one that the plan knows, and has a value that it can read. Returned without columns
        that are known and no features: the identifier, the label."""
        if not self._aside.isdisjoint(features):
            features = {name: value for name, value in features.items() if name not in self._aside}
        if not features.keys() <= self._known:
            name = next(name for name in features if name not in self._known)
            hint = did_you_mean(name, self._known) if len(name) <= LONGEST_ECHO else ""
            short = shorten(name)
            remedy = f"GET /v1/plan lists its features.{hint}"
            raise RefusedError(f"The plan knows no feature {short!r}.", f"{where}.{short}", remedy)
        for name, value in features.items():
            if type(value) is not float:
                self._odd(name, value, where)
        return features

    def _odd(self, name: str, value: Any, where: str) -> None:
        """A value that is no fraction."""
        if type(value) is int:
            if not -LARGEST <= value <= LARGEST:
                raise RefusedError("The number is too large.", f"{where}.{name}", "Send one that a double can hold.")
            return
        if value is None:
            if not self._can_miss:
                raise RefusedError(f"{name!r} is null.", f"{where}.{name}", "This plan is linear: it needs a number.")
        elif self._schema is None or not isinstance(value, str | bool):
            kind = "number" if self._schema is None else self._schema[name].kind
            raise RefusedError(
                f"Expected a {kind} or null, got {type(value).__name__}.", f"{where}.{name}", f"Send a {kind} or null."
            )
        else:
            try:
                self._schema.number(name, value)
            except ValueError as error:
                text, _, remedy = str(error).partition(". ")
                raise RefusedError(f"{text}.", f"{where}.{name}", remedy) from None


class RowReader:
    """Turns the JSON of a row into what the extractors take, by a function of the operator's.

    A function that was slow lately runs on a thread, so that it does not hold up other requests.

    Parameters
    ----------
    function : callable
        Raises `BadRow` with words for the client, or another error, whose words go to the log only.
    now : callable, default time.perf_counter
        Gives the time in seconds.
    """

    def __init__(self, function: Callable[[Any], Any], now: Callable[[], float] = perf_counter) -> None:
        self._function, self._now = function, now
        self._n_on_threads = 0

    async def read(self, row: Any, where: str, until: float | None) -> Any:
        """Return the row, or refuse it; `UNREAD` if that takes until the deadline."""
        try:
            if self._n_on_threads:
                self._n_on_threads -= 1
                async with asyncio.timeout(None if until is None else max(0.0, until - self._now())):
                    return await asyncio.to_thread(self._function, row)
            began = self._now()
            try:
                return self._function(row)
            finally:
                if self._now() - began > SLOW:
                    self._n_on_threads = REMEMBERED
        except TimeoutError:
            return UNREAD
        except BadRow as error:
            raise RefusedError(f"This is no row: {shorten(str(error))}.", where, READING) from None
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            log.info("A row was not read: %s: %s", type(error).__name__, error)
            raise RefusedError("This is no row that the server can read.", where, READING) from None

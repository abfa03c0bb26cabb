"""One call of an extractor, timed: what came of it for each row."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from miserly.runtime._extractor import Extractor
from miserly.runtime._spending import SpendCapReached
from miserly.runtime._till import Arguments as Arguments
from miserly.runtime._till import CallOutcome as CallOutcome
from miserly.runtime._till import Till

Now = Callable[[], float]


class BadRow(Exception):  # noqa: N818 - it describes the row, not an error of the program
    """Raised by an extractor for a row that it cannot work with.

    The row is answered without the extractor's features (`stopped="failed:…"`), and nothing is retried. It is no
    failure of the extractor: other rows go on calling it.

    Examples
    --------
    >>> from miserly.runtime import BadRow, extractor
    >>> @extractor("parse", yields="n_words")
    ... def parse(mail):
    ...     if not isinstance(mail, str):
    ...         raise BadRow("a mail is a text")
    ...     return len(mail.split())
    """


BLAMELESS = (BadRow, SpendCapReached)  # errors that say nothing about the extractor: nothing is retried after them


def perform(e: Extractor, arguments: Arguments, now: Now = perf_counter, till: Till | None = None) -> list[CallOutcome]:
    """Call an extractor for some rows on this thread; rows of one call share its time. It is paid at the till."""
    began = now()
    if (found := fetched(e, arguments)) is not None:
        return [CallOutcome(found[0], None, now() - began, is_cached=True, paid=0.0)]
    if till is not None and till.serves(e):
        return till.perform(e, arguments, lambda some: _perform(e, some, now))
    return _perform(e, arguments, now)


def _perform(e: Extractor, arguments: Arguments, now: Now) -> list[CallOutcome]:
    began = now()
    try:
        results = e.one_each(e.function(*_together(e, arguments)), len(arguments))
        _share(e, arguments, results)
    except (Exception, SystemExit) as error:
        return failed(error, arguments, now() - began)
    return _split(results, now() - began)


def perform_one(
    e: Extractor, arguments: tuple[Any, ...], now: Now = perf_counter, till: Till | None = None
) -> CallOutcome:
    """The same for one row."""
    if e.many or (till is not None and till.serves(e)):
        return perform(e, [arguments], now, till)[0]
    began = now()
    try:
        result = e.function(*arguments)
    except (Exception, SystemExit) as error:
        return CallOutcome(None, error, now() - began)
    return CallOutcome(result, None, now() - began)


async def perform_async(
    e: Extractor, arguments: Arguments, now: Now = perf_counter, till: Till | None = None
) -> list[CallOutcome]:
    """Await an extractor for some rows."""
    began = now()
    if e.is_shared and (found := await _afetched(e, arguments)) is not None:
        return [CallOutcome(found[0], None, now() - began, is_cached=True, paid=0.0)]
    if till is not None and till.serves(e):
        return await till.perform_async(e, arguments, lambda some: _perform_async(e, some, now))
    return await _perform_async(e, arguments, now)


async def _perform_async(e: Extractor, arguments: Arguments, now: Now) -> list[CallOutcome]:
    began = now()
    try:
        results = e.one_each(await e.function(*_together(e, arguments)), len(arguments))
        if e.cache is not None and e.is_shared:
            await e.cache.ashare(e.cache.key(arguments[0][0]), e.fingerprint, results[0])
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # the last two would end the event loop
        return failed(error, arguments, now() - began)
    return _split(results, now() - began)


def failed(error: BaseException, arguments: Arguments, seconds: float = 0.0) -> list[CallOutcome]:
    """The outcomes of a call that gave nothing."""
    return [CallOutcome(None, error, seconds / len(arguments))] * len(arguments)


def _together(e: Extractor, arguments: Arguments) -> tuple[Any, ...]:
    """One call's arguments: those of the row, or a list of each over the rows."""
    return tuple(list(column) for column in zip(*arguments)) if e.many else arguments[0]


def fetched(e: Extractor, arguments: Arguments) -> tuple[Any] | None:
    """What another process has for this row; rows of an extractor with a cache come one at a time.

    A value of another shape than the extractor yields counts as absent: it is computed and replaced.
    """
    if e.cache is None or not e.is_shared:
        return None
    try:
        return _readable(e, e.cache.fetch(e.cache.key(arguments[0][0]), e.fingerprint))
    except Exception:
        return None


async def _afetched(e: Extractor, arguments: Arguments) -> tuple[Any] | None:
    """The same on an event loop."""
    assert e.cache is not None
    try:
        return _readable(e, await e.cache.afetch(e.cache.key(arguments[0][0]), e.fingerprint))
    except Exception:
        return None


def _readable(e: Extractor, found: tuple[Any] | None) -> tuple[Any] | None:
    """What was found, if the extractor could have given it; an error otherwise."""
    if found is not None:
        e.read(found[0], range(len(e.yields)))
    return found


def _share(e: Extractor, arguments: Arguments, results: list[Any]) -> None:
    if e.cache is not None and e.is_shared:
        e.cache.share(e.cache.key(arguments[0][0]), e.fingerprint, results[0])


def _split(results: list[Any], seconds: float) -> list[CallOutcome]:
    return [CallOutcome(result, None, seconds / len(results)) for result in results]

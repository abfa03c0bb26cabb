"""One call of an extractor, timed: what came of it for each row."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Sequence
from time import perf_counter
from typing import Any, NamedTuple

from miserly.runtime._extractor import Extractor

Arguments = Sequence[tuple[Any, ...]]


class Outcome(NamedTuple):
    """How a call ended for one row: its result or the error, and the seconds that it took."""

    result: Any
    error: BaseException | None
    seconds: float = 0.0
    is_cached: bool = False


def perform(e: Extractor, arguments: Arguments) -> list[Outcome]:
    """Call an extractor for some rows on this thread; rows of one call share its time."""
    began = perf_counter()
    try:
        if (found := _fetched(e, arguments)) is not None:
            return [Outcome(found[0], None, perf_counter() - began, is_cached=True)]
        results = e.one_each(e.function(*_together(e, arguments)), len(arguments))
        _share(e, arguments, results)
    except Exception as error:
        return failed(error, arguments, perf_counter() - began)
    return _shared(results, perf_counter() - began)


def perform_one(e: Extractor, arguments: tuple[Any, ...]) -> Outcome:
    """The same for one row."""
    if e.many:
        return perform(e, [arguments])[0]
    began = perf_counter()
    try:
        result = e.function(*arguments)
    except Exception as error:
        return Outcome(None, error, perf_counter() - began)
    return Outcome(result, None, perf_counter() - began)


async def perform_async(e: Extractor, arguments: Arguments) -> list[Outcome]:
    """Await an extractor for some rows."""
    began = perf_counter()
    try:
        if e.is_shared and (found := await to_thread(_fetched, e, arguments)) is not None:
            return [Outcome(found[0], None, perf_counter() - began, is_cached=True)]
        results = e.one_each(await e.function(*_together(e, arguments)), len(arguments))
        if e.is_shared:
            await to_thread(_share, e, arguments, results)
    except Exception as error:
        return failed(error, arguments, perf_counter() - began)
    return _shared(results, perf_counter() - began)


def failed(error: BaseException, arguments: Arguments, seconds: float = 0.0) -> list[Outcome]:
    """The outcomes of a call that gave nothing."""
    return [Outcome(None, error, seconds / len(arguments))] * len(arguments)


def _together(e: Extractor, arguments: Arguments) -> tuple[Any, ...]:
    """One call's arguments: those of the row, or a list of each over the rows."""
    return tuple(list(column) for column in zip(*arguments)) if e.many else arguments[0]


def _fetched(e: Extractor, arguments: Arguments) -> tuple[Any] | None:
    """What another process has for this row; rows of an extractor with a cache come one at a time."""
    return e.cache.fetch(e.cache.key(arguments[0][0])) if e.cache is not None and e.is_shared else None


def _share(e: Extractor, arguments: Arguments, results: list[Any]) -> None:
    if e.cache is not None and e.is_shared:
        e.cache.share(e.cache.key(arguments[0][0]), results[0])


def _shared(results: list[Any], seconds: float) -> list[Outcome]:
    return [Outcome(result, None, seconds / len(results)) for result in results]

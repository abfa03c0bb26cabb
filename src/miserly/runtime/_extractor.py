"""Extractors: plain or async functions that perform an acquisition for a row and yield the values of features."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from miserly.runtime._cache import Cache


class Pair(NamedTuple):
    """What extractors get as the row when documents are ranked.

    Parameters
    ----------
    query : object
        The query, as it was sent; the same for all documents of a list.
    document : object
        One document of the list, as it was sent.

    Examples
    --------
    >>> from miserly.runtime import Pair, extractor
    >>> @extractor("match", yields="n_shared")
    ... def match(pair):
    ...     return len(set(pair.query.split()) & set(pair.document.split()))
    >>> match(Pair("red shoes", "blue shoes"))
    1
    """

    query: Any
    document: Any


@dataclass(frozen=True, eq=False)
class Extractor:
    """A function of a row and of the results of the extractors that it `needs`. Made by the decorator `extractor`.

    Parameters
    ----------
    function : callable
        What is called.
    acquisition : str or None
        What it performs; None if it is free.
    yields : tuple of str
        The features that it gives.
    needs : tuple of str, default=()
        Extractors whose results it takes.
    many : bool, default=False
        Whether it takes lists and returns a list.
    workers : int, default=8
        Threads or processes of its own, 1 or more.
    process : bool, default=False
        Whether it runs in processes.
    timeout : float, default=None
        Seconds that a call may take.
    retries : int, default=0
        How often a failed call is repeated, 0 or more.
    cache : Cache, default=None
        Keeps results across requests.
    inline : bool, default=False
        Whether it is called on the caller's thread, also under a deadline.
    version : str, default=""
        A part of the cache's keys.
    usage : callable, default=None
        Takes what a call returned and gives what it really cost.
    at_most : float, default=None
        The most that a call may cost.
    hedge : float, default=None
        The quantile of the times of its calls after which a second call is made.

    Examples
    --------
    >>> import miserly as ms
    >>> @ms.extractor("split", yields=["n_words"])
    ... def split(mail):
    ...     return len(mail.split())
    >>> split.name, split.yields
    ('split', ('n_words',))
    """

    function: Callable[..., Any]
    acquisition: str | None
    yields: tuple[str, ...]
    needs: tuple[str, ...] = ()
    many: bool = False
    workers: int = 8
    process: bool = False
    timeout: float | None = None
    retries: int = 0
    cache: Cache | None = None
    inline: bool = False
    version: str = ""
    usage: Callable[[Any], float] | None = None
    at_most: float | None = None
    hedge: float | None = None

    @cached_property
    def name(self) -> str:
        """What it is called by others that need it: its acquisition, or the function's own name."""
        return self.acquisition or str(self.function.__name__)

    @cached_property
    def is_async(self) -> bool:
        """Whether it must be awaited."""
        return inspect.iscoroutinefunction(self.function)

    @cached_property
    def is_plain(self) -> bool:
        """Whether nothing keeps it from being called at once on the caller's own thread."""
        return not (self.is_async or self.process or self.hedge) and self.cache is None and self.timeout is None

    @cached_property
    def is_shared(self) -> bool:
        """Whether other processes have its results too."""
        return self.cache is not None and type(self.cache).fetch is not Cache.fetch

    @cached_property
    def fingerprint(self) -> str:
        """Identifies what its results mean: change `version` when the function changes."""
        said = json.dumps([self.name, self.yields, self.needs, self.version])
        return hashlib.blake2b(said.encode(), digest_size=8).hexdigest()

    def __call__(self, *args: Any) -> Any:
        """The function itself, as it was before it was decorated."""
        return self.function(*args)

    def one_each(self, results: Any, n_rows: int) -> list[Any]:
        """The results of a call for several rows, one each; an error if the function broke its word."""
        if not self.many:
            return [results]
        given = list(results)
        if len(given) != n_rows:
            raise ValueError(f"Extractor {self.name!r} got {n_rows} rows and returned {len(given)} results.")
        return given

    def read(self, result: Any, wanted: Sequence[int]) -> list[Any]:
        """Some of the values that it `yields`, by place: of a mapping, a list in that order, or one value for one."""
        names = self.yields
        if type(result) is dict or isinstance(result, Mapping):
            try:
                return [result[names[i]] for i in wanted]
            except KeyError:
                lost = [names[i] for i in wanted if names[i] not in result]
                raise ValueError(f"Extractor {self.name!r} promised {lost} and did not return it.") from None
        if len(names) == 1:
            return [result for _ in wanted]
        if wanted and len(result) != len(names):
            raise ValueError(f"Extractor {self.name!r} yields {len(names)} features, returned {len(result)}.")
        return [result[i] for i in wanted]


def extractor(
    acquisition: str | None = None,
    *,
    yields: str | Iterable[str] = (),
    needs: str | Extractor | Iterable[str | Extractor] = (),
    many: bool = False,
    workers: int = 8,
    process: bool = False,
    timeout: float | None = None,
    retries: int = 0,
    cache: Cache | None = None,
    inline: bool = False,
    version: str = "",
    usage: Callable[[Any], float] | None = None,
    at_most: float | None = None,
    hedge: float | None = None,
) -> Callable[[Callable[..., Any]], Extractor]:
    """Declare that a function performs an acquisition and yields features.

    The function is called with the row, then with what each of `needs` returned. It returns a mapping, a list in the
    order of `yields`, or one value.

    Parameters
    ----------
    acquisition : str or None, default None
        What it performs, as the cost table calls it. None: it is free, a feature that needs nothing or one that is
        derived from others.
    yields : str or iterable of str, default ()
        The features that its result has.
    needs : str, Extractor or iterable of these, default ()
        The extractors whose results it takes.
    many : bool, default False
        Whether it takes lists of rows and returns a list.
    workers : int, default 8
        How many calls run at once under a deadline, 1 or more.
    process : bool, default False
        Whether calls run in processes instead of threads, for functions that hold the interpreter's lock. A process
        whose call hangs is killed and replaced.
    timeout : float or None, default None
        Seconds after which a call is given up, above 0, counted from when a worker begins it. Set it for everything
        that can hang: only an extractor's own errors and time-outs switch it off for a while.
    retries : int, default 0
        How often a failed call is repeated, 0 or more.
    cache : Cache or None, default None
        Keeps results across requests.
    inline : bool, default False
        Whether it is called on the caller's thread under a deadline too. For functions that only read what is there:
        one that waits holds up everything.
    version : str, default ""
        Part of the fingerprint of results in a shared cache; change it when the function changes.
    usage : callable or None, default None
        Takes what the function returned for a row and gives what the call really cost, in the unit of the prices: that
        of the tokens in a reply, say. It is reported (`Answer.paid`) and counted by a spending cap; the plan goes by
        the price.
    at_most : float or None, default None
        The most that a call may cost, 0 or more, which a spending cap reserves before it. None: the price. With `usage`
        give it, or calls in flight may exceed a cap by what they cost beyond their price.
    hedge : float or None, default None
        With 0.95, a call that takes longer than 95 % of the last ones is made a second time, and the first result
        counts. The row pays both calls, if its budget holds that. For functions that may be called twice; not with a
        cache.

    Returns
    -------
    callable
        A decorator that makes the function an `Extractor`.

    Examples
    --------
    >>> from miserly.runtime import extractor
    >>> @extractor("parse", yields=["n_words"], timeout=0.1)
    ... def parse(mail):
    ...     return len(mail.split())
    >>> parse("two words")
    2
    """
    if acquisition is not None and not isinstance(acquisition, str):
        raise TypeError("Name the acquisition: @extractor('site_stats', yields=[...]).")
    if workers < 1 or retries < 0 or (timeout is not None and timeout <= 0):
        raise ValueError("An extractor has at least one worker, a timeout above zero, and retries of zero or more.")
    if at_most is not None and not at_most >= 0:
        raise ValueError(f"at_most is the most that a call may cost, 0 or more, got {at_most!r}.")
    if acquisition is None and (usage is not None or at_most is not None):
        raise ValueError("An extractor without an acquisition is free: it has no usage and no at_most.")
    if hedge is not None and (not 0 < hedge < 1 or cache is not None or inline):
        raise ValueError(
            f"hedge is a quantile between 0 and 1, such as 0.95, of an extractor without a cache that is not called "
            f"inline; got {hedge!r}. With a cache, calls for one key are joined instead."
        )
    others = (needs,) if isinstance(needs, str | Extractor) else tuple(needs)
    names = tuple(other.name if isinstance(other, Extractor) else str(other) for other in others)
    features = (yields,) if isinstance(yields, str) else tuple(str(name) for name in yields)

    def declare(function: Callable[..., Any]) -> Extractor:
        if process and inspect.iscoroutinefunction(function):
            raise ValueError(f"Extractor {function.__name__!r} is async; only plain functions run in processes.")
        options = (many, workers, process, timeout, retries, cache, inline, version, usage, at_most, hedge)
        made = Extractor(function, acquisition, features, names, *options)
        if inline and not made.is_plain:
            raise ValueError(f"Extractor {function.__name__!r} is called inline: no process, timeout, cache or async.")
        return made

    return declare

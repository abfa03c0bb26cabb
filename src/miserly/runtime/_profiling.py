"""Measured prices: what each extractor takes on a sample of rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter, thread_time
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from miserly.costs import CostTable
from miserly.runtime._answer import aligned
from miserly.runtime._extractor import Extractor
from miserly.runtime._extractor_set import closures, in_order

ClockName = Literal["cpu", "wall"]
STATISTICS: dict[str, Callable[[NDArray[np.float64]], Any]] = {
    "mean": np.mean,
    "median": np.median,
    "p95": lambda seconds: np.quantile(seconds, 0.95),
}
WARM_UP_ROWS = 3
SUSPICIOUS = 2.0
PER_SECOND = {"s": 1.0, "seconds": 1.0, "ms": 1e3, "milliseconds": 1e3, "us": 1e6, "µs": 1e6, "minutes": 1 / 60}


@dataclass(frozen=True)
class Profile:
    """What extractors took on a sample of rows.

    Parameters
    ----------
    extractors : tuple of Extractor
        In an order in which they can run.
    needs : mapping
        The acquisitions that each feature needs.
    cpu, wall : mapping
        Seconds of CPU and of wall clock of each extractor on each row.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.runtime import Profile, extractor
    >>> parse = extractor("parse", yields="n_words")(lambda mail: len(mail.split()))
    >>> name, seconds = parse.name, np.array([0.001, 0.003])
    >>> measured = Profile((parse,), {"n_words": ("parse",)}, cpu={name: seconds}, wall={name: 2 * seconds})
    >>> measured.seconds(clock="wall", statistic="median")
    {'parse': 0.004}
    """

    extractors: tuple[Extractor, ...]
    needs: Mapping[str, tuple[str, ...]]
    cpu: Mapping[str, NDArray[np.float64]]
    wall: Mapping[str, NDArray[np.float64]]

    def seconds(self, clock: ClockName = "cpu", statistic: str = "mean") -> dict[str, float]:
        """Return what each acquisition takes.

        Parameters
        ----------
        clock : {"cpu", "wall"}, default "cpu"
            Which time.
        statistic : {"mean", "median", "p95"}, default "mean"
            Which figure of it.

        Returns
        -------
        dict
            Seconds by acquisition.
        """
        measured = {"cpu": self.cpu, "wall": self.wall}[clock]
        of = STATISTICS[statistic]
        return {e.acquisition: float(of(measured[e.name])) for e in self.extractors if e.acquisition}

    def table(self) -> str:
        """Milliseconds of each extractor: mean, median and p95 of the CPU time, then of the wall clock."""
        head = ("extractor", *(f"{clock} {name}" for clock in ("CPU", "wall") for name in STATISTICS), "yields")
        lines = [head]
        for e in self.extractors:
            figures = [f"{of(t[e.name]) * 1e3:.4f}" for t in (self.cpu, self.wall) for of in STATISTICS.values()]
            shown = ", ".join(e.yields[:3]) + (f" and {len(e.yields) - 3} more" if len(e.yields) > 3 else "")
            lines.append((e.name, *figures, shown))
        return aligned(lines)

    def compare(
        self, costs: CostTable, clock: ClockName = "cpu", statistic: str = "mean", relative: bool = False
    ) -> list[str]:
        """Return a warning for each acquisition whose price is wrong by a factor of two.

        Parameters
        ----------
        costs : CostTable
            The prices to compare with; acquisitions that only one side knows are left out.
        clock : {"cpu", "wall"}, default "cpu"
            Which time.
        statistic : {"mean", "median", "p95"}, default "mean"
            Which figure of it.
        relative : bool, default False
            Compare shares of the whole price instead of times: for prices that are in another unit than time. A
            slowdown of everything by the same factor is invisible then.

        Returns
        -------
        list of str
            Empty if all prices fit.
        """
        measured = self.seconds(clock, statistic)
        both = [a for a in measured if costs.prices.get(a, 0.0) > 0 and measured[a] > 0]
        if not both:
            return []
        if relative:
            rate = float(np.median([costs.prices[a] / measured[a] for a in both]))
        elif costs.unit.lower() in PER_SECOND:
            rate = PER_SECOND[costs.unit.lower()]
        else:
            return [
                f"The prices are in {costs.unit!r}, times were measured: they cannot be compared as they are. "
                'Compare shares of the whole (relative=True, --relative), or write unit = "ms".'
            ]
        warnings = []
        for a in both:
            factor = measured[a] * rate / costs.prices[a]
            if not 1 / SUSPICIOUS <= factor <= SUSPICIOUS:
                warnings.append(
                    f"{a!r} costs {costs.prices[a]:g} {costs.unit} in the table, {measured[a] * rate:.4g} as measured "
                    f"({factor:.2g} times): write the measured price, or measure on more rows."
                )
        return warnings


def profile(extractors: Iterable[Extractor], rows: Iterable[Any]) -> Profile:
    """Call every extractor on every row, in the order of their needs, and measure each call.

    The first rows are called twice, so that imports and caches do not count. An extractor that raises is an error: a
    price measured on half of the rows would be wrong.

    Parameters
    ----------
    extractors : iterable of Extractor
        What is measured, with everything that it needs.
    rows : iterable
        The sample; at least one row.

    Returns
    -------
    Profile
        The times of every extractor on every row.

    Examples
    --------
    >>> from miserly.runtime import extractor, profile
    >>> parse = extractor("parse", yields="n_words")(lambda mail: len(mail.split()))
    >>> measured = profile([parse], ["two words", "three more words"])
    >>> sorted(measured.seconds())
    ['parse']
    """
    order, sample = in_order({e.name: e for e in extractors}), list(rows)
    if not order or not sample:
        raise ValueError("A profile needs at least one extractor and one row.")
    own = _own_time()
    for row in sample[:WARM_UP_ROWS]:
        _measure(order, row, own)
    times = np.array([_measure(order, row, own) for row in sample])
    bought = closures(order)
    needs = {
        f: tuple(n.acquisition for n in order if n.name in bought[e.name][0] and n.acquisition)
        for e in order
        for f in e.yields
    }
    return Profile(
        tuple(order),
        needs,
        {e.name: times[:, i, 0] for i, e in enumerate(order)},
        {e.name: times[:, i, 1] for i, e in enumerate(order)},
    )


def _measure(order: Sequence[Extractor], row: Any, own: tuple[float, float]) -> list[tuple[float, float]]:
    results: dict[str, Any] = {}
    times = []
    for e in order:
        arguments = (row, *(results[n] for n in e.needs))
        if e.many:
            arguments = tuple([value] for value in arguments)
        wall, cpu = perf_counter(), thread_time()
        try:
            result = asyncio.run(e.function(*arguments)) if e.is_async else e.function(*arguments)
        except Exception as error:
            error.add_note(f"while measuring the extractor {e.name!r}")
            raise
        cpu, wall = thread_time() - cpu, perf_counter() - wall
        times.append((max(0.0, cpu - own[0]), max(0.0, wall - own[1])))
        results[e.name] = e.one_each(result, 1)[0]
        e.read(results[e.name], range(len(e.yields)))
    return times


def _own_time() -> tuple[float, float]:
    """What measuring itself takes."""
    times = []
    for _ in range(200):
        wall, cpu = perf_counter(), thread_time()
        cpu, wall = thread_time() - cpu, perf_counter() - wall
        times.append((cpu, wall))
    cpu, wall = np.median(np.array(times), axis=0)
    return float(cpu), float(wall)

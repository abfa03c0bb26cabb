"""Whether rows, scores and spending are still what the plan was made for: counted as requests come, compared when
somebody looks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from miserly.plan import Histogram, Menu, Plan
from miserly.runtime import Answer, expected
from miserly.schema import Schema

PAUSE = 0.01  # seconds between rows that are looked at: a hundred a second say enough, and take 1 % of a core at most
WINDOW = 5000  # rows after which older ones begin to count half: about an hour of the last rows at least
FEWEST = 100  # rows before anything is said
BOUGHT = 0.95  # share of rows that must have a feature: of one that only some rows buy, the rows are selected
MOST_FEATURES = 50  # shown, those first that changed most
REMEMBERED = 1024


class Changed(NamedTuple):
    """How the values of a feature changed: the stability index, and the share of missing values less the expected."""

    feature: str
    stability: float
    missing: float


class DriftWatch:
    """Counts the rows of one plan or menu.

    Parameters
    ----------
    model : Plan or Menu
        Has the profile and the promises; without them nothing is counted.
    """

    def __init__(self, model: Plan | Menu) -> None:
        self._plans = list(model.plans) if isinstance(model, Menu) else [model]
        costs = self._plans[0].costs
        self._schema = self._plans[0].schema or Schema.of_names(costs.features)
        self._histograms: dict[str, tuple[Histogram, int]] = {}
        for plan in self._plans:
            if plan.profile is not None:
                known = {h.name: (h, plan.profile.n_rows) for h in plan.profile.features}
                self._histograms = {**known, **self._histograms}
        self._counts = {name: [0.0] * (len(h.shares) + 1) for name, (h, _) in self._histograms.items()}
        self._scores: dict[int, list[float]] = {}
        self.n_rows, self._next = 0.0, 0.0
        self.cost_compared = self.cost_promised = 0.0
        self.expected = lru_cache(REMEMBERED)(partial(expected, model))

    @property
    def takes_row(self) -> bool:
        """Whether it is time to look at a row."""
        return bool(self._histograms) and perf_counter() >= self._next

    def row(self, values: Mapping[str, Any]) -> None:
        """Look at the values of a row that are known, as numbers or in the user's words."""
        self._next = perf_counter() + PAUSE
        self.n_rows += 1
        for name, value in values.items():
            found = self._histograms.get(name)
            if found is not None:
                number = value if type(value) is float else self._schema.number(name, value)
                self._counts[name][found[0].bin(number)] += 1
        if self.n_rows >= WINDOW:
            self.n_rows /= 2
            self._counts = {name: [n / 2 for n in counts] for name, counts in self._counts.items()}

    def answers(self, answers: Iterable[Answer], budget: float | None) -> None:
        """Compare answers with what was promised for this budget."""
        number, promise, cost = self.expected(budget)
        for answer in answers:
            if cost is not None:
                self.cost_compared += answer.cost
                self.cost_promised += cost
            if promise is not None:
                counts = self._scores.get(number) or self._scores.setdefault(
                    number, [0.0] * (len(promise.score.shares) + 1)
                )
                counts[promise.score.bin(_score(answer))] += 1
                if sum(counts) >= WINDOW:
                    self._scores[number] = [n / 2 for n in counts]

    def changes(self) -> list[Changed]:
        """How features changed, the most changed first; nothing while there are few rows."""
        if self.n_rows < FEWEST:
            return []
        found = []
        for name, (histogram, n_reference) in self._histograms.items():
            counts = self._counts[name]
            n = sum(counts)
            if n >= BOUGHT * self.n_rows:
                index = histogram.stability(counts, n_reference)
                found.append(Changed(name, index, counts[-1] / n - histogram.missing))
        found.sort(key=lambda change: (-max(change.stability, abs(change.missing)), change.feature))
        return found[:MOST_FEATURES]

    def score_change(self) -> float | None:
        """The stability index of scores, the largest of a menu's plans; None while there are few."""
        indices = []
        for number, counts in self._scores.items():
            promise = self._plans[number].promise
            if promise is not None and sum(counts) >= FEWEST:
                indices.append(promise.score.stability(counts, promise.n_rows))
        return max(indices, default=None)


def _score(answer: Answer) -> float:
    if answer.probabilities is not None:
        return float(answer.probabilities.max())
    value: NDArray[np.float64] = np.atleast_1d(answer.value)
    return float(value[0])

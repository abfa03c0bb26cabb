"""The levels of a fast-and-frugal tree, and what a tree is worth on the training rows.

With the goal  wacc = w · sensitivity + (1 − w) · specificity  every row has a fixed worth v: what saying "positive" for
it adds to wacc. It is w / n₊ for a positive row and −(1 − w) / n₋ for a negative one. So the wacc of a tree is
(1 − w) + the sum of v over its positive exits, and every search below is a comparison of sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from miserly.costs import Ledger

DIGITS = 12  # differences by rounding are none


class FrugalLevel(NamedTuple):
    """One level of a fast-and-frugal tree: a cue, and which of its answers leaves.

    Parameters
    ----------
    feature : int
        The column of the cue.
    threshold : float
        What its values are compared with.
    above : bool
        Whether values above the threshold speak for the second class; otherwise values up to it.
    exit : {"positive", "negative", "both"}
        Which answer ends the tree here: "both" at the last level. Rows without the value go on; at the last level they
        take the side of most such rows.

    Examples
    --------
    >>> from miserly.estimators import FrugalLevel
    >>> FrugalLevel(3, 0.5, above=True, exit="positive").exit
    'positive'
    """

    feature: int
    threshold: float
    above: bool
    exit: str


Levels = tuple[FrugalLevel, ...]


class Path(NamedTuple):
    """What a tree does to the training rows: who is said to be positive, and who reaches each level."""

    positive: np.ndarray
    reached: list[np.ndarray]


@dataclass(frozen=True, eq=False)
class CueRows:
    """Rows with what each is worth; features are sorted once.

    `worth` is v of each row, `share` its part of the mean cost, `masks` the acquisitions of each feature as bit sets.
    """

    X: np.ndarray
    worth: np.ndarray
    share: np.ndarray
    base: float
    masks: Sequence[int]
    ledger: Ledger
    tradeoff: float
    fewest: int

    @cached_property
    def order(self) -> np.ndarray:
        """The rows of each column from the least value to the greatest, missing ones last."""
        return np.argsort(self.X, axis=0, kind="stable")

    def step_price(self, owned: int, feature: int) -> float:
        """What a feature adds to the price of what is owned."""
        return self.ledger.price(owned | self.masks[feature]) - self.ledger.price(owned)

    def says(self, level: FrugalLevel) -> tuple[np.ndarray, np.ndarray]:
        """For which rows a cue speaks for the second class, and which rows have its value."""
        x = self.X[:, level.feature]
        known = ~np.isnan(x)
        return known & ((x > level.threshold) == level.above), known

    def follow(self, levels: Levels) -> Path:
        """Lead all rows through a tree."""
        here, positive, reached = np.ones(len(self.X), bool), np.zeros(len(self.X), bool), []
        for level in levels:
            reached.append(here)
            yes, known = self.says(level)
            if level.exit != "negative":
                positive |= here & yes
            if level.exit == "both":
                missing = here & ~known
                positive |= missing & self.missing_positive(missing)
                here = np.zeros_like(here)
            else:
                here = here & ~(yes if level.exit == "positive" else known & ~yes)
        return Path(positive, reached)

    def missing_positive(self, missing: np.ndarray) -> bool:
        """Whether rows that lack the last value are said to be positive."""
        return bool(self.worth[missing].sum() > 0)

    def cost(self, levels: Levels, reached: Sequence[np.ndarray]) -> float:
        """Mean price of a row's way through a tree."""
        owned, total = 0, 0.0
        for level, here in zip(levels, reached):
            total += float(self.share[here].sum()) * self.step_price(owned, level.feature)
            owned |= self.masks[level.feature]
        return total

    def objective(self, levels: Levels) -> float:
        """wacc − λ · mean cost; the better of the two constants for no levels."""
        if not levels:
            return self.base + max(0.0, float(self.worth.sum()))
        path = self.follow(levels)
        wacc = self.base + float(self.worth[path.positive].sum())
        return wacc - self.tradeoff * self.cost(levels, path.reached)

    def best_cut(self, feature: int, gain: np.ndarray, here: np.ndarray) -> tuple[float, float, bool] | None:
        """The cut of a feature whose chosen side has the greatest sum of `gain` among the rows `here`: that sum, the
        threshold, and whether the side is above. None if no cut leaves enough rows on both sides."""
        rows = self.order[:, feature]
        rows = rows[here[rows]]
        x = self.X[rows, feature]
        n = len(x) - int(np.isnan(x).sum())
        x = x[:n]
        ends = np.flatnonzero(x[1:] > x[:-1]) if n else np.zeros(0, int)
        ends = ends[(ends + 1 >= self.fewest) & (n - ends - 1 >= self.fewest)]
        if not len(ends):
            return None
        total = np.cumsum(gain[rows[:n]])
        below, above = np.round(total[ends], DIGITS), np.round(total[n - 1] - total[ends], DIGITS)
        is_above = bool(above.max() >= below.max())
        at = int(np.argmax(above if is_above else below))
        return float((above if is_above else below)[at]), _between(x[ends[at]], x[ends[at] + 1]), is_above


def _between(low: float, high: float) -> float:
    middle = float(low) + (float(high) - float(low)) / 2
    return float(low) if not low <= middle < high else middle


def better(rows: CueRows, found: Sequence[Levels]) -> Levels:
    """The tree with the best objective; of equals, the first."""
    return max(found, key=lambda levels: round(rows.objective(levels), DIGITS))

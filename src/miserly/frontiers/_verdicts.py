"""What repeated measurements decide: means over splits with their intervals, the range of budgets, the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from scipy import stats

from miserly.frontiers._front import Frontier


class Verdict(StrEnum):
    """What the data say about a claim."""

    SEEN = "seen"
    UNDECIDED = "undecided"
    CONTRADICTED = "contradicted"

    @classmethod
    def of_fact(cls, holds: bool) -> Verdict:
        """The verdict on a yes-or-no fact, which has no interval."""
        return cls.SEEN if holds else cls.CONTRADICTED

    @classmethod
    def of_interval(cls, mean: float, half: float, least: float = 0.0) -> Verdict:
        """The verdict on "the mean is above `least`"; without an interval (one split) nothing is decided."""
        if math.isnan(half):
            return cls.UNDECIDED
        if mean - half > least:
            return cls.SEEN
        return cls.CONTRADICTED if mean + half < least else cls.UNDECIDED


def common_range(curves: Sequence[Frontier]) -> tuple[float, float]:
    """The budgets that curves are compared over: from the first purchase of any curve to the last point of all."""
    costs = [p.validation.cost["mean"] for c in curves for p in c.points if p.validation.cost["mean"] > 0] or [1.0]
    return min(costs), max(*costs, 1.01 * min(costs))


def within(front: Frontier, budget: float) -> float:
    """The test quality of the point that validation chooses within a budget; every curve has a free point."""
    return front.choose_point(budget=budget).on("test").quality


def interval(values: Sequence[float] | np.ndarray, overlap: float) -> tuple[float, float]:
    """Mean and half the 95 % interval; `overlap` corrects for training rows that splits share (Nadeau, Bengio 2003)."""
    n = len(values)
    if n < 2:
        return float(np.mean(values)), math.nan
    spread = math.sqrt(float(np.var(values, ddof=1)) * (1.0 / n + overlap))
    return float(np.mean(values)), float(stats.t.ppf(0.975, n - 1)) * spread

"""Means whose bits depend neither on the order of the rows nor on how they are parted: sums are exact, rounded once."""

from __future__ import annotations

import math

import numpy as np

from miserly.kernels import exact as kernels

UNIT = 1 << 1074
Sums = tuple[float, float]


def exact_sum(values: np.ndarray) -> float:
    """The sum as a whole number of units of 2⁻¹⁰⁷⁴ (an int); NaN where a value is not finite."""
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    high, low = np.zeros((2, kernels.N_EXPONENTS), np.int64)
    kernels.add_by_exponent(bits, high, low)
    if high[-1] or low[-1]:
        return math.nan
    some = np.flatnonzero(high | low).tolist()
    return sum(((int(high[e]) << kernels.LOW_BITS) + int(low[e])) << (e - 1) for e in some)


def sums_of_mean(values: np.ndarray, weight: np.ndarray | None = None) -> Sums:
    """What a mean is made from, as exact sums: those of several parts may be added."""
    if weight is None:
        return exact_sum(values), len(values) * UNIT
    return exact_sum(weight * values), exact_sum(weight)


def mean_of_sums(numerator: float, denominator: float) -> float:
    """The mean; 0 where nothing has any weight."""
    return _rounded(numerator) / _rounded(denominator) if denominator else 0.0


def mean(values: np.ndarray, weight: np.ndarray | None = None) -> float:
    """The (weighted) mean of some rows."""
    return mean_of_sums(*sums_of_mean(values, weight))


def _rounded(total: float) -> float:
    return total / UNIT if isinstance(total, int) else total

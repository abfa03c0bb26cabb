"""Means whose bits depend neither on the order of the rows nor on how they are divided: sums are exact."""

from __future__ import annotations

import math

import numpy as np

from miserly.kernels import exact as kernels

UNIT_BITS = 1074  # the smallest float above zero is 2⁻¹⁰⁷⁴
UNIT = 1 << UNIT_BITS
MOST_EXPONENT = 2000  # of 2046: sums of 2²⁴ rows stay finite
Sums = tuple[float, float]


def exact_sum(values: np.ndarray) -> float:
    """The sum as a whole number of units of 2⁻¹⁰⁷⁴ (an int); NaN where a value is not finite."""
    high, low = np.zeros((2, kernels.N_EXPONENTS), np.int64)
    kernels.add_by_exponent(_bits(values), high, low)
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
    """The (weighted) mean of some rows: the bits of `mean_of_sums(*sums_of_mean(values, weight))`, sooner."""
    if weight is None:
        return rounded_sum(values) / len(values) if len(values) else 0.0
    whole = rounded_sum(weight)
    return rounded_sum(weight * values) / whole if whole else 0.0


def rounded_sum(values: np.ndarray) -> float:
    """The exact sum, rounded once. What shares an exponent sums to at most 51 bits in each half of the mantissa, so
    these sums are exact floats, and `fsum` rounds their sum correctly."""
    high, low = np.zeros((2, kernels.N_EXPONENTS), np.int64)
    first, last = kernels.add_by_exponent(_bits(values), high, low)
    if high[-1] or low[-1]:
        return math.nan
    if last >= MOST_EXPONENT:  # the parts of a sum may be too large for floats where it is not
        return _rounded(exact_sum(values))
    power = np.arange(first, last + 1) - UNIT_BITS - 1
    parts = np.ldexp(high[first : last + 1], power + kernels.LOW_BITS), np.ldexp(low[first : last + 1], power)
    return math.fsum(np.concatenate(parts).tolist())


def _bits(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, np.float64).view(np.int64)


def _rounded(total: float) -> float:
    return total / UNIT if isinstance(total, int) else total

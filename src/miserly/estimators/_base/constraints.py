"""Declared parameter constraints. The only file that names a private module of scikit-learn."""

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from miserly.costs import CostTable


def at_least(low: int) -> Interval:
    """A whole number, `low` or more."""
    return Interval(Integral, low, None, closed="left")


def whole(low: int, high: int) -> Interval:
    """A whole number between two limits, both allowed."""
    return Interval(Integral, low, high, closed="both")


def not_negative() -> Interval:
    """A real number, zero or more."""
    return Interval(Real, 0, None, closed="left")


def positive() -> Interval:
    """A real number above zero."""
    return Interval(Real, 0, None, closed="neither")


def limits(low: float, high: float | None = None) -> Interval:
    """A real number between two limits, both allowed; infinity is the upper one if none is given."""
    return Interval(Real, low, high, closed="both")


def share() -> Interval:
    """A real number above zero, at most one."""
    return Interval(Real, 0, 1, closed="right")


def one_of(*names: str) -> StrOptions:
    """One of a few words."""
    return StrOptions(set(names))


def has_methods(*names: str) -> HasMethods:
    """An object with these methods."""
    return HasMethods(list(names))


COSTS: list[Any] = [CostTable, None]
N_JOBS: list[Any] = [at_least(1), Interval(Integral, None, -1, closed="right"), None]

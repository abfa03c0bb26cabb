"""Declared parameter constraints. The only file that names a private module of scikit-learn."""

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from miserly.boosting import Task, loss_names
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


def inside(low: float, high: float) -> Interval:
    """A real number between two limits, neither allowed."""
    return Interval(Real, low, high, closed="neither")


def share() -> Interval:
    """A real number above zero, at most one."""
    return Interval(Real, 0, 1, closed="right")


def one_of(*names: str) -> StrOptions:
    """One of a few words."""
    return StrOptions(set(names))


class _LossName(StrOptions):
    """The name of a loss of a task, also of one that is registered later."""

    def __init__(self, task: Task) -> None:
        super().__init__(set(loss_names(task)))
        self.task = task

    def is_satisfied_by(self, val: Any) -> bool:
        self.options = set(loss_names(self.task))
        return bool(super().is_satisfied_by(val))


def loss_of(task: Task) -> StrOptions:
    """A registered loss by its name."""
    return _LossName(task)


def has_methods(*names: str) -> HasMethods:
    """An object with these methods."""
    return HasMethods(list(names))


COSTS: list[Any] = [CostTable, None]
N_JOBS: list[Any] = [at_least(1), Interval(Integral, None, -1, closed="right"), None]

"""Losses by name: what the `loss` of an estimator may be. To add one, write a class of `SummedLoss` and register it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from miserly.boosting._losses import LogLoss, Loss, SoftmaxLoss, SquaredHingeLoss, SquaredLoss
from miserly.boosting._ranking import LambdaRankLoss

Task = Literal["regression", "classification", "ranking"]


@dataclass(frozen=True)
class LossContext:
    """What a loss may need to know of the data: the number of classes, and the query of each row."""

    n_classes: int = 0
    qid: np.ndarray | None = None


_MAKERS: dict[tuple[Task, str], Callable[[LossContext], Loss]] = {}


def register_loss(task: Task, name: str, make: Callable[[LossContext], Loss]) -> None:
    """Give a loss a name.

    Parameters
    ----------
    task : {"regression", "classification", "ranking"}
        For which estimators.
    name : str
        The value of their parameter `loss`.
    make : callable
        Takes a `LossContext`, returns the loss.
    """
    _MAKERS[task, name] = make


def loss_names(task: Task) -> tuple[str, ...]:
    """The names of the losses of a task, in the order in which they were registered."""
    return tuple(name for of, name in _MAKERS if of == task)


def make_loss(task: Task, name: str, context: LossContext | None = None) -> Loss:
    """The loss of a name.

    Examples
    --------
    >>> from miserly.boosting import LossContext, make_loss
    >>> make_loss("classification", "auto", LossContext(n_classes=3)).n_outputs
    3
    """
    if (task, name) not in _MAKERS:
        known = ", ".join(repr(known) for known in loss_names(task))
        raise ValueError(f"There is no loss {name!r} for {task}. Choose one of {known}.")
    return _MAKERS[task, name](context or LossContext())


def _log_loss(context: LossContext) -> Loss:
    return LogLoss() if context.n_classes <= 2 else SoftmaxLoss(context.n_classes)


def _lambdarank(context: LossContext) -> Loss:
    assert context.qid is not None
    return LambdaRankLoss(context.qid)


register_loss("regression", "auto", lambda context: SquaredLoss())
register_loss("classification", "auto", _log_loss)
register_loss("classification", "squared_hinge", lambda context: SquaredHingeLoss(context.n_classes))
register_loss("ranking", "squared", lambda context: SquaredLoss())
register_loss("ranking", "lambdarank", _lambdarank)

"""The total of tests and mistakes: what a model costs per row if its predictions follow what mistakes cost."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from miserly._typing import Array, Floats
from miserly.plan import least_expected, mistakes_of
from miserly.solvers import effective_number, weighted_mean


class PredictedRows(NamedTuple):
    """Rows that a model was not fitted on: probabilities (rows × classes), numbers of the true classes, costs, the
    probabilities of the best model of all, if they are known, and which of the rows that were given to `fit` they are
    (training rows, then validation rows), if not all; and how many rows each stands for, where purchases were
    logged."""

    probabilities: Floats
    truth: Array
    costs: Floats
    teacher: Floats | None = None
    counted: Array | None = None
    weights: Floats | None = None


@dataclass(frozen=True)
class TotalCost:
    """What a model costs per row, and how often it is right.

    Parameters
    ----------
    tests : float
        Mean cost of what is bought.
    mistakes : float
        Mean cost of the predictions.
    interval : tuple of float
        95 % interval of the total, by the normal approximation.
    rates : dict
        For two classes: sensitivity, specificity and the predictive values; NaN where no row counts.
    smoothed : float, default=None
        The total that models are chosen by: where the probabilities of the best model are known, half of each label is
        replaced by them, since a few expensive mistakes would decide by chance. None: the total.

    Examples
    --------
    >>> from miserly.frontiers import TotalCost
    >>> TotalCost(2.0, 3.0, (4.5, 5.5), {}).total
    5.0
    """

    tests: float
    mistakes: float
    interval: tuple[float, float]
    rates: dict[str, float]
    smoothed: float | None = None

    @property
    def total(self) -> float:
        """Tests and mistakes together."""
        return self.tests + self.mistakes

    @property
    def for_choice(self) -> float:
        """What models are compared by."""
        return self.total if self.smoothed is None else self.smoothed


def total_cost(rows: PredictedRows, error_costs: Any) -> TotalCost:
    """The total on some rows, if each prediction is the one with the least expected cost."""
    probabilities, truth, costs, teacher, _, weights = rows
    matrix, each = costs_of_mistakes(rows, error_costs)
    predicted = least_expected(probabilities, matrix)
    mistakes = (matrix[truth] if each is None else each)[np.arange(len(truth)), predicted]
    whole = costs + mistakes
    mean = weighted_mean(whole, weights)
    spread = weighted_mean(np.square(whole - mean), weights) ** 0.5
    margin = 1.96 * spread / max(1.0, len(whole) if weights is None else effective_number(weights)) ** 0.5
    rates = _rates(truth, predicted, weights) if len(matrix) == 2 else {}
    smoothed = None
    if teacher is not None:
        expected = float((teacher * matrix[:, predicted].T).sum(axis=1).mean())
        smoothed = float(costs.mean()) + 0.5 * float(mistakes.mean()) + 0.5 * expected
    tests, wrong = weighted_mean(costs, weights), weighted_mean(mistakes, weights)
    return TotalCost(tests, wrong, (mean - margin, mean + margin), rates, smoothed)


def costs_of_mistakes(rows: PredictedRows, error_costs: Any) -> tuple[Floats, Floats | None]:
    """What mistakes cost by class, and for each of these rows if a line was given for every row."""
    n_classes = rows.probabilities.shape[1]
    if rows.counted is not None and np.shape(error_costs) == (len(rows.counted), n_classes) != (n_classes, n_classes):
        error_costs = np.asarray(error_costs)[rows.counted]
    return mistakes_of(error_costs, rows.truth, n_classes)


def deciding(model: Any, error_costs: Any) -> Any:
    """A copy of a fitted model that predicts the class with the least expected cost."""
    chosen = copy(model)
    chosen.plan_ = model.plan_.with_error_costs(error_costs)
    return chosen


def held_out(models: list[Any], X: Any, y: Any, weigh: Callable[[Any], Any], number: int) -> PredictedRows:
    """What a model of a sweep says of the validation rows; `weigh(model)` says how much they count."""
    model = models[number]
    weights = weigh(model)
    truth = np.searchsorted(model.classes_, np.asarray(y))
    return PredictedRows(model.predict_proba(X), truth, model.predict_cost(X), weights=weights)


def _rates(truth: Array, predicted: Array, weights: Floats | None) -> dict[str, float]:
    ill, said = truth == 1, predicted == 1
    cases = {
        "sensitivity": (ill, said),
        "specificity": (~ill, ~said),
        "positive predictive value": (said, ill),
        "negative predictive value": (~said, ~ill),
    }
    return {
        name: weighted_mean(right[among], None if weights is None else weights[among]) if among.any() else math.nan
        for name, (among, right) in cases.items()
    }

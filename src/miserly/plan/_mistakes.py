"""What mistakes cost: a matrix of true classes × predictions, and the prediction that is expected to cost least."""

from __future__ import annotations

from typing import Any

import numpy as np

from miserly._typing import Floats, Rows


def as_error_costs(error_costs: Any, n_classes: int) -> Floats:
    """A checked matrix of true classes × predictions, in the unit of the prices."""
    try:
        matrix = np.array(error_costs, np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"error_costs is a matrix of numbers, true classes × predictions, got {error_costs!r}."
        ) from None
    if matrix.shape != (n_classes, n_classes):
        raise ValueError(
            f"error_costs has a row for each true class and a column for each prediction, here {n_classes} × "
            f"{n_classes}, got the shape {matrix.shape}."
        )
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise ValueError("error_costs are finite numbers of 0 or more. Write what is right as 0 and mistakes above it.")
    if (matrix == matrix[:, :1]).all():
        raise ValueError("error_costs give every prediction the same cost, so that none is better. Price the mistakes.")
    return matrix


def mistakes_of(error_costs: Any, truth: Rows, n_classes: int) -> tuple[Floats, Floats | None]:
    """What mistakes cost by class, by which predictions are decided, and what each prediction costs for each row
    (rows × classes) if that was given: then the costs of a class are the means of its rows."""
    given = np.asarray(error_costs) if np.ndim(error_costs) == 2 else None
    if given is None or given.shape == (n_classes, n_classes) or given.shape[1] != n_classes:
        return as_error_costs(error_costs, n_classes), None
    if len(given) != len(truth):
        raise ValueError(
            f"error_costs has {len(given)} rows, and there are {len(truth)}. Give one for each row, or a matrix of "
            f"true classes × predictions, here {n_classes} × {n_classes}."
        )
    each = np.array(given, np.float64)
    wrong = np.flatnonzero(~(np.isfinite(each) & (each >= 0)).all(axis=1))
    if len(wrong):
        raise ValueError(f"error_costs of row {wrong[0]} (from 0) are {each[wrong[0]]}. Costs are finite, 0 or more.")
    everyone = each.mean(axis=0)
    means = [each[truth == k].mean(axis=0) if (truth == k).any() else everyone for k in range(n_classes)]
    return as_error_costs(means, n_classes), each


def for_threshold(threshold: float) -> Floats:
    """The costs under which the second of two classes is predicted from this probability on."""
    return np.array([[0.0, threshold], [1.0 - threshold, 0.0]])


def least_expected(probabilities: Floats, error_costs: Floats) -> Rows:
    """The number of the prediction with the least expected cost, for each row.

    Summed class by class, so that one row gives the same bits as many. Ties go to the class that comes last: a
    threshold belongs to the predictions above it.
    """
    expected = probabilities[:, :1] * error_costs[0]
    for k in range(1, len(error_costs)):
        expected = expected + probabilities[:, k : k + 1] * error_costs[k]
    last: Rows = len(error_costs) - 1 - np.argmin(expected[:, ::-1], axis=1)
    return last

"""What mistakes cost at each budget: the total, sensitivity, specificity and predictive values, with intervals.

Numbers only; figures and the page draw them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from miserly._typing import Array, Floats
from miserly.frontiers import Frontier, TotalCost
from miserly.plan import Plan, mistakes_of
from miserly.report._intervals import wilson
from miserly.report._observed import LabelledRows


@dataclass(frozen=True)
class TotalAtBudget:
    """What the model chosen for one budget costs, and how often it is right.

    Parameters
    ----------
    budget : float
        The mean cost of tests within which the model was chosen.
    number : int
        The number of the chosen point.
    tests, mistakes : float
        Mean cost per row of what is bought, and of the predictions.
    interval : tuple of float
        95 % interval of the total, by the normal approximation.
    rates : dict of str to tuple of float
        For two classes: "sensitivity", "specificity", "positive predictive value" and "negative predictive value", each
        with Wilson's 95 % interval (share, low, high). The second class is the positive one. Empty for more classes.
    n_rows : int
        Rows that were counted.

    Examples
    --------
    >>> from miserly.report import TotalAtBudget
    >>> TotalAtBudget(10.0, 2, 6.0, 3.0, (8.0, 10.0), {}, 500).total
    9.0
    """

    budget: float
    number: int
    tests: float
    mistakes: float
    interval: tuple[float, float]
    rates: dict[str, tuple[float, float, float]]
    n_rows: int

    @property
    def total(self) -> float:
        """Tests and mistakes together."""
        return self.tests + self.mistakes


def totals_by_budget(front: Frontier, rows: LabelledRows, error_costs: Any) -> list[TotalAtBudget]:
    """For each budget at which the choice changes: the model of the least total within it, measured on some rows.

    Models are chosen on the rows of the frontier where it has them, and on `rows` otherwise (a frontier that was read
    from disk); give rows that no model was chosen on, and the totals are not optimistic.

    Parameters
    ----------
    front : Frontier
        Classifiers.
    rows : LabelledRows
        The rows to measure on.
    error_costs : array-like of shape (n_classes, n_classes) or (n_rows, n_classes)
        What predictions cost, in the unit of the prices: rows are true classes, columns predictions; or a line for each
        of `rows`. Then models are chosen by the mean costs of each class.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.report import LabelledRows, totals_by_budget
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = ms.GreedyMiserClassifier(ms.CostTable.per_feature([1.0, 5.0]), n_estimators=5)
    >>> front = ms.frontier(model, (X, X[:, 0] > 0), (X, X[:, 0] > 0), grid={"tradeoff": [0.0, 0.1]})
    >>> table = totals_by_budget(front, LabelledRows(X, X[:, 0] > 0), [[0, 10], [50, 0]])
    >>> table[-1].total <= table[0].total
    True
    """
    measured = [measured_at(point.model.plan_, rows, error_costs) for point in front.points]
    chosen_by: list[float] = [m.total for m in measured]
    if front.held_out is not None:
        totals: Sequence[TotalCost] = front.totals(_by_class(front, rows, error_costs))
        chosen_by = [t.for_choice for t in totals]
    costs = [point.validation.cost["mean"] for point in front.points]
    found: list[TotalAtBudget] = []
    best = math.inf
    for number in sorted(range(len(costs)), key=lambda k: (costs[k], chosen_by[k])):
        if chosen_by[number] < best:
            best = chosen_by[number]
            m = measured[number]
            found.append(TotalAtBudget(costs[number], number, m.tests, m.mistakes, m.interval, m.rates, m.n_rows))
    return found


def _by_class(front: Frontier, rows: LabelledRows, error_costs: Any) -> Floats:
    classes = front.points[0].model.plan_.classes
    return mistakes_of(error_costs, np.searchsorted(classes, rows.y), len(classes))[0]


def measured_at(plan: Plan, rows: LabelledRows, error_costs: Any) -> TotalAtBudget:
    """One plan on some rows, if it predicts what is expected to cost least."""
    if plan.classes is None:
        raise ValueError("error_costs price pairs of classes; this plan predicts numbers.")
    truth = np.searchsorted(plan.classes, rows.y)
    matrix, each = mistakes_of(error_costs, truth, len(plan.classes))
    run = plan.run(rows.X)
    predicted = np.searchsorted(plan.classes, plan.with_error_costs(matrix).read(run.z))
    mistakes = (matrix[truth] if each is None else each)[np.arange(len(truth)), predicted]
    whole = run.cost + mistakes
    mean, margin = float(whole.mean()), 1.96 * float(whole.std()) / math.sqrt(max(1, len(whole)))
    rates = rates_of(truth, predicted) if len(matrix) == 2 else {}
    tests = float(run.cost.mean())
    return TotalAtBudget(tests, 0, tests, float(mistakes.mean()), (mean - margin, mean + margin), rates, len(whole))


def rates_of(truth: Array, predicted: Array) -> dict[str, tuple[float, float, float]]:
    """The four shares of two classes, with Wilson's 95 % intervals."""
    ill, said = truth == 1, predicted == 1
    cases = {
        "sensitivity": (ill, said),
        "specificity": (~ill, ~said),
        "positive predictive value": (said, ill),
        "negative predictive value": (~said, ~ill),
    }
    return {name: wilson(int(right[among].sum()), int(among.sum())) for name, (among, right) in cases.items()}

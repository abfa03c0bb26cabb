"""Models with one training for all budgets."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from miserly.costs import total_price
from miserly.estimators._base._base import PlanEstimator
from miserly.plan import Plan

EXPENSIVE = 0.1  # of what is spent: where evaluating the trees of a level costs more, they are not replaced


def falling_tradeoffs(
    first: float,
    evaluation_and_spent: Callable[[], tuple[float, float]],
    levels: float = math.inf,
    above: float = -math.inf,
) -> Iterator[tuple[float, bool]]:
    """λ on its way down, each with whether its level continues the one before instead of replacing its trees.

    It is halved after a level that starts from nothing, and divided by √2, which counts as half a level, after one that
    continues. `evaluation_and_spent` says before each level what evaluating its trees costs, and what is spent so far.
    """
    value, halvings = first, 0.0
    while halvings < levels and value > above:
        evaluation, spent = evaluation_and_spent()
        continues = evaluation > EXPENSIVE * spent
        yield value, continues
        step = 0.5 if continues else 1.0
        value, halvings = value / 2.0**step, halvings + step


class Anytime(PlanEstimator):
    """An estimator whose plan holds the whole curve; `budget`, its cost axis, cuts the plan and changes nothing else.

    Those who build on this have the parameter `budget` and set `plan_ = self._cut(plan)`.
    """

    cost_axis = "budget"
    budget: float | None

    def within(self, budget: float | None) -> Self:
        """The same fitted model for another budget, without another training.

        Parameters
        ----------
        budget : float or None
            Where the plan is cut, 0 or more; None is the whole plan.

        Returns
        -------
        estimator
            A copy that shares the plan.
        """
        model = copy.copy(self).set_params(budget=budget)
        model.plan_ = model._cut(getattr(self, "_whole", self._fitted_plan()))
        return model

    def _cut(self, whole: Plan) -> Plan:
        self._whole = whole
        return whole if self.budget is None else whole.truncate(self.budget)

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """Budgets from the cheapest purchase to the price of everything.

        Parameters
        ----------
        y : array-like
            Labels of the training rows.
        n_points : int, default=8
            How many values, 1 or more.
        sample_weight : array-like or None, default=None
            Weights of the rows, 0 or more.

        Returns
        -------
        ndarray
        """
        costs = self._given_costs()
        prices = [p for p in costs.price_list if p > 0] or [costs.each or 1.0]
        everything = total_price(prices) if costs.each is None else 100.0 * costs.each
        return np.geomspace(min(prices), everything, n_points)

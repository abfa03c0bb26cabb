"""Models with one training for all budgets."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from miserly.costs import total_price
from miserly.estimators._base._base import PlanEstimator
from miserly.plan import Plan

EXPENSIVE = 0.1  # of what is spent: where evaluating the trees of a level costs more, they are not replaced


@dataclass(frozen=True)
class FallingTradeoff:
    """λ on its way down: halved where a level starts from nothing, divided by √2 where it continues the one before.

    `halvings` counts how often it was halved, or half as much.
    """

    value: float
    halvings: float = 0.0

    @staticmethod
    def continues(evaluation: float, spent: float) -> bool:
        """Whether evaluating the trees of a level costs too much of what is spent to replace them."""
        return evaluation > EXPENSIVE * spent

    def lower(self, continues: bool) -> FallingTradeoff:
        """The next λ."""
        step = 0.5 if continues else 1.0
        return FallingTradeoff(self.value / 2.0**step, self.halvings + step)


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

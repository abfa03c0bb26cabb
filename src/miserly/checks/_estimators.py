"""The battery for estimators: the plan's checks on the fitted plan, and what only training can break."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from miserly.checks._plans import check_plan
from miserly.costs import CostTable

ROWS = 40
SCALES_WITH_PRICES = {"tradeoff": -1, "node_budget": 1, "budget": 1, "max_price": 1}
Check = Callable[[Any, np.ndarray, np.ndarray], None]


def check_estimator_costs(estimator: Any, X: np.ndarray, y: np.ndarray) -> list[str]:
    """Run the whole battery on an unfitted estimator with its cost table set.

    Each check raises AssertionError with what went wrong.

    Parameters
    ----------
    estimator : estimator
        It has `costs` (set, not None), `fit`, `predict`, `predict_cost` and, fitted, `plan_`. Its `cost_axis`, if it
        has one, names the parameter that trades quality for cost. It is cloned, never fitted itself.
    X : array of shape (n_rows, n_features)
        The training data. There should be no ties between features. The plan's own checks run on the first 40 rows.
    y : array of shape (n_rows,)
        Targets.

    Returns
    -------
    list of str
        The names of the checks that ran.

    Raises
    ------
    TypeError
        If the estimator lacks something that the battery needs.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly.baselines import CostWeightedL1Regressor
    >>> from miserly.costs import CostTable
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = CostWeightedL1Regressor(costs=CostTable.per_feature([1.0, 2.0, 4.0]))
    >>> check_estimator_costs(model, X, X[:, 0] + X[:, 1])[0]
    'check_plan_battery'
    """
    _refuse_incomplete(estimator, X, y)
    estimator = clone(estimator).set_params(costs=estimator.costs.bind(X.shape[1]))
    for check in ESTIMATOR_CHECKS:
        check(estimator, X, y)
    return [check.__name__ for check in ESTIMATOR_CHECKS]


def _refuse_incomplete(estimator: Any, X: np.ndarray, y: np.ndarray) -> None:
    """Say what an estimator lacks for the battery, before a check stumbles over it."""
    name = type(estimator).__name__
    lost = [part for part in ("fit", "predict", "predict_cost", "costs") if not hasattr(estimator, part)]
    if lost:
        raise TypeError(f"{name} has no {', '.join(lost)}: the battery is for estimators that take prices.")
    if estimator.costs is None:
        raise TypeError(f"{name} has no prices: set costs=CostTable.per_feature(...) before the battery.")
    if not hasattr(clone(estimator).fit(X, y), "plan_"):
        raise TypeError(f"{name} has no plan_ after fit: end fit by setting self.plan_ to a miserly.plan.Plan.")


def check_plan_battery(estimator: Any, X: np.ndarray, y: np.ndarray) -> None:
    """The fitted plan passes its own battery and answers as the estimator does."""
    model = clone(estimator).fit(X, y)
    check_plan(model.plan_, X[:ROWS])
    assert np.array_equal(model.predict(X), model.plan_.predict(X)), "estimator and plan answer differently"
    assert np.array_equal(model.predict_cost(X), model.plan_.predict_cost(X)), "estimator and plan cost differently"


def check_unit_of_price_does_not_matter(estimator: Any, X: np.ndarray, y: np.ndarray) -> None:
    """Prices × k with λ ÷ k (budgets × k) give the same model, k a power of two."""
    axis: str = getattr(estimator, "cost_axis", "")
    reference = clone(estimator).fit(X, y)
    for k in (4.0, 0.125):
        power = SCALES_WITH_PRICES.get(axis)
        moved = {} if power is None else {axis: getattr(estimator, axis) * k**power}
        other = clone(estimator).set_params(costs=estimator.costs.scaled(k), **moved).fit(X, y)
        _same_answers(reference, other, X, X, k, f"prices × {k}")


def check_order_of_features_does_not_matter(estimator: Any, X: np.ndarray, y: np.ndarray) -> None:
    """Permuting features with their prices permutes the model."""
    order = np.random.default_rng(0).permutation(X.shape[1])
    table = estimator.costs.restrict([estimator.costs.features[i] for i in order])
    reference = clone(estimator).fit(X, y)
    other = clone(estimator).set_params(costs=table).fit(X[:, order], y)
    _same_answers(reference, other, X, X[:, order], 1.0, "permuted features")


def check_free_features_are_cost_blind(estimator: Any, X: np.ndarray, y: np.ndarray) -> None:
    """λ = 0 gives the cost-blind model, and so do prices that are all zero."""
    if getattr(estimator, "cost_axis", None) != "tradeoff":
        return
    blind = clone(estimator).set_params(tradeoff=0.0).fit(X, y)
    free = clone(estimator).set_params(costs=estimator.costs.scaled(0.0)).fit(X, y)
    other_prices = CostTable.per_feature(np.arange(X.shape[1]) + 1.0)
    blind_too = clone(estimator).set_params(tradeoff=0.0, costs=other_prices).fit(X, y)
    for model, what in ((free, "zero prices"), (blind_too, "other prices at λ = 0")):
        assert np.array_equal(blind.predict(X), model.predict(X)), f"{what}: not the cost-blind model"
    assert not free.predict_cost(X).any(), "free features cost something"


def check_fit_leaves_its_inputs_alone(estimator: Any, X: np.ndarray, y: np.ndarray) -> None:
    """`fit` changes neither data nor table nor parameters; a clone is unfitted; two fits agree to the bit."""
    X_before, y_before, table = X.copy(), y.copy(), copy.deepcopy(estimator.costs)
    first = clone(estimator)
    params = first.get_params()
    first.fit(X, y)
    second = clone(first)
    assert not hasattr(second, "plan_"), "a clone is fitted already"
    second.fit(X, y)
    assert np.array_equal(X, X_before, equal_nan=True), "fit changed X"
    assert np.array_equal(y, y_before), "fit changed y"
    assert estimator.costs == table, "fit changed the cost table"
    assert first.get_params() == params, "fit changed the parameters"
    assert first.plan_ == second.plan_, "two fits on the same data differ"


ESTIMATOR_CHECKS: tuple[Check, ...] = (
    check_plan_battery,
    check_unit_of_price_does_not_matter,
    check_order_of_features_does_not_matter,
    check_free_features_are_cost_blind,
    check_fit_leaves_its_inputs_alone,
)


def _same_answers(a: Any, b: Any, X_a: np.ndarray, X_b: np.ndarray, k: float, what: str) -> None:
    assert np.array_equal(a.predict(X_a), b.predict(X_b)), f"{what}: another model"
    assert np.array_equal(a.predict_cost(X_a) * k, b.predict_cost(X_b)), f"{what}: another cost"

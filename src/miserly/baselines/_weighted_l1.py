"""The cost-weighted l1 model: one sparse linear scorer, the baseline of the CSTC and ASTC papers.

It minimises  mean ½(y − xᵀβ − b)² + Σ_j (tradeoff · price_j + alpha) |β_j|  over standardised features, equation (3.1)
of the thesis with the l0 cost relaxed to l1; `tradeoff` is λ and `alpha` is ρ. Classes are ±1 under the same squared
loss, as in the papers. With several classes |β_j| is the length of the feature's weights over the classes, since it is
paid once for all of them. `price_j` is the price of everything that the feature needs when bought alone: features that
share an acquisition are penalised for it each, while the plan's ledger charges it once.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from miserly._blas import blas_threads
from miserly._typing import Floats
from miserly.baselines._group_lasso import GroupLasso, least_squares
from miserly.baselines._linear import (
    LinearPlan,
    Link,
    calibrated,
    feature_prices,
    log_odds,
    log_shares,
    standard,
)
from miserly.baselines._standard import Standard
from miserly.costs import CostTable
from miserly.estimators import PlanClassifier, PlanRegressor, constraints, row_weights
from miserly.solvers import discriminant, shares


@dataclass(frozen=True)
class _Problem:
    """The data of a fit, ready for any tradeoff."""

    costs: CostTable
    prices: Floats
    data: Standard
    weights: Floats
    targets: Floats
    mean: Floats
    lasso: GroupLasso


class _CostWeightedL1(LinearPlan):
    """The parameters and the fit that regression and classification share."""

    cost_axis = "tradeoff"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "costs": constraints.COSTS,
        "tradeoff": [constraints.not_negative()],
        "alpha": [constraints.not_negative()],
        "refit": ["boolean"],
    }

    def __init__(
        self, costs: CostTable | None = None, tradeoff: float = 1e-3, alpha: float = 0.0, refit: bool = True
    ) -> None:
        self.costs = costs
        self.tradeoff = tradeoff
        self.alpha = alpha
        self.refit = refit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose features and weigh them."""
        problem = self._pose(X, y, sample_weight)
        with blas_threads(problem.data.Z.size):
            self._solve(problem, None)
        return self

    def path(self, X: Any, y: Any, tradeoffs: Iterable[float] | None = None, sample_weight: Any = None) -> list[Self]:
        """Fitted models for falling tradeoffs, as separate fits would give them, but each starts from the one before.

        Without `tradeoffs`, eight from the first that buys anything down to a thousandth of it.
        """
        first = clone(self)
        problem = first._pose(X, y, sample_weight)
        values = _grid_of(problem, float(self.alpha)) if tradeoffs is None else np.asarray(list(tradeoffs), float)
        models, beta = [], None
        for value in np.sort(values)[::-1]:
            model = copy.copy(first).set_params(tradeoff=float(value))
            model._validate_params()
            beta = model._solve(problem, beta)
            models.append(model)
        return models

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """Values of `tradeoff` from nearly cost-blind to nothing but the cheapest, whatever the unit of the prices.

        No standardised feature has a larger gradient than the deviation of y, so a penalty of that size buys nothing.
        """
        costs = self._given_costs()
        y = np.asarray(y)
        targets = self._target_of(y).encode(y)
        share = shares(row_weights(sample_weight, len(y)), len(y))
        std = math.sqrt(float(share @ ((targets - share @ targets) ** 2).sum(axis=1)))
        each = feature_prices(costs) if costs.each is None else np.array([costs.each])
        paid = each[each > 0] if (each > 0).any() else np.ones(1)
        return np.geomspace(1e-3 / paid.max(), 0.5 / paid.min(), n_points) * (std or 1.0)

    def _pose(self, X: Any, y: Any, sample_weight: Any) -> _Problem:
        X, y, weights = self._fit_rows(X, y, sample_weight)
        targets = self._fit_target(y).encode(y)
        costs = self._bound_costs()
        data = standard(X, weights)
        share = weights / weights.sum()
        mean = share @ targets
        root = np.sqrt(share)[:, None]
        lasso = GroupLasso(data.Z * root, (targets - mean) * root)
        return _Problem(costs, feature_prices(costs)[data.order], data, weights, targets, mean, lasso)

    def _solve(self, problem: _Problem, start: Floats | None) -> Floats:
        """Solve for this tradeoff and make the plan; returns the penalised coefficients, where the next may start."""
        found = problem.lasso.solve(self.tradeoff * problem.prices + self.alpha, start)
        if not found.converged:
            warnings.warn(
                f"{type(self).__name__} stopped {found.violation:g} short of the optimum: some features may be "
                "nearly the same. Raise alpha, or remove one of them.",
                ConvergenceWarning,
                stacklevel=3,
            )
        beta = found.beta
        if self.refit:
            used = np.flatnonzero(beta.any(axis=1))
            beta = np.zeros_like(beta)
            beta[used] = least_squares(problem.lasso.Z[:, used], problem.lasso.Y)
        self.n_iter_ = found.n_sweeps
        self._finish(problem, beta)
        return found.beta

    def _finish(self, problem: _Problem, beta: Floats) -> None:
        """Turn coefficients of standardised features into the plan."""
        raise NotImplementedError


class CostWeightedL1Regressor(PlanRegressor, _CostWeightedL1):
    """A sparse linear regression whose penalty on each feature is its price.

    It minimises mean ½(y − xᵀβ − b)² + Σ_j (tradeoff · price_j + alpha) |β_j| over standardised features.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    tradeoff : float, default=0.001
        λ, 0 or more: the price of a unit of cost in units of the mean loss.
    alpha : float, default=0.0
        Penalty on all features alike, 0 or more.
    refit : bool, default=True
        Whether least squares weighs the features that the penalty chose.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    coef_ : ndarray
        Weights of the features.
    intercept_ : float or ndarray
        Constant.
    n_iter_ : int
        Sweeps of coordinate descent.

    References
    ----------
    Xu's thesis (2014), equation (3.1) with the cost relaxed to l1.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.baselines import CostWeightedL1Regressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = X[:, 0] + X[:, 1] * X[:, 2]
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = CostWeightedL1Regressor(costs, tradeoff=0.01).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """

    def _finish(self, problem: _Problem, beta: Floats) -> None:
        self.plan_ = self._one_node(problem.costs, problem.data, beta, problem.mean, problem.mean)


class CostWeightedL1Classifier(PlanClassifier, _CostWeightedL1):
    """A sparse linear classifier whose penalty on each feature is its price.

    Squared loss on ±1, each class against the rest; a feature is paid for once. Probabilities by Platt's scaling or
    linear discriminant analysis.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    tradeoff : float, default=0.001
        λ, 0 or more: the price of a unit of cost in units of the mean loss.
    alpha : float, default=0.0
        Penalty on all features alike, 0 or more.
    refit : bool, default=True
        Whether least squares weighs the features that the penalty chose.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    classes_ : ndarray
        The classes, in order.
    coef_ : ndarray
        Weights of the features.
    intercept_ : float or ndarray
        Constant.
    n_iter_ : int
        Sweeps of coordinate descent.

    References
    ----------
    Xu's thesis (2014), equation (3.1) with the cost relaxed to l1.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.baselines import CostWeightedL1Classifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = CostWeightedL1Classifier(costs, tradeoff=0.01).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """

    def _finish(self, problem: _Problem, beta: Floats) -> None:
        used = np.flatnonzero(beta.any(axis=1))
        scores = problem.data.Z[:, used] @ beta[used] + problem.mean
        link: Link = "logistic" if len(self.classes_) == 2 else "softmax"
        if link == "logistic":
            scale, offset = calibrated(scores, problem.targets, problem.weights)
            matrix, prior = np.diag(scale), log_odds(problem.targets, problem.weights)
        else:
            matrix, offset = discriminant(scores, problem.targets > 0, problem.weights)
            prior = log_shares(problem.targets, problem.weights)
        constant = problem.mean @ matrix + offset
        self.plan_ = self._one_node(problem.costs, problem.data, beta @ matrix, constant, prior, link, self.classes_)


def _grid_of(problem: _Problem, alpha: float) -> np.ndarray:
    """Tradeoffs from the first that buys a paid feature down to a thousandth of it."""
    paid = problem.prices > 0
    strength = problem.lasso.gradient_norms(~paid & (alpha == 0.0)) - alpha
    first = float((strength[paid] / problem.prices[paid]).max(initial=0.0))
    return np.geomspace(first, first * 1e-3, 8) if first > 0 else np.zeros(1)

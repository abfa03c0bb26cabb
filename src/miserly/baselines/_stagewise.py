"""Stage-wise regression, the cost-blind boosting that all are compared with, whole or on the cheap features only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from miserly.boosting import BinnedData, Loss
from miserly.costs import CostTable
from miserly.estimators import BoostedClassifier, BoostedEstimator, BoostedRegressor, constraints


class _Stagewise(BoostedEstimator):
    """Boosting that does not look at prices; its only way to save is to stop early."""

    cost_axis = "n_estimators"

    def __init__(
        self,
        costs: CostTable | None = None,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_bins: int = 255,
        subsample: float = 1.0,
        max_features: float = 1.0,
        n_iter_no_change: int | None = None,
        loss: str | Loss = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.costs = costs
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_bins = max_bins
        self.subsample = subsample
        self.max_features = max_features
        self.n_iter_no_change = n_iter_no_change
        self.loss = loss
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """Numbers of rounds, from one to all."""
        return np.unique(np.geomspace(1, self.n_estimators, n_points).round().astype(int))


class StagewiseRegressor(_Stagewise, BoostedRegressor):
    """Boosted trees for numbers, blind to cost; the number of rounds is the cost axis.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    n_estimators : int, default=100
        Rounds of boosting, 1 or more; each round grows one tree per output.
    learning_rate : float in (0, 1], default=0.1
        Factor of each tree's Newton step.
    max_depth : int or None, default=3
        Most levels of splits of a tree, 1 or more; None is no limit.
    max_leaf_nodes : int or None, default=None
        Most leaves of a tree, 2 or more, grown best first; None is no limit.
    min_samples_leaf : int, default=20
        Fewest rows of a leaf, 1 or more.
    l2_regularization : float, default=0.0
        Added to the hessian of each leaf, 0 or more.
    max_bins : int, default=255
        Most bins of a feature, 2 to 255.
    subsample : float in (0, 1], default=1.0
        Share of rows that each round sees.
    max_features : float in (0, 1], default=1.0
        Share of features that each round may use.
    n_iter_no_change : int or None, default=None
        Stop after this many rounds (1 or more) without improvement on `eval_set`; None does not stop early.
    loss : {"auto"} or Loss, default="auto"
        Squared loss, or an object with `constant`, `gradients` and `value`.
    warm_start : bool, default=False
        Whether `fit` continues the earlier fit; `n_estimators` then counts all rounds.
    random_state : int, RandomState or None, default=None
        Seed of everything that is drawn.
    n_jobs : int or None, default=None
        Threads of the kernels: a number, −1 for all cores, None for as many as numba uses now.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    n_iter_ : int
        Rounds kept.
    train_loss_ : list of float
        Training loss after each round.
    validation_loss_ : list of float or None
        Loss on `eval_set` after each round.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.baselines import StagewiseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = X[:, 0] + X[:, 1] * X[:, 2]
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = StagewiseRegressor(costs, n_estimators=10).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """


class StagewiseClassifier(_Stagewise, BoostedClassifier):
    """Boosted trees for classes, blind to cost; the number of rounds is the cost axis.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    n_estimators : int, default=100
        Rounds of boosting, 1 or more; each round grows one tree per output.
    learning_rate : float in (0, 1], default=0.1
        Factor of each tree's Newton step.
    max_depth : int or None, default=3
        Most levels of splits of a tree, 1 or more; None is no limit.
    max_leaf_nodes : int or None, default=None
        Most leaves of a tree, 2 or more, grown best first; None is no limit.
    min_samples_leaf : int, default=20
        Fewest rows of a leaf, 1 or more.
    l2_regularization : float, default=0.0
        Added to the hessian of each leaf, 0 or more.
    max_bins : int, default=255
        Most bins of a feature, 2 to 255.
    subsample : float in (0, 1], default=1.0
        Share of rows that each round sees.
    max_features : float in (0, 1], default=1.0
        Share of features that each round may use.
    n_iter_no_change : int or None, default=None
        Stop after this many rounds (1 or more) without improvement on `eval_set`; None does not stop early.
    loss : {"auto", "squared_hinge"} or Loss, default="auto"
        As in `GreedyMiserClassifier`.
    warm_start : bool, default=False
        Whether `fit` continues the earlier fit; `n_estimators` then counts all rounds.
    random_state : int, RandomState or None, default=None
        Seed of everything that is drawn.
    n_jobs : int or None, default=None
        Threads of the kernels: a number, −1 for all cores, None for as many as numba uses now.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    n_iter_ : int
        Rounds kept.
    train_loss_ : list of float
        Training loss after each round.
    validation_loss_ : list of float or None
        Loss on `eval_set` after each round.
    classes_ : ndarray
        The classes, in order.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.baselines import StagewiseClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = StagewiseClassifier(costs, n_estimators=10).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """


class _FeatureSubset(BoostedEstimator):
    """Cost-blind boosting on the features whose price, all that they need together, is at most `max_price`."""

    cost_axis = "max_price"
    _parameter_constraints: ClassVar[dict[str, Any]] = {"max_price": [constraints.limits(0)]}

    def __init__(
        self,
        costs: CostTable | None = None,
        max_price: float = np.inf,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_bins: int = 255,
        subsample: float = 1.0,
        max_features: float = 1.0,
        n_iter_no_change: int | None = None,
        loss: str | Loss = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.costs = costs
        self.max_price = max_price
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_bins = max_bins
        self.subsample = subsample
        self.max_features = max_features
        self.n_iter_no_change = n_iter_no_change
        self.loss = loss
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """The prices of features, at most `n_points` of them, from the cheapest to the most expensive."""
        costs = self._given_costs()
        prices = np.unique(list(costs.marginal().values())) if costs.each is None else np.array([costs.each])
        return prices[np.unique(np.linspace(0, len(prices) - 1, n_points).round().astype(int))]

    def _usable(self, data: BinnedData, costs: CostTable) -> BinnedData:
        prices = costs.marginal()
        affordable = np.array([prices[f] <= self.max_price for f in costs.features])
        return replace(data, n_bins=np.where(affordable, data.n_bins, 0).astype(data.n_bins.dtype))


class FeatureSubsetRegressor(_FeatureSubset, BoostedRegressor):
    """Boosted trees for numbers over the features up to a price.

    The papers call it regression on feature subsets.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    max_price : float, default=inf
        Highest price of a feature that may be used, 0 or more.
    n_estimators : int, default=100
        Rounds of boosting, 1 or more; each round grows one tree per output.
    learning_rate : float in (0, 1], default=0.1
        Factor of each tree's Newton step.
    max_depth : int or None, default=3
        Most levels of splits of a tree, 1 or more; None is no limit.
    max_leaf_nodes : int or None, default=None
        Most leaves of a tree, 2 or more, grown best first; None is no limit.
    min_samples_leaf : int, default=20
        Fewest rows of a leaf, 1 or more.
    l2_regularization : float, default=0.0
        Added to the hessian of each leaf, 0 or more.
    max_bins : int, default=255
        Most bins of a feature, 2 to 255.
    subsample : float in (0, 1], default=1.0
        Share of rows that each round sees.
    max_features : float in (0, 1], default=1.0
        Share of features that each round may use.
    n_iter_no_change : int or None, default=None
        Stop after this many rounds (1 or more) without improvement on `eval_set`; None does not stop early.
    loss : {"auto"} or Loss, default="auto"
        Squared loss, or an object with `constant`, `gradients` and `value`.
    warm_start : bool, default=False
        Whether `fit` continues the earlier fit; `n_estimators` then counts all rounds.
    random_state : int, RandomState or None, default=None
        Seed of everything that is drawn.
    n_jobs : int or None, default=None
        Threads of the kernels: a number, −1 for all cores, None for as many as numba uses now.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    n_iter_ : int
        Rounds kept.
    train_loss_ : list of float
        Training loss after each round.
    validation_loss_ : list of float or None
        Loss on `eval_set` after each round.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.baselines import FeatureSubsetRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = X[:, 0] + X[:, 1] * X[:, 2]
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = FeatureSubsetRegressor(costs, max_price=2.0, n_estimators=10).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 4)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedRegressor._parameter_constraints,
        **_FeatureSubset._parameter_constraints,
    }


class FeatureSubsetClassifier(_FeatureSubset, BoostedClassifier):
    """Boosted trees for classes over the features up to a price.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    max_price : float, default=inf
        Highest price of a feature that may be used, 0 or more.
    n_estimators : int, default=100
        Rounds of boosting, 1 or more; each round grows one tree per output.
    learning_rate : float in (0, 1], default=0.1
        Factor of each tree's Newton step.
    max_depth : int or None, default=3
        Most levels of splits of a tree, 1 or more; None is no limit.
    max_leaf_nodes : int or None, default=None
        Most leaves of a tree, 2 or more, grown best first; None is no limit.
    min_samples_leaf : int, default=20
        Fewest rows of a leaf, 1 or more.
    l2_regularization : float, default=0.0
        Added to the hessian of each leaf, 0 or more.
    max_bins : int, default=255
        Most bins of a feature, 2 to 255.
    subsample : float in (0, 1], default=1.0
        Share of rows that each round sees.
    max_features : float in (0, 1], default=1.0
        Share of features that each round may use.
    n_iter_no_change : int or None, default=None
        Stop after this many rounds (1 or more) without improvement on `eval_set`; None does not stop early.
    loss : {"auto", "squared_hinge"} or Loss, default="auto"
        As in `GreedyMiserClassifier`.
    warm_start : bool, default=False
        Whether `fit` continues the earlier fit; `n_estimators` then counts all rounds.
    random_state : int, RandomState or None, default=None
        Seed of everything that is drawn.
    n_jobs : int or None, default=None
        Threads of the kernels: a number, −1 for all cores, None for as many as numba uses now.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    n_iter_ : int
        Rounds kept.
    train_loss_ : list of float
        Training loss after each round.
    validation_loss_ : list of float or None
        Loss on `eval_set` after each round.
    classes_ : ndarray
        The classes, in order.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.baselines import FeatureSubsetClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = FeatureSubsetClassifier(costs, max_price=2.0, n_estimators=10).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 4)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedClassifier._parameter_constraints,
        **_FeatureSubset._parameter_constraints,
    }

"""Active feature acquisition with boosted trees: a predictor for every set of known values, and the value of each next
purchase.

The predictor is trained on rows of which random sets of acquisitions are known, then also on the states that its own
policy comes to. Value trees regress the expected drop of loss by each purchase on what is known. The policy buys the
candidate with the largest drop per price as long as that reaches λ (`tradeoff`). Its order does not depend on λ, so one
training gives the whole frontier.

Related: GDFS (Covert et al., ICML 2023) and DIME (Gadgil et al., ICLR 2024) train networks for the same two questions.
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from miserly._typing import Floats
from miserly.boosting import LogLoss, Loss, SoftmaxLoss, SquaredLoss
from miserly.costs import CostTable
from miserly.estimators._base import PlanClassifier, PlanEstimator, PlanRegressor, constraints, row_weights
from miserly.estimators.active._forest import Growth
from miserly.estimators.active._training import ActiveSettings, Training
from miserly.plan import PolicyPlan

VALUE_TREES = Growth(n_estimators=30, learning_rate=0.15, max_leaf_nodes=12, min_samples_leaf=30)


class _ActiveEstimator(PlanEstimator):
    """What the classifier and the regressor share."""

    cost_axis = "tradeoff"
    plan_: PolicyPlan
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "costs": constraints.COSTS,
        "tradeoff": [constraints.not_negative()],
        "n_estimators": [constraints.at_least(1)],
        "learning_rate": [constraints.share()],
        "max_leaf_nodes": [constraints.at_least(2)],
        "min_samples_leaf": [constraints.at_least(1)],
        "l2_regularization": [constraints.not_negative()],
        "n_rounds": [constraints.at_least(1)],
        "n_folds": [constraints.at_least(2)],
        "lookahead": ["boolean"],
        "max_bins": [constraints.whole(2, 255)],
        "random_state": ["random_state"],
        "n_jobs": constraints.N_JOBS,
    }

    def __init__(
        self,
        costs: CostTable | None = None,
        tradeoff: float = 1e-3,
        n_estimators: int = 300,
        learning_rate: float = 0.1,
        max_leaf_nodes: int = 15,
        min_samples_leaf: int = 10,
        l2_regularization: float = 2.5,
        n_rounds: int = 2,
        n_folds: int = 3,
        lookahead: bool = True,
        max_bins: int = 255,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.costs = costs
        self.tradeoff = tradeoff
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.n_rounds = n_rounds
        self.n_folds = n_folds
        self.lookahead = lookahead
        self.max_bins = max_bins
        self.random_state = random_state
        self.n_jobs = n_jobs

    def within(self, tradeoff: float) -> Self:
        """The same fitted model for another trade-off, without another training.

        Parameters
        ----------
        tradeoff : float, at least 0
            λ: the drop of loss that a unit of cost must bring.

        Returns
        -------
        model : a fitted estimator of the same kind
        """
        model = copy.copy(self).set_params(tradeoff=tradeoff)
        model.plan_ = self._fitted_plan().at(tradeoff)  # type: ignore[attr-defined]
        return model

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> Floats:
        """Values of `tradeoff` from where nearly everything is bought to where nearly nothing is.

        Parameters
        ----------
        y : array of labels
            The training labels.
        n_points : int, default=8
            How many values.
        sample_weight : array of float, optional
            What each row counts.

        Returns
        -------
        grid : array of float, rising
        """
        costs = self._given_costs()
        loss, target = self._loss_and_target(np.asarray(y))
        weight = row_weights(sample_weight, len(target))
        constant = loss.constant(target, weight)
        start = loss.value(target, np.repeat(constant[:, None], len(target), axis=1), weight) or 1.0
        prices = [p for p in costs.price_list if p > 0] or [costs.each or 1.0]
        return np.geomspace(1e-3 * start / max(prices), 0.5 * start / min(prices), n_points)

    def _train(self, X: Any, y: np.ndarray, weight: np.ndarray | None, link: str, classes: Any) -> None:
        """From checked data to `plan_`."""
        X = np.ascontiguousarray(X.toarray() if issparse(X) else X, np.float64)
        costs = self._bound_costs()
        if isinstance(costs.evaluation, tuple):
            raise ValueError("Boosting grows its own trees: give one evaluation price for all, not one per learner.")
        loss, target = self._loss_and_target(y)
        seed = int(check_random_state(self.random_state).randint(2**31))
        leaves = (self.max_leaf_nodes, self.min_samples_leaf, self.l2_regularization)
        growth = Growth(self.n_estimators, self.learning_rate, *leaves)
        sizes = (self.n_rounds, self.n_folds, self.lookahead, self.max_bins, self.n_jobs, seed, self.tradeoff == 0)
        settings = ActiveSettings(growth, VALUE_TREES, *sizes)
        notes = {"estimator": type(self).__name__, "tradeoff": float(self.tradeoff), **self._category_notes()}
        training = Training(X, target, loss, link, weight, costs, settings)
        self.plan_ = training.plan(self.tradeoff, classes, notes)

    def _loss_and_target(self, y: np.ndarray) -> tuple[Loss, np.ndarray]:
        raise NotImplementedError


class ActiveClassifier(PlanClassifier, _ActiveEstimator):
    """Predict a class from any set of known values, and say what to buy next.

    Parameters
    ----------
    costs : CostTable
        The price of each acquisition, and what each feature needs. There is no default price.
    tradeoff : float, at least 0, default=1e-3
        λ: the drop of expected log-loss that a unit of cost must bring. At 0 everything is bought, and prices are
        ignored in training too. `within` changes it without another training.
    n_estimators : int, at least 1, default=300
        The most rounds of the predictor; held-out rows say how many are used.
    learning_rate : float in (0, 1], default=0.1
        The step of each round.
    max_leaf_nodes : int, at least 2, default=15
        Leaves of each tree of the predictor.
    min_samples_leaf : int, at least 1, default=10
        Rows in each leaf, times the number of copies of each row in different states.
    l2_regularization : float, at least 0, default=2.5
        Draws leaves towards zero, times the number of copies of each row.
    n_rounds : int, at least 1, default=2
        Trainings: the first from random states of knowledge, each later one also from states that the policy visits.
    n_folds : int, at least 2, default=3
        Folds of rows. Calibration and values are learned on rows that the predictor has not seen.
    lookahead : bool, default=True
        Whether purchases are also judged together with the best purchases after them. It finds those that have a value
        only together.
    max_bins : int in [2, 255], default=255
        Bins of each feature.
    random_state : int, RandomState or None, default=0
        Seeds the states and the folds.
    n_jobs : int or None, default=None
        Threads; None takes all cores.

    Attributes
    ----------
    plan_ : PolicyPlan
        The fitted plan: save it, serve it, walk it.
    classes_ : array
        The classes in order.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array
        Their names, if X had names.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature({"cheap": 1.0, "expensive": 9.0, "useless": 1.0})
    >>> model = ms.ActiveClassifier(costs, tradeoff=0.01).fit(X, y)
    >>> walk = model.plan_.start(given={"expensive": 0.2})
    >>> walk.needs
    ('cheap',)
    >>> bool(model.within(1.0).predict_cost(X).max() == 0.0)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = _ActiveEstimator._parameter_constraints

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array or frame, rows × features
            NaN is a value that is missing even when it is bought.
        y : array of labels, one per row
        sample_weight : array of float, optional
            How much each row counts.

        Returns
        -------
        self
        """
        X, y, weight = self._fit_data(X, y, sample_weight, y_numeric=False)
        self.classes_ = self._find_classes(y)
        link = "logistic" if len(self.classes_) == 2 else "softmax"
        self._train(X, y, weight, link, self.classes_)
        return self

    def _loss_and_target(self, y: np.ndarray) -> tuple[Loss, np.ndarray]:
        classes = self._find_classes(y)
        loss = LogLoss() if len(classes) == 2 else SoftmaxLoss(len(classes))
        return loss, np.searchsorted(classes, y).astype(np.float64)


class ActiveRegressor(PlanRegressor, _ActiveEstimator):
    """Predict a number from any set of known values, and say what to buy next.

    The loss is half the squared error; `tradeoff` is in its unit. The other parameters and the attributes are those of
    `ActiveClassifier`, without `classes_`.

    Parameters
    ----------
    costs : CostTable
        The price of each acquisition, and what each feature needs. There is no default price.
    tradeoff : float, at least 0, default=1e-3
        λ: the drop of expected loss that a unit of cost must bring. At 0 everything is bought, and prices are
        ignored in training too. `within` changes it without another training.
    n_estimators : int, at least 1, default=300
        The most rounds of the predictor; held-out rows say how many are used.
    learning_rate : float in (0, 1], default=0.1
        The step of each round.
    max_leaf_nodes : int, at least 2, default=15
        Leaves of each tree of the predictor.
    min_samples_leaf : int, at least 1, default=10
        Rows in each leaf, times the number of copies of each row in different states.
    l2_regularization : float, at least 0, default=2.5
        Draws leaves towards zero, times the number of copies of each row.
    n_rounds : int, at least 1, default=2
        Trainings: the first from random states of knowledge, each later one also from states that the policy visits.
    n_folds : int, at least 2, default=3
        Folds of rows. Calibration and values are learned on rows that the predictor has not seen.
    lookahead : bool, default=True
        Whether purchases are also judged together with the best purchases after them.
    max_bins : int in [2, 255], default=255
        Bins of each feature.
    random_state : int, RandomState or None, default=0
        Seeds the states and the folds.
    n_jobs : int or None, default=None
        Threads; None takes all cores.

    Attributes
    ----------
    plan_ : PolicyPlan
        The fitted plan: save it, serve it, walk it.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array
        Their names, if X had names.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> X = np.random.default_rng(0).normal(size=(600, 3))
    >>> model = ms.ActiveRegressor(ms.CostTable.uniform(), tradeoff=0.05).fit(X, X[:, 0] + 0.1 * X[:, 1])
    >>> [float(cost) for cost in np.unique(model.predict_cost(X))]
    [1.0]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = _ActiveEstimator._parameter_constraints

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array or frame, rows × features
            NaN is a value that is missing even when it is bought.
        y : array of float, one per row
        sample_weight : array of float, optional
            How much each row counts.

        Returns
        -------
        self
        """
        X, y, weight = self._fit_data(X, y, sample_weight, y_numeric=True)
        self._train(X, y, weight, "identity", None)
        return self

    def _loss_and_target(self, y: np.ndarray) -> tuple[Loss, np.ndarray]:
        return SquaredLoss(), np.asarray(y, np.float64)

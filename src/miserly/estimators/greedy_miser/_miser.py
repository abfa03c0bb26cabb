"""Greedy Miser (Xu, Weinberger, Chapelle, ICML 2012): boosting that pays for each first use of an acquisition.

Each tree minimises  ½ mean (g − h)² + λ · (price of what it is first to use)  over trees h, with g the negative
gradient of the mean loss: equation (2.5), with the sum over rows made a mean so that λ does not depend on their number.

`charge="path"` is not in the paper: a split is charged only for those of its rows that do not own yet what it needs, so
that the objective is mean loss + λ · the mean cost of evaluating on demand.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from miserly.boosting import Loss
from miserly.costs import CostTable, total_price
from miserly.estimators._base import constraints, row_weights
from miserly.estimators.greedy_miser._boosted import BoostedEstimator
from miserly.estimators.greedy_miser._boosted_kinds import BoostedClassifier, BoostedRanker, BoostedRegressor


class _GreedyMiser(BoostedEstimator):
    """The parameters that regression, classification and ranking share."""

    cost_axis = "tradeoff"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "tradeoff": [constraints.not_negative()],
        "charge": [constraints.one_of("learner", "path")],
        "repeat_price": [constraints.not_negative()],
        "purchases": [constraints.one_of("lazy", "every_round")],
        "monotonic_cst": ["array-like", dict, None],
        "interaction_cst": [list, tuple, str, None],
    }

    def __init__(
        self,
        costs: CostTable | None = None,
        tradeoff: float = 1e-3,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_bins: int = 255,
        charge: str = "learner",
        repeat_price: float = 0.0,
        purchases: str = "every_round",
        subsample: float = 1.0,
        max_features: float = 1.0,
        n_iter_no_change: int | None = None,
        loss: str | Loss = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
    ) -> None:
        self.costs = costs
        self.tradeoff = tradeoff
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_bins = max_bins
        self.charge = charge
        self.repeat_price = repeat_price
        self.purchases = purchases
        self.subsample = subsample
        self.max_features = max_features
        self.n_iter_no_change = n_iter_no_change
        self.loss = loss
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """Values of `tradeoff` from nearly cost-blind to nearly nothing bought, whatever the unit of the prices.

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
        loss, target = self._loss_and_target(np.asarray(y))
        weight = row_weights(sample_weight, len(target))
        constant = loss.constant(target, weight)
        start = loss.value(target, np.repeat(constant[:, None], len(target), axis=1), weight)
        prices = [p for p in costs.price_list if p > 0] or [costs.each or 1.0]
        typical = total_price(prices) / len(prices)
        return np.geomspace(1e-5, 1e-1, n_points) * (start or 1.0) / typical


class GreedyMiserRegressor(_GreedyMiser, BoostedRegressor):
    """Cost-sensitive boosted trees for numbers.

    Each tree minimises ½ mean (g − h)² + λ · (price of what it is first to use), with g the negative gradient of
    the loss.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    tradeoff : float, default=0.001
        λ, 0 or more: the loss per row that a unit of cost per row must save. It is the paper's λ′ = λ/η, for a mean
        over rows. 0 ignores cost.
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
    charge : {"learner", "path"}, default="learner"
        Who pays for a feature: every row, once for the model, or only the rows that meet its splits.
    repeat_price : float, default=0.0
        Share of its price that each later use of an owned feature is charged in training, 0 or more. Nothing is
        charged at test time.
    purchases : {"every_round", "lazy"}, default="every_round"
        Whether all features are looked at in every round, as in the paper, or fewer while nothing new pays. By path
        both do the same.
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
    monotonic_cst : array-like of int of shape (n_features,), dict or None, default=None
        By feature (a dict: by name) 1, the score never falls as the feature rises; -1, never rises; 0, free. Not for
        missing values, categories, or more than two classes.
    interaction_cst : {"pairwise", "no_interactions"}, sequence of lists or None, default=None
        Groups of features, by number or name, that may meet on a path of a tree; features that are in none form one
        more group.

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

    References
    ----------
    Z. Xu, K. Weinberger, O. Chapelle. The Greedy Miser: Learning under Test-time Budgets. ICML 2012, equation (2.5)
    and algorithm 3 (as numbered in Xu's thesis, 2014).

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = X[:, 0] + X[:, 1] * X[:, 2]
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = ms.GreedyMiserRegressor(costs, tradeoff=0.01, n_estimators=20).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedRegressor._parameter_constraints,
        **_GreedyMiser._parameter_constraints,
    }


class GreedyMiserClassifier(_GreedyMiser, BoostedClassifier):
    """Cost-sensitive boosted trees for classes: logistic loss for two, softmax for more; all classes share what is
    bought.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    tradeoff : float, default=0.001
        λ, 0 or more: the loss per row that a unit of cost per row must save. It is the paper's λ′ = λ/η, for a mean
        over rows. 0 ignores cost.
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
    charge : {"learner", "path"}, default="learner"
        Who pays for a feature: every row, once for the model, or only the rows that meet its splits.
    repeat_price : float, default=0.0
        Share of its price that each later use of an owned feature is charged in training, 0 or more. Nothing is
        charged at test time.
    purchases : {"every_round", "lazy"}, default="every_round"
        Whether all features are looked at in every round, as in the paper, or fewer while nothing new pays. By path
        both do the same.
    subsample : float in (0, 1], default=1.0
        Share of rows that each round sees.
    max_features : float in (0, 1], default=1.0
        Share of features that each round may use.
    n_iter_no_change : int or None, default=None
        Stop after this many rounds (1 or more) without improvement on `eval_set`; None does not stop early.
    loss : {"auto", "squared_hinge"} or Loss, default="auto"
        Logistic or softmax loss; the squared hinge of each class against the rest, calibrated by Platt's method; or
        an object with `constant`, `gradients` and `value`.
    warm_start : bool, default=False
        Whether `fit` continues the earlier fit; `n_estimators` then counts all rounds.
    random_state : int, RandomState or None, default=None
        Seed of everything that is drawn.
    n_jobs : int or None, default=None
        Threads of the kernels: a number, −1 for all cores, None for as many as numba uses now.
    monotonic_cst : array-like of int of shape (n_features,), dict or None, default=None
        By feature (a dict: by name) 1, the score never falls as the feature rises; -1, never rises; 0, free. Not for
        missing values, categories, or more than two classes.
    interaction_cst : {"pairwise", "no_interactions"}, sequence of lists or None, default=None
        Groups of features, by number or name, that may meet on a path of a tree; features that are in none form one
        more group.

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

    References
    ----------
    Z. Xu, K. Weinberger, O. Chapelle. The Greedy Miser: Learning under Test-time Budgets. ICML 2012, equation (2.5)
    and algorithm 3 (as numbered in Xu's thesis, 2014).

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = ms.GreedyMiserClassifier(costs, tradeoff=0.001, n_estimators=20).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedClassifier._parameter_constraints,
        **_GreedyMiser._parameter_constraints,
    }


class GreedyMiserRanker(_GreedyMiser, BoostedRanker):
    """Cost-sensitive boosted trees for graded documents of queries.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    tradeoff : float, default=0.001
        λ, 0 or more: the loss per row that a unit of cost per row must save. It is the paper's λ′ = λ/η, for a mean
        over rows. 0 ignores cost.
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
    charge : {"learner", "path"}, default="learner"
        Who pays for a feature: every row, once for the model, or only the rows that meet its splits.
    repeat_price : float, default=0.0
        Share of its price that each later use of an owned feature is charged in training, 0 or more. Nothing is
        charged at test time.
    purchases : {"every_round", "lazy"}, default="every_round"
        Whether all features are looked at in every round, as in the paper, or fewer while nothing new pays. By path
        both do the same.
    subsample : float in (0, 1], default=1.0
        Share of rows that each round sees.
    max_features : float in (0, 1], default=1.0
        Share of features that each round may use.
    n_iter_no_change : int or None, default=None
        Stop after this many rounds (1 or more) without improvement on `eval_set`; None does not stop early.
    loss : {"squared", "lambdarank"}, default="squared"
        Fits the grades, as in the paper, or follows LambdaMART's gradients.
    metric : str, default="ndcg@5"
        What is followed on `eval_set=(X, y, qid)`.
    warm_start : bool, default=False
        Whether `fit` continues the earlier fit; `n_estimators` then counts all rounds.
    random_state : int, RandomState or None, default=None
        Seed of everything that is drawn.
    n_jobs : int or None, default=None
        Threads of the kernels: a number, −1 for all cores, None for as many as numba uses now.
    monotonic_cst : array-like of int of shape (n_features,), dict or None, default=None
        By feature (a dict: by name) 1, the score never falls as the feature rises; -1, never rises; 0, free. Not for
        missing values, categories, or more than two classes.
    interaction_cst : {"pairwise", "no_interactions"}, sequence of lists or None, default=None
        Groups of features, by number or name, that may meet on a path of a tree; features that are in none form one
        more group.

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
    validation_score_ : list of float or None
        The metric on `eval_set` after each round.

    References
    ----------
    Z. Xu, K. Weinberger, O. Chapelle. The Greedy Miser: Learning under Test-time Budgets. ICML 2012, equation (2.5)
    and algorithm 3 (as numbered in Xu's thesis, 2014).

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = X[:, 0] + X[:, 1] * X[:, 2]
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> qid = np.repeat(np.arange(10), 30)
    >>> model = ms.GreedyMiserRanker(costs, tradeoff=0.001, n_estimators=20).fit(X, np.digitize(y, [0.0, 1.0]), qid=qid)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedRanker._parameter_constraints,
        **_GreedyMiser._parameter_constraints,
    }

    def __init__(
        self,
        costs: CostTable | None = None,
        tradeoff: float = 1e-3,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_bins: int = 255,
        charge: str = "learner",
        repeat_price: float = 0.0,
        purchases: str = "every_round",
        subsample: float = 1.0,
        max_features: float = 1.0,
        n_iter_no_change: int | None = None,
        loss: str = "squared",
        metric: str = "ndcg@5",
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
    ) -> None:
        super().__init__(
            costs=costs,
            tradeoff=tradeoff,
            n_estimators=n_estimators,
            learning_rate=learning_rate,
            max_depth=max_depth,
            max_leaf_nodes=max_leaf_nodes,
            min_samples_leaf=min_samples_leaf,
            l2_regularization=l2_regularization,
            max_bins=max_bins,
            charge=charge,
            repeat_price=repeat_price,
            purchases=purchases,
            subsample=subsample,
            max_features=max_features,
            n_iter_no_change=n_iter_no_change,
            loss=loss,
            warm_start=warm_start,
            random_state=random_state,
            n_jobs=n_jobs,
            monotonic_cst=monotonic_cst,
            interaction_cst=interaction_cst,
        )
        self.metric = metric

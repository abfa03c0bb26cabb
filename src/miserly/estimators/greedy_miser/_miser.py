"""Greedy Miser (Xu, Weinberger, Chapelle, ICML 2012): boosting that pays for each first use of an acquisition.

Each tree minimises  ½ mean (g − h)² + λ · (price of what it is first to use)  over trees h, with g the negative
gradient of the mean loss: equation (2.5), with the sum over rows made a mean so that λ does not depend on their number.

`charge="path"` is not in the paper: a split is charged only for those of its rows that do not own yet what it needs, so
that the objective is mean loss + λ · the mean cost of evaluating on demand.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from miserly.boosting import Loss
from miserly.costs import CostTable
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

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """Values of `tradeoff` from nearly cost-blind to nearly nothing bought, whatever the unit of the prices."""
        costs = self._given_costs()
        loss, target = self._loss_and_target(np.asarray(y))
        weight = row_weights(sample_weight, len(target))
        constant = loss.constant(target, weight)
        start = loss.value(target, np.repeat(constant[:, None], len(target), axis=1), weight)
        prices = [p for p in costs.price_list if p > 0] or [costs.each or 1.0]
        typical = math.fsum(prices) / len(prices)
        return np.geomspace(1e-5, 1e-1, n_points) * (start or 1.0) / typical


class GreedyMiserRegressor(_GreedyMiser, BoostedRegressor):
    """Cost-sensitive boosted trees for numbers; squared loss unless `loss` is one of your own.

    `tradeoff` is λ: the loss that a unit of cost per row must save. `charge` says who pays: "learner", every row for
    every feature of the model; "path", a row only for the splits it meets. `repeat_price` is the part of its price that
    each later use of an owned feature is charged in training (nobody pays it at test time). `purchases="lazy"` does not
    look at all features in every round when nothing new pays, "every_round" does, as the paper; by path, both do.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedRegressor._parameter_constraints,
        **_GreedyMiser._parameter_constraints,
    }


class GreedyMiserClassifier(_GreedyMiser, BoostedClassifier):
    """Cost-sensitive boosted trees for classes: logistic loss for two, softmax with one shared purse for more.

    `loss="squared_hinge"` is each class against the rest, read as probabilities by Platt's method. The other parameters
    are those of `GreedyMiserRegressor`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedClassifier._parameter_constraints,
        **_GreedyMiser._parameter_constraints,
    }


class GreedyMiserRanker(_GreedyMiser, BoostedRanker):
    """Cost-sensitive boosted trees for graded documents of queries.

    `loss="squared"` fits the grades, as the paper does; "lambdarank" follows LambdaMART's gradients. `metric` is
    watched on `eval_set=(X, y, qid)`, and stops with `n_iter_no_change`.
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
        )
        self.metric = metric

"""The Greedy Miser for all budgets at once: λ falls, what is owned only grows, and every stage is a model of its own.

At each λ, from where nothing pays down by halves, a fresh model is boosted with all that is owned already for free:
what it buys, in its order, is bought for good. After each purchase, or after as many as raise the price by a tenth, a
model is grown anew with exactly what is owned. It is a stage of the plan and replaces the one before. (A single run
with a falling λ, whose prefixes are the stages, is behind models trained for each budget: its early trees are few.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from miserly.boosting import BackendOfRows, BinnedData, Boosted, Limits, LocalBackend, Loss, Settings, Shop, boost
from miserly.costs import CostTable, set_bits
from miserly.estimators import constraints
from miserly.estimators.anytime import Anytime
from miserly.estimators.boosted import BoostedEstimator
from miserly.estimators.boosted_kinds import BoostedClassifier, BoostedRegressor
from miserly.estimators.chain import chain
from miserly.estimators.validation import Validation
from miserly.kernels.threads import threads
from miserly.plan import Plan, stack_trees

LEAST_SHARE = 1e-5
RISE = 1.1


class _AnytimeMiser(Anytime, BoostedEstimator):
    """The parameters that regression and classification share."""

    subsample = max_features = 1.0
    n_iter_no_change = random_state = None
    warm_start = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {"budget": [constraints.not_negative(), None]}

    def __init__(
        self,
        costs: CostTable | None = None,
        budget: float | None = None,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int = 20,
        l2_regularization: float = 0.0,
        max_bins: int = 255,
        loss: str | Loss = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.costs = costs
        self.budget = budget
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_bins = max_bins
        self.loss = loss
        self.n_jobs = n_jobs

    def _boost(
        self,
        X: Any,
        y: np.ndarray,
        loss: Loss,
        weight: np.ndarray | None = None,
        watch: Validation | None = None,
        binned: BinnedData | None = None,
        checkpoint: Any = None,
    ) -> tuple[Boosted, CostTable]:
        """Grow all stages; the last one is what the estimator's fit goes on with."""
        if isinstance(X, BackendOfRows) or checkpoint is not None:
            raise ValueError(
                f"{type(self).__name__} is trained in one go on one machine: give no backend or checkpoint."
            )
        costs = self._bound_costs()
        self._check_settings(costs, watch)
        limits = Limits(self.max_depth, self.max_leaf_nodes, self.min_samples_leaf)
        settings = Settings(self.n_estimators, self.learning_rate, limits, l2=self.l2_regularization)
        with threads(self.n_jobs, X.shape[0] * X.shape[1]):
            data = self._in_bins(X, binned)
            self._stages = list(_stages(data, y, loss, weight, costs, settings))
        self.n_iter_ = sum(len(stage.rounds) for stage in self._stages)
        return self._stages[-1], costs

    def _plan(
        self,
        boosted: Boosted,
        costs: CostTable,
        link: Any = "identity",
        classes: np.ndarray | None = None,
        scale: Sequence[Any] | None = None,
        offset: Sequence[Any] | None = None,
    ) -> Plan:
        """A chain of open gates, each stage in place of the one before."""
        first, *stages = self._stages
        ones, zeros = np.ones((len(stages) + 1, len(first.constant))), np.zeros((len(stages) + 1, len(first.constant)))
        scales, offsets = ones if scale is None else np.array(scale), zeros if offset is None else np.array(offset)
        nodes = chain(
            [[output for this in stage.rounds for output in this.outputs] for stage in stages],
            scales[1:],
            [{"bias": a * s.constant + b, "combine": "replace"} for s, a, b in zip(stages, scales[1:], offsets[1:])],
        )
        return self._cut(
            Plan(
                costs=costs,
                dictionary=stack_trees([table for s in stages for this in s.rounds for table in this.tables]),
                nodes=nodes,
                prior=scales[0] * first.constant + offsets[0],
                link=link,
                classes=classes,
                roots=(0,) if nodes else (),
                notes={"estimator": type(self).__name__, **self._category_notes()},
            )
        )


def _stages(
    data: BinnedData, y: np.ndarray, loss: Loss, weight: np.ndarray | None, costs: CostTable, settings: Settings
) -> Iterator[Boosted]:
    """The model that owns nothing, then models for more and more acquisitions."""
    backend = LocalBackend(data, y, loss, weight)
    constant = backend.start()
    yield Boosted(constant, backend.loss(), (), ())
    gradient, _ = loss.gradients(y, np.repeat(constant[:, None], len(y), axis=1))
    prices, needs, spent = costs.price_list, costs.feature_masks, 0.0
    owned: set[int] = set()
    for lam in _tradeoffs(prices, 0.5 * float((gradient**2).mean(axis=1).max())):
        shop = _shop(costs, lam, owned)
        trees = [tree for this in boost(backend, shop, settings, loss.n_outputs).rounds for tree in this.trees]
        groups = [tree.bought for tree in trees if tree.bought]
        if not owned and not groups and trees:  # features that need nothing
            groups = [[]]
        for number, group in enumerate(groups, start=1):
            owned |= set(group)
            price = math.fsum(prices[a] for a in owned)
            if number == len(groups) or price > RISE * spent:
                spent = price
                usable = np.array([owned.issuperset(set_bits(mask)) for mask in needs])
                closed = LocalBackend(replace(data, n_bins=np.where(usable, data.n_bins, 0)), y, loss, weight)
                yield boost(closed, _shop(costs, lam, owned), settings, loss.n_outputs)


def _shop(costs: CostTable, lam: float, owned: set[int]) -> Shop:
    shop = Shop(costs, lam)
    shop.own(owned)
    return shop


def _tradeoffs(prices: Sequence[float], most: float) -> Iterator[float]:
    """λ by halves from where the cheapest thing costs all that a tree can gain (`most`), at last zero."""
    positive = [p for p in prices if p > 0]
    if positive and most > 0:
        lam, last = most / min(positive), LEAST_SHARE * most / (math.fsum(positive) / len(positive))
        while lam > last:
            yield lam
            lam /= 2.0
    yield 0.0


class AnytimeMiserRegressor(_AnytimeMiser, BoostedRegressor):
    """Cost-sensitive boosted trees for numbers, for all budgets with one training; squared loss unless `loss` is yours.

    `n_estimators` is the number of rounds of every stage; `budget` cuts the plan (`within` does so later). Stages share
    what is bought, not their trees: if evaluating a tree has a price, `AFRClassifier`, whose stages do, is the better.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedRegressor._parameter_constraints,
        **_AnytimeMiser._parameter_constraints,
    }


class AnytimeMiserClassifier(_AnytimeMiser, BoostedClassifier):
    """Cost-sensitive boosted trees for classes, for all budgets with one training.

    Losses are those of `GreedyMiserClassifier`, parameters those of `AnytimeMiserRegressor`. With the squared hinge,
    every stage has its own calibration.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedClassifier._parameter_constraints,
        **_AnytimeMiser._parameter_constraints,
    }

    def _platt(self, boosted: Boosted, known: Validation, weight: np.ndarray | None) -> tuple[list[Any], list[Any]]:
        fits = [super(AnytimeMiserClassifier, self)._platt(stage, known, weight) for stage in self._stages]
        return [a for a, _ in fits], [b for _, b in fits]

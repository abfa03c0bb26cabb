"""The Greedy Miser for all budgets at once: λ falls, what is owned only grows, and every stage is a model of its own.

Where evaluating trees costs little of what is spent: at each λ, from where nothing pays down by halves, a fresh model
is boosted with all that is owned already for free. What it buys, in its order, is bought for good. After each purchase,
or after as many as raise the price by a tenth, a new model is grown with exactly what is owned: a stage, in place of
the one before. (A single run with a falling λ, whose prefixes are the stages, is behind that: its early trees are few.)

Where evaluation is expensive, so are trees that are replaced: one run goes on, a few trees at each λ, and its prefixes
are the stages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from miserly.boosting import (
    BackendOfRows,
    BinnedData,
    Boosted,
    LocalBackend,
    Loss,
    ModelPricing,
    Settings,
    TreeLimits,
    boost,
    boost_from,
)
from miserly.costs import CostTable, set_bits, total_price
from miserly.estimators._base import Anytime, constraints, falling_tradeoffs
from miserly.estimators.greedy_miser._boosted import BoostedEstimator
from miserly.estimators.greedy_miser._boosted_kinds import BoostedClassifier, BoostedRegressor
from miserly.estimators.greedy_miser._chain import chain
from miserly.estimators.greedy_miser._validation import Validation
from miserly.kernels.threads import threads
from miserly.plan import Plan, stack_trees

LEAST_SHARE = 1e-5
RISE = 1.1
ROUNDS_AT_ONCE = 10
LEAP = 4.0
FURTHER_DOWN = 16.0


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
        limits = TreeLimits(self.max_depth, self.max_leaf_nodes, self.min_samples_leaf)
        settings = Settings(self.n_estimators, self.learning_rate, limits, l2=self.l2_regularization)
        with threads(self.n_jobs, X.shape[0] * X.shape[1]):
            data = self._in_bins(X, binned)
            self._stages = list(_StageGrowth(data, y, loss, weight, costs, settings).stages())
        self.n_iter_ = len({id(this) for stage in self._stages for this in stage.rounds})
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
        grown = {id(this): this for stage in stages for this in stage.rounds}
        ends = np.cumsum([0, *(len(this.outputs) for this in grown.values())]).tolist()
        numbers = {key: range(first, end) for key, (first, end) in zip(grown, pairwise(ends))}
        nodes = chain(
            [[output for this in stage.rounds for output in this.outputs] for stage in stages],
            scales[1:],
            [{"bias": a * s.constant + b, "combine": "replace"} for s, a, b in zip(stages, scales[1:], offsets[1:])],
            [[k for this in stage.rounds for k in numbers[id(this)]] for stage in stages],
        )
        return self._cut(
            self._with_background(
                Plan(
                    costs=costs,
                    dictionary=stack_trees([table for this in grown.values() for table in this.tables]),
                    nodes=nodes,
                    prior=scales[0] * first.constant + offsets[0],
                    link=link,
                    classes=classes,
                    roots=(0,) if nodes else (),
                    notes={"estimator": type(self).__name__, **self._category_notes()},
                )
            )
        )


class _StageGrowth:
    """A model that grows while λ falls: what it owns, how many trees it has paid for, and its stages."""

    def __init__(
        self,
        data: BinnedData,
        y: np.ndarray,
        loss: Loss,
        weight: np.ndarray | None,
        costs: CostTable,
        settings: Settings,
    ) -> None:
        self._data, self._rows, self._costs, self._settings = data, (y, loss, weight), costs, settings
        self._prices, self._n_outputs = costs.price_list, loss.n_outputs
        self._evaluation = float(np.max(costs.evaluation, initial=0.0))
        self._owned: set[int] = set()
        self._n_trees = 0
        backend = self._backend()
        constant = backend.start()
        self._model = Boosted(constant, backend.loss(), (), ())
        self._scores = backend.rows.scores
        gradient, _ = loss.gradients(y, self._scores)
        self._most = 0.5 * float((gradient**2).mean(axis=1).max())

    @property
    def _spent(self) -> float:
        return self._price(self._owned) + self._n_trees * self._evaluation

    def _price(self, acquisitions: Iterable[int]) -> float:
        return total_price(self._prices[a] for a in acquisitions)

    def stages(self) -> Iterator[Boosted]:
        """The model that owns nothing, then models for more and more; λ falls from where the cheapest thing costs all
        that a tree can gain, at last to zero."""
        yield self._model
        positive = [p for p in self._prices if p > 0]
        if positive and self._most > 0:
            last = LEAST_SHARE * self._most * len(positive) / math.fsum(positive)
            for lam, continues in falling_tradeoffs(self._most / min(positive), self._evaluation_and_spent, above=last):
                yield from self._grown_on(lam) if continues else self._grown_from_nothing(lam)
        yield from self._grown_from_nothing(0.0)

    def _evaluation_and_spent(self) -> tuple[float, float]:
        """What evaluating the trees of a level costs, and what is spent so far."""
        return self._evaluation * self._settings.n_estimators, self._spent

    def _grown_from_nothing(self, lam: float) -> Iterator[Boosted]:
        """Models grown from nothing, with what a first one buys at this λ."""
        first = boost(self._backend(), self._pricing_at(lam), self._settings, self._n_outputs)
        trees = [tree for this in first.rounds for tree in this.trees]
        groups = [tree.bought for tree in trees if tree.bought]
        if not self._owned and not groups and trees:  # features that need nothing
            groups = [[]]
        price = self._price(self._owned)
        for number, group in enumerate(groups, start=1):
            self._owned |= set(group)
            if number == len(groups) or self._price(self._owned) > RISE * price:
                price = self._price(self._owned)
                self._model = boost(self._backend(within=0.0), self._pricing_at(lam), self._settings, self._n_outputs)
                self._n_trees += sum(len(this.outputs) for this in self._model.rounds)
                yield self._model

    def _grown_on(self, lam: float) -> Iterator[Boosted]:
        """The model with a few more rounds; before a purchase that would multiply what is spent, cheaper ones are tried
        at a lower λ, so that budgets between get something."""
        grown = self._more_rounds(lam)
        reach = (LEAP - 1.0) * max(self._spent, self._evaluation + min(p for p in self._prices if p > 0))
        if any(self._price(tree.bought) > reach for this in grown[0].rounds for tree in this.trees):
            yield from self._taken(*self._more_rounds(lam / FURTHER_DOWN, reach))
            grown = self._more_rounds(lam)
        yield from self._taken(*grown)

    def _more_rounds(self, lam: float, within: float = math.inf) -> tuple[Boosted, np.ndarray]:
        """Rounds that go on from the model, and the scores after them."""
        here = Boosted(self._model.constant, self._model.start_loss, (), ())
        settings, (y, loss, weight) = replace(self._settings, n_estimators=ROUNDS_AT_ONCE), self._rows
        return boost_from(
            self._scores, self._features(within), y, loss, self._pricing_at(lam), settings, weight=weight, earlier=here
        )

    def _taken(self, more: Boosted, scores: np.ndarray) -> Iterator[Boosted]:
        """Add these rounds to the model: a stage whenever a tenth more is spent, and at their end."""
        at_stage, self._scores = self._spent, scores
        for number, this in enumerate(more.rounds, start=1):
            self._owned |= {a for tree in this.trees for a in tree.bought}
            self._n_trees += len(this.outputs)
            self._model = replace(self._model, rounds=(*self._model.rounds, this))
            if number == len(more.rounds) or self._spent > RISE * at_stage:
                at_stage = self._spent
                yield self._model

    def _backend(self, within: float = math.inf) -> LocalBackend:
        return LocalBackend(self._features(within), *self._rows)

    def _features(self, within: float) -> BinnedData:
        """The rows; with the features only whose missing acquisitions cost no more than that together."""
        if within == math.inf:
            return self._data
        missing = [self._price(set(set_bits(mask)) - self._owned) for mask in self._costs.feature_masks]
        return replace(self._data, n_bins=np.where(np.array(missing) <= within, self._data.n_bins, 0))

    def _pricing_at(self, lam: float) -> ModelPricing:
        pricing = ModelPricing(self._costs, lam)
        pricing.own(self._owned)
        return pricing


class AnytimeMiserRegressor(_AnytimeMiser, BoostedRegressor):
    """Cost-sensitive boosted trees for numbers, for all budgets with one training.

    λ falls, what is owned only grows, and every stage is a model of its own. Where evaluating so many trees would
    be expensive, stages continue the one before.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    budget : float or None, default=None
        Where the plan is cut, 0 or more; `within` does so later. None keeps all stages.
    n_estimators : int, default=100
        Rounds of every stage that starts from nothing, 1 or more.
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
    loss : {"auto"} or Loss, default="auto"
        Squared loss, or an object with `constant`, `gradients` and `value`.
    n_jobs : int or None, default=None
        Threads of the kernels: a number, −1 for all cores, None for as many as numba uses now.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    n_iter_ : int
        Rounds of all stages.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = X[:, 0] + X[:, 1] * X[:, 2]
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = ms.AnytimeMiserRegressor(costs, n_estimators=10).fit(X, y)
    >>> bool(model.within(3.0).predict_cost(X).max() <= 3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedRegressor._parameter_constraints,
        **_AnytimeMiser._parameter_constraints,
    }


class AnytimeMiserClassifier(_AnytimeMiser, BoostedClassifier):
    """Cost-sensitive boosted trees for classes, for all budgets with one training.

    With the squared hinge every stage has its own calibration.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    budget : float or None, default=None
        Where the plan is cut, 0 or more; `within` does so later. None keeps all stages.
    n_estimators : int, default=100
        Rounds of every stage that starts from nothing, 1 or more.
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
    loss : {"auto", "squared_hinge"} or Loss, default="auto"
        As in `GreedyMiserClassifier`.
    n_jobs : int or None, default=None
        Threads of the kernels: a number, −1 for all cores, None for as many as numba uses now.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    classes_ : ndarray
        The classes, in order.
    n_iter_ : int
        Rounds of all stages.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = ms.AnytimeMiserClassifier(costs, n_estimators=10).fit(X, y)
    >>> bool(model.within(3.0).predict_cost(X).max() <= 3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BoostedClassifier._parameter_constraints,
        **_AnytimeMiser._parameter_constraints,
    }

    def _platt(self, boosted: Boosted, known: Validation, weight: np.ndarray | None) -> tuple[list[Any], list[Any]]:
        fits = [super(AnytimeMiserClassifier, self)._platt(stage, known, weight) for stage in self._stages]
        return [a for a, _ in fits], [b for _, b in fits]

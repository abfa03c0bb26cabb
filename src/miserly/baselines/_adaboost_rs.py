"""AdaBoostRS (Reyzin, ICML 2011): AdaBoost whose vote is estimated from a sample of its trees that a budget can pay.

Trees are drawn with p_t ∝ α_t / c_t, with α_t the weight of the tree's vote and c_t the price of all that it looks at
and of its evaluation, until the next one does not fit into the budget. A drawn tree votes with α_t / p_t, so that the
mean of the draws is, in expectation, the vote of all that can be drawn. Trees that cost nothing always vote, trees that
cost more than the budget never; if the budget pays for everything, all vote as they would in AdaBoost.

The paper draws again for each row; here the draw is part of the fit, so that the model is one plan. To see how much it
matters, fit with several `random_state`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from miserly._typing import Floats
from miserly.boosting import (
    BinnedData,
    Grower,
    LocalBackend,
    ModelPricing,
    SquaredLoss,
    TreeLimits,
    bin_data,
    tree_table,
)
from miserly.costs import CostTable, Ledger, total_price
from miserly.estimators import TwoClasses, constraints, dense_blocks
from miserly.kernels.threads import threads
from miserly.plan import EXIT, Node, Plan, Trees, stack_trees
from miserly.solvers import platt

Says = NDArray[np.int8]
Table = dict[str, np.ndarray]
DRAWS_PER_TREE = 10
LEAST_SHARE = 1e-12


@dataclass(frozen=True)
class _Boosted:
    """Trees that say ±1, the weights of their votes, what they say of the training rows; and these rows' classes."""

    costs: CostTable
    tables: list[Table]
    alpha: list[float]
    says: list[Says]
    positive: NDArray[np.bool_]
    count: Floats


class AdaBoostRSClassifier(TwoClasses):
    """AdaBoost over trees, sampled for a budget.

    Trees are drawn with probability proportional to the weight of their vote over their price until the next one
    does not fit into the budget. The draw is part of the fit.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    budget : float, default=inf
        Most that a row may cost, 0 or more; infinity is plain AdaBoost.
    n_estimators : int, default=100
        Trees learned, 1 or more; fewer if one is no better than chance or makes no mistake.
    max_depth : int or None, default=3
        Most levels of splits of a tree, 1 or more; None is no limit.
    max_leaf_nodes : int or None, default=None
        Most leaves of a tree, 2 or more, grown best first; None is no limit.
    min_samples_leaf : int, default=20
        Fewest rows of a leaf, 1 or more.
    max_bins : int, default=255
        Most bins of a feature, 2 to 255.
    random_state : int, RandomState or None, default=None
        Seed of everything that is drawn.
    n_jobs : int or None, default=None
        Threads of the kernels: a number, −1 for all cores, None for as many as numba uses now.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    classes_ : ndarray
        The classes, in order.
    n_iter_ : int
        Trees learned.

    References
    ----------
    L. Reyzin. Boosting on a Budget: Sampling for Feature-Efficient Prediction. ICML 2011.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.baselines import AdaBoostRSClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = AdaBoostRSClassifier(costs, budget=5.0, n_estimators=10, random_state=0).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 5)
    True
    """

    cost_axis = "budget"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "costs": constraints.COSTS,
        "budget": [constraints.limits(0)],
        "n_estimators": [constraints.at_least(1)],
        "max_depth": [constraints.at_least(1), None],
        "max_leaf_nodes": [constraints.at_least(2), None],
        "min_samples_leaf": [constraints.at_least(1)],
        "max_bins": [constraints.whole(2, 255)],
        "random_state": ["random_state"],
        "n_jobs": constraints.N_JOBS,
    }

    def __init__(
        self,
        costs: CostTable | None = None,
        budget: float = np.inf,
        n_estimators: int = 100,
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int = 20,
        max_bins: int = 255,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.costs = costs
        self.budget = budget
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.max_bins = max_bins
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Boost, then draw."""
        self._sample(self._boosted(X, y, sample_weight))
        return self

    def path(
        self, X: Any, y: Any, budgets: Iterable[float] | None = None, n_draws: int = 1, sample_weight: Any = None
    ) -> list[Self]:
        """Fitted models for each budget (the suggested ones if none are given), several draws from the same trees each.

        Each tells in its `random_state` the seed with which a fit alone gives it too.
        """
        first = clone(self)
        boosted = first._boosted(X, y, sample_weight)
        seeds = check_random_state(self.random_state).randint(2**31, size=n_draws).tolist()
        models = []
        for budget in self.suggest_grid(y) if budgets is None else budgets:
            for seed in seeds:
                models.append(copy.copy(first).set_params(budget=float(budget), random_state=seed))
                models[-1]._validate_params()
                models[-1]._sample(boosted)
        return models

    def _boosted(self, X: Any, y: Any, sample_weight: Any) -> _Boosted:
        X, y, weight = self._fit_data(X, y, sample_weight, y_numeric=False)
        self.classes_ = self._find_classes(y)
        costs = self._bound_costs()
        if isinstance(costs.evaluation, tuple):
            raise ValueError("Boosting grows its own trees: give one evaluation price for all, not one per learner.")
        positive = y == self.classes_[1]
        count = np.ones(len(y)) if weight is None else weight
        with threads(self.n_jobs, X.shape[0] * X.shape[1]):
            data = bin_data(X, self.max_bins, n_jobs=self.n_jobs)
            tables, alpha, says = self._boost(data, X, np.where(positive, 1.0, -1.0), count / count.sum(), costs)
        self.n_iter_ = len(tables)
        return _Boosted(costs, tables, alpha, says, positive, count)

    def _sample(self, boosted: _Boosted) -> None:
        """Draw, and make the plan."""
        trees = stack_trees(boosted.tables)
        self.plan_ = self._plan(boosted, self._drawn(trees, np.array(boosted.alpha), boosted.costs))

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """Budgets from the price of a cheap feature to that of all."""
        costs = self._given_costs()
        if costs.each is not None:
            return np.geomspace(costs.each or 1.0, 100.0 * (costs.each or 1.0), n_points)
        paid = [price for price in costs.marginal().values() if price > 0] or [1.0]
        return np.geomspace(min(paid), total_price(costs.price_list) or 1.0, n_points)

    def _boost(
        self, data: BinnedData, X: Any, sign: Floats, share: Floats, costs: CostTable
    ) -> tuple[list[Table], list[float], list[Says]]:
        """Discrete AdaBoost: trees fitted to weighted ±1, whose leaves say +1 or −1; their votes, what they say."""
        limits = TreeLimits(self.max_depth, self.max_leaf_nodes, self.min_samples_leaf)
        tables: list[Table] = []
        alpha: list[float] = []
        says: list[Says] = []
        least = 0.5 / len(sign)  # a tree without a mistake would have all the say
        smallest = LEAST_SHARE * share
        for _ in range(self.n_estimators):
            table = _weighted_tree(data, sign, share, limits, costs)
            if table is None:
                break
            said = _said(table, X)
            wrong = float(share @ (said != sign))
            if wrong >= 0.5:
                break
            tables.append(table)
            alpha.append(0.5 * math.log((1.0 - wrong + least) / (wrong + least)))
            says.append(said.astype(np.int8))
            if wrong == 0.0:
                break
            share = share * np.exp(-alpha[-1] * sign * said)
            share = np.maximum(share / share.sum(), smallest)
            share /= share.sum()
        return tables, alpha, says

    def _drawn(self, trees: Trees, alpha: Floats, costs: CostTable) -> dict[int, float]:
        """The trees that vote, in the order in which they were drawn, and their weights."""
        ledger = Ledger(costs.price_list, costs.evaluation_prices(len(trees)))
        masks = []
        for t in range(len(trees)):
            masks.append(0)
            for f in trees.features_of(t):
                masks[t] |= costs.feature_masks[f]
        prices = np.array([ledger.price(mask, 1 << t) for t, mask in enumerate(masks)])
        every = 0
        for mask in masks:
            every |= mask
        if ledger.price(every, (1 << len(trees)) - 1) <= self.budget:
            return {t: float(a) for t, a in enumerate(alpha)}
        chosen = {int(t): float(alpha[t]) for t in np.flatnonzero(prices == 0)}
        paid = np.flatnonzero((prices > 0) & (prices <= self.budget))
        if not len(paid):
            return chosen
        rate = alpha[paid] / prices[paid]
        rng = check_random_state(self.random_state)
        counts: dict[int, int] = {}
        owned, evaluated = 0, sum(1 << t for t in chosen)
        for t in rng.choice(paid, DRAWS_PER_TREE * len(paid), p=rate / rate.sum()).tolist():
            if ledger.price(owned | masks[t], evaluated | 1 << t) > self.budget:
                break
            owned, evaluated = owned | masks[t], evaluated | 1 << t
            counts[t] = counts.get(t, 0) + 1
        n_draws = sum(counts.values())
        return chosen | {t: float(prices[t] * rate.sum()) * k / n_draws for t, k in counts.items()}

    def _plan(self, boosted: _Boosted, weights: dict[int, float]) -> Plan:
        """A chain, one node for each tree, in the order in which they were drawn."""
        count, total = float(boosted.count @ boosted.positive), float(boosted.count.sum())
        prior = math.log((count + 1.0) / (total - count + 1.0))
        nodes = []
        if weights:
            vote = np.zeros(len(boosted.count))
            for t, weight in weights.items():
                vote += weight * boosted.says[t]
            scale, prior = platt(vote, boosted.positive, boosted.count)
            last = len(weights) - 1
            nodes = [
                Node(np.array([i], np.int32), np.array([scale * weight]), passed=i + 1 if i < last else EXIT)
                for i, weight in enumerate(weights.values())
            ]
        return self._with_background(
            Plan(
                costs=boosted.costs,
                dictionary=stack_trees([boosted.tables[t] for t in weights]),
                nodes=tuple(nodes),
                prior=np.array([prior]),
                link="logistic",
                classes=self.classes_,
                roots=(0,) if nodes else (),
                notes={"estimator": type(self).__name__, **self._category_notes()},
            )
        )


def _weighted_tree(data: BinnedData, sign: Floats, share: Floats, limits: TreeLimits, costs: CostTable) -> Table | None:
    """The least-squares tree of ±1 under row weights, each leaf the sign of its mean; None if nothing can be split."""
    backend = LocalBackend(data, sign, SquaredLoss(), share)
    [mean] = backend.start()
    backend.gradients()
    tree = Grower(backend, ModelPricing(costs, 0.0), limits).grow()
    if not tree.splits:
        return None
    sums = backend.leaf_sums(tree.leaves)[:, 0]
    says = np.where(mean + sums[:, 0] / sums[:, 1] > 0, 1.0, -1.0)
    return tree_table(backend.data, tree, dict(zip(tree.leaves, says)))


def _said(table: Table, X: Any) -> Floats:
    tree, out = stack_trees([table]), np.empty(X.shape[0])
    for rows, block in dense_blocks(X):
        out[rows] = tree.evaluate(np.ascontiguousarray(block), 0)
    return out

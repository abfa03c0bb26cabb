"""One decision tree, charged by path: a row pays for the questions on its own way down, and for nothing else.

It minimises  ½ mean squared error + λ · mean cost  greedily, split by split, best first; for classes the error is that
of their indicators, which is half of Gini's impurity. λ = 0 is the ordinary, cost-blind tree.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from miserly.boosting import Grower, LocalBackend, RowPricing, SquaredLoss, TreeLimits, bin_data, tree_table
from miserly.costs import CostTable, total_price
from miserly.estimators import PlanClassifier, PlanEstimator, PlanRegressor, constraints, row_weights
from miserly.kernels.threads import threads
from miserly.plan import Node, Plan, stack_trees
from miserly.solvers import shares


class _PathTree(PlanEstimator):
    """The parameters and the growing that regression and classification share."""

    cost_axis = "tradeoff"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "costs": constraints.COSTS,
        "tradeoff": [constraints.not_negative()],
        "max_depth": [constraints.at_least(1), None],
        "max_leaf_nodes": [constraints.at_least(2), None],
        "min_samples_leaf": [constraints.at_least(1)],
        "max_bins": [constraints.whole(2, 255)],
        "n_jobs": constraints.N_JOBS,
    }

    def __init__(
        self,
        costs: CostTable | None = None,
        tradeoff: float = 1e-4,
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int = 5,
        max_bins: int = 255,
        n_jobs: int | None = None,
    ) -> None:
        self.costs = costs
        self.tradeoff = tradeoff
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.max_bins = max_bins
        self.n_jobs = n_jobs

    def suggest_grid(self, y: Any, n_points: int = 8, sample_weight: Any = None) -> np.ndarray:
        """Values of `tradeoff` from nearly cost-blind to nearly nothing bought, whatever the unit of the prices."""
        costs = self._given_costs()
        prices = [p for p in costs.price_list if p > 0] or [costs.each or 1.0]
        columns = self._columns(np.asarray(y))
        share = shares(row_weights(sample_weight, columns.shape[1]), columns.shape[1])
        variance = 0.5 * float((columns**2 @ share).sum() - ((columns @ share) ** 2).sum())
        return np.geomspace(1e-5, 1e-1, n_points) * (variance or 1.0) * len(prices) / total_price(prices)

    def _columns(self, y: np.ndarray) -> np.ndarray:
        """What the tree explains: output × row."""
        raise NotImplementedError

    def _grow(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> tuple[list[dict[str, np.ndarray]], np.ndarray]:
        """One table for each output, all of one shape, whose leaves hold means; and the means of all rows."""
        columns = self._columns(y)
        limits = TreeLimits(self.max_depth, self.max_leaf_nodes, self.min_samples_leaf)
        with threads(self.n_jobs, X.shape[0] * X.shape[1]):
            data = bin_data(X, self.max_bins, n_jobs=self.n_jobs)
            backend = LocalBackend(data, columns, SquaredLoss(len(columns)), weight)
            means = backend.start()
            backend.gradients()
            pricing = RowPricing(self._bound_costs(), self.tradeoff, backend)
            tree = Grower(backend, pricing, limits).grow(range(len(columns)))
            if tree.score <= pricing.evaluation:
                return [], means
            sums = backend.leaf_sums(tree.leaves)
            values = np.clip(means + sums[..., 0] / sums[..., 1], columns.min(axis=1), columns.max(axis=1))
            return [tree_table(backend.data, tree, dict(zip(tree.leaves, v))) for v in values.T], means

    def _one_node(self, tables: list[dict[str, np.ndarray]], prior: np.ndarray, link: Any, classes: Any) -> Plan:
        """The plan: as many learners as outputs, which ask the same questions, so evaluating them is paid once."""
        costs = self._bound_costs()
        if isinstance(costs.evaluation, tuple):
            raise ValueError("One tree has one evaluation price: give a number, not one per learner.")
        k = len(tables)
        outputs = tuple(range(len(prior)))
        learners = np.arange(k, dtype=np.int32)
        nodes = (Node(learners, np.eye(k), np.zeros(k), outputs, combine="replace"),) if k else ()
        return self._with_background(
            Plan(
                costs=replace(costs, evaluation=(costs.evaluation, *[0.0] * (k - 1))) if k > 1 else costs,
                dictionary=stack_trees(tables),
                nodes=nodes,
                prior=prior,
                link=link,
                classes=classes,
                roots=tuple(range(len(nodes))),
                charge="path",
                notes={
                    "estimator": type(self).__name__,
                    "tradeoff": float(self.tradeoff),
                    **self._category_notes(),
                },
            )
        )


class PathTreeRegressor(PlanRegressor, _PathTree):
    """One regression tree, charged by path: a row pays for the questions on its own way down.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    tradeoff : float, default=0.0001
        λ, 0 or more: the squared error that a unit of cost per row must save.
    max_depth : int or None, default=None
        Most levels of splits of a tree, 1 or more; None is no limit.
    max_leaf_nodes : int or None, default=None
        Most leaves of a tree, 2 or more, grown best first; None is no limit.
    min_samples_leaf : int, default=5
        Fewest rows of a leaf, 1 or more.
    max_bins : int, default=255
        Most bins of a feature, 2 to 255.
    n_jobs : int or None, default=None
        Threads of the kernels: a number, −1 for all cores, None for as many as numba uses now.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.baselines import PathTreeRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = X[:, 0] + X[:, 1] * X[:, 2]
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = PathTreeRegressor(costs, tradeoff=0.001, max_leaf_nodes=8).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PathTreeRegressor:
        """Grow the tree."""
        X, y, weight = self._fit_data(X, y, sample_weight, y_numeric=True)
        tables, means = self._grow(X, y.astype(np.float64), weight)
        self.plan_ = self._one_node(tables, means, "identity", None)
        return self

    def _columns(self, y: np.ndarray) -> np.ndarray:
        return y[None, :].astype(np.float64)


class PathTreeClassifier(PlanClassifier, _PathTree):
    """One classification tree, charged by path; probabilities are the leaf's class shares.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    tradeoff : float, default=0.0001
        λ, 0 or more: the squared error of probabilities that a unit of cost per row must save.
    max_depth : int or None, default=None
        Most levels of splits of a tree, 1 or more; None is no limit.
    max_leaf_nodes : int or None, default=None
        Most leaves of a tree, 2 or more, grown best first; None is no limit.
    min_samples_leaf : int, default=5
        Fewest rows of a leaf, 1 or more.
    max_bins : int, default=255
        Most bins of a feature, 2 to 255.
    n_jobs : int or None, default=None
        Threads of the kernels: a number, −1 for all cores, None for as many as numba uses now.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    classes_ : ndarray
        The classes, in order.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.baselines import PathTreeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = PathTreeClassifier(costs, tradeoff=0.001, max_leaf_nodes=8).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PathTreeClassifier:
        """Grow the tree."""
        X, y, weight = self._fit_data(X, y, sample_weight, y_numeric=False)
        self.classes_ = self._find_classes(y)
        tables, means = self._grow(X, y, weight)
        link = "logistic" if len(means) == 1 else "softmax"
        total = float(len(y) if weight is None else weight.sum())
        for table, mean in zip(tables, means):
            table["value"] = _logits(table["value"], mean, total, len(means))
        self.plan_ = self._one_node(tables, _logits(means, means, total, len(means)), link, self.classes_)
        return self

    def _columns(self, y: np.ndarray) -> np.ndarray:
        classes = self._find_classes(y)
        return np.array([y == k for k in (classes[1:] if len(classes) == 2 else classes)], np.float64)


def _logits(share: np.ndarray, whole: np.ndarray | float, total: float, n_outputs: int) -> np.ndarray:
    """Log-odds (one output) or log-shares, each share mixed with that of all rows, so that none is infinite."""
    least = 1e-3 / (total + 1.0)
    mixed = np.clip((share * total + whole) / (total + 1.0), least, 1.0 - least)
    return np.log(mixed) - np.log1p(-mixed) if n_outputs == 1 else np.log(mixed)

"""A dictionary of trees for learners that weigh trees: small ones and large ones, each looking at few acquisitions.

Trees of three levels that are grown blind to cost mix all features: every path through a tree or cascade that uses them
buys nearly everything, so paths cannot differ. Three pools are better together:

- stumps, boosted blind to cost, each on a random part of the features;
- for each acquisition, a few trees of two levels over the features that it gives;
- the Greedy Miser's trees, boosted at several λ.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_X_y

from miserly._typing import Floats
from miserly.boosting import (
    BinnedData,
    Boosted,
    LocalBackend,
    ModelPricing,
    Settings,
    SquaredLoss,
    TreeLimits,
    bin_data,
    boost,
)
from miserly.costs import CostTable
from miserly.estimators._base._base import row_weights
from miserly.estimators._base._categories import as_codes, find_categories
from miserly.estimators._base._target import ClassTarget, NumberTarget, Target
from miserly.kernels.threads import threads
from miserly.plan import Node, Plan, stack_trees

MOST_GROUPS = 64  # of acquisitions, the cheapest first: more make a dictionary that takes longer than its users
FEATURES_PER_STUMP = 0.3  # blind to cost, the same few features would be taken again and again
LIMITS = TreeLimits(3, None, 20)
SHARES = (1e-3, 1e-2, 1e-1)  # λ of the miser, in units of the variance of y over the mean price


def tree_dictionary(
    costs: CostTable,
    X: Any,
    y: Any,
    *,
    task: Literal["auto", "classification", "regression"] = "auto",
    n_stumps: int = 40,
    n_group_trees: int = 4,
    n_miser_trees: int = 30,
    max_depth: int = 3,
    min_samples_leaf: int = 20,
    learning_rate: float = 0.1,
    max_bins: int = 255,
    sample_weight: ArrayLike | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Plan:
    """Grow trees of mixed depth for CSTC, CSCC, ASTC and Cronus; `dictionary="trees"` there does the same.

    Parameters
    ----------
    costs : CostTable
        Prices of the features.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Training rows; NaN is a missing value.
    y : array-like of shape (n_rows,)
        Numbers or classes.
    task : {"auto", "classification", "regression"}, default="auto"
        What y is; "auto" takes floats for numbers and everything else for classes.
    n_stumps : int, default=40
        Rounds of stumps, 0 or more.
    n_group_trees : int, default=4
        Rounds of trees of two levels for each group of features that need the same acquisitions, 0 or more.
    n_miser_trees : int, default=30
        Rounds of the Greedy Miser at each of three λ, 0 or more.
    max_depth : int, default=3
        Levels of the miser's trees, 1 or more.
    min_samples_leaf : int, default=20
        Fewest rows of a leaf, 1 or more.
    learning_rate : float in (0, 1], default=0.1
        Factor of each tree's step.
    max_bins : int, default=255
        Most bins of a feature, 2 to 255.
    sample_weight : array-like or None, default=None
        Weights of the rows, 0 or more.
    random_state : int, RandomState or None, default=0
        Seed of the features that stumps see.
    n_jobs : int or None, default=None
        Threads of the kernels; None is as many as numba uses now.

    Returns
    -------
    Plan
        The mean of the pools' models; its `dictionary` are the trees.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = X[:, 0] + X[:, 1] * X[:, 2]
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> trees = ms.tree_dictionary(costs, X, y)
    >>> model = ms.CSTCRegressor(costs, tradeoff=0.01, dictionary=trees).fit(X, y)
    >>> bool(model.predict_cost(X).mean() <= 9)
    True
    """
    categories = find_categories(X)
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    X, y = check_X_y(
        as_codes(X, categories),
        y,
        accept_sparse="csc",
        dtype=[np.float64, np.float32],
        ensure_all_finite="allow-nan",
    )
    bound = costs.bind(X.shape[1] if names is None else names)
    return pooled_trees(
        bound,
        X,
        _target(task, y).encode(y),
        row_weights(sample_weight, len(y)),
        (n_stumps, n_group_trees, n_miser_trees),
        TreeLimits(max_depth, None, min_samples_leaf),
        learning_rate,
        max_bins,
        random_state,
        n_jobs,
    )


def _target(task: str, y: np.ndarray) -> Target:
    if task == "regression" or (task == "auto" and (y.dtype.kind == "f" or type_of_target(y) == "continuous")):
        return NumberTarget()
    return ClassTarget(np.unique(y))


def pooled_trees(
    costs: CostTable,
    X: Any,
    targets: Floats,
    weight: Floats | None = None,
    rounds: tuple[int, int, int] = (40, 4, 30),
    limits: TreeLimits = LIMITS,
    learning_rate: float = 0.1,
    max_bins: int = 255,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Plan:
    """The pools for targets (row × output), over columns that `costs` is bound to."""
    seed = int(check_random_state(random_state).randint(2**31))
    n_stumps, n_group_trees, n_miser_trees = rounds
    y = np.ascontiguousarray(targets.T)
    with threads(n_jobs, X.shape[0] * X.shape[1]):
        data = bin_data(X if issparse(X) else np.asarray(X), max_bins, n_jobs=n_jobs)

        def pool(part: BinnedData, tradeoff: float, settings: Settings) -> Boosted:
            backend = LocalBackend(part, y if len(y) > 1 else y[0], SquaredLoss(len(y)), weight)
            return boost(backend, ModelPricing(costs, tradeoff), settings, len(y), patient=settings.max_features < 1.0)

        pools = []
        if n_stumps:
            stump = TreeLimits(1, None, limits.min_samples_leaf)
            pools.append(pool(data, 0.0, Settings(n_stumps, learning_rate, stump, FEATURES_PER_STUMP, seed)))
        if n_group_trees:
            small = Settings(n_group_trees, learning_rate, TreeLimits(2, None, limits.min_samples_leaf))
            pools += [pool(part, 0.0, small) for part in _by_group(data, costs)]
        if n_miser_trees:
            miser = Settings(n_miser_trees, learning_rate, limits)
            pools += [pool(data, tradeoff, miser) for tradeoff in _tradeoffs(targets, costs)]
    return _mean_of(pools, costs, targets, weight)


def _by_group(data: BinnedData, costs: CostTable) -> list[BinnedData]:
    """The data with the features of one set of acquisitions at a time, the cheapest sets first."""
    price = dict(zip(costs.feature_masks, costs.marginal().values()))
    masks = np.array(costs.feature_masks, dtype=object)
    order = sorted(price, key=lambda mask: (price[mask], mask))[:MOST_GROUPS]
    return [replace(data, n_bins=np.where(masks == mask, data.n_bins, 0)) for mask in order]


def _tradeoffs(targets: Floats, costs: CostTable) -> list[float]:
    prices = [price for price in costs.marginal().values() if price > 0]
    unit = float(targets.var(axis=0).sum()) / (float(np.mean(prices)) if prices else 1.0)
    return [share * unit for share in SHARES]


def _mean_of(pools: list[Boosted], costs: CostTable, targets: Floats, weight: Floats | None) -> Plan:
    """The plan that says the mean of what all pools say."""
    pairs = [pair for pool in pools for this in pool.rounds for pair in zip(this.outputs, this.tables)]
    n_outputs = targets.shape[1]
    weights = np.zeros((len(pairs), n_outputs))
    weights[np.arange(len(pairs)), [output for output, _ in pairs]] = 1.0 / max(1, len(pools))
    prior = np.average(targets, axis=0, weights=weight)
    outputs = tuple(range(n_outputs))
    nodes = (Node(np.arange(len(pairs), dtype=np.int32), weights, np.zeros(n_outputs), outputs),) if pairs else ()
    return Plan(
        costs=costs,
        dictionary=stack_trees([table for _, table in pairs]),
        nodes=nodes,
        prior=prior,
        roots=(0,) if nodes else (),
        notes={"estimator": "tree_dictionary"},
    )

"""A rare class behind cheap, noisy and expensive, clean columns: what cascades are for."""

import numpy as np

from miserly.costs import CostTable
from miserly.estimators import GreedyMiserClassifier


def rare_class(n, seed, share=0.1):
    """Two hidden numbers, each seen by columns of 1, 10 and 50 (prices; cleaner ones cost more), and noise of 5."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 2))
    noise = np.array([1.0, 0.5, 0.1])
    X = np.concatenate([hidden[:, [j]] + noise * rng.normal(size=(n, 3)) for j in (0, 1)], axis=1)
    X = np.concatenate([X, rng.normal(size=(n, 4))], axis=1)
    score = hidden.sum(axis=1) + 0.2 * rng.normal(size=n)
    y = (score > np.quantile(score, 1 - share)).astype(int)
    return X, y, CostTable.per_feature(np.array([1, 10, 50, 1, 10, 50, 5, 5, 5, 5.0]))


def stumps(costs):
    """A dictionary with something to choose from: blind boosting itself would look at the expensive columns only."""
    return GreedyMiserClassifier(costs, tradeoff=0.0, n_estimators=60, max_depth=1, max_features=0.3, random_state=0)

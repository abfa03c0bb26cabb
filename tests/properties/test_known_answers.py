"""Estimators on sets whose best cost is known: two signs and one reading of four, three of eight, four of sixteen."""

import numpy as np
import pytest

from miserly.baselines import PathTreeRegressor
from miserly.estimators import ASTCRegressor, CSTCRegressor, GreedyMiserRegressor
from oracles.groups import best_cost, groups, noisy_groups


def figures(model, X, y):
    return float(np.mean((model.predict(X) - y) ** 2)), float(model.predict_cost(X).mean())


@pytest.mark.parametrize("shared", [0.0, 2.0])
@pytest.mark.parametrize("n_groups", [4, 8, 16])
def test_astc_finds_the_best_tree(n_groups, shared):
    """With budgets by level: all signs at the root, nothing on the way, one reading at the leaves."""
    n_signs = int(np.log2(n_groups))
    X, y, costs = groups(150 * n_groups, n_groups, shared=shared)
    train, test = slice(0, len(X) // 2), slice(len(X) // 2, None)
    budgets = [float(n_signs), *[0.0] * (n_signs - 1), 10.0 + shared]
    model = ASTCRegressor(costs, budgets, max_depth=n_signs + 1, l2_regularization=0.0).fit(X[train], y[train])
    error, cost = figures(model, X[test], y[test])
    assert error < 1e-6
    assert cost == best_cost(n_groups, shared)


@pytest.mark.parametrize("shared", [0.0, 2.0])
@pytest.mark.parametrize(
    ("n_groups", "tradeoff"), [(4, 0.005), (4, 0.03), (4, 0.07), (8, 0.005), (8, 0.03), (8, 0.07), (16, 0.05)]
)
def test_cstc_finds_the_best_tree(n_groups, tradeoff, shared):
    """With default settings, from λ = 0.005 to where the mixed norm stops buying a reading of deviation 1 (0.1)."""
    X, y, costs = groups(300 * n_groups, n_groups, shared=shared)
    train, test = slice(0, len(X) // 2), slice(len(X) // 2, None)
    depth = int(np.log2(n_groups)) + 1
    model = CSTCRegressor(costs, 10.0 * tradeoff / (10.0 + shared), max_depth=depth)
    error, cost = figures(model.fit(X[train], y[train]), X[test], y[test])
    assert error < 1e-3
    assert cost == best_cost(n_groups, shared)


def test_cstc_ignores_cheap_noise_and_bears_noisy_signs():
    """Signs with noise that seldom changes them, and four columns at a price of 1 that say nothing."""
    X, y, costs = noisy_groups(1200, 4)
    model = CSTCRegressor(costs, 0.05).fit(X[:600], y[:600])
    error, cost = figures(model, X[600:], y[600:])
    assert error < 0.5
    assert cost <= best_cost(4) + 0.5


@pytest.mark.parametrize("n_groups", [8, 16])
def test_cstc_is_never_worse_than_its_initialisation(n_groups):
    """The descent used to ruin a tree that was found at the start."""
    X, y, costs = groups(100 * n_groups, n_groups)
    depth = int(np.log2(n_groups)) + 1
    for tradeoff in (0.03, 0.08):
        start = CSTCRegressor(costs, tradeoff, max_depth=depth, max_iter=0).fit(X, y)
        model = CSTCRegressor(costs, tradeoff, max_depth=depth, max_iter=3).fit(X, y)
        (error, cost), (error_0, cost_0) = figures(model, X, y), figures(start, X, y)
        assert 0.5 * error + tradeoff * cost <= 0.5 * error_0 + tradeoff * cost_0 + 1e-9


@pytest.mark.parametrize("n_groups", [4, 8, 16])
def test_trees_charged_by_path_pay_for_one_reading(n_groups):
    """They cannot be exact, but rows of different groups buy different readings, and hardly more than one."""
    X, y, costs = groups(200 * n_groups, n_groups)
    train, test = slice(0, len(X) // 2), slice(len(X) // 2, None)
    tree = PathTreeRegressor(costs, tradeoff=0.01, min_samples_leaf=5).fit(X[train], y[train])
    error, cost = figures(tree, X[test], y[test])
    assert error < 0.3
    assert cost <= best_cost(n_groups) + 1.0
    miser = GreedyMiserRegressor(costs, tradeoff=0.02, charge="path", n_estimators=100, min_samples_leaf=5, max_depth=5)
    error, cost = figures(miser.fit(X[train], y[train]), X[test], y[test])
    assert error < 0.5
    assert cost <= 1.5 * best_cost(n_groups)

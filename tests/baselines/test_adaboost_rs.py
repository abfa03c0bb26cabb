"""AdaBoost sampled for a budget: by hand, against scikit-learn's AdaBoost, and what the draw is worth."""

import numpy as np
import pytest
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

import miserly as ms
from miserly.baselines import AdaBoostRSClassifier


def problem(n=800, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + 0.5 * rng.normal(size=n) > 0).astype(int)


STUMPS = {"max_depth": 1, "min_samples_leaf": 1}


def test_one_stump_by_hand():
    """It makes no mistake among four rows, and half a row is added: α = ½ log(9/8 ÷ 1/8) = log 3, of ±1.

    Two scores and Platt's softened targets, 4/5 of three positive rows and 1/3 of a negative one: log 4 and −log 2.
    """
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 1, 1])
    model = AdaBoostRSClassifier(ms.CostTable.uniform(2.0), n_estimators=5, **STUMPS).fit(X, y)
    assert model.n_iter_ == 1
    scale = (np.log(4) + np.log(2)) / (2 * np.log(3))
    assert model.plan_.nodes[0].weights[0, 0] == pytest.approx(scale * np.log(3))
    np.testing.assert_allclose(model.decision_function(X), [-np.log(2)] + 3 * [np.log(4)], atol=1e-9)
    assert model.predict(X).tolist() == [0, 1, 1, 1]
    assert model.predict_cost(X).tolist() == [2.0] * 4


def test_votes_are_those_of_scikit_learn():
    """The same stumps and, but for the half row that keeps a perfect tree finite, the same votes."""
    X, y = problem(200)  # fewer than there are bins, so that all cuts are tried
    model = AdaBoostRSClassifier(ms.CostTable.uniform(), n_estimators=12, **STUMPS).fit(X, y)
    peer = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=12).fit(X, y)
    mine = model.decision_function(X)
    theirs = sum(
        w / 2 * np.where(tree.predict(X) == 1, 1, -1) for w, tree in zip(peer.estimator_weights_, peer.estimators_)
    )
    slope, shift = np.polyfit(theirs, mine, 1)
    assert slope > 0
    assert np.abs(mine - slope * theirs - shift).max() < 0.02 * np.ptp(mine)


def test_draws_are_unbiased():
    """Over many draws the votes, each with α/p, add up to those of all trees."""
    X, y = problem(400)
    costs = ms.CostTable.per_feature([1.0, 2.0, 4.0, 8.0, 1.0, 1.0])
    model = AdaBoostRSClassifier(costs, n_estimators=8, **STUMPS).fit(X, y)
    trees = model.plan_.dictionary
    alpha = np.linspace(1.0, 0.3, len(trees))
    total = np.zeros(len(trees))
    for seed in range(500):
        weights = model.set_params(random_state=seed, budget=8.0)._drawn(trees, alpha, model.plan_.costs)
        total[list(weights)] += list(weights.values())
    # the end of a draw depends on what was drawn, so that it is nearly unbiased only: cheap ones come a little late
    np.testing.assert_allclose(total / 500, alpha, rtol=0.35)
    assert total.sum() / 500 == pytest.approx(alpha.sum(), rel=0.05)


def test_a_budget_is_kept_and_one_that_pays_for_all_draws_nothing():
    X, y = problem()
    costs = ms.CostTable.per_feature([1.0, 2.0, 4.0, 8.0, 1.0, 1.0], evaluation=0.125)
    whole = AdaBoostRSClassifier(costs, n_estimators=20).fit(X, y)
    for budget in (0.5, 3.0, 6.0, 12.0):
        some = AdaBoostRSClassifier(costs, budget, n_estimators=20, random_state=0).fit(X, y)
        assert (some.predict_cost(X) <= budget).all()
    assert not AdaBoostRSClassifier(costs, 0.5, n_estimators=20).fit(X, y).plan_.nodes
    everything = whole.predict_cost(X)[0]
    assert AdaBoostRSClassifier(costs, everything, n_estimators=20, random_state=7).fit(X, y).plan_ == whole.plan_


def test_the_draw_is_of_the_seed():
    X, y = problem()
    costs = ms.CostTable.per_feature([1.0, 2.0, 4.0, 8.0, 1.0, 1.0])
    plans = [
        AdaBoostRSClassifier(costs, 6.0, n_estimators=20, max_depth=1, random_state=s).fit(X, y).plan_
        for s in (0, 0, 1)
    ]
    assert plans[0] == plans[1]
    assert plans[0] != plans[2]


def test_free_trees_always_vote():
    X, y = problem()
    costs = ms.CostTable.per_feature([0.0, 0.0, 0.0, 8.0, 8.0, 8.0])
    model = AdaBoostRSClassifier(costs, 1.0, n_estimators=20, max_depth=2, random_state=0).fit(X, y)
    assert model.plan_.nodes
    assert not model.predict_cost(X).any()
    assert model.score(X, y) > 0.65


def test_a_path_is_separate_fits():
    X, y = problem()
    costs = ms.CostTable.per_feature([1.0, 2.0, 4.0, 8.0, 1.0, 1.0])
    model = AdaBoostRSClassifier(costs, n_estimators=10, random_state=3)
    path = model.path(X, y, budgets=[4.0, 9.0], n_draws=3)
    assert [m.budget for m in path] == [4.0] * 3 + [9.0] * 3
    assert [m.random_state for m in path[:3]] == [m.random_state for m in path[3:]]
    for along in path:
        alone = AdaBoostRSClassifier(costs, along.budget, n_estimators=10, random_state=along.random_state)
        assert along.plan_ == alone.fit(X, y).plan_
    assert not hasattr(model, "plan_")

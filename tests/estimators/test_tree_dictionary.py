"""Dictionaries of trees of mixed depth, and what cascades and trees of classifiers gain from them."""

import numpy as np
import pytest

import miserly as ms
from miserly.datasets import yahoo_like


def table(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = X[:, 0] * np.sign(X[:, 1]) + X[:, 2] + 0.1 * rng.normal(size=n)
    costs = ms.CostTable(
        features=tuple("abcde"),
        needs={"a": ("one",), "b": ("one",), "c": ("two",), "d": ("three",), "e": ("three",)},
        prices={"one": 1.0, "two": 3.0, "three": 2.0},
    )
    return X, y, costs


def test_pools_of_stumps_of_groups_and_of_the_misers_trees():
    X, y, costs = table()
    trees = ms.tree_dictionary(costs, X, y, n_stumps=7, n_group_trees=2, n_miser_trees=5).dictionary
    features = [set(trees.features_of(t)) for t in range(len(trees))]
    assert all(len(some) == 1 for some in features[:7])
    groups = ({0, 1}, {2}, {3, 4})
    assert all(any(some <= group for group in groups) for some in features[7:13])
    assert len(trees) <= 7 + 3 * 2 + 3 * 5
    assert any(len(some) > 2 for some in features[13:])


def test_the_plan_is_a_model_of_its_own():
    X, y, costs = table()
    plan = ms.tree_dictionary(costs, X, y)
    assert np.mean((plan.predict(X) - y) ** 2) < 0.8 * y.var()
    weighted = ms.tree_dictionary(costs, X, y, sample_weight=np.where(X[:, 3] > 0, 1.0, 0.0))
    assert weighted.prior[0] == pytest.approx(y[X[:, 3] > 0].mean())
    classes = ms.tree_dictionary(costs, X, np.digitize(y, [-0.5, 0.5]))
    assert classes.n_outputs == 3


@pytest.mark.parametrize("kind", [ms.CSTCRegressor, ms.CronusRegressor, ms.ASTCRegressor])
def test_the_word_trees_grows_them(kind):
    X, y, costs = table()
    X[::9, 2] = np.nan
    given = kind(costs, dictionary=ms.tree_dictionary(costs, X, y)).fit(X, y)
    assert kind(costs, dictionary="trees").fit(X, y).plan_ == given.plan_


@pytest.mark.parametrize("kind", [ms.CSTCClassifier, ms.CSCCClassifier])
def test_classes(kind):
    X, y, costs = table()
    for labels in (y > 0, np.digitize(y, [-0.5, 0.5])):
        model = kind(costs, tradeoff=1e-3, dictionary="trees", max_iter=2).fit(X, labels)
        assert model.score(X, labels) > 0.75


def test_paths_that_differ_cost_less():
    """Blind trees of three levels mix all features: at the same error every path bought nearly everything."""
    data = yahoo_like(60, seed=0)
    train, test = data.qid < 40, data.qid >= 40
    blind = ms.GreedyMiserRegressor(data.costs, tradeoff=0.0, n_estimators=60)
    figures = []
    for dictionary in (blind, "trees"):
        model = ms.CSTCRegressor(data.costs, tradeoff=1e-3, dictionary=dictionary, max_iter=3)
        model.fit(data.X[train], data.y[train])
        error = np.mean((model.predict(data.X[test]) - data.y[test]) ** 2)
        figures.append((error, model.predict_cost(data.X[test]).mean()))
    assert figures[1][0] <= figures[0][0] + 0.01
    assert figures[1][1] <= figures[0][1] + 1.0

"""One tree charged by path: small cases by hand, and the ordinary tree of scikit-learn where costs do not matter."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from miserly.baselines import PathTreeClassifier, PathTreeRegressor
from miserly.costs import CostTable


def test_a_tree_by_hand():
    """Feature a parts {0, 0, 4, 8} into {0, 0} and {4, 8}; feature b then parts 4 from 8.

    Mean 3. Root by a: ½·(4·3² − 2·3²·…) = ½·(2·0 + 2·6² − 4·3²)/4 = 4.5, paid by all: λ·1. Right leaf by b, mean 6:
    ½·(4² + 8² − 2·6²)/4 = 1, paid by half of the rows: λ·10/2. It pays up to λ = 0.2.
    """
    X, y = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0.0, 0.0, 4.0, 8.0])
    costs = CostTable.per_feature([1.0, 10.0])
    both = PathTreeRegressor(costs, tradeoff=0.199, min_samples_leaf=1).fit(X, y)
    assert both.predict(X).tolist() == [0.0, 0.0, 4.0, 8.0]
    assert both.predict_cost(X).tolist() == [1.0, 1.0, 11.0, 11.0]
    one = PathTreeRegressor(costs, tradeoff=0.201, min_samples_leaf=1).fit(X, y)
    assert one.predict(X).tolist() == [0.0, 0.0, 6.0, 6.0]
    assert one.predict_cost(X).tolist() == [1.0] * 4
    none = PathTreeRegressor(costs, tradeoff=4.51, min_samples_leaf=1).fit(X, y)
    assert none.predict(X).tolist() == [3.0] * 4
    assert not none.predict_cost(X).any()
    assert PathTreeRegressor(costs, tradeoff=4.49, min_samples_leaf=1).fit(X, y).selected_features_ == ["x0"]


def test_what_a_path_owns_is_free_further_down():
    """Two features share one purchase: the second split costs nothing."""
    X, y = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0.0, 0.1, 4.0, 8.0])
    costs = CostTable(features=["a", "b"], needs={"a": ["draw"], "b": ["draw"]}, prices={"draw": 2.0})
    tree = PathTreeRegressor(costs, tradeoff=1.0, min_samples_leaf=1).fit(X, y)
    np.testing.assert_allclose(tree.predict(X), y, atol=1e-6)
    assert tree.predict_cost(X).tolist() == [2.0] * 4


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("leaves", [4, 10])
def test_without_prices_it_is_the_ordinary_tree(n_classes, leaves):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5)).round(1)
    y = np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=2000), np.linspace(0, 2, n_classes - 1))
    ours = PathTreeClassifier(CostTable.uniform(), 0.0, max_leaf_nodes=leaves, min_samples_leaf=5).fit(X, y)
    theirs = DecisionTreeClassifier(max_leaf_nodes=leaves, min_samples_leaf=5).fit(X, y)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.999
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-3)


def test_without_prices_it_is_the_ordinary_regression_tree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 4)).round(1)
    y = X[:, 0] * X[:, 1] + rng.normal(size=1000)
    ours = PathTreeRegressor(CostTable.uniform(), 0.0, max_leaf_nodes=12).fit(X, y)
    theirs = DecisionTreeRegressor(max_leaf_nodes=12, min_samples_leaf=5).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)


def test_evaluating_the_tree_is_paid_once_whatever_the_number_of_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = np.digitize(X[:, 0], [-1, 0, 1])
    tree = PathTreeClassifier(CostTable.uniform(evaluation=0.25), 1e-4, max_leaf_nodes=4).fit(X, y)
    assert set(tree.predict_cost(X)) == {1.25}
    assert tree.predict(X, budget=1.0).tolist() == [tree.plan_.predict(X, budget=0)[0]] * 500


def test_a_tree_takes_one_evaluation_price():
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)
    costs = CostTable.per_feature([1.0, 1.0], evaluation=[1.0, 2.0])
    with pytest.raises(ValueError, match="one evaluation price"):
        PathTreeRegressor(costs).fit(X, y)

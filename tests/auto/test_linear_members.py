"""Linear members of the portfolio: as trees they must say what the regression says, and sums what their parts say."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, Ridge

from miserly import AutoMiserClassifier, CostTable, GreedyMiserClassifier, GreedyMiserRegressor
from miserly.auto._linear import LinearFitter, _columns, weighted_sum
from miserly.auto._task import Rows, Task
from miserly.metrics import get_metric


def a_task(X, y, kind):
    classes = np.unique(y) if kind == "classes" else None
    costs = CostTable.per_feature(np.arange(1.0, X.shape[1] + 1).tolist())
    metric = get_metric("accuracy" if kind == "classes" else "mse")
    return Task(kind, Rows(X, y.astype(np.float64)), None, classes, costs, metric, 0)


def a_table(kind, rng, n=150):
    X = np.c_[rng.normal(size=n), rng.integers(0, 4, n), rng.exponential(size=n) ** 4, np.full(n, 2.0)]
    X[rng.random(X.shape) < 0.1] = np.nan
    known = np.nan_to_num(X)
    signal = known[:, 0] + (known[:, 1] == 2)
    if kind == "numbers":
        return X, signal + rng.normal(size=n)
    return X, np.digitize(signal + 0.3 * rng.normal(size=n), [0.0, 1.0][: 1 if kind == "two" else 2])


@pytest.mark.parametrize("kind", ["two", "three", "numbers"])
def test_a_linear_plan_says_what_the_regression_says(kind):
    rng = np.random.default_rng(3)
    X, y = a_table(kind, rng)
    task = a_task(X, y, "numbers" if kind == "numbers" else "classes")
    like = (GreedyMiserRegressor if kind == "numbers" else GreedyMiserClassifier)(task.costs, n_estimators=2).fit(X, y)
    linear = LinearFitter(task)
    rows, features = np.arange(0, 150, 2), np.array([True, True, False, True])
    plan = linear.plan(rows, features, like.plan_)
    assert set(plan.used_features) <= {0, 1, 3}
    design = np.stack([c.read(X[:, c.feature]) for c in linear.columns if features[c.feature]], axis=1)
    if kind == "numbers":
        oracle = Ridge(alpha=1 / linear.strength).fit(design[rows], y[rows])
        np.testing.assert_allclose(plan.predict(X), oracle.predict(design), atol=1e-12)
        return
    oracle = LogisticRegression(C=linear.strength, max_iter=200, tol=1e-3).fit(design[rows], y[rows])
    np.testing.assert_allclose(plan.predict_proba(X), oracle.predict_proba(design), atol=1e-12)


def test_trees_of_columns_read_every_cell_as_the_design_does():
    rng = np.random.default_rng(0)
    for x in (rng.normal(size=500), rng.integers(0, 5, 300).astype(float), np.r_[rng.normal(size=90), [np.nan] * 10]):
        cells = np.r_[x, rng.normal(size=50) * 10, np.nan, -1e300, 1e300]
        for column in _columns(x, 0):
            walked = np.array([_walk(column.table(), cell) for cell in cells])
            np.testing.assert_array_equal(walked, column.read(cells))


def _walk(table, cell):
    """One cell through one tree, by hand."""
    at = 0
    while table["left"][at] != at:
        right = table["missing_right"][at] if np.isnan(cell) else cell > table["threshold"][at]
        at = table["left"][at] + int(right)
    return table["value"][at]


def test_a_missing_value_counts_as_the_mean():
    x = np.random.default_rng(0).normal(5.0, 2.0, 400)
    score = _columns(x, 0)[0]
    assert abs(score.read(np.array([np.nan]))[0]) < 0.05
    assert score.read(np.array([5.0]))[0] == pytest.approx(0.0, abs=0.1)
    assert score.read(np.array([7.0]))[0] == pytest.approx(1.0, abs=0.15)


def test_a_weighted_sum_scores_the_weighted_sum():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    y = np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])
    costs = CostTable.per_feature([1.0, 2.0, 3.0])
    plans = [GreedyMiserClassifier(costs, 0.0, n_estimators=n).fit(X[n:], y[n:]).plan_ for n in (3, 7, 5)]
    plans.append(LinearFitter(a_task(X, y, "classes")).plan(np.arange(200), np.ones(3, bool), plans[0]))
    weights = [0.4, 0.1, 0.2, 0.3]
    whole = weighted_sum(plans, weights)
    expected = sum(w * plan.run(X).score for plan, w in zip(plans, weights))
    np.testing.assert_allclose(whole.run(X).score, expected, atol=1e-12)
    assert np.isfinite([node.gain for node in whole.nodes[:7]]).all()


def test_few_rows_that_a_line_explains_get_one():
    """569 tumours: alone, boosted trees are two points behind logistic regression."""
    X, y = load_breast_cancer(return_X_y=True)
    model = AutoMiserClassifier(CostTable.per_feature([1.0] * 30), time_limit=None).fit(X[:240], y[:240])
    assert model.score(X[240:], y[240:]) > 0.945

"""CSCC as an estimator: early exits that cost less, class weights, order, several classes."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from miserly.estimators.cstc._cscc import CSCCClassifier
from miserly.estimators.cstc._cstc import CSTCClassifier
from miserly.metrics import get_metric
from oracles.rare import rare_class, stumps


@pytest.fixture(scope="module")
def data():
    X, y, costs = rare_class(3000, 0)
    return X[:1500], y[:1500], X[1500:], y[1500:], costs


def precision(model, X, y):
    return average_precision_score(y, model.rank_score(X))


def test_most_rows_leave_early(data):
    X, y, X_test, y_test, costs = data
    one = CSCCClassifier(costs, tradeoff=3e-4, n_stages=1).fit(X, y)
    model = CSCCClassifier(costs, tradeoff=1e-3, n_stages=3).fit(X, y)
    exits = model.plan_.run(X_test).exit[:, 0]
    assert model.n_stages_ == 3
    assert np.mean(exits == 0) > 0.25
    assert y_test[exits == 0].mean() < 0.3 * y_test.mean()
    assert model.predict_cost(X_test).mean() < 0.8 * one.predict_cost(X_test).mean()
    assert precision(model, X_test, y_test) > precision(one, X_test, y_test) - 0.02


def test_the_objective_never_rises(data):
    X, y, _, _, costs = data
    model = CSCCClassifier(costs, tradeoff=3e-4).fit(X, y)
    assert model.n_iter_ == sum(len(values) - 1 for values in model.objective_) > 0
    assert all(max(np.diff(values)) <= 0 for values in model.objective_)


def test_logistic_stages(data):
    """Rare rows are found as well as with squares, and the objective never rises."""
    X, y, X_test, y_test, costs = data
    squared, logistic = (CSCCClassifier(costs, tradeoff=3e-4, loss=loss).fit(X, y) for loss in ("squared", "logistic"))
    assert precision(logistic, X_test, y_test) > precision(squared, X_test, y_test) - 0.05
    assert all(max(np.diff(values), default=0.0) <= 1e-12 for values in logistic.objective_)


def test_rows_that_left_rank_below(data):
    X, y, X_test, _, costs = data
    model = CSCCClassifier(costs, tradeoff=3e-4, n_stages=3).fit(X, y)
    order, exits = model.rank_score(X_test), model.plan_.run(X_test).exit[:, 0]
    for stage in range(2):
        assert order[exits == stage].max() < order[exits > stage].min()


def test_class_weights_move_the_answers(data):
    X, y, X_test, _, costs = data
    plain = CSCCClassifier(costs, tradeoff=3e-4, n_stages=3).fit(X, y)
    balanced = CSCCClassifier(costs, tradeoff=3e-4, n_stages=3, class_weight="balanced").fit(X, y)
    heavy = CSCCClassifier(costs, tradeoff=3e-4, n_stages=3, class_weight={0: 0.2, 1: 1.8}).fit(X, y)
    assert balanced.predict(X_test).mean() > plain.predict(X_test).mean() + 0.03
    assert heavy.predict(X_test).mean() > plain.predict(X_test).mean() + 0.03


def test_one_stage_is_a_tree_of_one_node(data):
    X, y, X_test, _, costs = data
    cascade = CSCCClassifier(costs, tradeoff=3e-4, n_stages=1).fit(X, y)
    tree = CSTCClassifier(costs, tradeoff=3e-4, max_depth=1).fit(X, y)
    np.testing.assert_allclose(cascade.predict_proba(X_test), tree.predict_proba(X_test), rtol=1e-9)


def test_trees_as_learners(data):
    X, y, X_test, y_test, costs = data
    trees = stumps(costs).fit(X, y)
    model = CSCCClassifier(costs, tradeoff=1e-2, dictionary=trees).fit(X, y)
    assert model.predict_cost(X_test).mean() < trees.predict_cost(X_test).mean()
    assert precision(model, X_test, y_test) > 0.5


def test_several_classes(data):
    X, y, X_test, y_test, costs = data
    three, three_test = y + (X[:, 2] > 0), y_test + (X_test[:, 2] > 0)
    model = CSCCClassifier(costs, tradeoff=1e-4, n_stages=3).fit(X, three)
    assert model.predict_proba(X_test).shape == (1500, 3)
    assert model.score(X_test, three_test) > 0.8
    assert not any(node.tier for node in model.plan_.nodes)


@pytest.mark.parametrize("metric", [None, "auc"])
def test_validation_rows_choose_among_the_start_and_the_descent(data, metric):
    """The descent overfits; without validation rows there was no remedy."""
    X, y, _, _, costs = data
    train, valid = slice(0, 500), slice(500, None)
    settings = {"tradeoff": 1e-5, "n_stages": 3, "metric": metric}
    figure = get_metric(metric or "accuracy")

    def reached(model):
        output = model.predict(X[valid]) if metric is None else model.rank_score(X[valid])
        return figure(y[valid], output, classes=model.classes_)

    kept = CSCCClassifier(costs, **settings).fit(X[train], y[train], eval_set=(X[valid], y[valid]))
    candidates = [
        CSCCClassifier(costs, **settings).fit(X[train], y[train]),
        CSCCClassifier(costs, max_iter=0, **settings).fit(X[train], y[train]),
        CSCCClassifier(costs, **{**settings, "n_stages": 1}, max_iter=0).fit(X[train], y[train]),
    ]
    assert all(reached(kept) >= reached(other) - 1e-9 for other in candidates)
    assert max(reached(kept) - reached(other) for other in candidates) > 0.001

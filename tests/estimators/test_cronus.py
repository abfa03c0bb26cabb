"""Cronus as an estimator: both algorithms, order of the rejected, dummy stages, tuning."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from miserly.datasets import yahoo_like
from miserly.estimators.cronus._cronus import CronusClassifier, CronusRegressor
from oracles.rare import rare_class, stumps

FAST = {"n_stages": 4, "max_iter": 3}


def precision(model, X, y):
    return average_precision_score(y, model.rank_score(X))


@pytest.fixture(scope="module")
def data():
    X, y, costs = rare_class(3000, 0)
    return X[:1500], y[:1500], X[1500:], y[1500:], costs


def test_a_cascade_costs_less_than_one_stage_at_the_same_precision(data):
    X, y, X_test, y_test, costs = data
    one = CronusClassifier(costs, tradeoff=1e-3, n_stages=1).fit(X, y)
    assert one.n_stages_ == 1
    assert len(np.unique(one.predict_cost(X_test))) == 1
    for settings in ({"optimise": False}, FAST):
        many = CronusClassifier(costs, tradeoff=1e-3, **settings).fit(X, y)
        assert many.n_stages_ > 2
        assert many.predict_cost(X_test).mean() < 0.9 * one.predict_cost(X_test).mean()
        assert precision(many, X_test, y_test) > precision(one, X_test, y_test) + 0.05


def test_optimisation_lowers_its_objective_at_every_steepness(data):
    X, y, X_test, y_test, costs = data
    model = CronusClassifier(costs, tradeoff=1e-4, **FAST).fit(X, y, eval_set=(X_test[:500], y_test[:500]))
    assert len(model.objective_) == 3
    for values in model.objective_:
        assert max(np.diff(values)) <= 1e-9
        assert values[-1] < values[0]
    assert model.n_iter_ == sum(len(values) - 1 for values in model.objective_)
    assert roc_auc_score(y_test, model.rank_score(X_test)) > 0.85
    assert CronusClassifier(costs, tradeoff=1e-4, optimise=False, **FAST).fit(X, y).objective_ == []


def test_the_rejected_rank_below_all_that_went_on(data):
    X, y, X_test, _, costs = data
    model = CronusClassifier(costs, tradeoff=1e-4, optimise=False, **FAST).fit(X, y)
    run, order = model.plan_.run(X_test), model.rank_score(X_test)
    stages = run.exit[:, 0]
    assert len(np.unique(stages)) == model.n_stages_
    for stage in range(model.n_stages_ - 1):
        assert order[stages == stage].max() < order[stages > stage].min()
    inside = stages == model.n_stages_ - 1
    assert np.array_equal(np.argsort(order[inside]), np.argsort(model.decision_function(X_test)[inside]))


def test_stages_that_reject_nobody_are_taken_out(data):
    X, y, _, _, costs = data
    model = CronusClassifier(costs, tradeoff=1e-4, n_stages=6, keep=1.0, optimise=False).fit(X, y)
    assert model.n_stages_ < 6
    inflated = CronusClassifier(costs, tradeoff=3e-3, n_stages=6, inflation=4.0, optimise=False).fit(X, y)
    assert inflated.n_stages_ < 6


def test_class_weights_count_in_the_loss_and_not_in_the_cost(data):
    X, y, X_test, _, costs = data
    plain = CronusClassifier(costs, tradeoff=1e-4, optimise=False, **FAST).fit(X, y)
    heavy = CronusClassifier(costs, tradeoff=1e-4, optimise=False, class_weight={1: 9.0}, **FAST).fit(X, y)
    balanced = CronusClassifier(costs, tradeoff=1e-4, optimise=False, class_weight="balanced", **FAST).fit(X, y)
    assert heavy.predict(X_test).mean() > plain.predict(X_test).mean() + 0.03
    assert abs(balanced.predict(X_test).mean() - heavy.predict(X_test).mean()) < 0.03
    with pytest.raises(ValueError, match=r"class_weight names \[7\]"):
        CronusClassifier(costs, class_weight={7: 2.0}).fit(X, y)


def test_tuning_looks_at_rows_it_did_not_learn_from(data):
    X, y, X_test, y_test, costs = data
    tuned = CronusClassifier(costs, tradeoff=1e-4, tune=True, optimise=False, random_state=0, n_stages=3).fit(X, y)
    again = CronusClassifier(costs, tradeoff=1e-4, tune=True, optimise=False, random_state=0, n_stages=3).fit(X, y)
    assert tuned.choice_ == again.choice_
    given = CronusClassifier(costs, tradeoff=1e-4, tune=True, optimise=False, n_stages=3)
    given.fit(X, y, eval_set=(X_test, y_test))
    plain = CronusClassifier(costs, tradeoff=1e-4, optimise=False, n_stages=3).fit(X, y)
    assert roc_auc_score(y_test, given.rank_score(X_test)) >= roc_auc_score(y_test, plain.rank_score(X_test)) - 1e-3


def test_grades_and_their_own_metric():
    data = yahoo_like(40, seed=0)
    train, rest = data.qid < 25, data.qid >= 25
    model = CronusRegressor(data.costs, tradeoff=1e-3, tune=True, metric="ndcg@5", n_stages=3, max_iter=1)
    with pytest.raises(ValueError, match=r"give eval_set=\(X, y, qid\)"):
        model.fit(data.X[train], data.y[train])
    model.set_params(tune=False).fit(data.X[train], data.y[train])
    X, y = data.X[rest], data.y[rest]
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.15
    assert model.predict_cost(X).mean() > 0


def test_scale_of_y_does_not_matter():
    X, _, costs = rare_class(800, 1)
    y = X[:, 2] + X[:, 5]
    one = CronusRegressor(costs, tradeoff=1e-3, **FAST).fit(X, y)
    other = CronusRegressor(costs, tradeoff=8e-3, **FAST).fit(X, 8 * y + 4)
    np.testing.assert_allclose(8 * one.predict(X) + 4, other.predict(X), rtol=1e-3, atol=1e-2)


def test_trees_as_learners(data):
    X, y, X_test, y_test, costs = data
    trees = stumps(costs).fit(X, y)
    model = CronusClassifier(costs, tradeoff=3e-3, dictionary=trees, optimise=False, **FAST).fit(X, y)
    assert model.predict_cost(X_test).mean() < trees.predict_cost(X_test).mean()
    assert precision(model, X_test, y_test) > 0.5


def test_three_classes_are_refused():
    X, y, costs = rare_class(300, 0)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        CronusClassifier(costs).fit(X, y + (X[:, 0] > 0))


def tied(order):
    """The largest share of rows that one score has."""
    return np.unique(order, return_counts=True)[1].max() / len(order)


def test_survivors_do_not_tie():
    """The last stage lost its weights first, and all rows that came there had one score: 13 of 40 plans."""
    X, y, costs = rare_class(1200, 3, share=0.05)
    for tradeoff in (3e-3, 1e-2, 3e-2):
        for optimise in (True, False):
            model = CronusClassifier(costs, tradeoff, n_stages=5, optimise=optimise, max_iter=3).fit(X, y)
            if model.plan_.nodes:
                assert len(model.plan_.nodes[-1].learners) > 0
                assert tied(model.rank_score(X)) < 0.05


@pytest.mark.parametrize("metric", [None, "accuracy"])
def test_validation_rows_choose_between_the_initialisation_and_each_steepness(data, metric):
    """Gates 10 to 80 times steeper than the paper's overfitted: training .998, test .823, initialisation .941."""
    X, y, X_test, y_test, costs = data
    settings = {"tradeoff": 1e-4, "n_stages": 3, "max_iter": 3, "metric": metric}
    given = (X_test[:700], y_test[:700])

    def figure(model):
        if metric == "accuracy":
            return model.score(*given)
        return roc_auc_score(given[1], model.rank_score(given[0]))

    kept = CronusClassifier(costs, **settings).fit(X, y, eval_set=given)
    start = CronusClassifier(costs, optimise=False, **settings).fit(X, y)
    assert figure(kept) >= figure(start) - 1e-12
    assert kept.steepness_ in (None, 5.0, 15.0, 50.0)
    first = CronusClassifier(costs, steepness=5.0, **settings).fit(X, y, eval_set=given)
    assert figure(kept) >= figure(first) - 1e-12


def test_the_convex_penalty_of_the_paper_is_a_switch(data):
    """Over learners that share acquisitions the reweighted penalty is another problem; it buys fewer of them."""
    X, y, _, _, costs = data
    trees = stumps(costs).fit(X, y)
    settings = {"tradeoff": 1e-3, "n_stages": 2, "optimise": False, "dictionary": trees}
    convex = CronusClassifier(costs, reweight=False, **settings).fit(X, y)
    fewer = CronusClassifier(costs, **settings).fit(X, y)
    n_learners = [sum(len(node.learners) for node in m.plan_.nodes) for m in (convex, fewer)]
    assert n_learners[1] < n_learners[0]

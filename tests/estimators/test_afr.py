"""AFR: the paper's synthetic, what a stage is, budgets, confidence, several classes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miserly.costs import CostTable
from miserly.datasets import noisy_xor
from miserly.estimators import AFRClassifier
from oracles.linear import svm_gradient
from oracles.prices import shared_prices


def xor(seed):
    """The paper's sizes: 640 rows to learn from, 360 to test."""
    data = noisy_xor(1000, seed, squares=(1, 2))
    model = AFRClassifier(data.costs, n_dims=8, n_trees_per_dim=5, max_depth=4, random_state=seed)
    model.fit(data.X[:640], data.y[:640])
    X, y = data.X[640:], data.y[640:]
    return model, X, y, float(np.mean(model.predict(X, budget=95) == y))


def test_noisy_xor():
    model, X, y, accuracy = xor(100)
    assert accuracy >= 0.97
    assert model.predict_cost(X, budget=95).max() <= 95
    assert np.mean(model.predict(X) == y) >= 0.97


@pytest.mark.slow
def test_noisy_xor_on_twenty_seeds():
    assert sum(xor(seed)[3] >= 0.97 for seed in range(100, 120)) >= 19


def rows(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 7))
    score = X[:, 0] + np.abs(X[:, 3]) * np.sign(X[:, 4]) + 0.3 * rng.normal(size=n)
    return X, score


SMALL = {"n_dims": 10, "n_trees_per_dim": 2, "n_levels": 10, "random_state": 0}
TINY = {"n_dims": 4, "n_trees_per_dim": 1, "n_levels": 6, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    X, score = rows()
    y = np.where(score > 0.5, "yes", "no")
    return AFRClassifier(shared_prices(0.0), **SMALL).fit(X[:1000], y[:1000]), X, y


def test_a_stage_is_stored_before_each_purchase(fitted):
    model, X, _ = fitted
    plan = model.plan_
    assert len(plan.nodes) > 3
    owned = 0
    for k, node in enumerate(plan.nodes):
        bought, _ = plan.tables.purchase(k)
        assert bought & ~owned, "a stage that buys nothing could be left out"
        assert not owned & ~bought, "a stage goes on with what is owned"
        assert node.combine == "replace"
        owned |= bought
    costs = np.array(list(model.staged_cost(X[:5])))
    assert (np.diff(costs, axis=0) > 0).all()
    assert len(list(model.staged_predict(X[:5]))) == len(plan.nodes)


@pytest.mark.parametrize("evaluation", [0.0, 1.0])
def test_every_stage_is_the_minimum_of_its_svm(fitted, evaluation):
    """From the trees in the plan alone, all rows: so trees that were undone are gone, and calibration is monotone."""
    model, X, y = fitted
    if evaluation:
        model = AFRClassifier(shared_prices(evaluation), **SMALL).fit(X[:1000], y[:1000])
    sign, trees = np.where(y[:1000] == "yes", 1.0, -1.0), model.plan_.dictionary
    values = np.column_stack([trees.evaluate(X[:1000], t) for t in range(len(trees))])
    n_train = sum(-(-np.sum(y[:1000] == label) // 2) for label in ("no", "yes"))
    for stage, run in zip(model.stages_, model.plan_.stages(X[:1000])):
        phi = np.zeros((1000, stage.dims.max() + 1))
        np.add.at(phi.T, stage.dims, values[:, stage.trees].T)
        v = np.append(stage.w, stage.b)
        gradient = svm_gradient(v, phi, sign, stage.C * n_train / 1000, np.ones(1000))
        assert np.abs(gradient).max() < 1e-8
        assert stage.scale > 0
        np.testing.assert_allclose(run.score[:, 0], stage.scale * (phi @ stage.w + stage.b) + stage.offset, atol=1e-9)


def test_more_money_is_better_in_the_end(fitted):
    model, X, y = fitted
    accuracy = [np.mean(answer == y[1000:]) for answer in model.staged_predict(X[1000:])]
    assert accuracy[-1] > 0.87
    assert accuracy[-1] > accuracy[0] + 0.1


@settings(max_examples=25, deadline=None)
@given(budget=st.floats(0, 50))
def test_any_budget(fitted, budget):
    model, X, _ = fitted
    cut = model.within(budget)
    assert cut.budget == budget
    assert model.budget is None
    assert (model.predict_cost(X[:50], budget=budget) <= budget).all()
    np.testing.assert_array_equal(cut.predict_cost(X[:50]), model.predict_cost(X[:50], budget=budget))
    np.testing.assert_array_equal(cut.decision_function(X[:50]), model.decision_function(X[:50], budget=budget))
    assert cut.plan_ == model.plan_.truncate(budget)


def test_a_budget_given_before_the_fit_cuts_the_same_plan(fitted):
    model, X, y = fitted
    cut = AFRClassifier(shared_prices(0.0), budget=8.0, **SMALL).fit(X[:1000], y[:1000])
    assert cut.plan_ == model.within(8.0).plan_
    assert cut.within(None).plan_ == model.plan_


def test_sure_rows_stop_early(fitted):
    model, X, y = fitted
    X, y = X[1000:], y[1000:]
    cost, saved = model.predict_cost(X), model.predict_cost(X, confidence=0.9)
    assert (saved <= cost).all()
    assert saved.mean() < 0.9 * cost.mean()
    early = saved < cost
    assert np.mean(model.predict(X, confidence=0.9)[early] == y[early]) > 0.85
    assert (model.predict_proba(X, confidence=0.9).max(axis=1)[early] >= 0.9).all()


def test_several_classes_share_what_is_bought():
    X, score = rows()
    y = np.digitize(score, [-0.7, 0.7])
    model = AFRClassifier(shared_prices(0.0), **TINY).fit(X[:1000], y[:1000])
    assert np.mean(model.predict(X[1000:]) == y[1000:]) > 0.65
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert {stage.output for stage in model.stages_} == {0, 1, 2}
    used = model.plan_.costs.price(model.selected_features_)
    assert model.predict_cost(X[:1])[0] == pytest.approx(used)


def test_class_weights_move_the_border(fitted):
    _, X, y = fitted
    share = [
        np.mean(AFRClassifier(shared_prices(0.0), class_weight=w, **TINY).fit(X[:1000], y[:1000]).predict(X) == "yes")
        for w in ({"no": 5.0, "yes": 1.0}, None, {"no": 1.0, "yes": 5.0})
    ]
    assert share[0] < share[1] < share[2]


def test_rows_may_be_held_out_by_the_user(fitted):
    model, X, y = fitted
    other = AFRClassifier(shared_prices(0.0), **SMALL).fit(X[:1000], y[:1000], eval_set=(X[1000:], y[1000:]))
    assert other.plan_ != model.plan_
    assert np.mean(other.predict(X[1000:]) == y[1000:]) > 0.87
    for wrong, message in (((X, y[:5]), "one label per row"), (X, "validation data"), ((X, y == "yes"), "not")):
        with pytest.raises(ValueError, match=message):
            AFRClassifier(shared_prices(0.0), **TINY).fit(X, y, eval_set=wrong)


def test_evaluations_that_cost_something_are_kept_within_budgets():
    X, score = rows(600)
    model = AFRClassifier(CostTable.uniform(evaluation=0.05), **TINY).fit(X, score > 0)
    for budget in (0.5, 1.2, 3.0):
        assert (model.predict_cost(X, budget=budget) <= budget).all()


def test_evaluations_that_cost_something_have_stages_of_their_own():
    """Trees over one feature of price 1, each for 1: without stages between them nothing can be answered for 3."""
    X, score = rows(600)
    model = AFRClassifier(CostTable.uniform(evaluation=1.0), **SMALL).fit(X, score > 0)
    costs = [float(run.cost.max()) for run in model.plan_.stages(X)]
    steps = np.array(costs[1:]) / np.array(costs[:-1])
    assert costs[0] <= 3
    assert max(steps[3:]) < 1.5
    for k, cost in enumerate(costs):
        cut = model.within(cost).plan_
        assert len(cut.nodes) == k + 1
        np.testing.assert_array_equal(cut.run(X).z, list(model.plan_.stages(X))[k].z)


def test_where_evaluations_are_dear_the_misers_trees_go_on():
    """Every tree lowers the squared hinge of all before it at a tenth of their steps; few of them are a dimension."""
    X, score = rows(1000)
    y = score > 0
    how = {**SMALL, "n_trees_per_dim": 0, "n_levels": 4}
    model = AFRClassifier(CostTable.uniform(evaluation=1.0), **how).fit(X, y, eval_set=(X, y))
    last, trees, sign = model.stages_[-1], model.plan_.dictionary, np.where(y, 1.0, -1.0)
    assert np.bincount(last.dims).max() == 5
    f, losses = np.full(1000, sign.mean()), []
    for t in last.trees:
        losses.append(np.mean(np.maximum(0.0, 1.0 - sign * f) ** 2))
        f += 0.01 * trees.evaluate(X, int(t))
    assert len(losses) > 20
    assert (np.diff(losses) < 0).all()


def test_levels_that_were_taken_back_leave_no_stage():
    """Free features of noise: levels after the first do not help and go; what they stored goes with them."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 3, 400)
    model = AFRClassifier(CostTable.uniform(0.0, evaluation=1.0), **SMALL).fit(X, y)
    plan = model.plan_
    assert len(plan.dictionary) == 1 + max(int(node.learners.max()) for node in plan.nodes if len(node.learners))
    for stage in model.stages_:
        assert (stage.trees < len(plan.dictionary)).all()


def test_a_row_for_each_class():
    """All rows are the SVM's then, and none was left to calibrate on: it divided by zero."""
    X, _ = rows(12)
    model = AFRClassifier(CostTable.uniform(), **TINY).fit(X, np.arange(12))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_nothing_worth_its_price():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.permutation(np.arange(100) % 4 == 0)
    model = AFRClassifier(CostTable.uniform(), tradeoff0=10.0, n_levels=1).fit(X, y)
    assert not model.plan_.nodes
    assert not model.predict(X).any()
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 0.25)

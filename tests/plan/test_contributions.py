"""Contributions: they add up to the score whatever a plan does, and each is what its definition says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import miserly as ms
from miserly.baselines import PathTreeClassifier
from miserly.datasets import triage_like
from miserly.plan import Node, Plan, RawFeatures, cascade
from miserly.runtime import readers
from oracles.driver import drive
from oracles.policy import random_policy_plan
from oracles.random_plans import random_budgets, random_plan, random_rows

SEEDS = st.integers(0, 100_000)


def total(found):
    return found.base + found.free + found.values.sum(axis=1)


def explainable(seed, **kind):
    plan = random_plan(seed, **kind)
    X, qid = random_rows(plan, seed)
    return plan.with_background(np.nan_to_num(X)), X, qid


def assert_adds_up(found, run):
    assert np.array_equal(found.score, run.score)
    np.testing.assert_allclose(total(found), run.score, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.paid.sum(axis=1) + found.evaluation, run.cost, rtol=1e-12, atol=1e-12)
    assert not found.values[~found.bought].any(), "what was not bought moves nothing"


@settings(max_examples=120, deadline=None)
@given(SEEDS, st.sampled_from(["learner", "path"]))
def test_they_add_up_for_any_plan(seed, charge):
    plan, X, qid = explainable(seed, charge=charge)
    assert_adds_up(plan.contributions(X, qid), plan.run(X, qid))
    for budget in random_budgets(plan, X, qid, seed)[:3]:
        assert_adds_up(plan.contributions(X, qid, budget), plan.run(X, qid, budget))


@settings(max_examples=80, deadline=None)
@given(SEEDS, st.sampled_from(["learner", "path"]), st.booleans())
def test_one_row_on_its_way_has_those_of_the_batch(seed, charge, is_limited):
    plan, X, _ = explainable(seed, charge=charge, queries=False)
    budget = random_budgets(plan, X, None, seed)[1] if is_limited else None
    batch = plan.contributions(X[:4], budget=budget)
    for i, x in enumerate(X[:4]):
        one = drive(plan, x, budget).contributions()
        assert one.acquisitions == batch.acquisitions
        np.testing.assert_allclose(total(one)[0], one.score[0], rtol=1e-9, atol=1e-9)
        for name in ("base", "free", "values", "bought", "paid", "score"):
            np.testing.assert_allclose(getattr(one, name)[0], getattr(batch, name)[i], rtol=1e-9, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_they_add_up_when_an_acquisition_fails(seed):
    plan, X, _ = explainable(seed, queries=False)
    lost = plan.costs.acquisitions[seed % len(plan.costs.acquisitions)]
    walk = drive(plan, X[0], lost=(lost,))
    found = walk.contributions()
    np.testing.assert_allclose(total(found)[0], walk.best.score, rtol=1e-9, atol=1e-9)
    if lost in found.acquisitions:
        assert not found.values[0, found.acquisitions.index(lost)].any()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 3000), st.sampled_from([2, 3, 0]), st.sampled_from([None, 3.0]))
def test_policies_too_in_a_batch_and_one_by_one(seed, n_classes, budget):
    plan = random_policy_plan(seed, n_classes=n_classes)
    X = np.random.default_rng(seed).normal(size=(6, len(plan.costs.features)))
    found, run = plan.contributions(X, budget=budget), plan.run(X, budget=budget)
    assert_adds_up(found, run)
    for i, x in enumerate(X):
        free = plan.tables.known_at_first(0)
        one = drive(plan, x, budget, given={name: x[f] for name, f in free.items()}).contributions()
        np.testing.assert_allclose(one.values[0], found.values[i], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(one.free[0], found.free[i], rtol=1e-9, atol=1e-9)


def path_parts(trees, start, mean, x):
    """Saabas by hand: what each split on the way changes in the mean of the training rows below it."""
    at, parts = start, {}
    while trees.left[at] != at:
        f, left = int(trees.feature[at]), int(trees.left[at])
        right = trees.missing_right[at] if np.isnan(x[f]) else x[f] > trees.threshold[at]
        child = left + int(right)
        parts[f] = parts.get(f, 0.0) + mean(child) - mean(at)
        at = child
    return parts


def test_a_tree_moves_by_the_means_of_its_training_rows():
    data = triage_like(800, seed=0)
    model = PathTreeClassifier(data.costs, tradeoff=1e-4, max_leaf_nodes=8).fit(data.X, data.y == "well")
    plan, trees = model.plan_, model.plan_.dictionary
    place = np.zeros((len(data.X), len(trees.left)), bool)
    for i, x in enumerate(data.X):  # which rows come to each place
        at = 0
        place[i, at] = True
        while trees.left[at] != at:
            f = trees.feature[at]
            right = trees.missing_right[at] if np.isnan(x[f]) else x[f] > trees.threshold[at]
            at = trees.left[at] + int(right)
            place[i, at] = True
    leaf = [np.flatnonzero(p & trees.is_leaf)[0] for p in place]
    values = trees.value[leaf]
    found = plan.contributions(data.X[:50])
    assert found.base[:, 0] == pytest.approx(values.mean())
    for i in range(50):
        expected = dict.fromkeys(found.acquisitions, 0.0)
        for f, part in path_parts(trees, 0, lambda at: values[place[:, at]].mean(), data.X[i]).items():
            needs = plan.costs.needs[plan.costs.features[f]]
            for a in needs:
                expected[a] += part / len(needs)
        assert found.values[i, :, 0] == pytest.approx(list(expected.values()))


@pytest.mark.parametrize("n_rows", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_rows_of_every_kind_add_up_to_a_billionth(n_rows):
    data, new = triage_like(min(600, 3 * n_rows), seed=0), triage_like(n_rows, seed=1)
    boosted = [ms.GreedyMiserClassifier(data.costs, t, n_estimators=15).fit(data.X, data.y).plan_ for t in (1e-2, 1e-4)]
    active = ms.ActiveClassifier(data.costs, n_estimators=10, n_folds=2).fit(data.X, data.y)
    linear = ms.CSTCClassifier(data.costs, max_depth=2, max_iter=3).fit(np.nan_to_num(data.X), data.y)
    gated = cascade(boosted).stopping(0.8)
    for plan in (boosted[1], gated, active.plan_, linear.plan_):
        for budget in (None, 30.0):
            found, run = plan.contributions(new.X, budget=budget), plan.run(new.X, budget=budget)
            assert np.abs(total(found) - run.score).max() <= 1e-9
            assert np.abs(found.paid.sum(axis=1) + found.evaluation - run.cost).max() <= 1e-9
    menu = ms.Menu(boosted, [20.0, np.inf], [[0.5, 0.6], [0.4, 0.9]], [[5.0, 9.0], [6.0, 20.0]])
    found = menu.contributions(new.X, mean_budget=12.0, mix=True)
    assert np.abs(total(found)[:, 0] - menu.score(new.X, mean_budget=12.0, mix=True)[:, 0]).max() <= 1e-9


def test_shared_acquisitions_divide_what_their_features_move():
    costs = ms.CostTable(
        ["a", "b", "c"], {"a": ["draw", "a"], "b": [], "c": ["scan"]}, {"draw": 4.0, "a": 1.0, "scan": 9.0}
    )
    plan = Plan(costs, RawFeatures([0, 1, 2]), (Node([0, 1], [1.0, 2.0]),), [0.5], means=[0.0, 1.0, 0.0])
    found = plan.contributions(np.array([[3.0, 4.0, 9.0]]))
    assert found.acquisitions == ("draw", "a")
    assert found.values[0, :, 0].tolist() == [1.5, 1.5]
    assert found.free[0].tolist() == [6.0]
    assert found.base[0].tolist() == [2.5]
    assert found.paid[0].tolist() == [4.0, 1.0]
    assert [one.acquisition for one in found.row(0)] == ["draw", "a"]
    assert found.frame()[0] == {"row": 0, "acquisition": "draw", "moved": 1.5, "paid": 4.0}
    assert "what is free" in found.text()


def test_an_answer_explains_itself_and_a_plan_without_background_says_what_it_lacks():
    data = triage_like(400, seed=0)
    plan = ms.GreedyMiserClassifier(data.costs, 1e-3, n_estimators=5).fit(data.X, data.y).plan_
    with ms.OnDemand(plan, readers(data.costs)) as runner:
        answer = runner.predict(dict(zip(data.costs.features, data.X[0])))
    found = answer.contributions()
    assert np.allclose(total(found)[0], answer.score, atol=1e-9)
    assert {one.acquisition for one in found.row(0)} == set(answer.acquired)
    assert found.to_dict()["score"] == answer.score.tolist()
    bare = Plan(plan.costs, plan.dictionary, plan.nodes, plan.prior, plan.link, plan.classes, plan.roots)
    with pytest.raises(ValueError, match="with_background"):
        bare.contributions(data.X)
    html = plan.contributions(data.X)._repr_html_()
    assert html.count("<tr>") <= 20
    assert "<svg" in html

"""The anytime miser: nested purchases, every stage a model of its own, one training for a whole frontier."""

from itertools import pairwise

import numpy as np
import pytest

from miserly import frontier
from miserly.costs import CostTable
from miserly.estimators import (
    AFRClassifier,
    AnytimeMiserClassifier,
    AnytimeMiserRegressor,
    GreedyMiserClassifier,
    GreedyMiserRegressor,
)
from oracles.prices import shared_prices

SHORT = {"n_estimators": 10}


def rows(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 7))
    return X, X[:, 0] + np.abs(X[:, 3]) * np.sign(X[:, 4]) + 0.5 * X[:, 6] + 0.1 * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    X, y = rows()
    return AnytimeMiserRegressor(shared_prices(0.0), **SHORT).fit(X[:800], y[:800]), X, y


def test_what_is_owned_only_grows_and_every_stage_is_within_it(fitted):
    plan, owned = fitted[0].plan_, 0
    assert len(plan.nodes) > 3
    for k in range(len(plan.nodes)):
        bought, _ = plan.tables.purchase(k)
        assert bought & ~owned
        owned |= bought
    costs = np.array(list(fitted[0].staged_cost(fitted[1][:3])))
    assert (np.diff(costs, axis=0) > 0).all()


def test_a_stage_is_the_model_grown_with_what_it_owns(fitted):
    """The Greedy Miser asked to use only these features, whatever they cost: the same scores."""
    model, X, y = fitted
    names = model.plan_.costs.features
    owned = set()
    for k, run in enumerate(model.plan_.stages(X)):
        owned |= {int(f) for t in model.plan_.nodes[k].learners for f in model.plan_.dictionary.features_of(int(t))}
        bought = model.plan_.tables.owned_at(k)[0]
        free = [j for j, mask in enumerate(model.plan_.costs.feature_masks) if not mask & ~bought]
        assert owned <= set(free)
        hidden = X.copy()
        hidden[:, [j for j in range(len(names)) if j not in free]] = 0.0
        alone = GreedyMiserRegressor(shared_prices(0.0), tradeoff=0.0, **SHORT).fit(hidden[:800], y[:800])
        np.testing.assert_array_equal(run.score[:, 0], alone.predict(hidden))


def test_it_is_as_good_as_models_trained_for_their_budgets(fitted):
    model, X, y = fitted
    for tradeoff in (1e-1, 3e-2, 1e-2, 1e-3):
        alone = GreedyMiserRegressor(shared_prices(0.0), tradeoff=tradeoff, **SHORT).fit(X[:800], y[:800])
        budget = alone.predict_cost(X[:1])[0]
        errors = [np.mean((y[800:] - m) ** 2) for m in (model.predict(X[800:], budget=budget), alone.predict(X[800:]))]
        assert errors[0] <= 1.1 * errors[1], tradeoff


@pytest.fixture(scope="module")
def fitted_expensive():
    """Evaluating ten trees costs as much as most acquisitions."""
    X, y = rows()
    return AnytimeMiserRegressor(shared_prices(0.3), **SHORT).fit(X[:800], y[:800]), X, y


def test_where_evaluation_is_dear_stages_keep_the_trees_before_them(fitted_expensive):
    """Until evaluating a whole new model is a tenth of what is spent, or λ is zero: then stages start from nothing."""
    model, X, y = fitted_expensive
    learners = [np.empty(0, int), *(node.learners for node in model.plan_.nodes)]
    kept = [np.array_equal(after[: len(before)], before) for before, after in pairwise(learners)]
    n_kept = kept.index(False)
    assert n_kept > 5
    assert not any(kept[n_kept:])
    errors = [float(np.mean((run.score[:800, 0] - y[:800]) ** 2)) for run in model.plan_.stages(X)]
    assert (np.diff(errors[:n_kept]) < 0).all()


def test_each_tree_is_paid_once(fitted_expensive):
    plan = fitted_expensive[0].plan_
    seen = set()
    for k, run in enumerate(plan.stages(fitted_expensive[1][:1])):
        seen |= set(plan.nodes[k].learners.tolist())
        owned = plan.tables.owned_at(k)[0]
        prices = [p for a, p in enumerate(plan.costs.price_list) if owned >> a & 1]
        assert run.cost[0] == pytest.approx(sum(prices) + 0.3 * len(seen))


def test_where_evaluation_is_expensive_keeping_trees_is_better_than_growing_again(fitted_expensive, monkeypatch):
    model, X, y = fitted_expensive
    monkeypatch.setattr("miserly.estimators._base._anytime.EXPENSIVE", np.inf)
    restarted = AnytimeMiserRegressor(shared_prices(0.3), **SHORT).fit(X[:800], y[:800])
    budgets = np.geomspace(2, 30, 30)
    errors = np.array([[np.mean((y[800:] - m.predict(X[800:], b)) ** 2) for b in budgets] for m in (model, restarted)])
    assert np.log(errors[0]).mean() < np.log(errors[1]).mean() - 0.03


@pytest.mark.parametrize("loss", ["auto", "squared_hinge"])
@pytest.mark.parametrize("cuts", [[0.0], [-0.7, 0.7]], ids=["two", "three"])
def test_classes(loss, cuts):
    X, score = rows()
    y = np.digitize(score, cuts)
    model = AnytimeMiserClassifier(shared_prices(0.0), loss=loss, **SHORT).fit(X[:800], y[:800])
    blind = GreedyMiserClassifier(shared_prices(0.0), 0.0, loss=loss, **SHORT).fit(X[:800], y[:800])
    right, right_blind = (np.mean(m.predict(X[800:]) == y[800:]) for m in (model, blind))
    assert right >= right_blind - 0.02
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    saved = model.predict_cost(X[800:], confidence=0.7)
    assert saved.mean() < model.predict_cost(X[800:]).mean()


def test_features_that_need_nothing_are_a_stage_for_nothing():
    X, y = rows()
    model = AnytimeMiserRegressor(shared_prices(0.0, last_is_free=True), **SHORT).fit(X, y)
    assert model.predict_cost(X[:1], budget=0.0)[0] == 0.0
    assert np.var(model.predict(X, budget=0.0)) > 0.05


def test_nothing_to_learn():
    X, _ = rows(100)
    model = AnytimeMiserRegressor(CostTable.uniform(), **SHORT).fit(X, np.ones(100))
    assert not model.plan_.nodes
    assert (model.predict(X) == 1.0).all()


@pytest.mark.parametrize("kind", [AnytimeMiserClassifier, AFRClassifier])
def test_a_frontier_takes_one_training(kind, monkeypatch):
    X, score = rows()
    y = score > 0
    model = kind(shared_prices(0.0))
    model.set_params(
        **(
            SHORT
            if kind is AnytimeMiserClassifier
            else {"n_dims": 4, "n_trees_per_dim": 1, "n_levels": 6, "random_state": 0}
        )
    )
    fits = []
    fit = kind.fit
    monkeypatch.setattr(kind, "fit", lambda self, *args, **given: (fits.append(1), fit(self, *args, **given))[1])
    front = frontier(model, (X[:800], y[:800]), (X[800:], y[800:]))
    assert len(fits) == 1
    assert len(front.points) == 8
    for point in front.points:
        cost = point.model.predict_cost(X).max()
        assert cost <= point.params["budget"] == point.model.budget
        assert point.validation.cost["max"] == cost
    again = kind(**point.model.get_params()).fit(X[:800], y[:800])
    assert again.plan_ == point.model.plan_

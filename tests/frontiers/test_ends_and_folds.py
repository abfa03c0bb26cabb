"""Sweeps that reach both ends, cross-validation, the free constant, and the menu of a sweep."""

import numpy as np
import pytest

import miserly as ms
from miserly.frontiers import divide


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 4))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=240) > 0, "yes", "no")
    return X, y


COSTS = ms.CostTable.per_feature([1.0, 50.0, 3000.0, 2.0])


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e5])
def test_a_sweep_without_a_grid_reaches_both_ends(data, unit):
    costs = ms.CostTable.per_feature([unit * p for p in (1.0, 50.0, 3000.0, 2.0)])
    X, y = data
    front = ms.frontier(ms.GreedyMiserClassifier(costs, n_estimators=10), (X[:160], y[:160]), (X[160:], y[160:]))
    paid = [point.validation.cost["mean"] for point in front.points]
    assert min(paid) == 0.0
    assert 0 < min(c for c in paid if c > 0) <= 3 * unit  # a cheap model was tried, not only nothing
    blind = ms.GreedyMiserClassifier(costs, tradeoff=0.0, n_estimators=10).fit(X[:160], y[:160])
    assert max(paid) >= 0.97 * blind.predict_cost(X).mean()


def test_a_grid_of_the_user_is_left_as_it_is(data):
    X, y = data
    model = ms.GreedyMiserClassifier(COSTS, n_estimators=5)
    assert len(ms.frontier(model, (X, y), (X, y), grid={"tradeoff": [0.0, 1e-4]}).points) == 2


def test_cross_validation_measures_on_rows_that_a_fit_has_not_seen(data):
    """The out-of-fold predictions, by hand."""
    X, y = data
    model = ms.GreedyMiserClassifier(COSTS, tradeoff=1e-3, n_estimators=10)
    front = ms.frontier(model, (X, y), cv=4, grid={"tradeoff": [1e-3]})
    right, paid = [], []
    for fit, score in divide(y, None, 4, 0, True):
        assert not set(fit) & set(score)
        fitted = model.fit(X[fit], y[fit])
        right += list(fitted.predict(X[score]) == y[score])
        paid += list(fitted.predict_cost(X[score]))
    point = front.points[0]
    assert point.validation.quality == pytest.approx(np.mean(right))
    assert point.validation.cost["mean"] == pytest.approx(np.mean(paid))
    again = ms.GreedyMiserClassifier(COSTS, tradeoff=1e-3, n_estimators=10).fit(X, y)
    np.testing.assert_array_equal(point.model.predict_proba(X), again.predict_proba(X))
    assert sorted(np.concatenate([score for _, score in divide(y, None, 4, 0, True)])) == list(range(240))


def test_cross_validation_stops_early_and_refits_with_the_mean_of_the_rounds(data):
    X, y = data
    model = ms.GreedyMiserClassifier(COSTS, tradeoff=0.0, n_estimators=200, n_iter_no_change=3)
    point = ms.frontier(model, (X, y), cv=3, grid={"tradeoff": [0.0]}).points[0]
    rounds = [
        model.fit(X[fit], y[fit], eval_set=(X[score], y[score])).n_iter_ for fit, score in divide(y, None, 3, 0, True)
    ]
    assert point.model.n_estimators == round(np.mean(rounds)) < 200


def test_folds_hold_queries_together_and_every_class():
    y, qid = np.arange(30) % 3, np.repeat(np.arange(10), 3)
    for fit, score in divide(y, qid, 5, 0, False):
        assert not set(qid[fit]) & set(qid[score])
    rare = np.r_[np.zeros(20), np.ones(20), 2]
    for fit, _ in divide(rare, None, 5, 0, True):
        assert set(rare[fit]) == {0, 1, 2}


def test_the_constant_is_chosen_where_nothing_else_fits_or_helps(data):
    X, y = data
    model = ms.GreedyMiserClassifier(COSTS, n_estimators=5)
    front = ms.frontier(model, (X, y), (X, y), grid={"tradeoff": [0.0]})
    free = front.choose(budget=0.5)
    assert free.predict_cost(X).max() == 0
    values, counts = np.unique(y, return_counts=True)
    assert set(free.predict(X)) == {values[np.argmax(counts)]}
    assert front.records()[0]["mean_cost"] == 0
    noise = np.random.default_rng(1).permutation(y)
    front = ms.frontier(model, (X[:120], noise[:120]), (X[120:], noise[120:]), grid={"tradeoff": [0.0]})
    constant = front.baseline.validation.quality
    assert front.choose_point(budget=1e9).validation.quality == max(constant, front.points[0].validation.quality)


def test_a_sweep_makes_a_menu_that_keeps_caps(data):
    X, y = data
    model = ms.GreedyMiserClassifier(COSTS, n_estimators=10)
    front = ms.frontier(model, (X[:160], y[:160]), (X[160:], y[160:]))
    menu = front.menu()
    for cap in (0.0, 1.0, 5.0, 60.0, 5000.0):
        assert menu.predict_cost(X, budget=cap).max() <= cap
    whole = np.mean(menu.predict(X[160:], budget=5000.0) == y[160:])
    assert whole >= max(point.validation.quality for point in front.points) - 1e-12


def test_rows_to_choose_on_are_asked_for(data):
    X, y = data
    model = ms.GreedyMiserClassifier(COSTS, n_estimators=5)
    with pytest.raises(ValueError, match="cv=5"):
        ms.frontier(model, (X, y))
    with pytest.raises(ValueError, match="cv=5"):
        ms.frontier(model, (X, y), (X, y), cv=3)
    with pytest.raises(ValueError, match="2 or more"):
        ms.frontier(model, (X, y), cv=1)

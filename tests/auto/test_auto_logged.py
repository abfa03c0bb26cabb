"""Logged tables, where a value is there only if somebody bought it, against the world behind them."""

import numpy as np
import pytest

import miserly as ms

PRICES = {"age": 0.0, "a": 1.0, "b": 1.0}
MARKS = {"a": "not_ordered", "b": "not_ordered"}


def _hospital(n, seed, logged=True):
    """`a` decides for the old and `b` for the young; each is ordered mostly for those."""
    rng = np.random.default_rng(seed)
    age, a, b = rng.normal(size=(3, n))
    y = (np.where(age > 0, a, b) + 0.3 * rng.normal(size=n) > 0).astype(int)
    if logged:
        likely = 1 / (1 + np.exp(-1.5 * age))
        a = np.where(rng.random(n) < 0.1 + 0.8 * likely, a, np.nan)
        b = np.where(rng.random(n) < 0.9 - 0.8 * likely, b, np.nan)
    return np.column_stack([age, a, b]), y


X, Y = _hospital(500, 0)
T, TY = _hospital(5000, 1, logged=False)


@pytest.fixture(scope="module")
def fitted():
    costs = ms.CostTable.per_feature(PRICES, missing=MARKS)
    return ms.AutoMiserClassifier(costs, time_limit=None, metric="accuracy").fit(X, Y)


def test_figures_are_those_of_the_world(fitted):
    for point in fitted.frontier_.points:
        truth = (point.model.predict(T) == TY).mean()
        assert point.validation.quality == pytest.approx(truth, abs=0.09)
        assert point.validation.cost["mean"] == pytest.approx(point.model.predict_cost(T).mean(), abs=0.12)
        assert 0 < point.validation.rows <= len(X) + 1e-6
    assert fitted.frontier_.points[0].validation.rows == pytest.approx(len(X))
    assert "effective_rows" in fitted.frontier_.table()


def test_it_learns_what_purchases_bring(fitted):
    best = fitted.frontier_.choose(budget=1.2)
    assert (best.predict(T) == TY).mean() > 0.85
    assert best.predict_cost(T).mean() < 1.3
    assert fitted.predict_cost(T, budget=1.0).max() <= 1.0
    assert (fitted.predict(T, budget=1.0) == TY).mean() > 0.8
    assert fitted.plan_.costs.missing == MARKS


def test_a_purchase_says_nothing_by_being_logged():
    """Who gets `test` logged is ill mostly, its value is noise: buying it for all must not seem to tell the ill."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 2))
    X[rng.random(400) > np.where(y == 1, 0.8, 0.2), 1] = np.nan
    naive, marked = (
        ms.AutoMiserClassifier(
            ms.CostTable.per_feature({"age": 0.0, "test": 1.0}, missing=missing), time_limit=None, metric="accuracy"
        ).fit(X, y)
        for missing in ({}, {"test": "not_ordered"})
    )
    assert max(p.validation.quality for p in naive.frontier_.points) > 0.7
    assert max(p.validation.quality for p in marked.frontier_.points) < 0.6


def test_without_marks_nothing_changes():
    costs = ms.CostTable.per_feature(PRICES)
    full, y = _hospital(45, 5, logged=False)
    plain = ms.AutoMiserClassifier(costs, time_limit=None).fit(full, y)
    marked_costs = ms.CostTable.per_feature(PRICES, missing={"a": "not_ordered"})
    marked = ms.AutoMiserClassifier(marked_costs, time_limit=None).fit(full, y)
    assert {p.validation.rows for p in plain.frontier_.points} == {None}
    assert {round(p.validation.rows, 6) for p in marked.frontier_.points} == {45.0}  # all was ordered


def test_numbers_and_validation_rows():
    costs = ms.CostTable.per_feature(PRICES, missing=MARKS)
    value = np.where(np.isnan(X[:, 1]), 0.0, X[:, 1]) + X[:, 0]
    model = ms.AutoMiserRegressor(costs, time_limit=None)
    model.fit(X[:110], value[:110], eval_set=(X[400:], value[400:]))
    assert all(p.validation.rows <= 210.0 for p in model.frontier_.points)
    with pytest.raises(ValueError, match="classes and numbers"):
        ms.AutoMiserRanker(costs, time_limit=None).fit(X[:60], Y[:60], np.repeat(np.arange(6), 10))


def test_single_models_learn_from_rows_that_have_all():
    costs = ms.CostTable.per_feature(PRICES, missing=MARKS)
    model = ms.GreedyMiserClassifier(costs, n_estimators=30, tradeoff=0.0)
    front = ms.frontier(model, (X, Y), _hospital(500, 7), grid={"tradeoff": [0.0, 0.02]}, metric="accuracy")
    blind = ms.frontier(
        model.set_params(costs=ms.CostTable.per_feature(PRICES)), (X, Y), _hospital(500, 7), grid={"tradeoff": [0.0]}
    )
    truth = (front.points[0].model.predict(T) == TY).mean()
    assert truth > 0.8
    assert abs(front.points[0].validation.quality - truth) < 0.06
    assert front.points[0].validation.rows < 250
    wrong = blind.points[0]
    assert abs(wrong.validation.quality - (wrong.model.predict(T) == TY).mean()) > 0.06
    menu = front.menu()
    assert menu.predict_cost(T, budget=1.0).max() <= 1.0
    crossed = ms.frontier(model.set_params(costs=costs), (X, Y), grid={"tradeoff": [0.0]}, cv=2)
    assert 0 < crossed.points[0].validation.rows < 250


def test_what_cannot_be_weighted_is_refused():
    costs = ms.CostTable.per_feature(PRICES, missing=MARKS)
    few = X[:60].copy()
    few[:55, 1] = np.nan
    with pytest.raises(ValueError, match="logged on"):
        ms.GreedyMiserClassifier(costs).fit(few, Y[:60])
    with pytest.raises(ValueError, match="takes no weights"):
        ms.frontier(
            ms.GreedyMiserRegressor(costs, n_estimators=2),
            (X, Y),
            (X, Y, np.zeros(500)),
            grid={"tradeoff": [0.0]},
            metric="ndcg@5",
        )
    model = ms.GreedyMiserClassifier(costs, n_estimators=2).fit(X, Y)
    with pytest.raises(ValueError, match="nobody ordered it"):
        ms.report.protocol(model.plan_, ms.report.LabelledRows(X, Y))

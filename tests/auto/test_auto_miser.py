"""AutoMiser*: a frontier in one call, on small data of every kind, and on data that are hard to live with."""

import numpy as np
import pytest

from miserly import AutoMiserClassifier, AutoMiserRanker, AutoMiserRegressor, CostTable

COSTS = CostTable.per_feature([1.0, 5.0, 2.0])


def rows(n=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 2.0 * X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)


@pytest.fixture(scope="module")
def fitted():
    return AutoMiserClassifier(COSTS, time_limit=None).fit(*rows())


def test_a_classifier_answers_with_and_without_budgets(fitted):
    X, y = rows(200, seed=1)
    assert fitted.metric_.name == "accuracy"
    assert (fitted.predict(X) == y).mean() > 0.85
    qualities = [point.validation.quality for point in fitted.frontier_.points]
    assert qualities == sorted(qualities)
    assert len(qualities) >= 3
    for budget in (0, 1, 3, 6, 100):
        assert fitted.predict_cost(X, budget=budget).max() <= budget
        assert fitted.predict_proba(X, budget=budget).shape == (200, 2)
        model = fitted.frontier_.choose(budget=budget)
        assert (model.predict(X) == model.plan_.predict(X)).all()
        chosen = fitted.frontier_.choose_point(budget=budget)
        assert chosen.validation.cost["mean"] <= budget
    mixed = fitted.predict_cost(X, mean_budget=4.0, mix=True).mean()
    assert abs(mixed - 4.0) < 1.0
    assert fitted.menu_ is fitted.menu_


def test_the_same_seed_gives_the_same_plans(fitted):
    again = AutoMiserClassifier(COSTS, time_limit=None).fit(*rows())
    assert [p.model.plan_ for p in again.frontier_.points] == [p.model.plan_ for p in fitted.frontier_.points]


def test_validation_rows_of_the_user_are_what_is_measured():
    X, y = rows()
    held, labels = rows(1200, seed=2)  # enough to be measured alone
    model = AutoMiserClassifier(COSTS, time_limit=None).fit(X, y, eval_set=(held, labels))
    for point in model.frontier_.points:
        assert point.validation.quality == pytest.approx((point.model.predict(held) == labels).mean())
        assert point.validation.cost["mean"] == pytest.approx(point.model.predict_cost(held).mean())


def test_numbers_and_lists():
    X, _ = rows()
    regressor = AutoMiserRegressor(COSTS, time_limit=None).fit(X, X[:, 0] + X[:, 1])
    assert regressor.metric_.name == "mse"
    assert regressor.frontier_.points[-1].validation.quality < 1.0
    qid = np.repeat(np.arange(24), 10)
    grades = np.clip(np.rint(X[:, 1] + 1), 0, 3)
    ranker = AutoMiserRanker(COSTS, time_limit=None).fit(X, grades, qid=qid)
    assert ranker.metric_.name == "ndcg@5"
    for point in ranker.frontier_.points:
        assert point.model.predict(X, qid=qid).shape == (240,)
    assert ranker.predict_cost(X, qid=qid, budget=3).max() <= 3

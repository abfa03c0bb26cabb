"""What may come: an answer or a clear error, never an empty frontier."""

import numpy as np
import pytest

from miserly import AutoMiserClassifier, AutoMiserRegressor, CostTable

COSTS = CostTable.per_feature([2.0, 5.0])


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)


def auto(X, y, costs=COSTS, eval_set=None, **params):
    fitted = AutoMiserClassifier(costs, **{"time_limit": None, "random_state": 0} | params).fit(X, y, eval_set=eval_set)
    assert fitted.frontier_.points
    assert fitted.frontier_.points[0].validation.cost["max"] == 0
    assert np.isin(fitted.predict(X), np.unique(y)).all()
    assert np.isfinite(fitted.predict_proba(X, budget=2.0)).all()
    return fitted


def test_validation_rows_lack_a_class():
    X, y = rows()
    auto(X, y, eval_set=(X[y == 1][:9], y[y == 1][:9]))


def test_31_rows():
    auto(*rows(31))


def test_one_class_is_refused():
    X, _ = rows(40)
    with pytest.raises(ValueError, match="class"):
        AutoMiserClassifier(COSTS, time_limit=None).fit(X, np.ones(40))


def test_a_class_with_one_row():
    X, y = rows()
    y[7] = 2
    assert len(auto(X, y).classes_) == 3


def test_a_budget_below_the_least_price_buys_nothing():
    X, y = rows()
    fitted = auto(X, y)
    assert fitted.predict_cost(X, budget=1.9).max() == 0
    assert fitted.frontier_.choose(budget=1.9).predict_cost(X).max() == 0


def test_all_is_free():
    X, y = rows(80)
    fitted = auto(X, y, CostTable.per_feature([0.0, 0.0]))
    assert (fitted.predict(X, budget=0.0) == y).mean() > 0.8


def test_a_limit_of_one_second():
    X, y = rows(80)
    auto(X, y, time_limit=1)


def test_nothing_is_known():
    X, y = rows()
    fitted = auto(np.full_like(X, np.nan), y)
    assert [p.validation.cost["max"] for p in fitted.frontier_.points] == [0]


def test_wrong_numbers_are_named():
    X, y = rows()
    with pytest.raises(ValueError, match="3 features"):
        AutoMiserClassifier(CostTable.per_feature([1.0, 1.0, 1.0]), time_limit=None).fit(X, y)
    X[4, 1] = np.inf
    with pytest.raises(ValueError, match="inf"):
        AutoMiserClassifier(COSTS, time_limit=None).fit(X, y)
    X, numbers = rows()[0], np.full(60, np.nan)
    with pytest.raises(ValueError, match="NaN"):
        AutoMiserRegressor(COSTS, time_limit=None).fit(X, numbers)

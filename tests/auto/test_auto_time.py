"""A time limit makes a frontier coarser, not blind to its ends."""

import numpy as np
import pytest

import miserly as ms
from miserly.auto import AutoMiserClassifier
from miserly.auto import _portfolio as portfolio
from miserly.datasets import triage_like


def test_a_limit_that_is_over_at_once_still_has_the_model_of_all_features():
    data = triage_like(400, seed=0)
    model = AutoMiserClassifier(data.costs, time_limit=1e-6).fit(data.X, data.y)
    constant = max(np.mean(data.y == c) for c in np.unique(data.y))
    assert model.score(data.X, data.y) > constant + 0.03


def test_both_ends_come_first():
    assert portfolio._spread([0, 1, 3, 7, 15])[:2] == [15, 0]


def test_compiling_is_done_once_before_the_time_counts(monkeypatch):
    calls = []
    monkeypatch.setattr(portfolio, "build", lambda task, clock: calls.append(clock.limit))
    portfolio.compile_kernels.cache_clear()
    portfolio.compile_kernels("classes")
    portfolio.compile_kernels("classes")
    assert calls == [float("inf")]


@pytest.mark.parametrize("kind", [ms.AutoMiserClassifier, ms.AutoMiserRegressor])
@pytest.mark.parametrize("value", [1.0, np.nan])
def test_features_that_say_nothing_leave_the_free_constant(kind, value):
    X, y = np.full((31, 3), value), np.arange(31) % 2
    model = kind(ms.CostTable.per_feature([1.0, 2.0, 3.0])).fit(X, y)
    assert model.predict_cost(X).max() == 0
    assert len(model.frontier_.points) == 1
    assert len(np.unique(model.predict(X))) == 1


def test_few_rows_take_few_rounds():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = ms.AutoMiserClassifier(ms.CostTable.per_feature([1.0, 2.0]), time_limit=None).fit(X, X[:, 0] > 0)
    assert len(model.plan_.nodes) <= 2 * 50 + 2

"""A time limit makes a frontier coarser, not blind to its ends."""

import numpy as np

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

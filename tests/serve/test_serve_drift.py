"""Drift of features, scores and spending in the metrics: silent on rows like the training's, loud on others."""

import re

import numpy as np
import pytest
from litestar.testing import TestClient

import miserly as ms
from miserly.plan import Menu
from miserly.serve import _drift as drift
from miserly.serve import create_app
from miserly.serve._drift import DriftWatch

COSTS = ms.CostTable.per_feature({"age": 1.0, "crp": 10.0, "sex": 0.5})


def rows(n, seed, shift=0.0, gone=0.1):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(50, 10, n), rng.gamma(2.0, size=n) + shift, rng.integers(0, 2, n)])
    X[rng.random(n) < gone, 0] = np.nan
    return X, (X[:, 1] + X[:, 2] + np.nan_to_num((X[:, 0] - 50.0) / 10.0) > 2.5)


@pytest.fixture(scope="module")
def plan():
    X, y = rows(3000, 0)
    model = ms.GreedyMiserClassifier(COSTS, tradeoff=1e-4, n_estimators=20, random_state=0).fit(X, y)
    return model.plan_.with_promise(*rows(2000, 1))


def named(row):
    return {name: None if np.isnan(v) else v for name, v in zip(COSTS.features, row.tolist())}


def figures(text, name):
    found = re.findall(rf"^miserly_{name}{{(.*?)}} (\S+)$", text, re.MULTILINE)
    return {labels: float(value) for labels, value in found}


def served(plan, X, monkeypatch, extractors=None):
    monkeypatch.setattr(drift, "PAUSE", 0.0)
    with TestClient(create_app(plan, extractors)) as client:
        for start in range(0, len(X), 100):
            response = client.post("/v1/predict", json={"rows": [named(row) for row in X[start : start + 100]]})
            assert response.status_code == 200, response.text
        return client.get("/metrics").text


def by_feature(text, name):
    return {re.search('feature="(.*?)"', key)[1]: v for key, v in figures(text, name).items()}


@pytest.mark.parametrize("with_extractors", [False, True])
def test_rows_like_those_of_the_training_are_silent_and_others_are_not(plan, monkeypatch, with_extractors):
    extractors = None
    if with_extractors:
        extractors = [ms.extractor(name, yields=[name])(lambda row, name=name: row[name]) for name in COSTS.features]
    quiet = served(plan, rows(1000, 2)[0], monkeypatch, extractors)
    assert set(by_feature(quiet, "feature_drift")) == set(COSTS.features)
    assert max(by_feature(quiet, "feature_drift").values()) < 0.05
    assert max(map(abs, by_feature(quiet, "feature_missing_change").values())) < 0.05
    assert max(figures(quiet, "score_drift").values()) < 0.1
    (promised,), (paid,) = (figures(quiet, f"cost_{name}_total").values() for name in ("promised", "compared"))
    assert promised == pytest.approx(1000 * plan.promise.cost)
    assert paid == pytest.approx(promised, rel=0.05)

    loud = served(plan, rows(1000, 3, shift=1.0, gone=0.5)[0], monkeypatch, extractors)
    assert by_feature(loud, "feature_drift")["crp"] > 0.25
    assert by_feature(loud, "feature_drift")["sex"] < 0.05
    assert by_feature(loud, "feature_missing_change")["age"] == pytest.approx(0.4, abs=0.06)


def test_the_index_is_that_of_the_textbook(plan):
    """Against the sum over bins written out, for so many rows that neither smoothing nor chance counts."""
    X = rows(4000, 4, shift=0.3)[0]
    histogram = next(h for h in plan.profile.features if h.name == "crp")
    edges = [-np.inf, *histogram.edges, np.inf]
    now = np.histogram(X[:, 1], np.nextafter(edges, np.inf))[0] / len(X)
    then = np.array(histogram.shares)
    expected = ((now - then) * np.log(now / then)).sum()
    assert expected > 0.02
    assert histogram.stability(histogram.counts(X[:, 1]), plan.profile.n_rows) == pytest.approx(expected, rel=0.1)


def test_budgets_and_menus_are_compared_with_their_own_promise(plan):
    free = ms.GreedyMiserClassifier(COSTS, tradeoff=10.0, n_estimators=1).fit(*rows(300, 0)).plan_
    X, y = rows(500, 5)
    menu = Menu.measured([free, plan], X, lambda p, run: float((p.read(run.z) == y).mean()))
    watch = DriftWatch(menu)
    assert watch.expected(None).cost == menu.choose(None).cost
    assert watch.expected(2.0).cost == menu.choose(2.0).cost < watch.expected(None).cost
    assert watch.expected(None).promise is not None
    alone = DriftWatch(plan)
    assert alone.expected(None).cost == plan.promise.cost
    assert alone.expected(1.0).cost is None, "a plan under a cap was not measured"


def test_a_feature_that_only_some_rows_buy_is_not_compared(plan):
    watch = DriftWatch(plan)
    for i in range(300):
        watch.row({"age": 50.0, "sex": 1.0} | ({"crp": 9.0} if i % 2 else {}))
    assert {change.feature for change in watch.changes()} == {"age", "sex"}


def test_old_rows_fade_and_few_say_nothing(plan):
    watch = DriftWatch(plan)
    for row in rows(50, 6)[0]:
        watch.row(named(row))
    assert watch.changes() == []
    for row in rows(12_000, 6, shift=3.0)[0]:
        watch.row(named(row))
    assert watch.n_rows < drift.WINDOW
    before = {change.feature: change.stability for change in watch.changes()}["crp"]
    for row in rows(12_000, 6)[0]:
        watch.row(named(row))
    assert {change.feature: change.stability for change in watch.changes()}["crp"] < before / 2

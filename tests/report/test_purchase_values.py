"""What acquisitions are worth: differences of refitted models, measured on the same rows."""

import numpy as np
import pytest

import miserly as ms
from miserly.datasets import triage_like
from miserly.report import purchase_values


def test_a_value_is_what_the_refitted_model_loses():
    train, new = triage_like(800, seed=0), triage_like(600, seed=1)
    model = ms.GreedyMiserClassifier(train.costs, 1e-3, n_estimators=10, charge="path")
    found = purchase_values(model, (train.X, train.y), (new.X, new.y))
    whole = ms.GreedyMiserClassifier(train.costs, 1e-3, n_estimators=10, charge="path").fit(train.X, train.y)
    right = np.mean(whole.predict(new.X) == new.y)
    assert found.quality == pytest.approx(right)
    assert found.cost == pytest.approx(whole.predict_cost(new.X).mean())
    assert sum(one.paid for one in found.values) == pytest.approx(found.cost)
    for one in found.values[:3]:
        left = [i for i, f in enumerate(train.costs.features) if one.acquisition not in train.costs.needs[f]]
        costs = train.costs.restrict([train.costs.features[i] for i in left])
        other = ms.GreedyMiserClassifier(costs, 1e-3, n_estimators=10, charge="path").fit(train.X[:, left], train.y)
        value = right - np.mean(other.predict(new.X[:, left]) == new.y)
        assert one.value == pytest.approx(value)
        assert one.cost_without == pytest.approx(other.predict_cost(new.X[:, left]).mean())
        assert one.rate == pytest.approx(value / one.paid)
        assert one.low <= one.value <= one.high
    by_name = {one.acquisition: one for one in found.values}
    assert by_name["draw"].value > 0.01
    assert by_name["draw"].is_sure, "without blood nothing is known of most patients"
    assert found.plot().get_xlabel().startswith("accuracy")


def test_what_is_noise_is_not_sure():
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(2, 300, 3))
    costs = ms.CostTable.per_feature({"a": 1.0, "b": 1.0, "c": 0.0})
    model = ms.GreedyMiserRegressor(costs, 0.0, n_estimators=15)
    found = purchase_values(model, (X, X[:, 0]), (T, T[:, 0] + 0.1 * rng.normal(size=300)))
    by_name = {one.acquisition: one for one in found.values}
    assert by_name["a"].low > 0.5
    assert by_name["a"].rate == by_name["a"].value, "all rows pay 1 for it"
    assert "b" not in by_name or abs(by_name["b"].value) < 0.02

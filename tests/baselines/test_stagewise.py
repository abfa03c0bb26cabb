"""Cost-blind boosting, whole and on the cheap features: by hand, and as the miser that sees no prices."""

import numpy as np
import pytest

import miserly as ms
from miserly.baselines import FeatureSubsetClassifier, FeatureSubsetRegressor, StagewiseClassifier, StagewiseRegressor

COSTS = ms.CostTable(
    features=["a", "b", "c"],
    needs={"a": ["draw"], "b": ["draw", "test"], "c": ["scan"]},
    prices={"draw": 1.0, "test": 4.0, "scan": 100.0},
)


def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    return X, X[:, 0] + 2 * X[:, 1] + 3 * X[:, 2]


def test_one_round_by_hand():
    """Mean 3, residuals −3, −3, 1, 5; the best stump by the expensive feature leaves −3 and 3; half of it is learnt."""
    X, y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([0.0, 0.0, 4.0, 8.0])
    costs = ms.CostTable.per_feature([1.0, 1000.0])
    settings = {"n_estimators": 1, "learning_rate": 0.5, "max_depth": 1, "min_samples_leaf": 1}
    blind = StagewiseRegressor(costs, **settings).fit(X, y)
    assert blind.predict(X).tolist() == [1.5, 1.5, 4.5, 4.5]
    assert blind.predict_cost(X).tolist() == [1000.0] * 4
    cheap = FeatureSubsetRegressor(costs, max_price=1.0, **settings).fit(X, y)
    assert cheap.predict(X).tolist() == [2.5, 3.5, 2.5, 3.5]
    assert cheap.predict_cost(X).tolist() == [1.0] * 4


def test_squared_hinge_by_hand():
    """Scores start at 0, slopes are ±1, half of that is learnt; Platt's targets, ¾ and ¼, give ± log 3."""
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 1, 1])
    settings = {"n_estimators": 1, "learning_rate": 0.5, "max_depth": 1, "min_samples_leaf": 1}
    model = StagewiseClassifier(ms.CostTable.uniform(), loss="squared_hinge", **settings).fit(X, y)
    assert model.train_loss_ == [0.5 * 0.5**2]
    np.testing.assert_allclose(model.decision_function(X), np.log(3) * np.array([-1, -1, 1, 1]), atol=1e-9)


def test_blind_boosting_is_the_miser_at_no_tradeoff():
    X, y = problem()
    assert StagewiseRegressor(COSTS).fit(X, y).plan_ == ms.GreedyMiserRegressor(COSTS, tradeoff=0).fit(X, y).plan_
    ours, blind = StagewiseClassifier(COSTS), ms.GreedyMiserClassifier(COSTS, tradeoff=0)
    assert ours.fit(X, y > 0).plan_ == blind.fit(X, y > 0).plan_


@pytest.mark.parametrize(
    ("max_price", "features"), [(0.5, []), (1.0, ["a"]), (5.0, ["a", "b"]), (np.inf, ["a", "b", "c"])]
)
def test_a_subset_holds_what_costs_at_most_its_price(max_price, features):
    X, y = problem()
    for model in (FeatureSubsetRegressor(COSTS, max_price), FeatureSubsetClassifier(COSTS, max_price)):
        target = y if isinstance(model, FeatureSubsetRegressor) else y > 0
        assert model.fit(X, target).selected_features_ == features


def test_the_axes_are_swept_by_default():
    X, y = problem()
    front = ms.frontier(StagewiseRegressor(COSTS, n_estimators=20), (X, y), (X, y))
    assert [p.params["n_estimators"] for p in front.points] == [1, 2, 4, 6, 8, 13, 20]
    front = ms.frontier(FeatureSubsetRegressor(COSTS), (X, y), (X, y))
    assert [p.params["max_price"] for p in front.points] == [1.0, 5.0, 100.0]
    assert [p.validation.cost["mean"] for p in front.points] == [1.0, 5.0, 105.0]

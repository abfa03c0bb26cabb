"""AutoMiser with error costs: predictions of the least expected cost, and the best model by the total."""

import numpy as np
import pytest

import miserly as ms
from miserly.plan import least_expected

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = np.where(X[:, 0] + X[:, 1] + 0.7 * RNG.normal(size=400) > 1, "ill", "well")
COSTS = ms.CostTable.per_feature([1.0, 8.0, 3.0])
MATRIX = np.array([[0.0, 100.0], [10.0, 0.0]])  # ill, well


@pytest.fixture(scope="module")
def fitted():
    return ms.AutoMiserClassifier(COSTS, time_limit=None, error_costs=MATRIX).fit(X[:250], Y[:250])


def test_every_model_decides_by_expected_cost(fitted):
    for point in fitted.frontier_.points:
        p = point.model.predict_proba(X)
        assert (point.model.predict(X) == fitted.classes_[least_expected(p, MATRIX)]).all()
    p = fitted.predict_proba(X, budget=5)
    assert (fitted.predict(X, budget=5) == fitted.classes_[least_expected(p, MATRIX)]).all()
    assert fitted.predict_cost(X, budget=5).max() <= 5


def test_the_best_model_has_the_least_total(fitted):
    totals = fitted.frontier_.totals(MATRIX)
    best = int(np.argmin([t.for_choice for t in totals]))
    assert fitted.plan_ == fitted.frontier_.points[best].model.plan_
    assert (fitted.predict(X) == fitted.plan_.predict(X)).all()
    assert fitted.metric_.name == "mistakes"
    assert [-q for q in fitted.menu_.quality[:, -1]] == sorted((-q for q in fitted.menu_.quality[:, -1]), reverse=True)


def test_it_beats_accuracy_and_fixed_thresholds_where_mistakes_differ(fitted):
    blind = ms.AutoMiserClassifier(COSTS, time_limit=None, metric="accuracy").fit(X[:250], Y[:250])
    test, truth = X[250:], np.searchsorted(fitted.classes_, Y[250:])

    def total(model):
        said = np.searchsorted(fitted.classes_, model.predict(test))
        return model.predict_cost(test).mean() + MATRIX[truth, said].mean()

    assert total(fitted) < total(blind)


def test_larger_costs_of_mistakes_buy_more():
    paid = []
    for scale in (0.001, 50.0):
        model = ms.AutoMiserClassifier(COSTS, time_limit=None, error_costs=scale * MATRIX).fit(X[:150], Y[:150])
        paid.append(model.predict_cost(X).mean())
    assert paid[0] == 0.0 < paid[1]


@pytest.mark.parametrize("wrong", [[[0, 1]], [[0, -1], [1, 0]], [[1, 1], [1, 1]], np.zeros((3, 3))])
def test_wrong_costs_are_refused(wrong):
    with pytest.raises(ValueError, match="error_costs"):
        ms.AutoMiserClassifier(COSTS, error_costs=wrong).fit(X[:60], Y[:60])

"""The linear SVM as a user meets it."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import miserly as ms
from miserly.baselines import LinearSVM


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


def test_by_hand():
    # two points at ±1, standardised as they are: w = 2C/(1 + 2C) = ⅔. Platt's softened targets for one row of each
    # class are ⅔ and ⅓, so the log-odds at ±1 are ± log 2, and half-way they are 0
    model = LinearSVM(ms.CostTable.uniform(3.0)).fit([[-1.0], [1.0]], ["n", "y"])
    np.testing.assert_allclose(model.decision_function([[-1.0], [0.0], [1.0]]), [-np.log(2), 0, np.log(2)], atol=1e-12)
    assert model.predict([[0.5], [-0.5]]).tolist() == ["y", "n"]
    assert model.predict_cost([[0.5]]).tolist() == [3.0]


def test_it_ranks_as_liblinear_does_and_buys_everything(cancer):
    X, y = cancer
    costs = ms.CostTable.per_feature(1.0 + np.arange(30))
    model = LinearSVM(costs, C=0.2).fit(X, y)
    peer = make_pipeline(StandardScaler(), LinearSVC(C=0.1, dual=False, tol=1e-12, intercept_scaling=1e3)).fit(X, y)
    score, theirs = model.decision_function(X), peer.decision_function(X)
    line = np.polyfit(theirs, score, 1)
    np.testing.assert_allclose(score, np.polyval(line, theirs), atol=1e-4)
    assert roc_auc_score(y, score) == roc_auc_score(y, theirs)
    assert (model.predict_cost(X) == 465.0).all()


def test_probabilities_are_platts(cancer):
    X, y = cancer
    model = LinearSVM(ms.CostTable.uniform()).fit(X[::2], y[::2])
    peer = make_pipeline(StandardScaler(), LinearSVC(C=0.5, dual=False, tol=1e-10, intercept_scaling=1e3))
    peer = CalibratedClassifierCV(FrozenEstimator(peer.fit(X[::2], y[::2]))).fit(X[::2], y[::2])
    mine, theirs = model.predict_proba(X[1::2]), peer.predict_proba(X[1::2])
    assert log_loss(y[1::2], mine) < 0.15
    assert np.abs(mine - theirs).mean() < 0.02


def test_several_classes_and_weights():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = LinearSVM(ms.CostTable.uniform(), C=10.0).fit(X, names)
    assert model.score(X, names) > 0.94
    assert model.coef_.shape == (3, 4)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    times = np.random.default_rng(0).integers(0, 3, 150)
    weighted = LinearSVM(ms.CostTable.uniform()).fit(X, y, sample_weight=times)
    repeated = LinearSVM(ms.CostTable.uniform()).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7)


def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 200))
    y = X[:, 0] > 0
    model = LinearSVM(ms.CostTable.uniform(), C=10.0).fit(X, y)
    assert model.score(X, y) == 1.0
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_frontier_needs_a_grid(cancer):
    X, y = cancer
    data = {"train": (X[::2], y[::2]), "validation": (X[1::2], y[1::2])}
    with pytest.raises(ValueError, match="no cost axis: give grid"):
        ms.frontier(LinearSVM(ms.CostTable.uniform()), **data)
    front = ms.frontier(LinearSVM(ms.CostTable.uniform()), **data, grid={"C": [0.1, 1.0]})
    assert [point.params["C"] for point in front.points] == [0.1, 1.0]


@pytest.mark.parametrize(("change", "message"), [({"costs": None}, "needs the price"), ({"C": 0.0}, "C")])
def test_wrong_settings_name_the_remedy(cancer, change, message):
    with pytest.raises(ValueError, match=message):
        LinearSVM(ms.CostTable.uniform()).set_params(**change).fit(*cancer)


def test_missing_values_are_refused_but_not_in_what_the_plan_does_not_buy():
    X = np.array([[-1.0, 5.0], [1.0, 5.0]])
    model = LinearSVM(ms.CostTable.uniform()).fit(X, [0, 1])
    unbought = np.array([[-1.0, np.nan], [1.0, np.nan]])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(unbought)
    assert model.plan_.predict(unbought).tolist() == [0, 1]
    with pytest.raises(ValueError, match="NaN"):
        model.fit(unbought, [0, 1])

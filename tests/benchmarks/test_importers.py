"""Models of others as plans where values are missing."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from benchmarks.frontier_vs_peers import importers
from miserly import CostTable

COSTS = CostTable.per_feature([1.0, 1.0])


def rows(n_missing):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 2)), 2)
    y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)
    X[:n_missing, 0] = np.nan
    return X, y


@pytest.mark.parametrize("n_missing", [0, 60])
def test_missing_values_go_the_way_of_the_original(n_missing):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = rows(n_missing)
    booster = lightgbm.train({"objective": "binary", "verbose": -1}, lightgbm.Dataset(X, y), 10)
    X[-30:, 1] = np.nan
    plan = importers.from_lightgbm(booster, COSTS, np.arange(2))
    importers.check_same(plan, X, booster.predict(X, raw_score=True), "LightGBM")
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(*rows(n_missing))
    known = rows(n_missing)[0]
    assert (importers.from_sklearn(tree, COSTS, np.arange(2)).predict(known) == tree.predict(known)).all()


def test_catboost_too():
    catboost = pytest.importorskip("catboost")
    X, y = rows(60)
    model = catboost.CatBoostClassifier(iterations=10, depth=3, verbose=0, allow_writing_files=False).fit(X, y)
    plan = importers.from_catboost(model, COSTS, np.arange(2))
    importers.check_same(
        plan, np.float32(X).astype(float), model.predict(X, prediction_type="RawFormulaVal"), "CatBoost"
    )

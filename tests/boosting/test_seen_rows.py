"""Whether rows were in the training data of an imported model, and the warning of those who would learn from them."""

import warnings

import numpy as np
import pytest
from sklearn import ensemble, linear_model

import miserly as ms

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

RNG = np.random.default_rng(1)
COSTS = ms.CostTable.per_feature(np.ones(6))


def rows(n, noise=1.5):
    X = RNG.normal(size=(n, 6))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + noise * RNG.normal(size=n)


(X, NUMBER), (NEW, LATER) = rows(1000), rows(1000)
GBM = {"n_estimators": 60, "verbose": -1, "n_jobs": 1}
MODELS = {
    "numbers": (lightgbm.LGBMRegressor(**GBM), lambda y: y),
    "two classes": (lightgbm.LGBMClassifier(**GBM), lambda y: np.where(y > 0, "yes", "no")),
    "three classes": (lightgbm.LGBMClassifier(**GBM), lambda y: np.digitize(y, [-1, 1])),
    "counts": (lightgbm.LGBMRegressor(objective="poisson", **GBM), lambda y: np.maximum(0, np.round(y))),
    "xgboost": (xgboost.XGBClassifier(n_estimators=60, subsample=0.7, n_jobs=1), lambda y: (y > 0).astype(int)),
    "histogram": (ensemble.HistGradientBoostingClassifier(max_iter=60), lambda y: (y > 0).astype(int)),
    "boosting": (ensemble.GradientBoostingRegressor(n_estimators=150, max_depth=4), lambda y: y),
}


@pytest.mark.parametrize("kind", MODELS)
def test_training_rows_and_parts_of_them_are_seen_and_new_ones_not(kind):
    model, target = MODELS[kind]
    plan = ms.import_plan(model.fit(X, target(NUMBER)), COSTS)
    assert ms.seen_rows(plan, X, target(NUMBER)).seen
    assert ms.seen_rows(plan, X[::2], target(NUMBER)[::2]).seen
    found = ms.seen_rows(plan, NEW, target(LATER))
    assert not found.seen
    assert found.late < found.early


def test_rankers_are_judged_by_their_queries():
    qid, grades = np.repeat(np.arange(50), 20), np.digitize(NUMBER, [0, 1, 2])
    plan = ms.import_plan(lightgbm.LGBMRanker(**GBM).fit(X, grades, group=[20] * 50), COSTS)
    assert ms.seen_rows(plan, X, grades, qid).seen
    shuffled = RNG.permutation(1000)
    assert ms.seen_rows(plan, X[shuffled], grades[shuffled], qid[shuffled]).seen
    assert not ms.seen_rows(plan, NEW, np.digitize(LATER, [0, 1, 2]), qid).seen
    assert ms.seen_rows(plan, X, grades) is None


def test_what_cannot_be_judged_is_not():
    for model in (
        ensemble.RandomForestRegressor(5),
        linear_model.Ridge(),
        lightgbm.LGBMRegressor(**{**GBM, "n_estimators": 5}),
    ):
        plan = ms.import_plan(model.fit(X, NUMBER), COSTS)
        assert ms.seen_rows(plan, X, NUMBER) is None
    plan = ms.import_plan(lightgbm.LGBMClassifier(**GBM).fit(X, NUMBER > 0), COSTS)
    assert ms.seen_rows(plan, X, np.full(1000, 7)) is None
    assert ms.seen_rows(plan, X[:0], NUMBER[:0] > 0) is None


def test_learners_over_imported_trees_warn_of_seen_rows():
    y, later = (NUMBER > 0).astype(int), (LATER > 0).astype(int)
    plan = ms.import_plan(lightgbm.LGBMClassifier(**{**GBM, "n_estimators": 20}).fit(X[:500], y[:500]), COSTS)
    learner = ms.CSTCClassifier(COSTS, tradeoff=1e-3, max_depth=1, dictionary=plan)
    with pytest.warns(ms.SeenRowsWarning, match="trained on the training rows"):
        learner.fit(X[:500], y[:500], eval_set=(NEW, later))
    with pytest.warns(ms.SeenRowsWarning, match="trained on the validation rows"):
        learner.fit(NEW, later, eval_set=(X[:500], y[:500]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ms.SeenRowsWarning)
        learner.fit(X[500:], y[500:], eval_set=(NEW, later))

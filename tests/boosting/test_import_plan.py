"""Models of other libraries as plans: the same predictions, priced by the user's table."""

import json

import numpy as np
import pytest
from sklearn import ensemble, linear_model, tree

import miserly as ms

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
catboost = pytest.importorskip("catboost")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 6))
NEW = RNG.normal(size=(1000, 6))
NUMBER = X[:, 0] * 2 + np.sin(3 * X[:, 1]) + X[:, 2] * X[:, 3] + 0.1 * RNG.normal(size=500)
TWO = np.where(NUMBER > 0.3, "yes", "no")
THREE = np.digitize(NUMBER, [-1.0, 1.0])
GRADES = np.digitize(NUMBER, [-1.0, 0.0, 1.0])
HOLES, NEW_HOLES = X.copy(), NEW.copy()
HOLES[RNG.random(X.shape) < 0.1] = np.nan
NEW_HOLES[RNG.random(NEW.shape) < 0.2] = np.nan
COSTS = ms.CostTable.per_feature(np.arange(1.0, 7.0))
EXACT, SINGLE = 1e-12, 3e-6
GBM = {"n_estimators": 15, "verbose": -1, "n_jobs": 1, "min_child_samples": 5}
XGB = {"n_estimators": 15, "max_depth": 4, "n_jobs": 1}
CAT = {"iterations": 15, "depth": 4, "verbose": False, "allow_writing_files": False, "thread_count": 1}

KINDS = {
    "lightgbm numbers": (lightgbm.LGBMRegressor(**GBM), NUMBER, True, EXACT),
    "lightgbm two": (lightgbm.LGBMClassifier(**GBM), TWO, True, EXACT),
    "lightgbm three": (lightgbm.LGBMClassifier(**GBM), THREE, True, EXACT),
    "lightgbm forest": (
        lightgbm.LGBMRegressor(boosting_type="rf", bagging_freq=1, bagging_fraction=0.5, **GBM),
        NUMBER,
        True,
        EXACT,
    ),
    "lightgbm stumpless": (
        lightgbm.LGBMRegressor(n_estimators=3, min_child_samples=400, verbose=-1),
        NUMBER,
        True,
        EXACT,
    ),
    "xgboost numbers": (xgboost.XGBRegressor(**XGB), NUMBER, True, SINGLE),
    "xgboost two": (xgboost.XGBClassifier(**XGB), TWO == "yes", True, SINGLE),
    "xgboost three": (xgboost.XGBClassifier(**XGB), THREE, True, SINGLE),
    "xgboost dart": (xgboost.XGBRegressor(booster="dart", rate_drop=0.2, **XGB), NUMBER, True, SINGLE),
    "catboost numbers": (catboost.CatBoostRegressor(**CAT), NUMBER, True, EXACT),
    "catboost two": (catboost.CatBoostClassifier(**CAT), TWO, True, EXACT),
    "catboost three": (catboost.CatBoostClassifier(**CAT), THREE, True, EXACT),
    "forest numbers": (ensemble.RandomForestRegressor(15, random_state=0), NUMBER, False, EXACT),
    "forest two": (ensemble.RandomForestClassifier(15, random_state=0), TWO, False, EXACT),
    "extra three": (ensemble.ExtraTreesClassifier(15, random_state=0, max_depth=5), THREE, False, EXACT),
    "tree two": (tree.DecisionTreeClassifier(max_depth=4, random_state=0), TWO, False, EXACT),
    "boosting numbers": (ensemble.GradientBoostingRegressor(n_estimators=15), NUMBER, False, EXACT),
    "boosting two": (ensemble.GradientBoostingClassifier(n_estimators=15), TWO, False, EXACT),
    "boosting exponential": (
        ensemble.GradientBoostingClassifier(loss="exponential"),
        TWO,
        False,
        EXACT,
    ),
    "boosting three": (ensemble.GradientBoostingClassifier(n_estimators=9), THREE, False, EXACT),
    "histogram numbers": (ensemble.HistGradientBoostingRegressor(max_iter=15), NUMBER, True, EXACT),
    "histogram two": (ensemble.HistGradientBoostingClassifier(max_iter=15), TWO, True, EXACT),
    "histogram three": (ensemble.HistGradientBoostingClassifier(max_iter=9), THREE, True, EXACT),
    "linear": (linear_model.LinearRegression(), NUMBER, False, EXACT),
    "lasso": (linear_model.Lasso(alpha=0.1), NUMBER, False, EXACT),
    "logistic two": (linear_model.LogisticRegression(), TWO, False, EXACT),
    "logistic three": (linear_model.LogisticRegression(), THREE, False, EXACT),
}


def difference(plan, model, rows):
    """The largest difference of probabilities, or of numbers."""
    if plan.classes is None:
        return float(np.abs(plan.predict(rows) - model.predict(rows)).max())
    labels = np.asarray(model.predict(rows)).ravel()
    sure = np.sort(plan.predict_proba(rows), axis=1)
    clear = sure[:, -1] - sure[:, -2] > 1e-5
    assert (plan.predict(rows).astype(labels.dtype) == labels)[clear].all()
    return float(np.abs(plan.predict_proba(rows) - model.predict_proba(rows)).max())


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_those_of_the_model(kind):
    model, y, can_miss, tolerance = KINDS[kind]
    model.fit(HOLES if can_miss else X, y)
    plan = ms.import_plan(model, COSTS)
    assert difference(plan, model, NEW_HOLES if can_miss else NEW) <= tolerance
    assert (plan.predict_cost(NEW) <= 21.0).all()
    if plan.shares is not None:
        assert (plan.shares >= 0).all()
        assert plan.predict_cost(NEW, budget=5.0).max() <= 5.0


def test_boosters_and_files_are_read_too(tmp_path):
    data = lightgbm.Dataset(X, GRADES, group=[100] * 5)
    ranker = lightgbm.train({"objective": "lambdarank", "verbose": -1, "num_threads": 1}, data, 10)
    ranker.save_model(tmp_path / "ranker.txt")
    for what in (ranker, tmp_path / "ranker.txt", str(tmp_path / "ranker.txt")):
        np.testing.assert_allclose(ms.import_plan(what, COSTS).score(NEW), ranker.predict(NEW), atol=EXACT)
    booster = xgboost.train({"objective": "binary:logistic", "nthread": 1}, xgboost.DMatrix(X, TWO == "yes"), 10)
    for name in ("model.json", "model.ubj"):
        booster.save_model(tmp_path / name)
        plan = ms.import_plan(tmp_path / name, COSTS)
        np.testing.assert_allclose(plan.predict_proba(NEW)[:, 1], booster.predict(xgboost.DMatrix(NEW)), atol=SINGLE)
    cat = catboost.CatBoostClassifier(**CAT).fit(X, THREE)
    cat.save_model(tmp_path / "cat.json", format="json")
    plan = ms.import_plan(tmp_path / "cat.json", COSTS)
    np.testing.assert_allclose(plan.predict_proba(NEW), cat.predict_proba(NEW), atol=EXACT)


def test_columns_go_by_name_where_the_model_knows_them():
    pd = pytest.importorskip("pandas")
    names = ["age", "crp", "wbc", "bp", "bmi", "scan"]
    frame = pd.DataFrame(X, columns=names)
    prices = dict(zip(reversed(names), [9.0, 8.0, 7.0, 6.0, 5.0, 4.0]))
    for model in (
        lightgbm.LGBMRegressor(**GBM),
        xgboost.XGBRegressor(**XGB),
        catboost.CatBoostRegressor(**CAT),
        ensemble.RandomForestRegressor(5),
        linear_model.Ridge(),
    ):
        model.fit(frame, NUMBER)
        plan = ms.import_plan(model, ms.CostTable.per_feature(prices))
        assert plan.costs.features == tuple(names)
        assert plan.costs.prices["age"] == 4.0
        np.testing.assert_allclose(plan.predict(frame), model.predict(frame), atol=1e-5)
    with pytest.raises(ValueError, match="missing 'age'"):
        ms.import_plan(model, ms.CostTable.per_feature(dict.fromkeys(names[1:], 1.0)))


def test_an_early_stop_and_a_background_are_kept():
    model = lightgbm.LGBMRegressor(n_estimators=200, learning_rate=0.5, verbose=-1, n_jobs=1)
    stop = lightgbm.early_stopping(3, verbose=False)
    model.fit(X[:300], NUMBER[:300], eval_X=X[300:], eval_y=NUMBER[300:], callbacks=[stop])
    plan = ms.import_plan(model, COSTS)
    assert len(plan.nodes) == model.best_iteration_ < 200
    np.testing.assert_allclose(plan.predict(NEW), model.predict(NEW), atol=EXACT)
    linear = ms.import_plan(linear_model.LinearRegression().fit(X, NUMBER), COSTS, background=X)
    assert linear.can_miss
    assert linear.predict_cost(NEW, budget=3.0).max() <= 3.0
    assert len(np.unique(linear.predict(NEW, budget=3.0))) > 900


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="none of them"):
        ms.import_plan(object(), COSTS)
    (tmp_path / "x.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(ValueError, match="not a LightGBM text file"):
        ms.import_plan(tmp_path / "x.json", COSTS)
    with pytest.raises(ValueError, match="prices 5 features"):
        ms.import_plan(linear_model.Ridge().fit(X, NUMBER), ms.CostTable.per_feature(np.ones(5)))


def test_a_row_that_knows_nothing_gets_what_training_rows_get_in_the_mean():
    forest = ensemble.RandomForestRegressor(20, random_state=0, bootstrap=False).fit(X, NUMBER)
    plan = ms.import_plan(forest, COSTS)
    assert plan.predict(NEW[:1], budget=0.0)[0] == pytest.approx(NUMBER.mean())
    boosted = lightgbm.LGBMRegressor(**GBM).fit(X, NUMBER)
    assert ms.import_plan(boosted, COSTS).predict(NEW[:1], budget=0.0)[0] == pytest.approx(NUMBER.mean(), abs=0.1)


def _files(folder):
    """One model file of each kind."""
    lightgbm.LGBMClassifier(**GBM).fit(X, THREE).booster_.save_model(folder / "m.txt")
    booster = xgboost.XGBClassifier(**XGB).fit(X, THREE).get_booster()
    booster.save_model(folder / "m.json")
    booster.save_model(folder / "m.ubj")
    catboost.CatBoostClassifier(**CAT).fit(X, THREE).save_model(str(folder / "cat.json"), format="json")
    return [folder / name for name in ("m.txt", "m.json", "m.ubj", "cat.json")]


def test_damaged_files_are_imported_whole_or_refused_by_name(tmp_path):
    """Cut off, with bytes changed, or with numbers exchanged: a plan or a ValueError that names the file."""
    rng = np.random.default_rng(1)
    for path in _files(tmp_path):
        whole = path.read_bytes()
        damaged = tmp_path / f"damaged{path.suffix}"
        for trial in range(60):
            data = bytearray(whole)
            if trial % 3 == 0:
                data = data[: rng.integers(len(data))]
            for place in rng.integers(max(1, len(data)), size=3 if trial % 3 == 1 else 0):
                data[place] = rng.integers(256)
            if trial % 3 == 2:
                places = [i for i, byte in enumerate(data) if chr(byte).isdigit()]
                for place in rng.choice(places, 5):
                    data[place] = ord(str(rng.integers(10)))
            damaged.write_bytes(bytes(data))
            try:
                ms.import_plan(damaged, COSTS)
            except ValueError as error:
                assert damaged.name in str(error) or "prices 6 features" in str(error), str(error)  # noqa: PT017


def test_a_file_that_is_cut_off_is_said_to_be(tmp_path):
    text, json_file, ubj, cat = _files(tmp_path)
    wants = ((text, "cut off"), (json_file, "not valid JSON"), (ubj, "cut off"), (cat, "not valid JSON"))
    for path, words in wants:
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
        with pytest.raises(ValueError, match=f"{path.name}.*{words}.*Save the model again"):
            ms.import_plan(path, COSTS)


def test_children_that_lead_back_are_refused(tmp_path):
    path = _files(tmp_path)[1]
    content = json.loads(path.read_text())
    tree_0 = content["learner"]["gradient_booster"]["model"]["trees"][0]
    tree_0["left_children"][1] = 0
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="lead back"):
        ms.import_plan(path, COSTS)

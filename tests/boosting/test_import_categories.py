"""Categories, missing rules and links of other libraries: the plan predicts what the model does, also on odd values."""

import json

import numpy as np
import pytest
from sklearn import ensemble, linear_model, svm

import miserly as ms
from miserly.boosting._city_hash import category_hash

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
catboost = pytest.importorskip("catboost")
pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(3)
COSTS = ms.CostTable.per_feature(np.arange(1.0, 7.0))
GBM = {"n_estimators": 12, "verbose": -1, "n_jobs": 1, "min_child_samples": 5, "min_data_per_group": 5}
XGB = {"n_estimators": 12, "max_depth": 4, "n_jobs": 1}
CAT = {"iterations": 12, "depth": 4, "verbose": False, "allow_writing_files": False, "thread_count": 1}
ODD = [0.0, -0.0, 1e-36, -1e-36, 1e-35, -0.5, 0.5, 0.999, 1.0, 1e30, -1e30, -1.0, 41.0, 255.0, 256.0, 1e6, np.nan]


def rows(n):
    X = RNG.normal(size=(n, 6))
    X[:, 4], X[:, 5] = RNG.integers(0, 8, n), RNG.integers(0, 40, n)
    return X


X, NEW = rows(600), rows(1500)
NUMBER = X[:, 0] + np.sin(3 * X[:, 1]) + 2 * np.isin(X[:, 4], [1, 3, 6]) + np.isin(X[:, 5] % 7, [2, 3])
COUNT, THREE = np.maximum(0, np.round(NUMBER)), np.digitize(NUMBER, [0, 2])
UNIT = 1 / (1 + np.exp(-NUMBER))
HOLES = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
NEW = np.where(RNG.random(NEW.shape) < 0.2, np.nan, NEW)
NEW[:60] = RNG.choice(ODD, size=(60, 6))
CODES = NEW.copy()
CODES[:, 4:] = np.abs(CODES[:, 4:])  # XGBoost refuses negative and huge categories
CODES[CODES > 1e6] = 300.0
GBM_CODES = {"categorical_feature": [4, 5]}
XGB_CODES = {"enable_categorical": True, "feature_types": ["q"] * 4 + ["c"] * 2}

KINDS = {
    "lightgbm codes": (lightgbm.LGBMRegressor(**GBM), NUMBER, GBM_CODES, 1e-12),
    "lightgbm one against all": (lightgbm.LGBMRegressor(max_cat_to_onehot=99, **GBM), NUMBER, GBM_CODES, 1e-12),
    "lightgbm zeros": (lightgbm.LGBMRegressor(zero_as_missing=True, **GBM), NUMBER, GBM_CODES, 1e-12),
    "lightgbm no missing": (lightgbm.LGBMRegressor(use_missing=False, **GBM), NUMBER, GBM_CODES, 1e-12),
    "lightgbm poisson": (lightgbm.LGBMRegressor(objective="poisson", **GBM), COUNT, {}, 1e-12),
    "lightgbm cross entropy": (lightgbm.LGBMRegressor(objective="cross_entropy", **GBM), UNIT, {}, 1e-12),
    "lightgbm lambda": (lightgbm.LGBMRegressor(objective="cross_entropy_lambda", **GBM), UNIT, {}, 1e-12),
    "lightgbm root": (lightgbm.LGBMRegressor(reg_sqrt=True, **GBM), NUMBER, {}, 1e-12),
    "lightgbm dart": (lightgbm.LGBMClassifier(boosting_type="dart", drop_rate=0.5, **GBM), THREE, {}, 1e-12),
    "lightgbm one for all": (lightgbm.LGBMClassifier(objective="multiclassova", sigmoid=2.0, **GBM), THREE, {}, 1e-12),
    "xgboost codes": (xgboost.XGBRegressor(**XGB_CODES, **XGB), NUMBER, {}, 3e-6),
    "xgboost one against all": (xgboost.XGBRegressor(max_cat_to_onehot=99, **XGB_CODES, **XGB), NUMBER, {}, 3e-6),
    "xgboost other missing": (xgboost.XGBRegressor(missing=3.0, **XGB_CODES, **XGB), NUMBER, {}, 3e-6),
    "xgboost poisson": (xgboost.XGBRegressor(objective="count:poisson", **XGB), COUNT, {}, 3e-5),
    "xgboost vector leaves": (xgboost.XGBClassifier(multi_strategy="multi_output_tree", **XGB), THREE, {}, 3e-6),
    "xgboost forest": (xgboost.XGBRFClassifier(**XGB), THREE, {}, 3e-6),
    "catboost levels": (catboost.CatBoostClassifier(grow_policy="Depthwise", **CAT), THREE, {}, 1e-12),
    "catboost leaves": (catboost.CatBoostRegressor(grow_policy="Lossguide", **CAT), NUMBER, {}, 1e-12),
    "catboost largest missing": (catboost.CatBoostRegressor(nan_mode="Max", **CAT), NUMBER, {}, 1e-12),
    "catboost poisson": (catboost.CatBoostRegressor(loss_function="Poisson", **CAT), COUNT, {}, 1e-9),
    "catboost each class": (catboost.CatBoostClassifier(loss_function="MultiClassOneVsAll", **CAT), THREE, {}, 1e-12),
    "histogram codes": (
        ensemble.HistGradientBoostingRegressor(max_iter=9, categorical_features=[4, 5]),
        NUMBER,
        {},
        1e-12,
    ),
    "histogram poisson": (ensemble.HistGradientBoostingRegressor(loss="poisson", max_iter=9), COUNT, {}, 1e-12),
}


@pytest.mark.parametrize("kind", KINDS)
def test_odd_values_go_where_the_model_sends_them(kind, tmp_path):
    model, y, fit, tolerance = KINDS[kind]
    model.fit(HOLES, y, **fit)
    plan = ms.import_plan(model, COSTS)
    new = CODES if kind.startswith("xgboost") else NEW
    want = model.predict(new) if plan.classes is None else model.predict_proba(new)
    found = plan.predict(new) if plan.classes is None else plan.predict_proba(new)
    np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)
    if plan.classes is not None:
        agree = plan.predict(new) == np.asarray(model.predict(new)).ravel()
        assert agree[np.ptp(np.sort(want)[:, -2:], axis=1) > 1e-6].all()
    plan.save(tmp_path / "m.plan")
    np.testing.assert_array_equal(ms.load_plan(tmp_path / "m.plan").predict(new), plan.predict(new))


@pytest.mark.parametrize("kind", ["lightgbm codes", "xgboost codes", "histogram codes"])
def test_one_row_equals_a_batch_and_pays_once_for_a_category(kind):
    model, y, fit, _ = KINDS[kind]
    plan = ms.import_plan(model.fit(HOLES, y, **fit), COSTS)
    cost, number = plan.predict_cost(NEW), plan.predict(NEW)
    for i in (0, 7, 300):
        walk, values = plan.start(), dict(zip(plan.costs.features, NEW[i]))
        while not walk.done:
            walk.supply({name: values[name] for name in walk.needs})
        assert (walk.best.value, walk.cost) == (number[i], cost[i])
    assert plan.predict_cost(NEW, budget=6.0).max() <= 6.0
    shared = plan.dictionary.left[~plan.dictionary.is_leaf]
    assert len(np.unique(shared)) < len(shared) or kind == "xgboost codes"  # ends of questions are shared


def test_shared_ends_are_copied_for_other_formats():
    model, y, fit, _ = KINDS["lightgbm codes"]
    plan = ms.import_plan(model.fit(HOLES, y, **fit), COSTS)
    text = lightgbm.Booster(model_str=plan.export("lightgbm"))
    np.testing.assert_allclose(text.predict(NEW), model.predict(NEW), rtol=1e-12, atol=1e-12)
    background = plan.with_background(HOLES)
    assert ((background.shares >= 0) & (background.shares <= 1)).all()


def frame_of(X):
    words = np.array(["a", "b b", "c", "d", "e", "f", "g", "a word that is longer than sixty-four bytes " * 2])
    frame = pd.DataFrame(X[:, :4], columns=["age", "crp", "wbc", "bp"])
    frame["ward"] = words[X[:, 4].astype(int)]
    frame["site"] = (X[:, 5].astype(int) * 3).astype(str)
    return frame


FRAME, FRESH = frame_of(X), frame_of(rows(300))
FRESH.loc[:20, "ward"] = "never seen"
PRICES = ms.CostTable.per_feature(dict.fromkeys(FRAME.columns, 2.0))


def as_categories(frame):
    known = {name: sorted(FRAME[name].unique()) for name in ("ward", "site")}
    return frame.assign(
        **{name: pd.Categorical(frame[name].where(frame[name].isin(k)), k) for name, k in known.items()}
    )


def test_words_of_categories_are_read_as_the_model_reads_them(tmp_path):
    gbm = lightgbm.LGBMRegressor(**GBM).fit(as_categories(FRAME), NUMBER)
    xgb = xgboost.XGBRegressor(enable_categorical=True, **XGB).fit(as_categories(FRAME), NUMBER)
    hist = ensemble.HistGradientBoostingRegressor(max_iter=9, categorical_features=["ward", "site"])
    hist.fit(as_categories(FRAME), NUMBER)
    cat = catboost.CatBoostRegressor(cat_features=["ward", "site"], one_hot_max_size=99, **CAT).fit(FRAME, NUMBER)
    for model, read in ((gbm, as_categories), (xgb, as_categories), (hist, as_categories), (cat, lambda f: f)):
        background = FRAME if model is cat else None
        plan = ms.import_plan(model, PRICES, background=background)
        np.testing.assert_allclose(plan.predict(FRESH), model.predict(read(FRESH)), rtol=3e-6, atol=3e-6)
        assert {"ward", "site"} <= set(plan.schema.categories)
    with pytest.raises(ValueError, match="Give background=rows"):
        ms.import_plan(cat, PRICES)
    cat.save_model(str(tmp_path / "cat.json"), format="json", pool=catboost.Pool(FRAME, cat_features=["ward", "site"]))
    plan = ms.import_plan(tmp_path / "cat.json", PRICES)
    np.testing.assert_allclose(plan.predict(FRESH), cat.predict(FRESH), rtol=1e-12)
    gbm.booster_.save_model(tmp_path / "gbm.txt")
    np.testing.assert_allclose(
        ms.import_plan(tmp_path / "gbm.txt", PRICES).predict(FRESH), gbm.predict(as_categories(FRESH)), rtol=1e-12
    )


def test_hashes_of_words_are_those_of_catboost(tmp_path):
    words = ["".join(RNG.choice(list("abcxyz ä漢_0"), size=n)) for n in (1, 3, 4, 8, 9, 16, 17, 32, 33, 64, 65, 130)]
    frame = pd.DataFrame({"c": words * 9, "d": [*"uvw"] * 36})
    model = catboost.CatBoostRegressor(iterations=30, one_hot_max_size=99, verbose=False, allow_writing_files=False)
    model.fit(frame, frame["c"].map(words.index) + (frame["d"] == "u"), cat_features=["c", "d"])
    pool = catboost.Pool(frame, cat_features=["c", "d"])
    model.save_model(str(tmp_path / "m.json"), format="json", pool=pool)
    hashes = json.loads((tmp_path / "m.json").read_text())["features_info"]["cat_features_hash"]
    assert {h["value"] for h in hashes} == {*words, *"uvw"}
    assert all(category_hash(h["value"]) & 0xFFFFFFFF == h["hash"] for h in hashes)


def test_statistics_of_categories_are_refused():
    model = catboost.CatBoostRegressor(cat_features=["ward", "site"], one_hot_max_size=2, **CAT).fit(FRAME, NUMBER)
    with pytest.raises(ValueError, match="one_hot_max_size above"):
        ms.import_plan(model, PRICES, background=FRAME)


def test_a_threshold_of_catboost_is_kept():
    model = catboost.CatBoostClassifier(**CAT).fit(X, (NUMBER > 1).astype(int))
    model.set_probability_threshold(0.8)
    plan = ms.import_plan(model, COSTS)
    np.testing.assert_array_equal(plan.predict(X), model.predict(X))


def test_rankers_are_scores():
    groups = np.repeat(np.arange(6), 100)
    for model, fit in (
        (lightgbm.LGBMRanker(**GBM), {"group": [100] * 6}),
        (xgboost.XGBRanker(**XGB), {"qid": groups}),
        (catboost.CatBoostRanker(loss_function="YetiRank", **CAT), {"group_id": groups}),
    ):
        model.fit(HOLES, THREE / 2 if "catboost" in type(model).__module__ else THREE, **fit)
        plan = ms.import_plan(model, COSTS)
        np.testing.assert_allclose(plan.predict(CODES), model.predict(CODES), rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_support_vector_machines_vote_as_libsvm_does(kernel):
    whole, n_classes = rows(300), (2, 3, 4)
    for n in n_classes:
        y = np.digitize(NUMBER, np.arange(n - 1.0))
        model = svm.SVC(kernel=kernel).fit(X, y)
        np.testing.assert_array_equal(ms.import_plan(model, COSTS).predict(whole), model.predict(whole))
    model = svm.SVR(kernel=kernel).fit(X[:, :4], NUMBER)
    costs = ms.CostTable.per_feature(np.ones(4))
    np.testing.assert_allclose(ms.import_plan(model, costs).predict(whole[:, :4]), model.predict(whole[:, :4]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", [2, 3])
def test_probabilities_of_machines_are_coupled_as_libsvm_does(n):
    model = svm.SVC(probability=True, random_state=0).fit(X, np.digitize(NUMBER, np.arange(n - 1.0)))
    plan, new = ms.import_plan(model, COSTS), rows(300)
    np.testing.assert_allclose(plan.predict_proba(new), model.predict_proba(new), atol=1e-9)
    np.testing.assert_array_equal(plan.predict(new), model.predict(new))


def test_other_linear_models():
    for model, y in (
        (linear_model.PoissonRegressor(), COUNT),
        (linear_model.TweedieRegressor(power=1.5), COUNT),
        (linear_model.SGDRegressor(random_state=0), NUMBER),
    ):
        np.testing.assert_allclose(ms.import_plan(model.fit(X, y), COSTS).predict(X), model.predict(X), rtol=1e-9)
    for model in (
        linear_model.SGDClassifier(loss="log_loss", random_state=0),
        linear_model.RidgeClassifier(),
        svm.LinearSVC(),
    ):
        plan = ms.import_plan(model.fit(X, THREE), COSTS)
        np.testing.assert_array_equal(plan.predict(X), model.predict(X))
        if hasattr(model, "predict_proba"):
            np.testing.assert_allclose(plan.predict_proba(X), model.predict_proba(X), atol=1e-12)
    linear = xgboost.XGBClassifier(booster="gblinear", n_estimators=5).fit(HOLES, THREE)
    new = np.clip(CODES, -50, 50)
    np.testing.assert_allclose(ms.import_plan(linear, COSTS).predict_proba(new), linear.predict_proba(new), atol=3e-6)


def test_prices_go_by_name_also_where_names_were_changed():
    frame = pd.DataFrame(X, columns=["blood pressure", "f1", "f0", "x  y", "c", "d"])
    costs = ms.CostTable.per_feature(dict(zip(sorted(frame.columns), range(1, 7))))
    model = lightgbm.LGBMRegressor(**GBM).fit(frame, NUMBER)
    plan = ms.import_plan(model, costs)
    assert plan.costs.features == tuple(frame.columns)
    np.testing.assert_allclose(plan.predict(frame), model.predict(frame), rtol=1e-12)
    numbered = frame.set_axis(["f3", "f1", "f0", "f2", "f5", "f4"], axis=1)  # look invented, and are in the price list
    costs = ms.CostTable.per_feature({f"f{i}": i + 1.0 for i in range(6)})
    plan = ms.import_plan(xgboost.XGBRegressor(**XGB).fit(numbered, NUMBER), costs)
    assert plan.costs.features == tuple(numbered.columns)


def test_what_is_unlike_a_sum_is_refused():
    for model, y, words in (
        (lightgbm.LGBMRegressor(linear_tree=True, **GBM), NUMBER, "linear_tree=False"),
        (xgboost.XGBClassifier(objective="binary:hinge", **XGB), THREE > 0, "binary:hinge"),
        (xgboost.XGBRegressor(**XGB), np.c_[NUMBER, NUMBER], "one for each"),
        (catboost.CatBoostRegressor(loss_function="RMSEWithUncertainty", **CAT), NUMBER, "RMSEWithUncertainty"),
        (svm.SVC(kernel="sigmoid"), THREE, "sigmoid"),
        (svm.SVC(break_ties=True, decision_function_shape="ovr"), THREE, "break_ties"),
        (linear_model.SGDClassifier(loss="modified_huber"), THREE, "modified_huber"),
        (linear_model.RidgeClassifier(), np.c_[THREE > 0, THREE > 1], "one for each"),
        (ensemble.RandomForestRegressor(3), np.c_[NUMBER, NUMBER], "2 questions at once"),
    ):
        with pytest.raises(ValueError, match=words):
            ms.import_plan(model.fit(X, y), COSTS)
    with pytest.raises(ValueError, match="not fitted"):
        ms.import_plan(catboost.CatBoostRegressor(), COSTS)

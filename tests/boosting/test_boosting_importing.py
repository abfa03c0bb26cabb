"""Imported trees answer as the models they come from: on thresholds, on missing values, in either precision."""

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from miserly.boosting._importing import _float32_limit, import_trees

EXACT, FLOAT32 = 1e-12, 1e-5


def data(missing=0.0, n=600):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(n, 5)), 1)
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def two(y):
    return (y > 0).astype(int)


def three(y):
    return np.digitize(y, [-0.5, 0.5])


def sums(trees, X, n_outputs=1):
    """The summed trees of each output."""
    H = np.column_stack([trees.evaluate(np.ascontiguousarray(X), t) for t in range(len(trees))])
    return np.column_stack([H[:, k::n_outputs].sum(axis=1) for k in range(n_outputs)])


def agree(trees, X, theirs, tolerance=EXACT):
    theirs = np.asarray(theirs, np.float64).reshape(len(X), -1)
    ours = sums(trees, X, theirs.shape[1])
    assert np.abs(ours - theirs).max() <= tolerance * max(1.0, np.abs(theirs).max())


def on_thresholds(trees, X):
    """Rows that stand on thresholds, and one float64 beside them on either side."""
    rows = []
    for place in np.flatnonzero(np.isfinite(trees.threshold))[:200]:
        for value in (-np.inf, trees.threshold[place], np.inf):
            row = X[place % len(X)].copy()
            row[trees.feature[place]] = np.nextafter(trees.threshold[place], value)
            rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize(
    ("model", "target", "raw"),
    [
        (DecisionTreeRegressor(max_depth=4), float, "predict"),
        (DecisionTreeClassifier(max_depth=4), two, "predict_proba"),
        (DecisionTreeClassifier(max_depth=4), three, "predict_proba"),
        (RandomForestRegressor(7, max_depth=4, random_state=0), float, "predict"),
        (RandomForestClassifier(7, max_depth=4, random_state=0), three, "predict_proba"),
        (ExtraTreesRegressor(7, max_depth=4, random_state=0), float, "predict"),
        (HistGradientBoostingRegressor(max_iter=9, max_depth=3), float, "predict"),
        (HistGradientBoostingClassifier(max_iter=9, max_depth=3), two, "decision_function"),
        (HistGradientBoostingClassifier(max_iter=9, max_depth=3), three, "decision_function"),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else getattr(value, "__name__", value),
)
def test_scikit_learns_trees_with_missing_values(model, target, raw):
    X, y = data(missing=0.1)
    labels = y if target is float else target(data()[1])
    model.fit(X, labels)
    trees = import_trees(model)
    for rows in (X, on_thresholds(trees, X)):
        theirs = getattr(model, raw)(rows)
        agree(trees, rows, theirs[:, 1:] if raw == "predict_proba" and theirs.shape[1] == 2 else theirs)


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (GradientBoostingRegressor(n_estimators=9), float),
        (GradientBoostingRegressor(n_estimators=9, loss="absolute_error", init="zero"), float),
        (GradientBoostingClassifier(n_estimators=9), two),
        (GradientBoostingClassifier(n_estimators=9), three),
    ],
)
def test_scikit_learns_gradient_boosting(model, target):
    X, y = data()
    model.fit(X, y if target is float else target(y))
    trees = import_trees(model)
    for rows in (X, on_thresholds(trees, X)):
        agree(trees, rows, model.predict(rows) if target is float else model.decision_function(rows))


@pytest.mark.parametrize("missing", [0.0, 0.1], ids=["full", "missing"])
@pytest.mark.parametrize("target", [float, two, three])
def test_lightgbm(missing, target):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = data(missing)
    y = data()[1]
    settings = {"n_estimators": 9, "num_leaves": 8, "verbose": -1}
    if target is float:
        model = lightgbm.LGBMRegressor(**settings).fit(X, y)
    else:
        model = lightgbm.LGBMClassifier(**settings).fit(X, target(y))
    trees = import_trees(model)
    unseen = np.where(np.arange(5) == 1, np.nan, X)
    for rows in (X, on_thresholds(trees, X), unseen):
        agree(trees, rows, model.predict(rows, raw_score=True))
    assert import_trees(model.booster_) == trees


@pytest.mark.parametrize("boosting", ["rf", "dart"])
@pytest.mark.parametrize("target", [float, two, three])
def test_lightgbm_that_averages_or_drops_trees(boosting, target):
    """A forest's raw score is the sum of its 9 rounds; what it predicts with is their mean."""
    lightgbm = pytest.importorskip("lightgbm")
    X, y = data()
    objective = {float: {}, two: {"objective": "binary"}, three: {"objective": "multiclass", "num_class": 3}}[target]
    settings = {"verbose": -1, "boosting": boosting, "bagging_freq": 1, "bagging_fraction": 0.5, "drop_rate": 0.5}
    labels = y if target is float else target(y)
    booster = lightgbm.train(settings | objective, lightgbm.Dataset(X, labels), 9)
    raw = booster.predict(X, raw_score=True)
    agree(import_trees(booster), X, raw / 9 if boosting == "rf" else raw)
    if target is float:
        agree(import_trees(booster), X, booster.predict(X))


def test_lightgbm_that_stopped_early_is_imported_up_to_its_best_round():
    lightgbm = pytest.importorskip("lightgbm")
    X, y = data()
    noise = np.random.default_rng(1).normal(size=(300, 5))
    rows, others = lightgbm.Dataset(X, y), lightgbm.Dataset(noise, noise[:, 0])
    settings, stop = {"verbose": -1, "learning_rate": 0.5}, lightgbm.early_stopping(2, verbose=False)
    booster = lightgbm.train(settings, rows, 60, [others], callbacks=[stop], keep_training_booster=True)
    trees = import_trees(booster)
    assert len(trees) == booster.best_iteration < booster.current_iteration()
    agree(trees, X, booster.predict(X))


@pytest.mark.parametrize("setting", [{"linear_tree": True}, {"zero_as_missing": True}, {"categorical_feature": [0]}])
def test_what_a_plan_cannot_say_is_refused(setting):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = data()
    X[:, 0] = np.random.default_rng(0).integers(0, 6, len(X))
    y = y + np.array([3.0, -2.0, 5.0, 0.0, -4.0, 1.0])[X[:, 0].astype(int)]
    settings = {"verbose": -1, **setting}
    rows = lightgbm.Dataset(X, y, params=settings, categorical_feature=settings.pop("categorical_feature", "auto"))
    booster = lightgbm.train(settings, rows, 5)
    with pytest.raises(ValueError, match=r"Linear leaves|zeros as missing|categories"):
        import_trees(booster)


def test_other_models_are_refused():
    X, y = data()
    with pytest.raises(ValueError, match="none of them"):
        import_trees(LinearRegression().fit(X, y))
    started = GradientBoostingRegressor(n_estimators=3, init=LinearRegression()).fit(X, y)
    with pytest.raises(ValueError, match="starts from a LinearRegression"):
        import_trees(started)
    with pytest.raises(ValueError, match="2 questions"):
        import_trees(DecisionTreeRegressor().fit(X, np.column_stack([y, y])))
    categories = HistGradientBoostingRegressor(max_iter=5, categorical_features=[0])
    codes = np.column_stack([np.arange(len(X)) % 6, X[:, 1:]])
    with pytest.raises(ValueError, match="categories"):
        import_trees(categories.fit(codes, np.array([3.0, -2.0, 5.0, 0.0, -4.0, 1.0])[np.arange(len(X)) % 6]))


def stored_tree(number, left_first, features, conditions):
    """A tree of three splits and four leaves as XGBoost 3.2 writes it."""
    return {
        "base_weights": [0.0] * 7,
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": left_first + [0] * 4,
        "id": number,
        "left_children": [1, 3, 5, -1, -1, -1, -1],
        "loss_changes": [0.0] * 7,
        "parents": [2147483647, 0, 0, 1, 1, 2, 2],
        "right_children": [2, 4, 6, -1, -1, -1, -1],
        "split_conditions": conditions,
        "split_indices": features + [0] * 4,
        "split_type": [0] * 7,
        "sum_hessian": [1.0] * 7,
        "tree_param": {"num_deleted": "0", "num_feature": "3", "num_nodes": "7", "size_leaf_vector": "1"},
    }


class Booster:
    """Stands for XGBoost's booster where it is not installed: it can only say what it is."""

    __module__ = "xgboost.core"
    feature_types = None

    def save_raw(self, raw_format):
        assert raw_format == "json"
        trees = [
            stored_tree(0, [1, 0, 1], [1, 0, 0], [0.1, -0.3, 0.0, -0.8484523, -0.18526314, 0.03155556, 0.9328125]),
            stored_tree(1, [1, 1, 0], [0, 1, 1], [0.4, 0.1, 0.5, -0.3770445, 0.036568094, 0.19306085, 0.6184185]),
        ]
        model = {
            "cats": {"enc": [], "feature_segments": [], "sorted_idx": []},
            "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": "2"},
            "iteration_indptr": [0, 1, 2],
            "tree_info": [0, 0],
            "trees": trees,
        }
        size = {"base_score": "[-2.0333335E-1]", "boost_from_average": "1", "num_class": "0", "num_feature": "3"}
        learner = {
            "attributes": {},
            "feature_names": [],
            "feature_types": [],
            "gradient_booster": {"model": model, "name": "gbtree"},
            "learner_model_param": {**size, "num_target": "1"},
            "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
        }
        return bytearray(json.dumps({"learner": learner, "version": [3, 2, 0]}).encode())


def test_xgboosts_own_answers_from_a_stored_model():
    """What XGBoost 3.2.0 predicted with this model, on its thresholds in float32 and a little beside them."""
    firsts = (-0.3, -0.30000000000001, 0.0, -1e-40, 0.4, 0.39999999, np.nan)
    rows = np.array([[first, second, 0.0] for second in (0.1, np.nan, 0.5, -1.0) for first in firsts])
    a, b, c, d = -0.13520969450473785, 0.7660472989082336, 0.9225400686264038, -0.7656409740447998
    theirs = [a, a, b, a, c, b, a]
    theirs += [d, d, d, d, 0.229822039604187, d, d]
    theirs += [a, a, b, a, 1.3478977680206299, b, a]
    theirs += [d, d, d, d, -0.19553562998771667, d, d]
    agree(import_trees(Booster()), rows, np.array(theirs), 1e-7)


@pytest.mark.parametrize("target", [float, two, three])
def test_xgboost(target):
    """Its sums are in float32, ours in float64: equal to its precision."""
    xgboost = pytest.importorskip("xgboost")
    X, _ = data(missing=0.1)
    y = data()[1]
    settings = {"n_estimators": 9, "max_depth": 3, "n_jobs": 1}
    if target is float:
        model = xgboost.XGBRegressor(**settings).fit(X, y)
    else:
        model = xgboost.XGBClassifier(**settings).fit(X, target(y))
    trees = import_trees(model)
    for rows in (X, on_thresholds(trees, X), X.astype(np.float32)):
        agree(trees, rows, model.predict(rows, output_margin=True), FLOAT32)
    assert import_trees(model.get_booster()) == trees


@pytest.mark.parametrize(
    "settings", [{"booster": "dart", "rate_drop": 0.5}, {"num_parallel_tree": 4, "subsample": 0.5}]
)
def test_xgboost_that_drops_or_multiplies_trees(settings):
    xgboost = pytest.importorskip("xgboost")
    X, y = data()
    booster = xgboost.train({"max_depth": 3, **settings}, xgboost.DMatrix(X, y), 9)
    agree(import_trees(booster), X, booster.predict(xgboost.DMatrix(X), output_margin=True), FLOAT32)


def test_xgboost_that_stopped_early_is_imported_up_to_its_best_round():
    xgboost = pytest.importorskip("xgboost")
    X, y = data()
    noise = np.random.default_rng(1).normal(size=(300, 5))
    model = xgboost.XGBRegressor(n_estimators=60, learning_rate=0.5, early_stopping_rounds=2)
    model.fit(X, y, eval_set=[(noise, noise[:, 0])], verbose=False)
    trees = import_trees(model)
    assert len(trees) == model.best_iteration + 1 < 60
    agree(trees, X, model.predict(X), FLOAT32)


def test_xgboost_that_a_plan_cannot_say_is_refused():
    xgboost = pytest.importorskip("xgboost")
    X, y = data()
    codes = np.column_stack([np.arange(len(X)) % 6, X[:, 1:]])
    wanted = np.array([3.0, -2.0, 5.0, 0.0, -4.0, 1.0])[np.arange(len(X)) % 6]
    kinds = ["c", "q", "q", "q", "q"]
    model = xgboost.XGBRegressor(n_estimators=2, feature_types=kinds, enable_categorical=True, tree_method="hist")
    with pytest.raises(ValueError, match="categories"):
        import_trees(model.fit(codes, wanted))
    with pytest.raises(ValueError, match="several outputs"):
        import_trees(
            xgboost.XGBRegressor(n_estimators=2, multi_strategy="multi_output_tree").fit(X, np.column_stack([y, y]))
        )
    with pytest.raises(ValueError, match="missing value"):
        import_trees(xgboost.XGBRegressor(n_estimators=2, missing=0.0).fit(X, y))


@pytest.mark.parametrize("strict", [True, False])
@given(
    t=st.floats(width=32, allow_nan=False, allow_infinity=False),
    off=st.integers(-3, 3),
    half=st.sampled_from([0.0, 0.5]),
    nudge=st.integers(-1, 1),
)
@example(t=float(np.finfo(np.float32).max), off=1, half=0.5, nudge=-1)
@example(t=0.0, off=0, half=0.5, nudge=0)
@example(t=-0.0, off=-1, half=0.5, nudge=1)
def test_the_limit_in_float64_is_exact(strict, t, off, half, nudge):
    """Values on float32 numbers near a threshold, half-way between two of them, and one float64 beside."""
    at = np.float32(t)
    with np.errstate(over="ignore"):
        for _ in range(abs(off)):
            at = np.nextafter(at, np.float32(np.sign(off) * np.inf))
        beside = np.nextafter(at, np.float32(np.inf))
    if not (np.isfinite(at) and np.isfinite(beside)):
        return
    x = np.float64(at) + half * (np.float64(beside) - np.float64(at))
    x = np.nextafter(x, nudge * np.inf) if nudge else x
    with np.errstate(over="ignore"):
        left = np.float32(x) < np.float32(t) if strict else np.float32(x) <= np.float32(t)
    assert (x <= _float32_limit(np.float32(t), strict=strict)) == left


@given(t=st.floats(-1e30, 1e30), x=st.floats(-1e30, 1e30))
def test_thresholds_need_not_be_float32(t, x):
    for value in (x, t, np.nextafter(t, np.inf), float(np.float32(t))):
        assert (value <= _float32_limit(np.float64(t), strict=False)) == (np.float64(np.float32(value)) <= t)

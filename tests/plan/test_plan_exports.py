"""Plans in other formats answer as the plans do."""

from __future__ import annotations

from dataclasses import replace

import lightgbm
import numpy as np
import pytest

from miserly.baselines import CostWeightedL1Classifier, CostWeightedL1Regressor, EarlyExitClassifier
from miserly.costs import CostTable
from miserly.estimators import GreedyMiserClassifier, GreedyMiserRegressor
from miserly.plan._onnx_model import rounded_down

onnxruntime = pytest.importorskip("onnxruntime")
HINGE = {"loss": "squared_hinge"}


def problem(n_classes: int, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Float32 rows, some values missing; numbers, or names of classes."""
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(n, 6)).astype(np.float32)
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.1] = np.nan
    if n_classes:
        y = np.array(["low", "mid", "top"])[np.digitize(y, [0.0] if n_classes == 2 else [-0.7, 0.7])]
    return X, y


def miser(n_classes: int, **settings: object) -> tuple[np.ndarray, object]:
    X, y = problem(n_classes)
    kind = GreedyMiserClassifier if n_classes else GreedyMiserRegressor
    return X, kind(CostTable.uniform(), tradeoff=1e-3, n_estimators=15, **settings).fit(X, y).plan_


def in_onnx(plan: object, X: np.ndarray) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(plan.export("onnx").SerializeToString())
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, {"X": X})))


@pytest.mark.parametrize(
    ("n_classes", "settings"),
    [(0, {}), (2, {}), (3, {}), (2, {"loss": "squared_hinge"}), (3, {"loss": "squared_hinge"})],
)
def test_trees_in_onnxruntime(n_classes, settings):
    X, plan = miser(n_classes, **settings)
    found = in_onnx(plan, X)
    if not n_classes:
        np.testing.assert_allclose(found["score"][:, 0], plan.predict(X), rtol=1e-5, atol=1e-5)
        return
    np.testing.assert_allclose(found["probabilities"], plan.predict_proba(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found["label"], plan.predict(X))


def test_linear_plans_in_onnxruntime():
    X, y = problem(0)
    X = np.nan_to_num(X)
    plan = CostWeightedL1Regressor(CostTable.uniform(), tradeoff=1e-3).fit(X, y).plan_
    np.testing.assert_allclose(in_onnx(plan, X)["score"][:, 0], plan.predict(X), rtol=1e-5, atol=1e-5)
    for n_classes in (2, 3):
        y = problem(n_classes)[1]
        plan = CostWeightedL1Classifier(CostTable.uniform(), tradeoff=1e-3).fit(X, y).plan_
        found = in_onnx(plan, X)
        np.testing.assert_allclose(found["probabilities"], plan.predict_proba(X), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(found["label"], plan.predict(X))


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_trees_in_lightgbm(n_classes):
    X, plan = miser(n_classes)
    booster = lightgbm.Booster(model_str=plan.export("lightgbm"))
    assert booster.feature_name() == list(plan.costs.features)
    if not n_classes:
        np.testing.assert_allclose(booster.predict(X), plan.predict(X), rtol=1e-12, atol=1e-12)
        return
    wanted = plan.predict_proba(X)
    np.testing.assert_allclose(booster.predict(X), wanted[:, 1] if n_classes == 2 else wanted, rtol=1e-12, atol=1e-12)


def test_several_scales_are_folded_in():
    """One against the rest, with Platt's scale and offset of each class."""
    X, plan = miser(3, loss="squared_hinge")
    booster = lightgbm.Booster(model_str=plan.export("lightgbm"))
    found = booster.predict(X)
    np.testing.assert_allclose(found / found.sum(axis=1, keepdims=True), plan.predict_proba(X), rtol=1e-10)


def test_what_other_formats_cannot_say_is_refused():
    X, plan = miser(2)
    y = problem(2)[1]
    exits = EarlyExitClassifier(plan, threshold=0.6, exits=[5]).fit(X, y).plan_
    for form in ("onnx", "lightgbm"):
        with pytest.raises(ValueError, match="sends rows different ways"):
            exits.export(form)
    cut = replace(plan, unavailable=plan.costs.features[:1])
    for form in ("onnx", "lightgbm"):
        with pytest.raises(ValueError, match="does without 'x0'"):
            cut.export(form)
    with pytest.raises(ValueError, match="form is one of onnx, lightgbm, dot, got 'pmml'"):
        cut.export("pmml")
    linear = CostWeightedL1Regressor(CostTable.uniform()).fit(np.nan_to_num(X), problem(0)[1]).plan_
    with pytest.raises(ValueError, match="LightGBM's files hold trees"):
        linear.export("lightgbm")


def test_rounding_down_keeps_every_comparison():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=1000) * 10.0 ** rng.integers(-40, 39, 1000), [0.0, -0.0, 1e300, -1e300]])
    down = rounded_down(values)
    with np.errstate(over="ignore"):
        near = (down, np.nextafter(down, np.float32(np.inf)), np.nextafter(down, np.float32(-np.inf)))
    for x in near:
        np.testing.assert_array_equal(x.astype(np.float64) <= values, x <= down)

"""Trees, forests, boosting and linear models of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from miserly._typing import Array
from miserly.boosting._foreign import NO_LINK, ImportedModel, Table, level_order, numbered, with_shares
from miserly.boosting._importing import _float64_limit, _refuse_categories, _sklearn_outputs
from miserly.plan import stack_trees


def classes_of(model: Any) -> Array | None:
    return np.asarray(model.classes_) if hasattr(model, "classes_") else None


def _names_of(model: Any) -> Sequence[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _sklearn_tables(tree: Any, factor: float) -> list[Table]:
    inner = tree.tree_
    order = level_order(inner.children_left < 0, inner.children_left, inner.children_right)
    counts = inner.weighted_n_node_samples
    return [with_shares(t, order, inner.children_left, counts) for t in _sklearn_outputs(tree, factor)]


def read_forest(model: Any) -> ImportedModel:
    members = getattr(model, "estimators_", None) or [model]
    classes = classes_of(model)
    tables = [t for tree in members for t in _shares_of_classes(tree, 1.0 / len(members))]
    n_outputs = 1 if classes is None else len(classes)
    outputs = np.arange(len(tables)) % n_outputs
    link = "identity" if classes is None else "shares"
    return ImportedModel(link, classes, _names_of(model), model.n_features_in_, np.zeros(n_outputs), tables, outputs, 1)


def _shares_of_classes(tree: Any, factor: float) -> list[Table]:
    """One table for each class, also where there are two; of a regression tree, one."""
    tables = _sklearn_tables(tree, factor)
    if len(getattr(tree, "classes_", ())) != 2:
        return tables
    first = {name: column.copy() for name, column in tables[0].items()}
    end = first["left"] == np.arange(len(first["left"]))
    first["value"] = np.where(end, factor - tables[0]["value"], 0.0)
    return [first, tables[0]]


def gradient_boosting(model: Any) -> ImportedModel:
    if model.init_ != "zero" and type(model.init_).__name__ not in ("DummyClassifier", "DummyRegressor"):
        raise ValueError(
            f"This boosting starts from a {type(model.init_).__name__}, which is no tree. Train it with init=None."
        )
    stages = model.estimators_
    tables = [t for tree in stages.ravel() for t in _sklearn_tables(tree, model.learning_rate)]
    n_outputs, origin = stages.shape[1], np.zeros((1, model.n_features_in_))
    raw = model.decision_function if hasattr(model, "decision_function") else model.predict
    total, trees = np.atleast_1d(np.squeeze(raw(origin))), stack_trees(tables)
    base = total.astype(np.float64).copy()
    for t in range(len(tables)):
        base[t % n_outputs] -= float(trees.evaluate(origin, t)[0])
    classes = classes_of(model)
    link = "identity" if classes is None else "softmax" if n_outputs > 1 else "logistic"
    scale = 2.0 if model.loss == "exponential" else 1.0
    return ImportedModel(
        link,
        classes,
        _names_of(model),
        model.n_features_in_,
        base,
        tables,
        np.arange(len(tables)) % n_outputs,
        len(stages),
        scale,
    )


def hist_boosting(model: Any) -> ImportedModel:
    loss = type(model._loss).__name__
    if loss in ("HalfPoissonLoss", "HalfGammaLoss"):
        raise ValueError(f"A model with {loss} cannot be imported. {NO_LINK}")
    base = np.atleast_1d(np.squeeze(np.asarray(model._baseline_prediction, np.float64)))
    tables = [_predictor_table(p.nodes) for stage in model._predictors for p in stage]
    classes = classes_of(model)
    link = "identity" if classes is None else "softmax" if len(base) > 1 else "logistic"
    return ImportedModel(
        link,
        classes,
        _names_of(model),
        model.n_features_in_,
        base,
        tables,
        np.arange(len(tables)) % len(base),
        len(model._predictors),
    )


def _predictor_table(nodes: Array) -> Table:
    leaf = nodes["is_leaf"].astype(bool)
    if nodes["is_categorical"][~leaf].any():
        _refuse_categories()
    limit = np.where(leaf, np.inf, [_float64_limit(t, strict=False) for t in nodes["num_threshold"]])
    missing_right = ~nodes["missing_go_to_left"].astype(bool)
    ways = nodes["left"].astype(int), nodes["right"].astype(int)
    counts = nodes["count"].astype(float)
    return numbered(leaf, nodes["feature_idx"].astype(int), limit, *ways, missing_right, nodes["value"], counts)


def read_linear(model: Any) -> ImportedModel:
    weights = np.atleast_2d(np.asarray(model.coef_, np.float64)).T
    bias = np.broadcast_to(np.asarray(model.intercept_, np.float64), weights.shape[1]).copy()
    classes = classes_of(model)
    link = "identity"
    if classes is not None:
        one_by_one = getattr(model, "multi_class", "auto") == "ovr" or getattr(model, "solver", "") == "liblinear"
        link = "logistic" if weights.shape[1] == 1 or one_by_one else "softmax"
    elif weights.shape[1] > 1:
        raise ValueError(f"{type(model).__name__} answers {weights.shape[1]} questions at once. Give one for each.")
    return ImportedModel(link, classes, _names_of(model), model.n_features_in_, bias, weights=weights)

"""Boosted trees of other libraries: LightGBM's text, XGBoost's JSON, CatBoost's JSON.

Splits are translated exactly (see `_importing`). What a plan cannot say is refused.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from miserly._typing import Array
from miserly.boosting._foreign import NO_LINK, ImportedModel, Table, numbered
from miserly.boosting._importing import _booster_of, _float32_limit, _lightgbm_limit, _refuse_categories

# ---- LightGBM ------------------------------------------------------------------------------------------------------


def lightgbm_text(text: str, classes: Array | None) -> ImportedModel:
    if "is_linear=1" in text:
        raise ValueError("Linear leaves cannot be imported: a plan's leaf is a number. Train with linear_tree=False.")
    if not re.search("^end of trees", text, re.MULTILINE):
        raise ValueError("The text ends before the line 'end of trees': it was cut off. Save the model again.")
    head, *parts = re.split(r"^Tree=\d+\n", text, flags=re.MULTILINE)
    fields = dict(line.split("=", 1) for line in head.splitlines() if "=" in line)
    objective = fields.get("objective", "regression").split()
    n_outputs = int(fields["num_tree_per_iteration"])
    tables = [_lightgbm_tree(part) for part in parts]
    if "average_output" in head.split():
        for table in tables:
            table["value"] = table["value"] / (len(tables) // n_outputs)
    link, scale = _lightgbm_link(objective)
    if link != "identity" and classes is None:
        classes = np.arange(max(2, n_outputs))
    return ImportedModel(
        link,
        classes if link != "identity" else None,
        fields["feature_names"].split(" "),
        int(fields["max_feature_idx"]) + 1,
        np.zeros(n_outputs),
        tables,
        np.arange(len(tables)) % n_outputs,
        len(tables) // n_outputs,
        scale,
    )


def _lightgbm_link(objective: list[str]) -> tuple[str, float]:
    name, others = objective[0], dict(part.split(":", 1) for part in objective[1:] if ":" in part)
    if name == "binary":
        return "logistic", float(others.get("sigmoid", 1.0))
    if name == "multiclass":
        return "softmax", 1.0
    if name in ("poisson", "gamma", "tweedie", "cross_entropy", "cross_entropy_lambda", "multiclassova") or (
        "sqrt" in objective
    ):
        raise ValueError(f"A model with the objective {' '.join(objective)!r} cannot be imported. {NO_LINK}")
    return "identity", 1.0


def _lightgbm_tree(part: str) -> Table:
    fields = dict(line.split("=", 1) for line in part.splitlines() if "=" in line)

    def numbers(name: str, dtype: Any = float) -> Array:
        return np.array(fields.get(name, "").split(), dtype)

    values, n_leaves = numbers("leaf_value"), int(fields["num_leaves"])
    n = n_leaves - 1
    if n < 1:
        none = np.zeros(1, int)
        return numbered(none == 0, none, none + np.inf, none, none, none > 0, values, none + 1.0)
    kinds = numbers("decision_type", int)
    if int(fields.get("num_cat", 0)) or (kinds & 1).any():
        _refuse_categories()
    if ((kinds >> 2) & 3 == 1).any():
        raise ValueError(
            "This model takes zeros as missing values, which a plan's trees cannot. Train with zero_as_missing=False."
        )
    ways = [np.where(w >= 0, w, n + ~w) for w in (numbers("left_child", int), numbers("right_child", int))]
    thresholds = numbers("threshold")
    limit = np.array([_lightgbm_limit(t, strict=False) for t in thresholds])
    is_nan, default_left = (kinds >> 2) & 3 == 2, (kinds & 2) > 0
    missing_right = np.where(is_nan, ~default_left, thresholds < 0.0)  # without a rule NaN is read as zero
    ends = np.zeros(n_leaves)
    return numbered(
        np.arange(n + n_leaves) >= n,
        np.r_[numbers("split_feature", int), np.zeros(n_leaves, int)],
        np.r_[limit, ends + np.inf],
        np.r_[ways[0], ends.astype(int)],
        np.r_[ways[1], ends.astype(int)],
        np.r_[missing_right, ends > 0],
        np.r_[np.zeros(n), values],
        np.r_[numbers("internal_count"), numbers("leaf_count")],
    )


def lightgbm_booster(booster: Any, classes: Array | None = None) -> ImportedModel:
    best = booster.best_iteration if booster.best_iteration > 0 else -1
    return lightgbm_text(booster.model_to_string(num_iteration=best), classes)


# ---- XGBoost -------------------------------------------------------------------------------------------------------


def raw_json(booster: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(bytes(booster.save_raw(raw_format="json")))
    return content


def xgboost_json(content: dict[str, Any], classes: Array | None) -> ImportedModel:
    learner = content["learner"]
    param, objective = learner["learner_model_param"], learner["objective"]["name"]
    booster = learner["gradient_booster"]
    drop = booster.get("weight_drop")
    trees = booster.get("gbtree", booster)
    if "model" not in trees or "trees" not in trees["model"]:
        raise ValueError("Only XGBoost models of trees are imported, not linear boosters.")
    n_outputs = max(1, int(param.get("num_class", 0)))
    if int(param.get("num_target", 1) or 1) > 1:
        raise ValueError("Models of several targets cannot be imported. Train one for each.")
    base = np.array([float(b) for b in str(param["base_score"]).strip("[]").split(",")], np.float64)
    base = np.broadcast_to(base, n_outputs).copy()
    link = _xgboost_link(objective)
    if objective in ("binary:logistic", "reg:logistic"):
        base = np.log(base / (1.0 - base))
    tables = [_xgboost_tree(tree) for tree in trees["model"]["trees"]]
    for table, weight in zip(tables, drop or ()):
        table["value"] = table["value"] * float(weight)
    outputs = [int(k) for k in trees["model"]["tree_info"]]
    names = learner.get("feature_names") or None
    if link != "identity" and classes is None:
        classes = np.arange(max(2, n_outputs))
    n_rounds = len(trees["model"].get("iteration_indptr", [])) - 1
    n_rounds = n_rounds if n_rounds > 0 and len(tables) % n_rounds == 0 else max(1, len(tables) // n_outputs)
    return ImportedModel(
        link, classes if link != "identity" else None, names, int(param["num_feature"]), base, tables, outputs, n_rounds
    )


def _xgboost_link(objective: str) -> str:
    if objective == "binary:logistic":
        return "logistic"
    if objective in ("multi:softprob", "multi:softmax"):
        return "softmax"
    plain = ("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror", "binary:logitraw")
    if objective in plain or objective.startswith("rank:"):
        return "identity"
    raise ValueError(f"A model with the objective {objective!r} cannot be imported. {NO_LINK}")


def _xgboost_tree(tree: dict[str, Any]) -> Table:
    if any(tree.get("split_type", ())) or tree.get("categories_nodes"):
        _refuse_categories()
    if int(tree["tree_param"].get("size_leaf_vector", 1) or 1) > 1:
        raise ValueError("Leaves that hold several outputs cannot be imported. Train one tree for each output.")
    left, right = np.array(tree["left_children"]), np.array(tree["right_children"])
    leaf = left < 0
    conditions = np.array(tree["split_conditions"], np.float32)
    limit = np.array([np.inf if end else _float32_limit(t, strict=True) for end, t in zip(leaf, conditions)])
    missing_right = ~np.array(tree["default_left"]).astype(bool)
    feature, cover = np.array(tree["split_indices"]), np.array(tree["sum_hessian"], float)
    return numbered(leaf, feature, limit, left, right, missing_right, conditions.astype(np.float64), cover)


def xgboost_model(model: Any) -> ImportedModel:
    classes = np.asarray(model.classes_) if hasattr(model, "classes_") else None
    return xgboost_json(raw_json(_booster_of(model)), classes)


# ---- CatBoost ------------------------------------------------------------------------------------------------------


def catboost_model(model: Any) -> ImportedModel:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        content = json.loads(path.read_text(encoding="utf-8"))
    classes = np.asarray(model.classes_) if len(getattr(model, "classes_", ())) else None
    return catboost_json(content, classes)


def catboost_json(content: dict[str, Any], classes: Array | None) -> ImportedModel:
    if "oblivious_trees" not in content:
        raise ValueError("Only CatBoost's oblivious trees are imported. Train with grow_policy='SymmetricTree'.")
    features = content["features_info"]
    if features.get("categorical_features"):
        _refuse_categories()
    floats = features["float_features"]
    missing = [f.get("nan_value_treatment") == "AsTrue" for f in floats]
    flat = [int(f["flat_feature_index"]) for f in floats]
    scale, bias = content.get("scale_and_bias", [1.0, [0.0]])
    base = np.atleast_1d(np.array(bias, np.float64))
    params = content["model_info"].get("params", {})
    params = json.loads(params) if isinstance(params, str) else params
    loss = str(params.get("loss_function", {}).get("type", "RMSE"))
    link = {"Logloss": "logistic", "CrossEntropy": "logistic", "MultiClass": "softmax"}.get(loss, "identity")
    if loss in ("MultiClassOneVsAll", "Poisson", "Tweedie", "LogCosh"):
        raise ValueError(f"A CatBoost model with the loss {loss} cannot be imported. {NO_LINK}")
    tables: list[Table] = []
    for tree in content["oblivious_trees"]:
        tables += _oblivious(tree, flat, missing, len(base), float(scale))
    if link != "identity" and classes is None:
        classes = np.arange(max(2, len(base)))
    names = [f.get("feature_id") or f.get("feature_name") or str(f["flat_feature_index"]) for f in floats]
    n_features = max(flat, default=-1) + 1
    return ImportedModel(
        link,
        classes if link != "identity" else None,
        names if len(names) == n_features else None,
        n_features,
        base,
        tables,
        np.arange(len(tables)) % len(base),
        len(content["oblivious_trees"]),
    )


def _oblivious(tree: dict[str, Any], flat: list[int], missing: list[bool], n_outputs: int, scale: float) -> list[Table]:
    """An oblivious tree as one table for each output: bit i of a leaf's number says whether split i holds."""
    splits = tree.get("splits") or []
    if any(split.get("split_type", "FloatFeature") != "FloatFeature" for split in splits):
        _refuse_categories()
    depth = len(splits)
    values = np.array(tree["leaf_values"], np.float64).reshape(1 << depth, n_outputs) * scale
    weights = np.array(tree.get("leaf_weights") or np.ones(1 << depth), np.float64)
    n = (1 << depth) - 1  # splits, level by level; the node below by number p of level l is p, or p with bit l
    feature, limit, right_if_nan = np.zeros(2 * n + 1, int), np.full(2 * n + 1, np.inf), np.zeros(2 * n + 1, bool)
    leaf_of, left, counts = np.zeros(2 * n + 1, int), np.arange(2 * n + 1), np.zeros(2 * n + 1)
    level = [(0, 0)]
    for d in range(depth + 1):
        following = []
        for at, bits in level:
            leaf_of[at] = bits
            counts[at] = weights[np.arange(1 << depth) & ((1 << d) - 1) == bits].sum()
            if d < depth:
                index = int(splits[d]["float_feature_index"])
                feature[at], right_if_nan[at] = flat[index], missing[index]
                limit[at] = _float32_limit(np.float32(splits[d]["border"]), strict=False)
                left[at] = 2 * at + 1
                following += [(2 * at + 1, bits), (2 * at + 2, bits | 1 << d)]
        level = following
    leaf = np.arange(2 * n + 1) >= n
    return [
        numbered(leaf, feature, limit, left, left + 1, right_if_nan, np.where(leaf, values[leaf_of, k], 0.0), counts)
        for k in range(n_outputs)
    ]

"""XGBoost's JSON and UBJ files: trees, DART, random forests, linear boosters, categories, its links."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np

from miserly._typing import Array
from miserly.boosting._foreign import NO_LINK, ImportedModel, Question, Splits, Table, members
from miserly.boosting._importing import _float32_limit

LINKS = {
    "binary:logistic": "logistic",
    "multi:softprob": "softmax",
    "multi:softmax": "softmax",
    "reg:logistic": "sigmoid",
    "count:poisson": "exp",
    "reg:gamma": "exp",
    "reg:tweedie": "exp",
    "survival:cox": "exp",
    "survival:aft": "exp",
    "binary:logitraw": "identity",
    "reg:squarederror": "identity",
    "reg:squaredlogerror": "identity",
    "reg:absoluteerror": "identity",
    "reg:pseudohubererror": "identity",
    "reg:quantileerror": "identity",
    "reg:expectileerror": "identity",
    "reg:linear": "identity",
}
LOG_ODDS = ("binary:logistic", "reg:logistic")  # their base score is a probability
SURE = 1e-6  # XGBoost takes no base score as surer than this
SMALLEST = 1e-300  # a base score of zero, whose logarithm a plan cannot hold
FIRST_INVALID = float(1 << 24)  # of categories


def xgboost_json(content: dict[str, Any], classes: Array | None, missing: float = np.nan) -> ImportedModel:
    learner = content["learner"]
    param, objective = learner["learner_model_param"], learner["objective"]["name"]
    booster = learner["gradient_booster"]
    link, n_outputs = _link(objective), max(1, int(param.get("num_class", 0)))
    if int(param.get("num_target", 1) or 1) > 1:
        raise ValueError("Models of several targets cannot be imported. Train one for each.")
    base = np.array([float(b) for b in str(param["base_score"]).strip("[]").split(",")], np.float64)
    if objective in LOG_ODDS:
        base = -np.log(1.0 / np.clip(base, SURE, 1.0 - SURE) - 1.0)
    elif link == "exp":
        base = np.log(np.maximum(base, SMALLEST))
    base = np.broadcast_to(base, n_outputs).copy()
    n_features, names = int(param["num_feature"]), learner.get("feature_names") or None
    has_classes = link in ("logistic", "softmax")
    if has_classes and classes is None:
        classes = np.arange(max(2, n_outputs))
    common = (link, classes if has_classes else None, names, n_features)
    if booster["name"] == "gblinear":
        if not np.isnan(missing):
            raise ValueError(f"This linear model takes {missing:g} as a missing value; a plan takes NaN alone.")
        weights = np.array(booster["model"]["weights"], np.float64).reshape(n_features + 1, n_outputs)
        base = base[0] + weights[-1]  # linear boosters take the first base score for all classes
        return ImportedModel(*common, base, weights=weights[:-1], means=np.zeros(n_features))
    ranks = objective.startswith("rank:")
    tables, outputs, n_rounds = _trees(booster, n_outputs, float(missing), _rounds_used(learner))
    return ImportedModel(*common, base, tables, outputs, n_rounds, categories=_categories(booster), ranks=ranks)


def xgboost_model(model: Any) -> ImportedModel:
    classes = np.asarray(model.classes_) if hasattr(model, "classes_") else None
    missing = getattr(model, "missing", None)
    booster = model.get_booster()
    with suppress(AttributeError):  # there is a best round only where it stopped early
        booster = booster[: model.best_iteration + 1]
    return xgboost_json(raw_json(booster), classes, np.nan if missing is None else float(missing))


def raw_json(booster: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(bytes(booster.save_raw(raw_format="json")))
    return content


def _link(objective: str) -> str:
    link = "identity" if objective.startswith("rank:") else LINKS.get(objective)
    if link is None:
        raise ValueError(f"A model with the objective {objective!r} cannot be imported. {NO_LINK}")
    return link


def _rounds_used(learner: dict[str, Any]) -> int | None:
    """How many rounds a file of a scikit-learn class predicts with, if it stopped early."""
    attributes = learner.get("attributes", {})
    best = attributes.get("best_iteration")
    return int(best) + 1 if best is not None and "scikit_learn" in attributes else None


def _categories(booster: dict[str, Any]) -> dict[int, Sequence[Any]]:
    """The categories of a frame's columns, which XGBoost keeps from 3.1 on, in the order of their codes. A column whose
    words cannot be read stands in codes."""
    model = booster.get("gbtree", booster).get("model", {})
    found: dict[int, Sequence[Any]] = {}
    for f, words in enumerate((model.get("cats") or {}).get("enc") or ()):
        if len(words.get("offsets", ())) > 1:
            ends, letters = words["offsets"], bytes(c % 256 for c in words["values"])
            with suppress(UnicodeDecodeError):  # XGBoost 3.2 cuts off words with other than ASCII letters
                found[f] = [letters[a:b].decode() for a, b in pairwise(ends)]
        elif words.get("values"):
            found[f] = list(words["values"])
    return found


def _trees(
    booster: dict[str, Any], n_outputs: int, missing: float, most_rounds: int | None
) -> tuple[list[Table], list[int], int]:
    """The tables of all trees, the output of each, and the number of rounds."""
    content = booster.get("gbtree", booster)["model"]
    trees, outputs = content["trees"], [int(k) for k in content["tree_info"]]
    weights = booster.get("weight_drop") or [1.0] * len(trees)
    if len(outputs) != len(trees) or len(weights) != len(trees):
        raise ValueError("It says of some trees nothing, or of too many: it is damaged. Save the model again.")
    ends = [int(end) for end in content.get("iteration_indptr", ())]
    if not ends:
        size = n_outputs * max(1, int((content.get("gbtree_model_param") or {}).get("num_parallel_tree", 1) or 1))
        ends = list(range(0, len(trees) + 1, size))
    if most_rounds is not None:
        ends = ends[: most_rounds + 1]
        trees, outputs, weights = (part[: ends[-1]] for part in (trees, outputs, weights))
    tables: list[Table] = []
    of_table: list[int] = []
    for tree, output, weight in zip(trees, outputs, weights):
        found = _tree(tree, n_outputs, missing)
        for k, table in enumerate(found):
            table["value"] = table["value"] * float(weight)
            of_table.append(k if len(found) > 1 else output)
        tables += found
    n_rounds = len(ends) - 1
    return tables, of_table, n_rounds if n_rounds > 0 and len(tables) % n_rounds == 0 else 1


def _tree(tree: dict[str, Any], n_outputs: int, missing: float) -> list[Table]:
    left, right = np.array(tree["left_children"], int), np.array(tree["right_children"], int)
    leaf = left < 0
    conditions = np.array(tree["split_conditions"], np.float32)
    limit = np.array([np.inf if end else _float32_limit(t, strict=True) for end, t in zip(leaf, conditions)])
    missing_right = ~np.array(tree["default_left"]).astype(bool)
    feature, counts = np.array(tree["split_indices"], int), np.array(tree["sum_hessian"], float)
    if {len(a) for a in (right, conditions, missing_right, feature, counts)} != {len(left)}:
        raise ValueError("A tree lacks some of its numbers: it is damaged. Save the model again.")
    questions = _category_questions(tree, missing_right)
    if not np.isnan(missing):
        for node in set(np.flatnonzero(~leaf).tolist()):
            questions[node] = _with_missing(questions.get(node), float(limit[node]), missing, bool(missing_right[node]))
    splits = Splits(leaf, feature, limit, np.where(leaf, 0, left), np.where(leaf, 0, right), missing_right, counts)
    splits.questions = questions
    width = int(tree["tree_param"].get("size_leaf_vector", 1) or 1)
    if width <= 1:
        return splits.tables(np.where(leaf, conditions.astype(np.float64), 0.0))
    vectors = np.array(tree["leaf_weights"], np.float32).astype(np.float64).reshape(-1, width)
    if width != n_outputs or (right[leaf] >= len(vectors)).any():
        raise ValueError("Leaves that hold several targets cannot be imported. Train one model for each.")
    values = np.where(leaf[:, None], vectors[np.where(leaf, right, 0)], 0.0)  # a leaf's right child is its number
    return splits.tables(*values.T)


def _below(number: float) -> float:
    return _float32_limit(np.float32(number), strict=True)


def _category_questions(tree: dict[str, Any], missing_right: Array) -> dict[int, Question]:
    """Categories of a split's set go right, others and what is no category left."""
    questions = {}
    categories, nodes = tree.get("categories", ()), tree.get("categories_nodes", ())
    for node, first, size in zip(nodes, tree.get("categories_segments", ()), tree.get("categories_sizes", ())):
        edges, inside = members([c for c in categories[first : first + size] if 0 <= c < FIRST_INVALID], _below)
        questions[int(node)] = Question.of(edges, inside, bool(missing_right[node]))
    known = {node for node, kind in enumerate(tree.get("split_type", ())) if kind}
    if known != set(questions):
        raise ValueError("A split on categories does not say on which: it is damaged. Save the model again.")
    return questions


def _with_missing(asked: Question | None, limit: float, missing: float, nan_right: bool) -> Question:
    """The same split where one number counts as missing."""
    low, high = _below(missing), _float32_limit(np.float32(missing), strict=False)
    edges = [limit] if asked is None else asked.edges.tolist()

    def goes_right(x: float) -> bool:
        if low < x <= high:
            return nan_right
        return x > limit if asked is None else bool(asked.right[int(np.searchsorted(asked.edges, x, side="left"))])

    return Question.of([*edges, low, high], goes_right, nan_right)

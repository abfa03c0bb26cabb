"""CatBoost's JSON export: oblivious and other trees, one-hot splits on categories, its links.

Of a category the export has only the hash of its word. The words come from the export (if it was written with a pool),
from the user, or from the background rows; in the plan a category is its place among them.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from miserly._typing import Array
from miserly.boosting._city_hash import category_hash
from miserly.boosting._foreign import NO_LINK, ImportedModel, Question, Splits, Table, members
from miserly.boosting._importing import _float32_limit

Words = Mapping[str, Sequence[Any]]
LINKS = {
    "Logloss": "logistic",
    "CrossEntropy": "logistic",
    "MultiClass": "softmax",
    "MultiClassOneVsAll": "one_vs_rest",
    "Poisson": "exp",
    "Tweedie": "exp",
}
CLASSIFIERS = ("logistic", "softmax", "one_vs_rest")
SEVERAL_ANSWERS = ("MultiRMSE", "MultiLogloss", "MultiCrossEntropy", "RMSEWithUncertainty", "MultiQuantile")
RANKERS = ("YetiRank", "PairLogit", "Query", "StochasticRank", "LambdaMart", "GroupQuantile")
MOST_LEVELS = 16  # of CatBoost's oblivious trees
NO_STATISTICS = (
    "This model looks at statistics of categories (CTR), text or embeddings, which a plan cannot compute. Train with "
    "one_hot_max_size above the number of categories, or encode them as numbers."
)


class Split(NamedTuple):
    """One condition: column, largest value for which it does not hold, whether it holds of NaN; or its question."""

    feature: int
    limit: float
    nan_right: bool
    question: Question | None


def catboost_model(model: Any, words: Words) -> ImportedModel:
    if not model.is_fitted():
        raise ValueError("This CatBoost model is not fitted. Call fit, or load_model, first.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        content = json.loads(path.read_text(encoding="utf-8"))
    classes = np.asarray(model.classes_) if len(getattr(model, "classes_", ())) else None
    return catboost_json(content, classes, words)


def catboost_json(content: dict[str, Any], classes: Array | None, words: Words) -> ImportedModel:
    features = content["features_info"]
    if features.get("ctrs") or features.get("text_features") or features.get("embedding_features"):
        raise ValueError(NO_STATISTICS)
    floats, cats = features.get("float_features") or [], features.get("categorical_features") or []
    names = {
        int(f["flat_feature_index"]): str(f.get("feature_id") or f.get("feature_name") or f["flat_feature_index"])
        for f in [*floats, *cats]
    }
    n_features = max(names, default=-1) + 1
    categories = _categories(cats, features.get("cat_features_hash") or (), words, names)
    reader = _Splits(floats, cats, categories)
    factor, bias = content.get("scale_and_bias", [1.0, [0.0]])
    base = np.atleast_1d(np.array(bias, np.float64))
    loss, params = _loss(content["model_info"])
    link = LINKS.get(loss, "identity")
    if loss in SEVERAL_ANSWERS:
        raise ValueError(f"A CatBoost model with the loss {loss} cannot be imported. {NO_LINK}")
    tables: list[Table] = []
    trees = content.get("oblivious_trees")
    for tree in trees if trees is not None else content["trees"]:
        if trees is not None:
            tables += _oblivious(tree, reader, len(base), float(factor))
        else:
            tables += _branching(tree, reader, len(base), float(factor))
    has_classes = link in CLASSIFIERS
    if has_classes and classes is None:
        classes = _classes(params, max(2, len(base)))
    threshold = float(content["model_info"].get("binclass_probability_threshold") or 0.5)
    return ImportedModel(
        link,
        classes if has_classes else None,
        [names[f] for f in range(n_features)] if len(names) == n_features else None,
        n_features,
        base,
        tables,
        np.arange(len(tables)) % len(base),
        max(1, len(tables) // len(base)),
        categories=categories,
        ranks=loss.startswith(RANKERS),
        error_costs=None if threshold == 0.5 or link != "logistic" else [[0.0, threshold], [1.0 - threshold, 0.0]],
    )


def _loss(info: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name of the loss, and all of what the export says of classes."""
    params = info.get("params", {})
    params = json.loads(params) if isinstance(params, str) else params
    classes = info.get("class_params", {})
    classes = json.loads(classes) if isinstance(classes, str) else classes
    return str(params.get("loss_function", {}).get("type", "RMSE")), dict(classes)


def _classes(params: Mapping[str, Any], n: int) -> Array:
    names = params.get("class_names") or ()
    return np.array(names) if len(names) == n and len(set(map(type, names))) == 1 else np.arange(n)


def _categories(
    cats: Sequence[Mapping[str, Any]], hashes: Sequence[Mapping[str, Any]], words: Words, names: Mapping[int, str]
) -> dict[int, Sequence[Any]]:
    """The words of each column of categories, for the user's tables; the code of a category is its place."""
    known = {_signed(int(h["hash"])): str(h["value"]) for h in hashes}
    found: dict[int, Sequence[Any]] = {}
    for cat in cats:
        column, wanted = int(cat["flat_feature_index"]), {int(v) for v in cat.get("values") or ()}
        given = words.get(names[column])
        if given is None and known:
            given = sorted(known.values())
        given = [] if given is None else [str(word) for word in given]
        if wanted - {category_hash(word) for word in given}:
            raise ValueError(
                f"The model splits on categories of {names[column]!r} whose words it does not hold. Give "
                "background=rows (a frame), or save the model with save_model(..., format='json', pool=rows)."
            )
        found[column] = list(dict.fromkeys(given))
    return found


def _signed(bits: int) -> int:
    return bits - (1 << 32) if bits >> 31 else bits


class _Splits:
    """Conditions of CatBoost's trees by the columns of the table."""

    def __init__(
        self,
        floats: Sequence[Mapping[str, Any]],
        cats: Sequence[Mapping[str, Any]],
        categories: Mapping[int, Sequence[Any]],
    ) -> None:
        self._floats = [(int(f["flat_feature_index"]), f.get("nan_value_treatment") == "AsTrue") for f in floats]
        self._cats = [int(c["flat_feature_index"]) for c in cats]
        self._codes = {
            column: {category_hash(str(word)): code for code, word in enumerate(words)}
            for column, words in categories.items()
        }

    def read(self, split: Mapping[str, Any]) -> Split:
        kind = split.get("split_type", "FloatFeature")
        if kind == "FloatFeature":
            column, nan_right = self._floats[int(split["float_feature_index"])]
            return Split(column, _float32_limit(np.float32(split["border"]), strict=False), nan_right, None)
        if kind != "OneHotFeature":
            raise ValueError(NO_STATISTICS)
        column = self._cats[int(split["cat_feature_index"])]
        code = self._codes[column][int(split["value"])]
        edges, inside = members([code], lambda c: float(np.nextafter(c, -np.inf)))
        return Split(column, np.inf, False, Question.of(edges, inside, nan_right=False))


def _oblivious(tree: Mapping[str, Any], reader: _Splits, n_outputs: int, scale: float) -> list[Table]:
    """An oblivious tree as one table for each output: bit i of a leaf's number says whether split i holds."""
    splits = [reader.read(split) for split in tree.get("splits") or ()]
    depth = len(splits)
    if depth > MOST_LEVELS:
        raise ValueError(f"A tree has {depth} levels, which CatBoost does not make: it is damaged. Save it again.")
    values = np.array(tree["leaf_values"], np.float64).reshape(1 << depth, n_outputs) * scale
    weights = np.array(tree.get("leaf_weights") or np.ones(1 << depth), np.float64)
    n = (1 << depth) - 1  # splits, level by level; the nodes below node i are 2i + 1 and 2i + 2
    at = np.arange(2 * n + 1)
    level = np.floor(np.log2(at + 1)).astype(int)
    place, bits = at + 1 - (1 << level), np.zeros(2 * n + 1, int)
    for d in range(depth):  # the first bit of a place is the first split, the lowest bit of a leaf's number
        bits |= np.where(level > d, place >> np.maximum(level - 1 - d, 0) & 1, 0) << d
    counts = np.zeros(2 * n + 1)
    for d in range(depth + 1):
        here = level == d
        counts[here] = weights.reshape(-1, 1 << d).sum(axis=0)[bits[here]]
    leaf = at >= n
    mine = [None if end else splits[d] for end, d in zip(leaf, level)]
    nodes = Splits(
        leaf,
        np.array([0 if s is None else s.feature for s in mine]),
        np.array([np.inf if s is None else s.limit for s in mine]),
        np.where(leaf, 0, 2 * at + 1),
        np.where(leaf, 0, 2 * at + 2),
        np.array([s is not None and s.nan_right for s in mine]),
        counts,
        {i: s.question for i, s in enumerate(mine) if s is not None and s.question is not None},
    )
    return nodes.tables(*np.where(leaf[:, None], values[bits], 0.0).T)


def _branching(tree: Mapping[str, Any], reader: _Splits, n_outputs: int, scale: float) -> list[Table]:
    """A tree of the other growing policies: rows of which a split holds go right."""
    stack, nodes = [(tree, 0)], [tree]
    ways: list[tuple[int, int]] = [(0, 0)]
    while stack:
        node, number = stack.pop()
        if "split" in node:
            ways[number] = len(nodes), len(nodes) + 1
            for child in (node["left"], node["right"]):
                stack.append((child, len(nodes)))
                nodes.append(child)
                ways.append((0, 0))
    splits = [reader.read(node["split"]) if "split" in node else None for node in nodes]
    values, counts = np.zeros((len(nodes), n_outputs)), np.zeros(len(nodes))
    for number in range(len(nodes) - 1, -1, -1):  # children have higher numbers
        left, right = ways[number]
        if splits[number] is None:
            values[number] = np.atleast_1d(np.asarray(nodes[number]["value"], np.float64)) * scale
            counts[number] = float(nodes[number].get("weight", 0.0))
        else:
            counts[number] = counts[left] + counts[right]
    return Splits(
        np.array([s is None for s in splits]),
        np.array([0 if s is None else s.feature for s in splits]),
        np.array([np.inf if s is None else s.limit for s in splits]),
        np.array([left for left, _ in ways]),
        np.array([right for _, right in ways]),
        np.array([s is not None and s.nan_right for s in splits]),
        counts,
        {i: s.question for i, s in enumerate(splits) if s is not None and s.question is not None},
    ).tables(*values.T)

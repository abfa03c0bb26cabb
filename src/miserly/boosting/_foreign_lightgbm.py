"""LightGBM's text files: numeric and categorical splits, its three rules for missing values, its links."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from miserly._typing import Array
from miserly.boosting._foreign import NO_LINK, ImportedModel, Question, Splits, Table, members, one_leaf
from miserly.boosting._importing import LIGHTGBM_ZERO, _lightgbm_limit

LINKS = {
    "binary": "logistic",
    "multiclass": "softmax",
    "multiclassova": "one_vs_rest",
    "poisson": "exp",
    "gamma": "exp",
    "tweedie": "exp",
    "cross_entropy": "sigmoid",
    "cross_entropy_lambda": "softplus",
}
NUMBERS = ("exp", "sigmoid", "softplus", "signed_square", "identity")
CATEGORICAL, DEFAULT_LEFT = 1, 2
NO_RULE, ZERO, NAN = 0, 1, 2  # what counts as missing at a split


def lightgbm_text(text: str, classes: Array | None) -> ImportedModel:
    if "is_linear=1" in text:
        raise ValueError("Linear leaves cannot be imported: a plan's leaf is a number. Train with linear_tree=False.")
    if not re.search("^end of trees", text, re.MULTILINE):
        raise ValueError("The text ends before the line 'end of trees': it was cut off. Save the model again.")
    head, *parts = re.split(r"^Tree=\d+\n", text, flags=re.MULTILINE)
    fields = dict(line.split("=", 1) for line in head.splitlines() if "=" in line)
    n_outputs = int(fields["num_tree_per_iteration"])
    n_features = int(fields["max_feature_idx"]) + 1
    if n_outputs < 1 or len(parts) % n_outputs:
        raise ValueError(f"It has {len(parts)} trees for {n_outputs} outputs: it is damaged. Save the model again.")
    tables = [_tree(part) for part in parts]
    if "average_output" in head.split():
        for table in tables:
            table["value"] = table["value"] / (len(tables) // n_outputs)
    link, scale = _link(fields.get("objective", "regression").split() or ["regression"])
    if link not in NUMBERS and classes is None:
        classes = np.arange(max(2, n_outputs))
    return ImportedModel(
        link,
        classes if link not in NUMBERS else None,
        fields["feature_names"].split(" "),
        n_features,
        np.zeros(n_outputs),
        tables,
        np.arange(len(tables)) % n_outputs,
        len(tables) // n_outputs,
        scale,
        categories=_categories(text, fields.get("feature_infos", "").split(), n_features),
        ranks=fields.get("objective", "").startswith(("lambdarank", "rank_xendcg")),
    )


def lightgbm_booster(booster: Any, classes: Array | None = None) -> ImportedModel:
    best = booster.best_iteration if booster.best_iteration > 0 else -1
    return lightgbm_text(booster.model_to_string(num_iteration=best), classes)


def _link(objective: list[str]) -> tuple[str, float]:
    name, others = objective[0], dict(part.split(":", 1) for part in objective[1:] if ":" in part)
    link = LINKS.get(name, "identity")
    if "sqrt" in objective:
        if link != "identity":
            raise ValueError(f"A model with the objective {' '.join(objective)!r} cannot be imported. {NO_LINK}")
        link = "signed_square"
    return link, float(others.get("sigmoid", 1.0)) if link in ("logistic", "one_vs_rest") else 1.0


def _categories(text: str, infos: Sequence[str], n_features: int) -> dict[int, Sequence[Any]]:
    """The words of pandas' categories by column, where the file says which columns they are."""
    line = re.search(r"^pandas_categorical:(.*)$", text, re.MULTILINE)
    lists = json.loads(line.group(1)) if line else None
    if not lists:
        return {}
    named = re.search(r"^\[categorical_feature: ([\d,]+)\]$", text, re.MULTILINE)
    columns = [int(c) for c in named.group(1).split(",")] if named else []
    if len(columns) != len(lists):
        columns = [f for f, info in enumerate(infos) if info[:1] not in ("[", "n")]
    if len(columns) != len(lists) or not all(0 <= c < n_features for c in columns):
        raise ValueError(
            f"It has the categories of {len(lists)} columns of a frame and does not say which columns these are. "
            "Train it on codes (frame[column].cat.codes), with categorical_feature=[...]."
        )
    return dict(zip(columns, lists))


def _tree(part: str) -> Table:
    fields = dict(line.split("=", 1) for line in part.splitlines() if "=" in line)

    def numbers(name: str, dtype: Any = float) -> Array:
        return np.array(fields.get(name, "").split(), dtype)

    values, n_leaves = numbers("leaf_value"), int(fields["num_leaves"])
    n = n_leaves - 1
    if n < 1:
        return one_leaf(float(values[0]))
    kinds, thresholds = numbers("decision_type", int), numbers("threshold")
    feature = numbers("split_feature", int)
    ways = [np.where(w >= 0, w, n + ~w) for w in (numbers("left_child", int), numbers("right_child", int))]
    lengths = {len(a) for a in (kinds, thresholds, feature, *ways)}
    if lengths != {n} or len(values) != n_leaves or feature.min() < 0:
        raise ValueError("A tree lacks some of its numbers: it is damaged. Save the model again.")
    limit = np.array([_lightgbm_limit(t, strict=False) for t in thresholds])
    rule, default_left = (kinds >> 2) & 3, (kinds & DEFAULT_LEFT) > 0
    missing_right = np.where(rule == NO_RULE, thresholds < 0.0, ~default_left)  # without a rule NaN is read as zero
    questions = {}
    for node in np.flatnonzero(((kinds & CATEGORICAL) > 0) | (rule == ZERO)).tolist():
        if kinds[node] & CATEGORICAL:
            sets = numbers("cat_threshold", np.uint64), numbers("cat_boundaries", int)
            questions[node] = _in_categories(*sets, int(thresholds[node]))
        else:
            questions[node] = _zero_is_missing(float(limit[node]), bool(default_left[node]))
    ends = np.zeros(n_leaves)
    counts = np.r_[_counts(numbers("internal_count"), n), _counts(numbers("leaf_count"), n_leaves)]
    tree = Splits(
        np.arange(n + n_leaves) >= n,
        np.r_[feature, ends.astype(int)],
        np.r_[limit, ends + np.inf],
        np.r_[ways[0], ends.astype(int)],
        np.r_[ways[1], ends.astype(int)],
        np.r_[missing_right, ends > 0],
        counts,
        questions,
    )
    return tree.tables(np.r_[np.zeros(n), values])[0]


def _counts(found: Array, n: int) -> Array:
    """Rows of nodes; files that other programs write may have none."""
    return found if len(found) == n else np.zeros(n)


def _in_categories(words: Array, boundaries: Array, number: int) -> Question:
    """Codes in the set go left, all others and NaN right. A code is cut to a whole number: −0.5 is 0."""
    if not 0 <= number < len(boundaries) - 1:
        raise ValueError("A split asks for categories that the tree has not: it is damaged. Save the model again.")
    mine = words[boundaries[number] : boundaries[number + 1]]
    chosen = [32 * i + bit for i, word in enumerate(mine.tolist()) for bit in range(32) if word >> bit & 1]
    edges, inside = members(chosen, lambda c: -1.0 if c == 0 else float(np.nextafter(c, -np.inf)))
    return Question.of(edges, lambda x: not inside(x), nan_right=True)


def _zero_is_missing(limit: float, default_left: bool) -> Question:
    """Zeros and NaN go the default way, other values as the threshold says."""
    zero = np.nextafter(-LIGHTGBM_ZERO, -np.inf), LIGHTGBM_ZERO

    def goes_right(x: float) -> bool:
        return not default_left if zero[0] < x <= zero[1] else x > limit

    return Question.of([limit, *zero], goes_right, not default_left)

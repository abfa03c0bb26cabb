"""A sum of trees as a model file of LightGBM, for those who already run it. Predictions agree up to rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from miserly.plan._dictionary import Trees
from miserly.plan._linear_form import as_sum, unshared

if TYPE_CHECKING:
    from miserly.plan._plan import Plan

MISSING_IS_NAN, DEFAULT_LEFT = 8, 2


def to_lightgbm(plan: Plan) -> str:
    """The text of a model file; `lightgbm.Booster(model_str=...)` reads it. Prices are not part of it."""
    whole, trees = as_sum(plan), plan.dictionary
    if not isinstance(trees, Trees):
        raise ValueError(f"LightGBM's files hold trees; this plan's dictionary is {trees.kind}.")
    trees = unshared(trees)
    columns = [
        [_constant(constant), *(_tree(trees, int(t), weights[t]) for t in np.flatnonzero(weights))]
        for constant, weights in zip(whole.constant, whole.weights.T)
    ]
    longest = max(map(len, columns))
    rounds = zip(*(column + [_constant(0.0)] * (longest - len(column)) for column in columns))
    bodies = [tree for round_ in rounds for tree in round_]
    names = [_name(feature) for feature in plan.costs.features]
    head = [
        "tree",
        "version=v4",
        f"num_class={len(columns)}",
        f"num_tree_per_iteration={len(columns)}",
        "label_index=0",
        f"max_feature_idx={len(names) - 1}",
        f"objective={_objective(plan)}",
        f"feature_names={' '.join(names)}",
        f"feature_infos={' '.join(['[-inf:inf]'] * len(names))}",
        "",
    ]
    parts = [f"Tree={i}\n{body}\n" for i, body in enumerate(bodies)]
    return "\n".join(head) + "\n" + "\n".join(parts) + "\nend of trees\n\nparameters:\nend of parameters\n"


def _objective(plan: Plan) -> str:
    n = len(plan.prior)
    if plan.link == "identity" and n == 1:
        return "regression"
    if plan.link == "logistic":
        return "binary sigmoid:1" if n == 1 else f"multiclassova num_class:{n} sigmoid:1"
    if plan.link == "softmax":
        return f"multiclass num_class:{n}"
    raise ValueError(f"LightGBM has no objective for {n} outputs with the {plan.link} link.")


def _constant(value: float) -> str:
    return f"num_leaves=1\nnum_cat=0\nleaf_value={float(value)!r}\nis_linear=0\nshrinkage=1\n"


def _tree(trees: Trees, t: int, weight: float) -> str:
    """Splits are numbered from 0, leaves as ~0, ~1, …, each in the order of the table."""
    places = np.arange(trees.start[t], trees.start[t + 1])
    leaf = trees.is_leaf[places]
    if leaf[0]:
        return _constant(weight * trees.value[places[0]])
    number = np.where(leaf, ~(np.cumsum(leaf) - 1), np.cumsum(~leaf) - 1)
    splits = places[~leaf]
    left = trees.left[splits] - places[0]
    kinds = np.where(trees.missing_right[splits], MISSING_IS_NAN, MISSING_IS_NAN | DEFAULT_LEFT)
    lines = {
        "split_feature": trees.feature[splits],
        "threshold": trees.threshold[splits],
        "decision_type": kinds,
        "left_child": number[left],
        "right_child": number[left + 1],
        "leaf_value": weight * trees.value[places[leaf]],
    }
    head = f"num_leaves={int(leaf.sum())}\nnum_cat=0\n"
    return head + "".join(f"{name}={_list(values)}\n" for name, values in lines.items()) + "is_linear=0\nshrinkage=1\n"


def _list(values: NDArray[np.generic]) -> str:
    return " ".join(map(repr, values.tolist()))


def _name(feature: str) -> str:
    """LightGBM's names have no spaces, and none of the signs that its files use."""
    return "".join("_" if sign.isspace() or sign in ',:="[]{}' else sign for sign in feature) or "_"

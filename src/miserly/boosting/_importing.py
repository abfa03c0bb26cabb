"""Trees of other libraries as a dictionary: LightGBM, XGBoost, scikit-learn.

A plan's tree sends a float64 value right if it is above a threshold. LightGBM and scikit-learn's histogram trees do the
same. XGBoost asks `float32(x) < t`, scikit-learn's other trees `float32(x) <= t`: both are translated exactly, to the
largest float64 that goes left. What a plan cannot say is refused: categories, linear leaves, zeros as missing values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from miserly.plan import Trees, stack_trees

Table = dict[str, NDArray[Any]]
LEAF, NUMERIC = 0, 1
LESS, AT_MOST = 2, 3
FLOAT32_END = 2.0**128
LIGHTGBM_ZERO = float(np.float32(1e-35))


def import_trees(model: Any) -> Trees:
    """The trees of a fitted model as a dictionary for those learners that weigh trees again (`dictionary=`).

    `model` is a LightGBM or XGBoost booster or estimator, or a tree, a forest or gradient boosting of scikit-learn. The
    sum of the trees is the model's raw prediction (mean, log-odds; of a forest of classes, the share of the second);
    with K > 2 classes, tree t belongs to class t mod K. What a model adds beside its trees stands in the first of them.

    Parameters
    ----------
    model : object
        A fitted model of LightGBM, XGBoost or scikit-learn.

    Returns
    -------
    Trees
        Its trees, to the bit.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from miserly import import_trees
    >>> X = np.arange(6.0)[:, None]
    >>> trees = import_trees(DecisionTreeRegressor(max_depth=1).fit(X, X[:, 0] > 2))
    >>> trees.evaluate(X, 0)
    array([0., 0., 0., 1., 1., 1.])
    """
    kinds = {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(model).__mro__}
    if "lightgbm.Booster" in kinds:
        return _from_lightgbm(model)
    if "lightgbm.LGBMModel" in kinds:
        return _from_lightgbm(model.booster_)
    if "xgboost.Booster" in kinds:
        return _from_xgboost(model)
    if "xgboost.XGBModel" in kinds:
        return _from_xgboost(_booster_of(model))
    for kind, read in SCIKIT_LEARN.items():
        if kind in kinds:
            check_is_fitted(model)
            return read(model)
    raise ValueError(
        "Trees are imported from LightGBM, XGBoost and scikit-learn's trees, forests and gradient boosting; "
        f"{type(model).__module__}.{type(model).__name__} is none of them."
    )


# ---- scikit-learn --------------------------------------------------------------------------------------------------


def _sklearn_outputs(model: Any, factor: float) -> list[Table]:
    """One tree for each output: the mean, the second of two classes' shares, or each class's share."""
    tree = model.tree_
    if model.n_outputs_ > 1:
        raise ValueError(f"{type(model).__name__} answers {model.n_outputs_} questions at once. Give one for each.")
    values = tree.value[:, 0, :] * factor
    if hasattr(model, "classes_"):
        values = values / np.maximum(tree.value[:, 0, :].sum(axis=1, keepdims=True), 1e-300)
        values = values[:, 1:] if values.shape[1] == 2 else values
    missing_left = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count, bool)).astype(bool)
    leaf = tree.children_left < 0
    limit = np.array([np.inf if end else _float32_limit(t, strict=False) for end, t in zip(leaf, tree.threshold)])
    ways = (tree.children_left, tree.children_right)
    return [_table(leaf, tree.feature, limit, *ways, ~missing_left, values[:, k]) for k in range(values.shape[1])]


def _from_forest(model: Any) -> Trees:
    return stack_trees([t for tree in model.estimators_ for t in _sklearn_outputs(tree, 1.0 / len(model))])


def _from_gradient_boosting(model: Any) -> Trees:
    """The trees with their learning rate; what boosting started from stands in the first tree of each output."""
    if model.init_ != "zero" and type(model.init_).__name__ not in ("DummyClassifier", "DummyRegressor"):
        raise ValueError(
            f"This boosting starts from a {type(model.init_).__name__}, which is no tree. Train it with init=None."
        )
    stages = model.estimators_
    tables = [t for tree in stages.ravel() for t in _sklearn_outputs(tree, model.learning_rate)]
    origin = np.zeros((1, model.n_features_in_))
    raw = model.decision_function if hasattr(model, "decision_function") else model.predict
    total = np.atleast_1d(np.squeeze(raw(origin)))
    trees = stack_trees(tables)
    for k in range(stages.shape[1]):
        known = sum(float(trees.evaluate(origin, t)[0]) for t in range(k, len(tables), stages.shape[1]))
        _add(tables[k], float(total[k]) - known)
    return stack_trees(tables)


def _from_histograms(model: Any) -> Trees:
    return _from_treelite(_treelite("treelite.sklearn").import_model(model), _float64_limit)


SCIKIT_LEARN: dict[str, Callable[[Any], Trees]] = {
    "sklearn.BaseDecisionTree": lambda model: stack_trees(_sklearn_outputs(model, 1.0)),
    "sklearn.BaseForest": _from_forest,
    "sklearn.BaseGradientBoosting": _from_gradient_boosting,
    "sklearn.BaseHistGradientBoosting": _from_histograms,
}


# ---- through treelite ----------------------------------------------------------------------------------------------


def _from_lightgbm(booster: Any) -> Trees:
    text = booster.model_to_string()
    if "is_linear=1" in text:
        raise ValueError("Linear leaves cannot be imported: a plan's leaf is a number. Train with linear_tree=False.")
    kinds = {int(n) for line in re.findall(r"^decision_type=(.*)$", text, re.MULTILINE) for n in line.split()}
    if any((n >> 2) & 3 == 1 for n in kinds):
        raise ValueError(
            "This model takes zeros as missing values, which a plan's trees cannot. Train with zero_as_missing=False."
        )
    if any(n & 1 for n in kinds):
        _refuse_categories()
    return _from_treelite(_treelite("treelite.frontend").from_lightgbm(booster), _lightgbm_limit)


def _booster_of(model: Any) -> Any:
    """The booster of an XGBoost estimator, up to its best round if it stopped early, as its own `predict` does."""
    missing = getattr(model, "missing", None)
    if missing is not None and not np.isnan(missing):
        raise ValueError(f"This model takes {missing} as a missing value; a plan's trees take NaN alone.")
    booster = model.get_booster()
    try:
        return booster[: model.best_iteration + 1]
    except AttributeError:
        return booster


def _from_xgboost(booster: Any) -> Trees:
    if any(kind == "c" for kind in booster.feature_types or ()):
        _refuse_categories()
    text = bytes(booster.save_raw(raw_format="json"))
    return _from_treelite(_treelite("treelite.frontend").from_xgboost_json(text), _float32_limit)


def _from_treelite(model: Any, limit: Callable[..., float]) -> Trees:
    """Trees with one number per leaf; the base scores stand in the first tree of each output."""
    header = model.get_header_accessor()
    if np.prod(header.get_field("leaf_vector_shape")) != 1:
        raise ValueError("Leaves that hold several outputs cannot be imported. Train one tree for each output.")
    tables = [_treelite_table(model.get_tree_accessor(t), limit) for t in range(model.num_tree)]
    output = np.maximum(header.get_field("class_id"), 0)
    if header.get_field("average_tree_output")[0]:
        for table, k in zip(tables, output):
            table["value"] /= np.count_nonzero(output == k)
    for k, base in enumerate(np.ravel(header.get_field("base_scores"))):
        first = np.flatnonzero(output == k)
        if base and len(first):
            _add(tables[first[0]], float(base))
    return stack_trees(tables)


def _treelite_table(tree: Any, limit: Callable[..., float]) -> Table:
    kind, compare = tree.get_field("node_type"), tree.get_field("cmp")
    leaf = kind == LEAF
    if (kind[~leaf] != NUMERIC).any():
        _refuse_categories()
    if not np.isin(compare[~leaf], (LESS, AT_MOST)).all():
        raise ValueError(f"Splits compare by < or <=, got treelite's comparisons {set(compare[~leaf].tolist())}.")
    places = zip(leaf, tree.get_field("threshold"), compare)
    return _table(
        leaf,
        tree.get_field("split_index"),
        np.array([np.inf if end else limit(t, strict=how == LESS) for end, t, how in places]),
        tree.get_field("cleft"),
        tree.get_field("cright"),
        ~tree.get_field("default_left").astype(bool),
        np.asarray(tree.get_field("leaf_value"), np.float64),
    )


def _treelite(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError("Importing trees needs treelite: pip install 'miserly[import]'.") from error


def _refuse_categories() -> None:
    raise ValueError(
        "Splits on categories cannot be imported: a plan's trees compare numbers. Encode categories as numbers or as "
        "one column each, and train without native categorical features."
    )


# ---- a tree's table ------------------------------------------------------------------------------------------------


def _float64_limit(threshold: Any, *, strict: bool) -> float:
    """The largest float64 that goes left, where the values compared are float64."""
    return float(np.nextafter(threshold, -np.inf) if strict else threshold)


def _lightgbm_limit(threshold: Any, *, strict: bool) -> float:
    """The same for LightGBM, which reads what is nearly zero as zero."""
    limit = _float64_limit(threshold, strict=strict)
    if abs(limit) > LIGHTGBM_ZERO:
        return limit
    return LIGHTGBM_ZERO if limit >= 0 else float(np.nextafter(-LIGHTGBM_ZERO, -np.inf))


def _float32_limit(threshold: Any, *, strict: bool) -> float:
    """The largest float64 that goes left, where values are rounded to float32 before they are compared.

    Half-way between two float32 numbers a value is rounded to the even one.
    """
    if np.isposinf(threshold):
        return np.inf
    with np.errstate(over="ignore"):
        last = np.float32(threshold)
        if last > threshold or (strict and last == threshold):
            last = np.nextafter(last, np.float32(-np.inf))
        following = np.nextafter(last, np.float32(np.inf))
        low, high = (np.clip(np.float64(x), -FLOAT32_END, FLOAT32_END) for x in (last, following))
        middle = low + (high - low) / 2
        return float(middle if np.float32(middle) <= last else np.nextafter(middle, -np.inf))


def _add(table: Table, constant: float) -> None:
    leaf = table["left"] == np.arange(len(table["left"]))
    table["value"][leaf] += constant


def _table(
    leaf: NDArray[np.bool_],
    feature: NDArray[Any],
    limit: NDArray[np.float64],
    left: Sequence[int],
    right: Sequence[int],
    missing_right: NDArray[np.bool_],
    value: NDArray[np.float64],
) -> Table:
    """A tree as a plan keeps it: level by level, the right child next to the left."""
    order, first_child = [0], []
    at = 0
    while at < len(order):
        old = order[at]
        if at >= len(leaf) or not 0 <= old < len(leaf):
            raise ValueError("A tree's children lead back or outside the tree: the model is damaged. Save it again.")
        first_child.append(at if leaf[old] else len(order))
        if not leaf[old]:
            order += [int(left[old]), int(right[old])]
        at += 1
    end = leaf[order]
    return {
        "feature": np.where(end, 0, feature[order]).astype(np.int32),
        "threshold": np.where(end, np.inf, limit[order]),
        "left": np.array(first_child, np.int32),
        "missing_right": missing_right[order] & ~end,
        "value": np.where(end, value[order], 0.0),
    }

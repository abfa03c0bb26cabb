"""Models of other libraries as plans that predict the same: LightGBM, XGBoost, CatBoost, scikit-learn.

Each reader gives an `ImportedModel`: tables of trees with the output of each, constants, a link. Splits are translated
exactly (see `_importing`); how many training rows went where is kept, so that a row may leave values unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from miserly._typing import Array
from miserly.boosting import _foreign_catboost as catboost
from miserly.boosting import _foreign_lightgbm as lightgbm
from miserly.boosting import _foreign_onnx as onnx
from miserly.boosting import _foreign_sklearn as of_sklearn
from miserly.boosting import _foreign_xgboost as xgboost
from miserly.boosting._foreign import ImportedModel, Table
from miserly.boosting._foreign_catboost import Words
from miserly.boosting._ubjson import read_ubjson
from miserly.costs import CostTable
from miserly.plan import EXIT, Charge, Dictionary, Node, Plan, RawFeatures, stack_trees
from miserly.schema import Schema

INVENTED = re.compile(r"Column_\d+|f\d+|\d+|feature_\d+")  # names that libraries give to columns without any


def import_plan(
    model: Any,
    costs: CostTable,
    *,
    charge: Charge = "path",
    background: Any = None,
) -> Plan:
    """A fitted model of another library as a plan that predicts the same and knows what its inputs cost.

    Parameters
    ----------
    model : fitted model, str or Path
        A LightGBM `Booster`, scikit-learn class or text file; an XGBoost `Booster`, scikit-learn class, JSON or UBJ
        file; a CatBoost model or its JSON export; a tree, forest, gradient or histogram boosting, linear, logistic or
        support vector model of scikit-learn; an ONNX model (`onnx.ModelProto` or a file) of trees or a linear model.
    costs : CostTable
        The prices. Columns go by name where the model knows names, else by position.
    charge : {"path", "learner"}, default="path"
        Whether a row pays for the splits that it meets, or for all that a tree may look at.
    background : array or frame, optional
        Training rows: what the plan assumes of values that a row does not buy, and the words of CatBoost's categories.

    Returns
    -------
    Plan
        Equal to the model's predictions: to the last bits where the model computes in double precision, to about 1e-6
        where it computes in single precision (XGBoost, ONNX).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from miserly import CostTable, import_plan
    >>> model = LinearRegression().fit(np.eye(3), [1.0, 2.0, 3.0])
    >>> plan = import_plan(model, CostTable.per_feature([1.0, 2.0, 5.0]))
    >>> plan.predict(np.eye(3)).round(6)
    array([1., 2., 3.])
    """
    found = _read(model, _words_of(background))
    bound = _bound(costs, found)
    build = _tree_plan if found.weights is None else _linear_plan if found.kernels is None else _kernel_plan
    plan = build(found, bound, charge)
    if found.categories:
        words = {bound.features[f]: list(words) for f, words in found.categories.items()}
        plan = replace(plan, schema=Schema.of_names(bound.features, words))
    if found.check is not None:
        found.check(plan)
    if found.error_costs is not None:
        plan = plan.with_error_costs(found.error_costs)
    return plan if background is None else plan.with_background(background)


def _bound(costs: CostTable, found: ImportedModel) -> CostTable:
    """Prices by name where the model knows names, else by position. Model files may have underscores for spaces."""
    names = tuple(str(name) for name in found.names or ())
    is_priced = costs.each is None and set(names) <= set(costs.needs)
    if not names or (all(INVENTED.fullmatch(name) for name in names) and not is_priced):
        return costs.bind(found.n_features, "the model")
    if costs.each is None and not is_priced:
        spaced = {re.sub(r"\s", "_", name): name for name in costs.features}
        if len(spaced) == len(costs.features):
            names = tuple(name if name in costs.needs else spaced.get(name, name) for name in names)
    return costs.bind(names, "the model")


def _words_of(background: Any) -> dict[str, list[str]]:
    """The distinct words of a frame's columns that are not fractions: what CatBoost may have as categories."""
    columns = getattr(background, "columns", ())
    whole = [name for name in columns if str(background[name].dtype)[:5] != "float"]
    return {str(name): sorted({str(word) for word in background[name].tolist()}) for name in whole}


def _read(model: Any, words: Words) -> ImportedModel:
    if isinstance(model, (str, Path)):
        return _read_file(Path(model), words)
    kinds = {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(model).__mro__}
    for kind, read in READERS.items():
        if kind in kinds:
            return read(model)
    if "catboost.CatBoost" in kinds:
        return catboost.catboost_model(model, words)
    raise ValueError(
        "Plans are imported from LightGBM, XGBoost, CatBoost, ONNX and scikit-learn's trees, forests, boosting, "
        f"linear, logistic and support vector models; {type(model).__module__}.{type(model).__name__} is none of them."
    )


def _read_file(path: Path, words: Words) -> ImportedModel:
    """A model file; every error names it."""
    try:
        return _parse_file(path, words)
    except (KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(
            f"'{path}' is damaged: it lacks what such a model file has ({type(error).__name__}: {error}). "
            "Save the model again."
        ) from error
    except ValueError as error:
        raise ValueError(f"'{path}' cannot be imported. {error}") from error


def _parse_file(path: Path, words: Words) -> ImportedModel:
    data = path.read_bytes()
    if data.startswith(b"tree"):
        return lightgbm.lightgbm_text(data.decode(), None)
    if path.suffix == ".onnx":
        return onnx.onnx_bytes(data)
    if data[:1] == b"{" and path.suffix != ".ubj":
        try:
            content = json.loads(data)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"It is not valid JSON: {error}. Save the model again.") from error
        if "features_info" in content and ("oblivious_trees" in content or "trees" in content):
            return catboost.catboost_json(content, None, words)
        if "learner" in content:
            return xgboost.xgboost_json(content, None)
    if path.suffix == ".ubj":
        return xgboost.xgboost_json(read_ubjson(data), None)
    raise ValueError(
        "It is not a LightGBM text file, an XGBoost model (.json, .ubj), a CatBoost export (format='json') or an ONNX "
        "model (.onnx)."
    )


# ---- plans ---------------------------------------------------------------------------------------------------------


def _tree_plan(found: ImportedModel, costs: CostTable, charge: Charge) -> Plan:
    """A chain with a node per round, of which the first replaces the free answer: what training rows get of it."""
    tables, outputs = list(found.tables), np.array(found.outputs, np.int64)
    shares = np.concatenate([t["shares"] for t in tables]) if tables and all("shares" in t for t in tables) else None
    trees = stack_trees(tables)
    n_outputs, size = len(found.base), -(-len(tables) // max(1, found.n_rounds))
    first = outputs[:size]
    prior = found.base.copy()
    for table, output in zip(tables[:size], first):
        prior[output] += _mean_of(table)
    scale = None if found.scale == 1.0 else np.full(n_outputs, found.scale)
    nodes: list[Node] = []
    for number in range(0, len(tables), size):
        learners = np.arange(number, min(number + size, len(tables)), dtype=np.int32)
        weights = np.zeros((len(learners), n_outputs))
        weights[np.arange(len(learners)), outputs[learners]] = 1.0
        nodes.append(
            Node(
                learners,
                weights,
                bias=found.base if not number else np.zeros(n_outputs),
                outputs=tuple(range(n_outputs)),
                combine="add" if number else "replace",
                scale=scale,
                passed=len(nodes) + 1 if number + size < len(tables) else EXIT,
            )
        )
    return Plan(
        costs=costs,
        dictionary=trees,
        nodes=tuple(nodes),
        prior=prior,
        link=found.link,  # type: ignore[arg-type]
        classes=found.classes,
        roots=(0,) if nodes else (),
        charge=charge,
        notes={"estimator": "imported"} | ({"task": "ranking"} if found.ranks else {}),
        shares=shares,
    )


def _mean_of(table: Table) -> float:
    """The mean value of the training rows, where a table has shares."""
    if "shares" not in table:
        return 0.0
    mean, shares = table["value"].astype(np.float64).copy(), table["shares"]
    for at in range(len(mean) - 1, -1, -1):
        left = int(table["left"][at])
        if left != at:
            mean[at] = shares[at] * mean[left] + (1.0 - shares[at]) * mean[left + 1]
    return float(mean[0])


def _linear_plan(found: ImportedModel, costs: CostTable, _: Charge) -> Plan:
    assert found.weights is not None
    used = np.flatnonzero(found.weights.any(axis=1)).astype(np.int32)
    return _sum_plan(found, costs, RawFeatures(np.arange(found.n_features)), used)


def _kernel_plan(found: ImportedModel, costs: CostTable, _: Charge) -> Plan:
    assert found.kernels is not None
    return _sum_plan(found, costs, found.kernels, np.arange(len(found.kernels), dtype=np.int32))


def _sum_plan(found: ImportedModel, costs: CostTable, learners: Dictionary, used: Array) -> Plan:
    """One weighted sum, which replaces the free answer."""
    assert found.weights is not None
    outputs = tuple(range(found.weights.shape[1]))
    node = Node(used, found.weights[used], bias=found.base, outputs=outputs, combine="replace")
    return Plan(
        costs=costs,
        dictionary=learners,
        nodes=(node,),
        prior=found.base,
        link=found.link,  # type: ignore[arg-type]
        classes=found.classes,
        notes={"estimator": "imported"},
        means=found.means,
    )


READERS: dict[str, Callable[[Any], ImportedModel]] = {
    "lightgbm.Booster": lightgbm.lightgbm_booster,
    "lightgbm.LGBMModel": lambda m: lightgbm.lightgbm_booster(
        m.booster_, np.asarray(m.classes_) if hasattr(m, "classes_") else None
    ),
    "xgboost.Booster": lambda model: xgboost.xgboost_json(xgboost.raw_json(model), None),
    "xgboost.XGBModel": xgboost.xgboost_model,
    "onnx.ModelProto": onnx.onnx_model,
    "sklearn.BaseHistGradientBoosting": of_sklearn.hist_boosting,
    "sklearn.BaseGradientBoosting": of_sklearn.gradient_boosting,
    "sklearn.BaseForest": of_sklearn.read_forest,
    "sklearn.BaseDecisionTree": of_sklearn.read_forest,
    "sklearn.BaseSVC": of_sklearn.read_svm,
    "sklearn.SVR": of_sklearn.read_svm,
    "sklearn.NuSVR": of_sklearn.read_svm,
    "sklearn.LinearClassifierMixin": of_sklearn.read_linear,
    "sklearn.LinearModel": of_sklearn.read_linear,
    "sklearn.BaseSGDRegressor": of_sklearn.read_linear,
    "sklearn._GeneralizedLinearRegressor": of_sklearn.read_linear,
}

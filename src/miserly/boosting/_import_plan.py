"""Models of other libraries as plans that predict the same: LightGBM, XGBoost, CatBoost, scikit-learn.

Each reader gives an `ImportedModel`: tables of trees with the output of each, constants, a link. Splits are translated
exactly (see `_importing`); how many training rows went where is kept, so that a row may leave values unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from miserly.boosting import _foreign_boosters as boosters
from miserly.boosting import _foreign_sklearn as of_sklearn
from miserly.boosting._foreign import ImportedModel, Table
from miserly.boosting._ubjson import read_ubjson
from miserly.costs import CostTable
from miserly.plan import EXIT, Charge, Node, Plan, RawFeatures, stack_trees

INVENTED = re.compile(r"Column_\d+|f\d+|\d+|feature_\d+")  # names that libraries give to columns without any


def import_plan(model: Any, costs: CostTable, *, charge: Charge = "path", background: Any = None) -> Plan:
    """A fitted model of another library as a plan that predicts the same and knows what its inputs cost.

    Parameters
    ----------
    model : fitted model, str or Path
        A LightGBM `Booster`, scikit-learn class or text file; an XGBoost `Booster`, scikit-learn class, JSON or UBJ
        file; a CatBoost model or its JSON export; a tree, forest, gradient or histogram boosting, linear or logistic
        model of scikit-learn.
    costs : CostTable
        The prices. Columns go by name where the model knows names, else by position.
    charge : {"path", "learner"}, default="path"
        Whether a row pays for the splits that it meets, or for all that a tree may look at.
    background : array or frame, optional
        Training rows: what the plan assumes of values that a row does not buy. Trees have their own counts.

    Returns
    -------
    Plan
        Equal to the model's predictions: to the last bits where the model computes in double precision, to about 1e-6
        where it computes in single precision (XGBoost).

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
    found = _read(model)
    known = found.names is not None and not all(INVENTED.fullmatch(str(name)) for name in found.names)
    bound = costs.bind(tuple(str(name) for name in found.names or ()) if known else found.n_features)
    plan = _linear_plan(found, bound) if found.weights is not None else _tree_plan(found, bound, charge)
    return plan if background is None else plan.with_background(background)


def _read(model: Any) -> ImportedModel:
    if isinstance(model, (str, Path)):
        return _read_file(Path(model))
    kinds = {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(model).__mro__}
    for kind, read in READERS.items():
        if kind in kinds:
            return read(model)
    raise ValueError(
        "Plans are imported from LightGBM, XGBoost, CatBoost and scikit-learn's trees, forests, boosting, linear and "
        f"logistic models; {type(model).__module__}.{type(model).__name__} is none of them."
    )


def _read_file(path: Path) -> ImportedModel:
    """A model file; every error names it."""
    try:
        return _parse_file(path)
    except (KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(
            f"'{path}' is damaged: it lacks what such a model file has ({type(error).__name__}: {error}). "
            "Save the model again."
        ) from error
    except ValueError as error:
        raise ValueError(f"'{path}' cannot be imported. {error}") from error


def _parse_file(path: Path) -> ImportedModel:
    data = path.read_bytes()
    if data.startswith(b"tree"):
        return boosters.lightgbm_text(data.decode(), None)
    if data[:1] == b"{" and path.suffix != ".ubj":
        try:
            content = json.loads(data)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"It is not valid JSON: {error}. Save the model again.") from error
        if "oblivious_trees" in content:
            return boosters.catboost_json(content, None)
        if "learner" in content:
            return boosters.xgboost_json(content, None)
    if path.suffix == ".ubj":
        return boosters.xgboost_json(read_ubjson(data), None)
    raise ValueError(
        "It is not a LightGBM text file, an XGBoost model (.json, .ubj) or a CatBoost export (format='json')."
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
        notes={"estimator": "imported"},
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


def _linear_plan(found: ImportedModel, costs: CostTable) -> Plan:
    assert found.weights is not None
    used = np.flatnonzero(found.weights.any(axis=1)).astype(np.int32)
    outputs = tuple(range(found.weights.shape[1]))
    node = Node(used, found.weights[used], bias=found.base, outputs=outputs, combine="replace")
    return Plan(
        costs=costs,
        dictionary=RawFeatures(np.arange(found.n_features)),
        nodes=(node,),
        prior=found.base,
        link=found.link,  # type: ignore[arg-type]
        classes=found.classes,
        notes={"estimator": "imported"},
    )


READERS: dict[str, Callable[[Any], ImportedModel]] = {
    "lightgbm.Booster": boosters.lightgbm_booster,
    "lightgbm.LGBMModel": lambda m: boosters.lightgbm_booster(
        m.booster_, np.asarray(m.classes_) if hasattr(m, "classes_") else None
    ),
    "xgboost.Booster": lambda model: boosters.xgboost_json(boosters.raw_json(model), None),
    "xgboost.XGBModel": boosters.xgboost_model,
    "catboost.CatBoost": boosters.catboost_model,
    "sklearn.BaseHistGradientBoosting": of_sklearn.hist_boosting,
    "sklearn.BaseGradientBoosting": of_sklearn.gradient_boosting,
    "sklearn.BaseForest": of_sklearn.read_forest,
    "sklearn.BaseDecisionTree": of_sklearn.read_forest,
    "sklearn.LogisticRegression": of_sklearn.read_linear,
    "sklearn.LinearModel": of_sklearn.read_linear,
}

"""Plans and menus as MLflow models: the folder holds the plan file as it is, and no pickle."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from miserly import __version__
from miserly.batch import answers
from miserly.plan import Menu, Plan, read_model

FILE = "model.miserly"
NO_BUDGET = -1.0  # what a parameter of MLflow says that must have a value


class MlflowModel:
    """What `mlflow.pyfunc.load_model` wraps.

    Parameters
    ----------
    model : Plan or Menu
        What predicts.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> from miserly.integrations import MlflowModel
    >>> from miserly.plan import Node, Plan, RawFeatures
    >>> plan = Plan(ms.CostTable.per_feature({"age": 2.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.0])
    >>> MlflowModel(plan).columns(np.array([[40.0]]))
    {'prediction': array([40.]), 'cost': array([2.]), 'stopped': ['answered']}
    """

    def __init__(self, model: Plan | Menu) -> None:
        self.model = model

    def columns(self, rows: Any, budget: float | None = None, mean_budget: float | None = None) -> dict[str, Any]:
        """Predictions, costs, reasons and probabilities of some rows.

        Parameters
        ----------
        rows : frame, array or list of dicts
            The values.
        budget : float, optional
            The most that a row may cost.
        mean_budget : float, optional
            What rows may cost in the mean, for menus.
        """
        plan, cap = self.model, budget
        if isinstance(plan, Menu):
            choice = plan.choose(budget, mean_budget)
            plan, cap = choice.plan, choice.cap
        return answers(plan, _Rows(rows), cap, proba=True, id_name="")

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """The same as a pandas frame; `params` are `budget` and `mean_budget`.

        Parameters
        ----------
        model_input : frame, array or list of dicts
            The values.
        params : mapping, optional
            Limits; negative ones are none.
        """
        import pandas as pd

        given = {name: value for name, value in (params or {}).items() if value is not None and value >= 0}
        return pd.DataFrame(self.columns(model_input, given.get("budget"), given.get("mean_budget")))


class _Rows:
    """Rows as `answers` takes them."""

    qid = ids = None

    def __init__(self, X: Any) -> None:
        self.X = X


def save_mlflow(model: Plan | Menu, path: str | Path, **options: Any) -> None:
    """Save a plan or a menu as an MLflow model, which `mlflow.pyfunc.load_model` reads.

    Parameters
    ----------
    model : Plan or Menu
        What predicts.
    path : str or Path
        The folder to make. To log it to a tracking server, pass the folder to `mlflow.log_artifacts`, or register it.
    **options
        Further arguments of `mlflow.pyfunc.save_model`.

    Examples
    --------
    >>> from miserly.integrations import save_mlflow
    >>> save_mlflow(plan, "triage")  # doctest: +SKIP
    >>> mlflow.pyfunc.load_model("triage").predict(frame, params={"budget": 30.0})  # doctest: +SKIP
    """
    try:
        import mlflow.pyfunc
    except ImportError:
        raise ImportError("An MLflow model needs more: pip install 'miserly[mlflow]'.") from None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, FILE)
        model.save(file)
        mlflow.pyfunc.save_model(
            str(path),
            loader_module="miserly.integrations",
            data_path=str(file),
            **{"signature": _signature(model), "pip_requirements": [f"miserly[mlflow]=={__version__}"], **options},
        )


def load_pyfunc(data_path: str) -> MlflowModel:
    """What MLflow calls with the file that it kept."""
    path = Path(data_path)
    return MlflowModel(read_model((path / FILE if path.is_dir() else path).read_bytes(), data_path))


def _signature(model: Plan | Menu) -> Any:
    """The features that may be looked at, what comes back, and the limits that may be given."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema

    plans = model.plans if isinstance(model, Menu) else [model]
    first = plans[0]
    used = sorted({f for plan in plans for f in plan.used_features})
    kinds = {} if first.schema is None else {column.name: column.kind for column in first.schema.columns}
    inputs = []
    for name in (first.costs.features[f] for f in used):
        kind = "double" if kinds.get(name, "number") == "number" else "string"
        inputs.append(ColSpec(kind, name, required=False))
    outputs = [ColSpec("double", "cost"), ColSpec("string", "stopped")]
    limits = [ParamSpec(name, "double", NO_BUDGET) for name in ("budget", "mean_budget")]
    found = "double"
    if first.classes is not None:
        found = {"b": "boolean", "i": "long", "u": "long", "f": "double"}.get(first.classes.dtype.kind, "string")
        outputs += [ColSpec("double", f"p({c})") for c in first.classes]
    said = (
        ["prediction"]
        if first.classes is not None or first.n_outputs == 1
        else [f"prediction{k}" for k in range(first.n_outputs)]
    )
    outputs = [*(ColSpec(found, name) for name in said), *outputs]
    return ModelSignature(Schema(inputs), Schema(outputs), ParamSchema(limits))

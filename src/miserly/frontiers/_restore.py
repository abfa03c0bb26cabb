"""A fitted estimator as plain data beside its plan, and back: by protocol, for any whose fitted state is `plan_`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from miserly.plan import Plan

FEW = 64
PLAIN_KINDS = "biufUO"


def fitted_state(model: Any) -> dict[str, Any]:
    """The attributes that fit has set (`n_features_in_`, `classes_`, …), as JSON can hold them.

    Numbers and texts, alone or in lists, tuples, dicts and arrays; the plan and all that is not plain is left out.
    """
    state = {}
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_") and name != "plan_":
            try:
                state[name] = _encoded(value)
            except TypeError:
                continue
    return state


def restore(model: Any, plan: Plan, state: Mapping[str, Any]) -> Any:
    """A fitted copy of a model that answers, costs and is asked like the one whose plan and state these are."""
    fitted = clone(model)
    for name, value in state.items():
        setattr(fitted, name, _decoded(value))
    fitted.plan_ = plan
    return fitted


def same_answers(one: Any, two: Any, X: Any) -> bool:
    """Whether two fitted models answer a few rows alike and at the same cost."""
    few = _safe_indexing(X, np.arange(min(FEW, _num_samples(X))))
    try:
        return all(
            np.array_equal(getattr(one, ask)(few), getattr(two, ask)(few)) for ask in ("predict", "predict_cost")
        )
    except (AttributeError, ValueError, TypeError, KeyError):
        return False


def _encoded(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [_encoded(v) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [_encoded(v) for v in value]}
    if isinstance(value, dict):
        return {"dict": [[_encoded(k), _encoded(v)] for k, v in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in PLAIN_KINDS:
        return {"array": _encoded(value.ravel().tolist()), "dtype": value.dtype.str, "shape": list(value.shape)}
    raise TypeError(f"{type(value).__name__} is not plain data")


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "tuple" in value:
        return tuple(_decoded(v) for v in value["tuple"])
    if "dict" in value:
        return {_decoded(k): _decoded(v) for k, v in value["dict"]}
    return np.array(_decoded(value["array"]), np.dtype(value["dtype"])).reshape(value["shape"])

"""Fit one model per point of a grid and measure each on data it was not fitted on."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid

from miserly.frontiers.front import Frontier, Measured, Point
from miserly.metrics import Metric, get_metric

logger = logging.getLogger(__name__)
Progress = Callable[[int, int, Point | None], None]


def frontier(
    model: Any,
    train: Sequence[Any],
    validation: Sequence[Any],
    test: Sequence[Any] | None = None,
    grid: Mapping[str, Any] | None = None,
    metric: str | Metric | None = None,
    name: str | None = None,
    progress: Progress | None = None,
) -> Frontier:
    """Sweep a model over a grid (its own cost axis if none is given). Data sets are (X, y) or (X, y, qid).

    Ctrl-C keeps the points that are done. `progress` is called with (done, of, point) after each.
    """
    train, validation = _data("train", train), _data("validation", validation)
    held_out = _data("test", test) if test is not None else None
    chosen = get_metric(metric or ("accuracy" if is_classifier(model) else "mse"))
    for what, data in (("validation", validation), ("test", held_out)):
        if chosen.grouped and data is not None and data[2] is None:
            raise ValueError(f"{chosen.name} compares the rows of a query: give {what}=(X, y, qid).")
    _check_model(model, chosen)
    combinations = _combinations(model, grid, train[1])
    shared: dict[str, Any] = {}
    if hasattr(model, "prepare") and "max_bins" not in combinations[0]:
        shared["binned"] = model.prepare(train[0])
    by_query = "qid" in signature(model.fit).parameters
    if by_query and train[2] is not None:
        shared["qid"] = train[2]
    if getattr(model, "n_iter_no_change", None) is not None:
        shared["eval_set"] = validation if by_query else validation[:2]
    progress = progress or _on_terminal
    points: list[Point] = []
    try:
        progress(0, len(combinations), None)
        for params in combinations:
            points.append(_point(model, params, train, validation, held_out, chosen, shared))
            progress(len(points), len(combinations), points[-1])
    except KeyboardInterrupt:
        if not points:
            raise
        logger.warning("Interrupted: %d of %d points are kept.", len(points), len(combinations))
    unit = points[0].model.plan_.costs.unit if hasattr(points[0].model, "plan_") else "units"
    complete = len(points) == len(combinations)
    return Frontier(tuple(points), chosen, unit, name or type(model).__name__, complete)


def _point(
    model: Any, params: dict[str, Any], train: Any, validation: Any, test: Any, metric: Metric, shared: dict[str, Any]
) -> Point:
    started = time.perf_counter()
    fitted = clone(model).set_params(**params).fit(train[0], train[1], **shared)
    seconds = time.perf_counter() - started
    measured = [None if data is None else _measure(fitted, data, metric) for data in (validation, test)]
    assert measured[0] is not None
    return Point(params, fitted, measured[0], measured[1], seconds)


def _measure(model: Any, data: tuple[Any, Any, Any], metric: Metric) -> Measured:
    X, y, qid = data
    if metric.input == "proba":
        output = model.predict_proba(X)
    elif metric.input == "score" and hasattr(model, "decision_function"):
        output = model.decision_function(X)
    else:
        output = model.predict(X)
    quality = metric(np.asarray(y), output, qid=qid, classes=getattr(model, "classes_", None))
    return Measured.of(quality, model.predict_cost(X))


def _check_model(model: Any, metric: Metric) -> None:
    """Refuse before hours of fitting what could not be measured afterwards."""
    if not hasattr(model, "predict_cost"):
        raise ValueError(
            f"{type(model).__name__} has no predict_cost(X): the cost of each row, which a frontier needs."
        )
    if metric.input == "proba" and not hasattr(model, "predict_proba"):
        raise ValueError(f"{metric.name} needs probabilities, {type(model).__name__} gives none. Use a classifier.")


def _combinations(model: Any, grid: Mapping[str, Any] | None, y: Any) -> list[dict[str, Any]]:
    """The points of the grid, each checked before the first is fitted."""
    if grid is None:
        if not hasattr(model, "cost_axis") or not hasattr(model, "suggest_grid"):
            raise ValueError(f"{type(model).__name__} declares no cost axis: give grid={{'parameter': [values]}}.")
        grid = {model.cost_axis: clone(model).suggest_grid(y)}
    if not isinstance(grid, Mapping) or not grid or any(np.ndim(v) != 1 or not len(v) for v in grid.values()):
        raise ValueError(f"grid is a dict of lists, as in {{'tradeoff': [0, 1e-3]}}, got {grid!r}.")
    combinations = list(ParameterGrid({k: list(v) for k, v in grid.items()}))
    for params in combinations:
        candidate = clone(model).set_params(**params)
        if hasattr(candidate, "_validate_params"):
            candidate._validate_params()
    return combinations


def _data(name: str, data: Sequence[Any]) -> tuple[Any, Any, Any]:
    if not isinstance(data, (tuple, list)) or len(data) not in (2, 3):
        raise ValueError(f"{name} is (X, y) or (X, y, qid).")
    return data[0], data[1], data[2] if len(data) == 3 else None


def _on_terminal(done: int, of: int, point: Point | None) -> None:
    """A counter on a terminal, nothing elsewhere."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{done}/{of} models" + ("\n" if done == of else ""))
        sys.stderr.flush()

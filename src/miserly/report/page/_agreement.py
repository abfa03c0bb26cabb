"""What must hold before figures are put on one page: runs about the same rows, plans that do what their run tells."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from miserly.costs import CostTable
from miserly.frontiers import Point, figure
from miserly.metrics import Metric
from miserly.report._observed import LabelledRows, Observed
from miserly.report._runs import SavedRun

AGREE = 1e-9


def spelled(point: Point) -> str:
    """A point by its parameters."""
    return ", ".join(f"{name}={figure(value)}" for name, value in point.params.items())


def check_point(point: Point, seen: Observed, metric: Metric) -> None:
    """What a run tells of a model must be what its plan does on the rows."""
    stored = point.validation
    for what, one, other in (
        (metric.name, stored.quality, seen.quality(metric)),
        ("mean cost", stored.cost["mean"], float(seen.cost.mean())),
    ):
        if not math.isclose(one, other, rel_tol=AGREE, abs_tol=AGREE):
            raise ValueError(
                f"The run tells a {what} of {one:.6g} for {spelled(point)}; on its rows its plan has {other:.6g}. "
                "Plans and rows are not of one sweep: make the run again."
            )


def check_runs(runs: Sequence[SavedRun]) -> None:
    """Runs on one page are about the same rows, measured alike, at the same prices."""
    if not runs or not all(run.front.points for run in runs):
        raise ValueError("A page needs a run with at least one model.")
    first, costs = runs[0], _costs(runs[0])
    for run in runs[1:]:
        where = f"'{first.front.name}' and '{run.front.name}'"
        for what, one, other in (
            ("metric", first.front.metric.name, run.front.metric.name),
            ("unit", first.front.unit, run.front.unit),
        ):
            if one != other:
                raise ValueError(f"{where} have another {what}: {one}, {other}. Show them on pages of their own.")
        if costs.features != _costs(run).features or not _same_rows(first.rows, run.rows):
            raise ValueError(f"{where} were measured on other rows. Sweep both with the same validation data.")
        for name, price in _costs(run).prices.items():
            if costs.prices.get(name, price) != price:
                raise ValueError(f"{where} price {name!r} differently: {costs.prices[name]:g}, {price:g}.")


def _costs(run: SavedRun) -> CostTable:
    costs: CostTable = run.front.points[0].model.plan_.costs
    return costs


def _same_rows(one: LabelledRows, other: LabelledRows) -> bool:
    """Labels, queries, and the columns that both know."""
    if not (np.array_equal(one.y, other.y) and np.array_equal(one.query, other.query)):
        return False
    known = ~(np.isnan(one.X).all(axis=0) | np.isnan(other.X).all(axis=0))
    return np.array_equal(one.X[:, known], other.X[:, known], equal_nan=True)

"""A run on disk: what `miserly frontier` and `miserly demo` leave in a folder, and `miserly report` reads.

`run.json` says what was swept and measured, `plans/` holds every model, `rows.npz` the validation rows in the columns
that some model looks at. It is written last, so a folder that has it is whole.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from miserly.frontiers import Frontier, Point
from miserly.frontiers.front import Measured
from miserly.metrics import get_metric
from miserly.plan import Plan, load_plan
from miserly.plan.matrix import as_matrix
from miserly.report.observed import Rows

FORMAT = "miserly-run-1"


@dataclass(frozen=True)
class Kept:
    """A model of which only the plan is left."""

    plan_: Plan


@dataclass(frozen=True, eq=False)
class SavedRun:
    """A sweep with the rows that it was measured on, and the point that was chosen, if any."""

    front: Frontier
    rows: Rows
    chosen: Point | None = None


def as_rows(plan: Plan, validation: Sequence[Any]) -> Rows:
    """Validation data (X, y) or (X, y, qid) as the plan reads them."""
    X, y, *qid = validation
    matrix = as_matrix(X.toarray() if hasattr(X, "toarray") else X, plan.costs.features, plan.costs.named)
    return Rows(matrix, np.asarray(y), np.asarray(qid[0]) if qid and qid[0] is not None else None)


def save_run(front: Frontier, validation: Sequence[Any], folder: str | Path, chosen: Point | None = None) -> SavedRun:
    """Write a sweep and its validation data (X, y) or (X, y, qid) into a folder, which is made if need be."""
    folder = Path(folder)
    if not front.points:
        raise ValueError("A sweep without a single point cannot be kept.")
    if not all(hasattr(point.model, "plan_") for point in front.points):
        raise ValueError("A run keeps models as plans, and some of these have none (no plan_).")
    (folder / "plans").mkdir(parents=True, exist_ok=True)
    (folder / "run.json").unlink(missing_ok=True)
    plans = [point.model.plan_ for point in front.points]
    for number, plan in enumerate(plans):
        plan.save(folder / _name(number))
    rows = as_rows(plans[0], validation)
    used = np.array(sorted({f for plan in plans for f in plan.used_features}), np.int64)
    arrays: dict[str, Any] = {"X": rows.X[:, used], "y": _storable(rows.y), "columns": used}
    if rows.qid is not None:
        arrays["qid"] = _storable(rows.qid)
    np.savez_compressed(folder / "rows.npz", **arrays)
    content = {
        "format": FORMAT,
        "name": front.name,
        "metric": front.metric.name,
        "unit": front.unit,
        "complete": front.complete,
        "chosen": next((i for i, point in enumerate(front.points) if point is chosen), None),
        "points": [
            {
                "plan": _name(number),
                "params": {name: _plain(value) for name, value in point.params.items()},
                "validation": _figures(point.validation),
                "test": None if point.test is None else _figures(point.test),
                "seconds": point.seconds,
            }
            for number, point in enumerate(front.points)
        ],
    }
    (folder / "run.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return SavedRun(front, rows, chosen)


def load_run(folder: str | Path) -> SavedRun:
    """Read a run."""
    folder = Path(folder)
    path = folder / "run.json"
    if not path.is_file():
        raise ValueError(
            f"'{folder}' holds no run (no run.json). Name the --out folder of `miserly frontier` or `miserly demo`."
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']!r}, not {FORMAT!r}")
        points = tuple(_point(folder, record) for record in content["points"])
        front = Frontier(points, get_metric(content["metric"]), content["unit"], content["name"], content["complete"])
        rows = _rows(folder / "rows.npz", points[0].model.plan_)
        chosen = None if content["chosen"] is None else points[content["chosen"]]
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"The run '{folder}' cannot be read: {error}. Make it anew.") from error
    return SavedRun(front, rows, chosen)


def _point(folder: Path, record: dict[str, Any]) -> Point:
    validation, test = (part and Measured(**part) for part in (record["validation"], record["test"]))
    return Point(record["params"], Kept(load_plan(folder / record["plan"])), validation, test, record["seconds"])


def _rows(path: Path, plan: Plan) -> Rows:
    with np.load(path, allow_pickle=False) as kept:
        known = kept["X"]
        X = np.full((len(known), len(plan.costs.features)), np.nan, known.dtype)
        X[:, kept["columns"]] = known
        return Rows(X, kept["y"], kept.get("qid"))


def _storable(values: np.ndarray) -> np.ndarray:
    """Labels or ids as plain text where they are objects: nothing is pickled."""
    return values.astype(str) if values.dtype == object else values


def _name(number: int) -> str:
    return f"plans/{number:03d}.plan"


def _figures(measured: Measured) -> dict[str, Any]:
    return {"quality": measured.quality, "cost": dict(measured.cost)}


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)

"""A run on disk: what `miserly frontier` and `miserly demo` leave in a folder, and `miserly report` reads.

`run.json` says what was swept and measured, `plans/` holds every model, `rows.npz` the validation rows in the columns
that some model looks at. A run is written in the folder `.new` and moved from there, file by file, when it is whole; if
that is cut short, whoever comes next ends it. So a folder holds the old run or the new one, never some of both.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from miserly.files import locked, whole_file, write_whole
from miserly.frontiers import Frontier, Measured, Point
from miserly.metrics import get_metric
from miserly.plan import Plan, as_matrix, load_plan
from miserly.report._observed import LabelledRows

FORMAT = "miserly-run-1"
NEW = ".new"


@dataclass(frozen=True)
class Kept:
    """A model of which only the plan is left."""

    plan_: Plan


@dataclass(frozen=True, eq=False)
class SavedRun:
    """A sweep with the rows that it was measured on, and the point that was chosen, if any.

    Parameters
    ----------
    front : Frontier
        The sweep. In one that was read from disk, models are only their plans.
    rows : LabelledRows
        The validation rows. In a run that was read from disk, columns that no model looks at are NaN.
    chosen : Point or None, default=None
        The chosen point, one of the front's own.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.report import LabelledRows, SavedRun
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = ms.GreedyMiserRegressor(ms.CostTable.per_feature([1.0, 5.0]), n_estimators=5)
    >>> front = ms.frontier(model, (X, X[:, 0]), (X, X[:, 0]), grid={"tradeoff": [0.0, 0.1]})
    >>> run = SavedRun(front, LabelledRows(X, X[:, 0]), chosen=front.points[0])
    >>> run.chosen.params
    {'tradeoff': 0.0}
    """

    front: Frontier
    rows: LabelledRows
    chosen: Point | None = None


def as_rows(plan: Plan, validation: Sequence[Any]) -> LabelledRows:
    """Validation data (X, y) or (X, y, qid) as the plan reads them."""
    X, y, *qid = validation
    matrix = as_matrix(X.toarray() if hasattr(X, "toarray") else X, plan.costs.features, plan.costs.named)
    return LabelledRows(matrix, np.asarray(y), np.asarray(qid[0]) if qid and qid[0] is not None else None)


def save_run(front: Frontier, validation: Sequence[Any], folder: str | Path, chosen: Point | None = None) -> SavedRun:
    """Write a sweep and its validation data into a folder.

    A run that is in the folder already is replaced, once the new one is whole. Labels and queries that are Python
    objects are written as text.

    Parameters
    ----------
    front : Frontier
        The sweep: at least one point, and models with a plan (`plan_`).
    validation : sequence
        (X, y) or (X, y, qid): the data that the sweep was measured on.
    folder : str or Path
        Where to write; made if need be.
    chosen : Point or None, default=None
        The chosen point, one of the front's own.

    Returns
    -------
    SavedRun
        The sweep with the rows as plans read them.

    Raises
    ------
    ValueError
        If the sweep has no point, or a model without a plan.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.report import save_run
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = ms.GreedyMiserRegressor(ms.CostTable.per_feature([1.0, 5.0]), n_estimators=5)
    >>> front = ms.frontier(model, (X, X[:, 0]), (X, X[:, 0]), grid={"tradeoff": [0.0, 0.1]})
    >>> run = save_run(front, (X, X[:, 0]), "run", chosen=front.points[0])
    >>> len(run.rows)
    200
    """
    folder = Path(folder)
    if not front.points:
        raise ValueError("A sweep without a single point cannot be kept.")
    if not all(hasattr(point.model, "plan_") for point in front.candidates):
        raise ValueError("A run keeps models as plans, and some of these have none (no plan_).")
    (folder / "plans").mkdir(parents=True, exist_ok=True)
    with locked(folder / "plans"):
        _take_over(folder)
        try:
            rows = _write(front, validation, folder / NEW, chosen)
        except BaseException:
            shutil.rmtree(folder / NEW, ignore_errors=True)
            raise
        _take_over(folder)
    return SavedRun(front, rows, chosen)


def _write(front: Frontier, validation: Sequence[Any], folder: Path, chosen: Point | None) -> LabelledRows:
    """All files of a run into a new folder, `run.json` last."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "plans").mkdir(parents=True)
    plans = [point.model.plan_ for point in front.candidates]
    for number, plan in enumerate(plans):
        plan.save(folder / _name(number))
    rows = as_rows(plans[0], validation)
    used = np.array(sorted({f for plan in plans for f in plan.used_features}), np.int64)
    arrays: dict[str, Any] = {"X": rows.X[:, used], "y": _storable(rows.y), "columns": used}
    if rows.qid is not None:
        arrays["qid"] = _storable(rows.qid)
    with whole_file(folder / "rows.npz") as file:
        np.savez_compressed(file, **arrays)
    content = {
        "format": FORMAT,
        "name": front.name,
        "metric": front.metric.name,
        "unit": front.unit,
        "complete": front.complete,
        "chosen": next((i for i, point in enumerate(front.candidates) if point is chosen), None),
        "points": [
            {
                "plan": _name(number),
                "params": {name: _plain(value) for name, value in point.params.items()},
                "validation": point.validation.record(),
                "test": None if point.test is None else point.test.record(),
                "seconds": point.seconds,
            }
            for number, point in enumerate(front.candidates)
        ],
    }
    write_whole(folder / "run.json", json.dumps(content, indent=1) + "\n")
    return rows


def _take_over(folder: Path) -> None:
    """Move a new run that is whole into its place, or what is left of it to move; `run.json` last."""
    new = folder / NEW
    if (new / "run.json").exists():
        for path in (*new.glob("plans/*.plan"), *new.glob("rows.npz"), new / "run.json"):
            path.replace(folder / path.relative_to(new))
        shutil.rmtree(new)


def load_run(folder: str | Path) -> SavedRun:
    """Read a run.

    Parameters
    ----------
    folder : str or Path
        What `save_run`, `miserly frontier` or `miserly demo` wrote.

    Returns
    -------
    SavedRun
        The sweep, its rows and the chosen point. Models are only their plans.

    Raises
    ------
    ValueError
        If there is no run in the folder, or it cannot be read.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.report import load_run, save_run
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = ms.GreedyMiserRegressor(ms.CostTable.per_feature([1.0, 5.0]), n_estimators=5)
    >>> front = ms.frontier(model, (X, X[:, 0]), (X, X[:, 0]), grid={"tradeoff": [0.0, 0.1]})
    >>> run = save_run(front, (X, X[:, 0]), "run", chosen=front.points[0])
    >>> load_run("run").chosen.params
    {'tradeoff': 0.0}
    """
    folder = Path(folder)
    if not any((folder / place / "run.json").is_file() for place in (".", NEW)):
        raise ValueError(
            f"'{folder}' holds no run (no run.json). Name the --out folder of `miserly frontier` or `miserly demo`."
        )
    try:
        with locked(folder / "plans"):
            _take_over(folder)
            return _read(folder)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"The run '{folder}' cannot be read: {error}. Make it again.") from error


def _read(folder: Path) -> SavedRun:
    content = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    if content["format"] != FORMAT:
        raise ValueError(f"its format is {content['format']!r}, not {FORMAT!r}")
    points = tuple(_point(folder, record) for record in content["points"])
    front = Frontier(points, get_metric(content["metric"]), content["unit"], content["name"], content["complete"])
    rows = _rows(folder / "rows.npz", points[0].model.plan_)
    return SavedRun(front, rows, None if content["chosen"] is None else points[content["chosen"]])


def _point(folder: Path, record: dict[str, Any]) -> Point:
    validation, test = (part and Measured(**part) for part in (record["validation"], record["test"]))
    return Point(record["params"], Kept(load_plan(folder / record["plan"])), validation, test, record["seconds"])


def _rows(path: Path, plan: Plan) -> LabelledRows:
    with np.load(path, allow_pickle=False) as kept:
        known = kept["X"]
        X = np.full((len(known), len(plan.costs.features)), np.nan, known.dtype)
        X[:, kept["columns"]] = known
        return LabelledRows(X, kept["y"], kept.get("qid"))


def _storable(values: np.ndarray) -> np.ndarray:
    """Labels or ids as plain text where they are objects: nothing is pickled."""
    return values.astype(str) if values.dtype == object else values


def _name(number: int) -> str:
    return f"plans/{number:03d}.plan"


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)

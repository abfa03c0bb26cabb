"""Fit one model per point of a grid and measure each on data it was not fitted on."""

from __future__ import annotations

import logging
import math
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import cache, partial
from inspect import signature
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid

from miserly.boosting import BackendLostError, is_remote
from miserly.frontiers._between import along, beyond, more_points
from miserly.frontiers._constant import baseline, menu_of
from miserly.frontiers._fingerprint import fingerprint
from miserly.frontiers._folds import divide
from miserly.frontiers._front import Frontier, Point
from miserly.frontiers._job import Data, Job, spelled
from miserly.frontiers._store import Store, open_store
from miserly.frontiers._totals import held_out
from miserly.frontiers._workers import WorkerDiedError, bare, points_in_processes
from miserly.metrics import Metric, get_metric

logger = logging.getLogger(__name__)
Progress = Callable[[int, int, Point | None], None]
Grid = list[dict[str, Any]]
WHY_DEAD = "killed, crashed or out of memory (then use fewer n_jobs, or workers with more of it)."


class SweepError(ChildProcessError):
    """A worker process of a sweep died, or its cluster; `frontier` holds the points that are done."""

    def __init__(self, message: str, frontier: Frontier) -> None:
        super().__init__(message)
        self.frontier = frontier


def frontier(
    model: Any,
    train: Sequence[Any],
    validation: Sequence[Any] | None = None,
    test: Sequence[Any] | None = None,
    grid: Mapping[str, Any] | None = None,
    metric: str | Metric | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    n_jobs: int | None = 1,
    store: str | Path | None = None,
    backend: Any = None,
    refine: int = 0,
    cv: int | None = None,
    prices: Any = None,
) -> Frontier:
    """Sweep a model over a grid of settings and measure each on validation rows, or by cross-validation.

    Without a grid the sweep reaches both ends by itself: λ grows until nothing is bought and shrinks until nothing
    changes. The free constant prediction stands beside the models as `baseline`. Ctrl-C keeps the points that are done.

    Parameters
    ----------
    model : estimator
        Any estimator with `predict_cost`. It is cloned for each point.
    train : tuple
        The rows to learn from: (X, y) or (X, y, qid).
    validation : tuple or None, default=None
        The rows to choose on. Without them give `cv`.
    test : tuple, default=None
        Rows that the chosen model is reported on.
    grid : mapping of str to sequence, default=None
        Values by parameter; None takes `model.suggest_grid` for the model's own cost axis.
    metric : str or Metric, default=None
        What is measured; None takes accuracy, mean squared error or NDCG@5, by the kind of model.
    name : str, default=None
        What the frontier is called; None takes the class of the model.
    progress : callable, default=None
        Called with (done, of, point) after each point, in the order in which they are finished.
    n_jobs : int, default=1
        Points that are made at once, each in a process of its own; -1 is one per core.
    store : str or Path, default=None
        A folder that keeps every finished point: the same call continues a killed one.
    backend : object, default=None
        Makes the points on its workers, such as `miserly.distributed.DaskBackend(client)`.
    refine : int, default=0
        How many more points are made where the grid leaves most between two neighbours of the cost axis, 0 or more.
    cv : int or None, default=None
        Divide the training rows into this many folds, 2 or more: each setting is measured on out-of-fold predictions
        and fitted again on all rows. Classes keep their shares, queries stay whole.
    prices : array or frame, or mapping of str to these, default=None
        Measured prices of the training rows, as `fit` takes them; or those of several data sets, as in
        `{"train": P, "validation": Q}`. The cost of a data set with prices is what its rows really paid.

    Returns
    -------
    Frontier
        All points; `choose` picks one under a budget.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = ms.GreedyMiserRegressor(ms.CostTable.per_feature([1.0, 5.0]), n_estimators=5)
    >>> front = ms.frontier(model, (X, X[:, 0]), (X, X[:, 0]), grid={"tradeoff": [0.0, 0.1]})
    >>> len(front.points)
    2
    """
    _check_arguments(n_jobs, backend, refine)
    job = replace(_job(model, train, validation, test, metric, cv), prices=_prices(model, prices))
    if backend is not None and is_remote(job.train[0]):
        raise ValueError("Each worker of a sweep gets all rows: give train as arrays. Or sweep without a backend.")
    combinations = _combinations(model, grid, job.train[1])
    axis = _axis(model, combinations) if refine else ""
    place = nullcontext() if store is None else open_store(store, fingerprint(job, combinations[0]))
    progress = progress or _on_terminal
    points: dict[int, Point] = {}

    def front() -> Frontier:
        done = tuple(points[i] for i in sorted(points))
        return _front(along(done, axis) if refine else done, job, name, len(done) == len(combinations))

    def so_far(kept: Store | None) -> str:
        where = "in the frontier of this error" if kept is None else f"in the store '{store}': call again to go on"
        return f"{len(points)} of {len(combinations)} points are done and {where}."

    def make(numbers: Iterable[int], kept: Store | None) -> None:
        with closing(_points(job, combinations, numbers, n_jobs or 1, kept, backend)) as finished:
            for number, point in finished:
                points[number] = point
                progress(len(points), len(combinations), point)

    with place as kept:
        try:
            progress(0, len(combinations), None)
            make(range(len(combinations)), kept)
            while grid is None and (further := beyond(front().points, getattr(model, "cost_axis", ""))):
                combinations.append(further)
                make([len(combinations) - 1], kept)
            if refine:
                combinations += more_points(front().points, axis, refine)
                make(range(len(points), len(combinations)), kept)
        except KeyboardInterrupt:
            if not points:
                raise
            logger.warning("Interrupted: %d of %d points are kept.", len(points), len(combinations))
        except WorkerDiedError as error:
            lost = " and ".join(spelled(combinations[i]) for i in error.numbers)
            raise SweepError(f"The process at the point {lost} died: {WHY_DEAD} {so_far(kept)}", front()) from error
        except BackendLostError as error:
            raise SweepError(f"The cluster of the sweep was lost. {so_far(kept)}", front()) from error
    return front()


def _front(done: tuple[Point, ...], job: Job, name: str | None, complete: bool) -> Frontier:
    """The points that are done, with the constant and what a menu is made from."""
    unit = done[0].model.plan_.costs.unit if done and hasattr(done[0].model, "plan_") else "units"
    constant = baseline(done[0], job) if done else None
    offer, rows = _offer(done, job, constant), _held_out(done, job)
    return Frontier(done, job.metric, unit, name or type(job.model).__name__, complete, offer, rows, constant)


def _prices(model: Any, prices: Any) -> dict[str, Any]:
    """Measured prices by the name of the data set."""
    if prices is None:
        return {}
    is_named = isinstance(prices, Mapping) and set(prices) <= {"train", "validation", "test"}
    found = dict(prices) if is_named else {"train": prices}
    for name in found:
        method = model.fit if name == "train" else model.predict_cost
        if "prices" not in signature(method).parameters:
            raise ValueError(
                f"{type(model).__name__}.{method.__name__} takes no measured prices. Sweep a greedy miser, or price by "
                "the means."
            )
    return found


def _held_out(points: Sequence[Point], job: Job) -> Any:
    """What the models say of rows that they were not fitted on, for plans that predict classes."""
    models = [point.model for point in points]
    if not all(getattr(getattr(m, "plan_", None), "classes", None) is not None for m in models):
        return None
    if job.validation is None:
        seen = [point.out_of_fold for point in points]
        return seen.__getitem__ if all(rows is not None for rows in seen) else None
    return partial(held_out, models, *job.validation[:2], job.counted)


def _offer(points: Sequence[Point], job: Job, constant: Point | None) -> Any:
    """Makes the menu of a sweep, measured on its validation rows."""
    if job.validation is None or not all(hasattr(point.model, "plan_") for point in points):
        return None
    front = Frontier(tuple(points), job.metric, "", baseline=constant).pareto()
    return cache(partial(menu_of, front, job))


def _check_arguments(n_jobs: Any, backend: Any, refine: Any) -> None:
    """Refuse numbers that mean nothing."""
    if n_jobs is not None and (not isinstance(n_jobs, (int, np.integer)) or isinstance(n_jobs, bool) or n_jobs == 0):
        raise ValueError(f"n_jobs is a number of processes, or -1 for one per core, got {n_jobs!r}.")
    if backend is not None and n_jobs not in (None, 1):
        raise ValueError("n_jobs counts processes of this machine, a backend has workers of its own. Give one of them.")
    if not isinstance(refine, (int, np.integer)) or isinstance(refine, bool) or refine < 0:
        raise ValueError(f"refine is a number of points, 0 or more, got {refine!r}.")


def _points(
    job: Job, grid: Grid, numbers: Iterable[int], n_jobs: int, kept: Store | None, backend: Any
) -> Generator[tuple[int, Point], None, None]:
    """Number and point: first those that are kept already, then the others as they are finished."""
    missing = []
    for number in numbers:
        point = None if kept is None else kept.load(job.model, grid[number])
        if point is None:
            missing.append(number)
        else:
            yield number, point
    for number, point in _made(job, grid, missing, n_jobs, kept, backend):
        if kept is not None:
            kept.save(point, (job.validation or job.train)[0])
        yield number, point


def _made(
    job: Job, grid: Grid, numbers: list[int], n_jobs: int, kept: Store | None, backend: Any
) -> Generator[tuple[int, Point], None, None]:
    if not numbers:
        return
    job = job.prepared(grid[0])
    if backend is not None:
        yield from backend.points(bare(job), grid, numbers)
        return
    n_workers = min(effective_n_jobs(n_jobs), len(numbers))
    if n_workers == 1:
        for number in numbers:
            yield number, job.point(grid[number])
        return
    with tempfile.TemporaryDirectory(prefix=".work-", dir=None if kept is None else kept.folder) as folder:
        yield from points_in_processes(job, grid, numbers, n_workers, Path(folder))


def _job(model: Any, train: Any, validation: Any, test: Any, metric: str | Metric | None, cv: int | None) -> Job:
    """Everything but the grid, checked: refuse before hours of fitting what could not be measured afterwards."""
    train = _data("train", train)
    if (validation is None) == (cv is None):
        raise ValueError("Models are chosen on rows that they have not seen: give either validation=(X, y) or cv=5.")
    validation = None if validation is None else _data("validation", validation)
    held_out = _data("test", test) if test is not None else None
    chosen = get_metric(metric or ("accuracy" if is_classifier(model) else "mse"))
    for what, data in (("train" if cv else "validation", train if cv else validation), ("test", held_out)):
        if chosen.grouped and data is not None and data[2] is None:
            raise ValueError(f"{chosen.name} compares the rows of a query: give {what}=(X, y, qid).")
    if not hasattr(model, "predict_cost"):
        raise ValueError(
            f"{type(model).__name__} has no predict_cost(X): the cost of each row, which a frontier needs."
        )
    if chosen.input == "proba" and not hasattr(model, "predict_proba"):
        raise ValueError(f"{chosen.name} needs probabilities, {type(model).__name__} gives none. Use a classifier.")
    return Job(model, train, validation, held_out, chosen, folds=_folds(model, train, cv))


def _folds(model: Any, train: Data, cv: int | None) -> tuple[Any, ...]:
    """How the training rows are divided; always in the same way."""
    if cv is None:
        return ()
    if not isinstance(cv, (int, np.integer)) or isinstance(cv, bool) or cv < 2:
        raise ValueError(f"cv is a number of folds, 2 or more, got {cv!r}.")
    folds = divide(np.asarray(train[1]), train[2], int(cv), 0, is_classifier(model))
    if len(folds) < 2:
        raise ValueError("There are too few rows, or queries, to divide into folds: give validation=(X, y).")
    return tuple(folds)


def _combinations(model: Any, grid: Mapping[str, Any] | None, y: Any) -> Grid:
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
        if hasattr(candidate, "_parameter_constraints"):
            candidate._validate_params()
    return combinations


def _axis(model: Any, grid: Grid) -> str:
    """The parameter whose values have others between them: the cost axis, or the only one swept."""
    names = [name for name in grid[0] if name == getattr(model, "cost_axis", name)]
    values = [params[name] for params in grid for name in names]
    numbers = [float(v) for v in values if isinstance(v, Real) and 0.0 <= float(v) < math.inf]
    if len(names) != 1 or len(set(numbers)) < 2 or len(numbers) < len(values):
        raise ValueError(
            f"refine looks between values of {getattr(model, 'cost_axis', 'one parameter')}: give at least two in the "
            f"grid, numbers of 0 or more, got {', '.join(grid[0])} with {len(grid)} points."
        )
    return names[0]


def _data(name: str, data: Sequence[Any]) -> Data:
    if not isinstance(data, (tuple, list)) or len(data) not in (2, 3):
        raise ValueError(f"{name} is (X, y) or (X, y, qid).")
    return data[0], data[1], data[2] if len(data) == 3 else None


def _on_terminal(done: int, of: int, point: Point | None) -> None:
    """A counter on a terminal, nothing otherwise."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{done}/{of} models" + ("\n" if done == of else ""))
        sys.stderr.flush()

"""The portfolio: sets of acquisitions, a model on each, policies between them, and mixtures of neighbours."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise

import numpy as np

from miserly._blas import blas_threads
from miserly.auto._active import active_candidates
from miserly.auto._candidates import Scale, TriedPlan, pareto
from miserly.auto._clock import TimeLimit
from miserly.auto._large import LargeData
from miserly.auto._lists import list_candidates
from miserly.auto._parallel import in_parallel
from miserly.auto._policy import StageGraph, StagePolicy
from miserly.auto._search import find_sets
from miserly.auto._stages import StageFitter
from miserly.auto._task import Kind, Rows, Task, choose_metric
from miserly.costs import CostTable

logger = logging.getLogger(__name__)
N_RATES, N_MORE = 7, 25  # rates of a sweep: first ones far apart, then between those that leave most
FEW_ROWS, N_MORE_FEW = 250, 13  # few rows cannot tell many policies apart
LEAST_GAP = 0.03  # in log cost, between neighbours, that is worth another rate
LEAST_STEP = 0.05  # between log rates: a gap that is left then is a jump, which no rate between them fills


def build(task: Task, clock: TimeLimit, large: LargeData | None = None) -> tuple[list[TriedPlan], Scale]:
    """The frontier, and what it was measured with; an interruption or the end of the time keeps what is done. Of large
    data the task has a sample: models of sets on the frontier are learned from all rows at the end."""
    with blas_threads():
        kept, scale = _build(task, clock, large is not None)
        if large is not None:
            with _interruptible(clock):
                large.learn(scale.graph.fitter, _used(kept, scale), clock)
    return kept, scale


def _used(kept: list[TriedPlan], scale: Scale) -> list[int]:
    """The sets at which rows end, those far apart first; of lists all sets."""
    order = scale.graph.order
    if scale.task.kind != "lists":
        order = [order[k] for k in np.unique(np.concatenate([plan.ends for plan in kept]))]
    return _spread(order)


def _build(task: Task, clock: TimeLimit, is_sample: bool) -> tuple[list[TriedPlan], Scale]:
    fitter = StageFitter(task, clock)
    fitter.stage(0)
    sets = [0]
    with _interruptible(clock):
        fitter.choose_shape()
        sets = find_sets(task, fitter, clock)
        clock.report(f"{len(sets)} sets of acquisitions", 0.3)
    with _interruptible(clock):
        if in_parallel(fitter.stage, _spread(sets), len(task.train), _time_is_left(clock, len(sets))) < len(sets):
            logger.info("Time is short: %d of %d sets have a model.", len(fitter.stages), len(sets))
    graph = StageGraph(task, fitter)
    scale = Scale(graph)
    found = scale.singles()
    if task.kind == "lists":
        with _interruptible(clock):
            found = list_candidates(scale, clock)
    elif len(fitter.stages) > 1:
        with _interruptible(clock):
            for loss in _losses(task):
                found += scale.policies(_sweep(graph, loss, clock))
        found += scale.mixtures(found)
        if not is_sample:
            with _interruptible(clock):
                found += active_candidates(scale, clock)
    return pareto(found), scale


def _time_is_left(clock: TimeLimit, n_sets: int) -> Iterator[bool]:
    """Before each set: whether it may be begun. The first two are, whatever the time."""
    for k in range(n_sets):
        yield k < 2 or not clock.over(0.75)
        clock.report(f"{k + 1} of {n_sets} models", 0.3 + 0.4 * (k + 1) / n_sets)


@cache
def compile_kernels(kind: Kind) -> None:
    """Compile what a portfolio runs, on a few rows: the first fit of an environment takes ten seconds and more for it,
    which a time limit must not count. Later calls do nothing."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(np.float64)
    rows = Rows(X, y, np.repeat(np.arange(6), 10) if kind == "lists" else None)
    classes = np.arange(2) if kind == "classes" else None
    metric, _ = choose_metric(kind, y)
    build(Task(kind, rows, None, classes, CostTable.per_feature([1.0, 2.0]), metric, 0), TimeLimit(None))


@contextmanager
def _interruptible(clock: TimeLimit) -> Iterator[None]:
    """Ctrl-C ends the step, not the fit."""
    try:
        yield
    except KeyboardInterrupt:
        clock.interrupt()


def _spread(sets: list[int]) -> list[int]:
    """The sets, those far apart first, so that a short time gives a coarse frontier, not half of one: both ends, then
    the middle, then the quarters."""
    order: list[int] = [sets[-1]]
    step = 1
    while step < len(sets):
        step *= 2
    while step >= 1:
        order += [s for s in sets[::step] if s not in order]
        step //= 2
    return order


def _losses(task: Task) -> list[str]:
    if task.kind != "classes":
        return ["squared"]
    if task.error_costs is not None:
        return ["mistakes", "log"]
    return ["error"] if task.metric.name == "accuracy" else ["log"]


def _sweep(graph: StageGraph, loss: str, clock: TimeLimit) -> list[StagePolicy]:
    """Learned stops over all stages, at rates from the first purchase to the plateau."""
    task, prices = graph.task, graph.prices
    if not (prices > 0).any():
        return []
    n_rates = N_RATES + (N_MORE if len(graph.rows) > FEW_ROWS else N_MORE_FEW)
    least, most = float(prices[prices > 0].min()), float(prices.max())
    start = task.mean_loss(graph.stages[0].oof, loss) or 1.0
    done: list[tuple[float, float, StagePolicy]] = []
    rates = list(np.geomspace(start / least, 2e-3 * start / most, N_RATES))
    if loss == "mistakes":
        rates.insert(0, 1.0)  # tests and mistakes in one unit: their total
    while rates and not clock.over(0.95):
        rate = float(rates.pop(0))
        policy = graph.policy(rate, loss)
        spent = float(graph.paid_by_rows[policy.end_of_all, np.arange(len(graph.rows))].mean())
        done.append((math.log(rate), math.log(max(spent, least / 10)), policy))
        clock.report(f"{len(done)} policies", 0.7 + 0.3 * len(done) / n_rates)
        if not rates and len(done) < n_rates:
            rates = _next_rate(done)
    return [policy for *_, policy in done]


def _next_rate(done: list[tuple[float, float, StagePolicy]]) -> list[float]:
    """The rate half-way between the neighbours whose costs differ most, unless all are close."""
    ordered = sorted(done, key=lambda point: point[0])
    gaps = [
        (abs(a[1] - b[1]) * math.sqrt(b[0] - a[0]), (a[0] + b[0]) / 2)
        for a, b in pairwise(ordered)
        if abs(a[1] - b[1]) > LEAST_GAP and b[0] - a[0] > LEAST_STEP
    ]
    return [math.exp(max(gaps)[1])] if gaps else []

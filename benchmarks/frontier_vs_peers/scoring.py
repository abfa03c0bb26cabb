"""One split: all methods' plans measured on validation and test, frontiers, areas."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.frontier_vs_peers.data import Problem, Split, load
from benchmarks.frontier_vs_peers.frugal import services, strategy_points
from benchmarks.frontier_vs_peers.measure import constant_point, measure_whole, pair_points
from benchmarks.frontier_vs_peers.methods import AUTO, METHODS, Method, Settings, auto_frontier, repriced, usable
from benchmarks.frontier_vs_peers.neural import neural_points
from benchmarks.neural.exchange import METHODS as NEURAL
from miserly.costs import CostTable
from miserly.frontiers._front import Frontier
from miserly.kernels.threads import threads
from miserly.plan import Plan

ALL_PEERS, FRUGAL = "peers: all", "FrugalML"
N_BUDGETS = 120


@dataclass(frozen=True)
class Result:
    """A method's frontier on one split: its area on test and on validation, its steps at `N_BUDGETS` budgets, what its
    cheapest and its dearest point cost, and the CPU seconds of growing it."""

    table: str
    split: int
    method: str
    ours: bool
    area: float
    validation_area: float
    steps: np.ndarray
    ends: tuple[float, float]
    seconds: float
    points: tuple[tuple[float, float, float, float], ...]


def limits(costs: CostTable, n_estimators: int) -> tuple[float, float]:
    """The budgets between which areas are taken: the cheapest acquisition, and everything with all its evaluations."""
    evaluation = float(np.max(costs.evaluation))
    return min(p for p in costs.price_list if p > 0), sum(costs.price_list) + n_estimators * evaluation


def one_split(name: str, number: int, words: tuple[str, ...], n_points: int, python: str | None = None) -> list[Result]:
    """All methods on one split of one data set, under each of its price tables; `python` runs the neural ones."""
    problem = load(name)
    how = Settings(problem.min_samples_leaf, problem.metric, n_points=n_points)
    split = problem.split(number)
    methods = [m for m in usable(METHODS) if not words or any(w in m.name for w in words)]
    results: list[Result] = []
    grown: dict[tuple[object, ...], tuple[list[tuple[Plan, Plan]], float]] = {}
    with threads(1):
        for table, costs in (("flat", problem.flat), ("shared", problem.shared)):
            if costs is not None:
                results += one_table(problem, split, number, methods, how, table, costs, grown, words, python)
    return results


def one_table(
    problem: Problem,
    split: Split,
    number: int,
    methods: list[Method],
    how: Settings,
    table: str,
    costs: CostTable,
    grown: dict[tuple[object, ...], tuple[list[tuple[Plan, Plan]], float]],
    words: tuple[str, ...] = (),
    python: str | None = None,
) -> list[Result]:
    """All methods on one split under one price table; `grown` keeps the plans that another table may use again."""
    low, high = limits(costs, how.n_estimators)
    budgets = np.geomspace(low, high, N_BUDGETS)
    constant = constant_point(split, problem.metric)
    fronts: dict[str, tuple[Frontier, float, bool]] = {}
    for method in methods:
        best: tuple[Frontier, float] | None = None
        for prices in _training_prices(method, problem.flat, costs):
            key = (method.grow, prices)
            if key not in grown:
                started = time.process_time()
                pairs = list(method.grow(split, prices, how))
                grown[key] = pairs, time.process_time() - started
            pairs, seconds = grown[key]
            points = [constant]
            for pair in pairs:
                tried, final = (repriced(plan, costs, method.charge) for plan in pair)
                points += pair_points(tried, final, split, problem.metric)
            front = Frontier(tuple(points), problem.metric, costs.unit, method.name)
            if best is None or front.area(low, high) > best[0].area(low, high):
                best = front, seconds
        assert best is not None
        fronts[method.name] = *best, method.ours
    if not words or any(w in AUTO for w in words):
        started = time.process_time()
        front = auto_frontier(split, costs, problem.is_ranking)
        seconds = time.process_time() - started
        tested = [replace(p, test=measure_whole(p.model.plan_, split.test, problem.metric)) for p in front.points]
        fronts[AUTO] = Frontier(tuple(tested), front.metric, costs.unit, AUTO), seconds, True
    if services(costs) and (not words or any(w in FRUGAL for w in words)):
        started = time.process_time()
        points = [constant, *strategy_points(problem, split, costs)]
        seconds = time.process_time() - started
        fronts[FRUGAL] = Frontier(tuple(points), problem.metric, costs.unit, FRUGAL), seconds, False
    for name in NEURAL if python and not problem.is_ranking else ():
        if not words or any(w in name for w in words):
            points, seconds = neural_points(python, name, split, costs, problem.metric)
            fronts[name] = Frontier((constant, *points), problem.metric, costs.unit, name), seconds, False
    names = [name for name, (*_, is_ours) in fronts.items() if not is_ours]
    if names:
        pooled = tuple(p for name in names for p in fronts[name][0].points)
        seconds = sum(fronts[name][1] for name in names)
        fronts[ALL_PEERS] = Frontier(pooled, problem.metric, costs.unit, ALL_PEERS), seconds, False
    return [
        _result(table, number, name, front, seconds, is_ours, low, high, budgets)
        for name, (front, seconds, is_ours) in fronts.items()
    ]


def _training_prices(method: Method, flat: CostTable, costs: CostTable) -> list[CostTable]:
    """Ours learn from the table itself; the others from flat prices: the published ones and the standalone ones."""
    if method.ours:
        return [costs]
    tables = [CostTable.per_feature({f: table.price([f]) for f in costs.features}) for table in (costs, flat)]
    return list(dict.fromkeys(tables))


def _result(
    table: str,
    number: int,
    name: str,
    front: Frontier,
    seconds: float,
    is_ours: bool,
    low: float,
    high: float,
    budgets: np.ndarray,
) -> Result:
    chosen = front.pareto()
    costs = np.array([p.validation.cost["mean"] for p in chosen])
    quality = np.array([p.on("test").quality for p in chosen])
    steps = quality[np.maximum(0, np.searchsorted(costs, budgets, side="right") - 1)]
    spent = [p.validation.cost["mean"] for p in front.points[1:]]
    points = tuple(
        (p.validation.cost["mean"], p.validation.quality, p.on("test").cost["mean"], p.on("test").quality)
        for p in chosen
    )
    areas = front.area(low, high, on="test"), front.area(low, high)
    return Result(table, number, name, is_ours, *areas, steps, (min(spent), max(spent)), seconds, points)

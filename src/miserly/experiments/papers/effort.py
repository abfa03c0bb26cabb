"""What the papers say of training: how long it takes, and how little the settings matter.

Time is CPU of this machine, one fit each: the miser beside blind boosting of as many trees, Cronus over the same trees.
Settings: the number of stages K of Cronus, the step η of the miser, each beside the value that the figures use. (Cronus
has no ε here: how a count is relaxed is fixed.)
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from miserly import estimators
from miserly.experiments import _methods as methods
from miserly.experiments._claims import Claim, Curves, above, fact
from miserly.experiments._features import used_by
from miserly.experiments._measure import best, figures, staged_figures
from miserly.experiments._parts import LearningProblem
from miserly.experiments._sets import mq2008
from miserly.experiments._study import Bench, Study, StudyResult, compare
from miserly.experiments.papers import cronus

TREES, QUICK_TREES = 1000, 150
AS_FAST = 1.2  # times the CPU of blind boosting
HOUR = 3600.0
STAGES = (5, methods.CRONUS_STAGES, 20)
RATES = (0.05, methods.RATE, 0.2)
EARLY = 0.25  # of the rounds


def training_time(bench: Bench) -> StudyResult:
    """Seconds of single fits, and when the miser buys what is expensive."""
    out = StudyResult()
    for group in bench.ranking("binary", "small"):
        problem = group[0]
        out.uses(problem)
        n_trees = bench.trees(problem, TREES, QUICK_TREES)
        grid = methods.lambdas(bench, problem)
        blind, *misers = (_miser_seconds(bench, problem, n_trees, t) for t in (0.0, *grid))
        share = max(misers) / blind
        out.rows += [{"data": problem.name, "method": "miser", "tradeoff": t, "cpu": s} for t, s in zip(grid, misers)]
        says = "the miser trains as fast as stage-wise regression"
        sees = f"{share:.2f} times its CPU at most, over {len(grid)} λ"
        out.claims.append(fact(problem.name, says, sees, share <= AS_FAST, problem.is_real))
        seconds = _cronus_seconds(bench, problem)
        out.rows.append({"data": problem.name, "method": "Cronus", "cpu": seconds})
        says, sees = "Cronus trains within an hour", f"{seconds:.1f} s of CPU, {len(problem.split.train.y)} rows"
        out.claims.append(fact(problem.name, says, sees, seconds <= HOUR, problem.is_real))
        out.claims.append(_early(bench, problem, n_trees, grid[len(grid) // 3]))
    return out


def _timed(bench: Bench, problem: LearningProblem, what: str, model: Any, **key: Any) -> float:
    """CPU seconds of a second fit: the first compiles what it needs."""

    def make() -> float:
        methods.fitted(model, problem)
        began = time.process_time()
        methods.fitted(model, problem)
        return time.process_time() - began

    return float(bench.record(f"seconds of {what}", problem, make, **key))


def _miser_seconds(bench: Bench, problem: LearningProblem, n_trees: int, tradeoff: float) -> float:
    model = estimators.GreedyMiserRegressor(problem.costs, tradeoff, n_estimators=n_trees, learning_rate=methods.RATE)
    model.set_params(max_depth=methods.DEPTH, min_samples_leaf=problem.min_samples_leaf)
    return _timed(bench, problem, "miser", model, n_trees=n_trees, tradeoff=tradeoff)


def _cronus_seconds(bench: Bench, problem: LearningProblem) -> float:
    trees = cronus.dictionary(bench, problem)
    kind = methods.pick("Cronus", problem, estimators)
    grid = kind(problem.costs).suggest_grid(problem.split.train.y)
    model = kind(problem.costs, float(grid[len(grid) // 3]), methods.CRONUS_STAGES, dictionary=trees)
    return _timed(bench, problem, "Cronus", model, n_trees=cronus.n_trees_of(bench, problem))


def _early(bench: Bench, problem: LearningProblem, n_trees: int, tradeoff: float) -> Claim:
    """Which part of the features of the higher half of prices the miser has bought after a quarter of its rounds."""
    plan = methods.miser_plan(bench, problem, n_trees, tradeoff)
    rounds = range(len(plan.nodes))
    early, whole = used_by(plan, rounds[: max(1, round(EARLY * len(rounds)))]), used_by(plan, rounds)
    prices = list(plan.costs.marginal().values())
    highest = max((prices[f] for f in whole), default=0.0)
    expensive = {f for f in whole if prices[f] >= 0.5 * highest}
    part = len(expensive & early) / max(1, len(expensive))
    says = "the miser extracts expensive features early"
    sees = f"{part:.2f} of the expensive features that it buys are bought in the first quarter of the rounds"
    return fact(problem.name, says, sees, bool(expensive) and part > 0.5, problem.is_real)


def settings(bench: Bench) -> StudyResult:
    """Curves for several values of K and η: each is as good as that of the figures."""
    out = StudyResult()

    def points(problem: LearningProblem) -> dict[str, methods.Points]:
        found = {f"Cronus, K = {k}": _cronus_points(bench, problem, k) for k in STAGES}
        return found | {f"miser, η = {rate}": _miser_points(bench, problem, rate) for rate in RATES}

    def claims(group: list[LearningProblem], curves: Curves) -> list[Claim]:
        asked = []
        for letter, values, used in (("Cronus, K", STAGES, methods.CRONUS_STAGES), ("miser, η", RATES, methods.RATE)):
            for value in values:
                if value != used:
                    pair = f"{letter} = {value}", f"{letter} = {used}"
                    asked.append(above(*pair, curves, group, f"{letter} = {value} is as good as {used}", as_good=True))
        return asked

    group = mq2008(bench.data, "binary", 2 if bench.quick else 5)
    if group:
        compare(out, group, points, partial(claims, group))
    return out


def _cronus_points(bench: Bench, problem: LearningProblem, n_stages: int) -> methods.Points:
    trees, n_trees = cronus.dictionary(bench, problem), cronus.n_trees_of(bench, problem)
    kind = methods.pick("Cronus", problem, estimators)
    chosen = methods.cronus_settings(bench, problem, trees, n_trees=n_trees)

    def one(tradeoff: float) -> methods.Figures:
        model = kind(problem.costs, tradeoff, n_stages, dictionary=trees, **chosen)
        return figures(methods.fitted(model, problem).plan_, problem)

    grid = kind(problem.costs).suggest_grid(problem.split.train.y, 2 * bench.n_points)[:: 2 if bench.quick else 1]
    return [
        bench.record("cronus, stages", problem, partial(one, float(t)), n_stages=n_stages, tradeoff=float(t))
        for t in grid
    ]


def _miser_points(bench: Bench, problem: LearningProblem, rate: float) -> methods.Points:
    """As many trees as make up for the step, the best number of them on validation."""
    n_trees = round(bench.trees(problem, TREES, QUICK_TREES) * methods.RATE / rate)

    def one(tradeoff: float) -> methods.Figures:
        model = estimators.GreedyMiserRegressor(problem.costs, tradeoff, n_estimators=n_trees, learning_rate=rate)
        model.set_params(max_depth=methods.DEPTH, min_samples_leaf=problem.min_samples_leaf)
        plan = methods.fitted(model, problem).plan_
        return best(staged_figures(plan, problem, methods.EVERY)) if plan.nodes else figures(plan, problem)

    return [
        bench.record("miser, step", problem, partial(one, t), rate=rate, n_trees=n_trees, tradeoff=t)
        for t in methods.lambdas(bench, problem)
    ]


STUDIES = (
    Study("training-time", "How long training takes, and when expensive features are bought", training_time),
    Study("settings", "Numbers of stages and steps beside those of the figures", settings),
)

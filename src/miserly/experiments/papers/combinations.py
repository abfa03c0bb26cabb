"""What the papers leave as future work: early exits on the miser's trees, and Cronus, CSCC and CSTC over them.

Each combination stands beside the same method over the trees of blind boosting. The miser's trees are those of two λ
in the middle of its grid, for exits, which are quickly made, those of every λ; their points are pooled, so that the
combination is one curve. Exits go into the trees up to the iteration that is best on validation. For classes, a
"miser cascade" is whole models of the miser, cheapest first, with exits between them. Same data, same splits, points
chosen on validation, differences of areas on test with their 95 % intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from miserly.experiments import _methods as methods
from miserly.experiments._claims import Claim, Curves, above
from miserly.experiments._measure import best
from miserly.experiments._parts import LearningProblem
from miserly.experiments._sets import mq2008, thyroid, yahoo
from miserly.experiments._study import Bench, Study, StudyResult, compare
from miserly.plan import Plan

TREES, QUICK_TREES = 1000, 80
DEPTH, QUICK_DEPTH = 4, 3
MISER, CASCADE = "miser's trees", "miser cascade"


class Grown(NamedTuple):
    """Boosted trees, what they come to as they are added, and what tells them from others."""

    plan: Plan
    trace: methods.Points
    key: dict[str, Any]


Over = Callable[[Bench, LearningProblem, Grown], methods.Points]


def _exits(bench: Bench, problem: LearningProblem, trees: Grown) -> methods.Points:
    return methods.early_exits(bench, problem, methods.at_best(trees.plan, trees.trace), **trees.key)


def _cronus(bench: Bench, problem: LearningProblem, trees: Grown) -> methods.Points:
    plans = methods.cronus_plans(bench, problem, trees.plan, **trees.key)
    return methods.measured(bench, problem, "cronus", plans)


def _cstc(bench: Bench, problem: LearningProblem, trees: Grown) -> methods.Points:
    depth = bench.levels(problem, DEPTH, QUICK_DEPTH)
    plans = methods.graph_plans(bench, problem, "CSTC", trees.plan, max_depth=depth, fine_tune=True, key=trees.key)
    return methods.measured(bench, problem, "cstc", plans)


def _cscc(bench: Bench, problem: LearningProblem, trees: Grown) -> methods.Points:
    plans = methods.graph_plans(bench, problem, "CSCC", trees.plan, n_stages=4, key=trees.key)
    return methods.measured(bench, problem, "cscc", plans)


def _blind(bench: Bench, problem: LearningProblem, n_trees: int) -> Grown:
    plan, trace = methods.blind(bench, problem, n_trees), methods.stagewise(bench, problem, n_trees)
    return Grown(plan, trace, {"n_trees": n_trees})


def _miser(bench: Bench, problem: LearningProblem, n_trees: int, tradeoff: float) -> Grown:
    plan = methods.miser_plan(bench, problem, n_trees, tradeoff)
    trace = methods.miser_trace(bench, problem, n_trees, tradeoff)
    return Grown(plan, trace, {"n_trees": n_trees, "miser": tradeoff})


def _groups(bench: Bench) -> list[tuple[list[LearningProblem], dict[str, Over]]]:
    """Data sets with what can be combined on each: CSCC wants classes, Cronus two of them or grades."""
    n, n_thyroid = (2, 2) if bench.quick else (5, 10)
    graded: dict[str, Over] = {"early exit": _exits, "Cronus": _cronus, "CSTC": _cstc}
    rare: dict[str, Over] = {"early exit": _exits, "Cronus": _cronus, "CSCC": _cscc}
    classes: dict[str, Over] = {"early exit": _exits, "CSCC": _cscc, "CSTC": _cstc}
    found = [
        (mq2008(bench.data, "plain", n), graded),
        ([] if bench.quick else mq2008(bench.data, "binary", n), rare),
        (thyroid(bench.data, n_thyroid), classes),
    ]
    there = [(group, ways) for group, ways in found if group]
    drawn = [yahoo(bench.data, "plain", "small", bench.quick)]
    if bench.wants(drawn[0]) and not (bench.quick and there):
        there.append((drawn, graded))
    return there


def combinations(bench: Bench) -> StudyResult:
    """Each method over blind trees and over the miser's, beside the miser itself."""
    out = StudyResult()
    for group, ways in _groups(bench):
        compare(out, group, partial(_combined, bench, ways), partial(_claims, group, ways))
    return out


def _combined(bench: Bench, ways: dict[str, Over], problem: LearningProblem) -> dict[str, methods.Points]:
    n_trees = bench.trees(problem, TREES, QUICK_TREES)
    stingy = [_miser(bench, problem, n_trees, t) for t in methods.lambdas(bench, problem)]
    some = stingy[1:2] if bench.quick else stingy[2:8:3]
    found = {"miser": [best(trees.trace) for trees in stingy]}
    for way, over in ways.items():
        found[way] = over(bench, problem, _blind(bench, problem, n_trees))
        below = [trees for trees in (stingy if over is _exits else some) if trees.plan.nodes]
        found[f"{way}, {MISER}"] = [point for trees in below for point in over(bench, problem, trees)]
    if not problem.is_ranking:
        models = [methods.at_best(trees.plan, trees.trace) for trees in reversed(stingy) if trees.plan.nodes]
        found[CASCADE] = methods.cascade_with_exits(bench, problem, models, n_trees=n_trees)
    return found


def _claims(group: list[LearningProblem], ways: dict[str, Over], curves: Curves) -> list[Claim]:
    found = []
    if CASCADE in curves:
        found.append(above(CASCADE, "miser", curves, group, f"(future work) {CASCADE}: better than one alone"))
    for way in ways:
        combined = f"{way}, {MISER}"
        if combined in curves:
            better = f"(future work) {combined}: better than the miser alone"
            found += [
                above(combined, way, curves, group, f"(future work) {way} gains from the {MISER}"),
                above(combined, "miser", curves, group, better),
            ]
    return found


STUDIES = (Study("combinations", "Combinations: cascades, trees and exits over the miser's trees", combinations),)

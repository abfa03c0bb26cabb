"""What the papers leave as future work: early exits on the miser's trees, and Cronus, CSCC and CSTC over them.

Each combination stands beside the same method over the trees of blind boosting. The miser's trees are those of some λ
in the middle of its grid; their points are pooled, so that the combination is one curve. Same data, same splits, points
chosen on validation, differences of areas on test with their 95 % intervals.
"""

from __future__ import annotations

from collections.abc import Callable

from miserly.frontiers import Frontier
from miserly.plan import Plan
from miserly.report.panels import FrontierPanel
from miserly.reproduction import methods
from miserly.reproduction.measure import best, curve
from miserly.reproduction.parts import Problem
from miserly.reproduction.sets import mq2008, thyroid, yahoo
from miserly.reproduction.study import Bench, Outcome, Study, above, curve_rows, named

TREES, QUICK_TREES = 1000, 80
Over = Callable[[Bench, Problem, Plan, str], methods.Points]
MISER = "miser's trees"


def _exits(bench: Bench, problem: Problem, trees: Plan, name: str) -> methods.Points:
    return methods.early_exits(bench, problem, trees, over=name)


def _cronus(bench: Bench, problem: Problem, trees: Plan, name: str) -> methods.Points:
    plans = methods.cronus_plans(bench, problem, trees, over=name)
    return methods.measured(bench, problem, "cronus", plans)


def _cstc(bench: Bench, problem: Problem, trees: Plan, name: str) -> methods.Points:
    plans = methods.graph_plans(bench, problem, "CSTC", trees, max_depth=3, key={"over": name})
    return methods.measured(bench, problem, "cstc", plans)


def _cscc(bench: Bench, problem: Problem, trees: Plan, name: str) -> methods.Points:
    plans = methods.graph_plans(bench, problem, "CSCC", trees, n_stages=4, key={"over": name})
    return methods.measured(bench, problem, "cscc", plans)


def _groups(bench: Bench) -> list[tuple[list[Problem], dict[str, Over]]]:
    """Data sets with what can be combined on each: CSCC wants classes, Cronus two of them or grades."""
    n = 2 if bench.quick else 5
    graded: dict[str, Over] = {"early exit": _exits, "Cronus": _cronus, "CSTC": _cstc}
    rare: dict[str, Over] = {"early exit": _exits, "Cronus": _cronus, "CSCC": _cscc}
    classes: dict[str, Over] = {"early exit": _exits, "CSCC": _cscc, "CSTC": _cstc}
    drawn = [] if bench.quick else [([yahoo(bench.data, "plain", "small", bench.quick)], graded)]
    found = [
        (mq2008(bench.data, "plain", n), graded),
        ([] if bench.quick else mq2008(bench.data, "binary", n), rare),
        (thyroid(bench.data, n), classes),
        *drawn,
    ]
    there = [(group, ways) for group, ways in found if group]
    return there or [([yahoo(bench.data, "plain", "small", bench.quick)], graded)]


def combinations(bench: Bench) -> Outcome:
    """Each method over blind trees and over the miser's, beside the miser itself."""
    out, n_trees = Outcome(), bench.trees(TREES, QUICK_TREES)
    for group, ways in _groups(bench):
        out.uses(group[0])
        curves: dict[str, list[Frontier]] = {}
        for problem in group:
            grid = methods.lambdas(bench, problem)
            some = grid[1:2] if bench.quick else grid[2:8:2]
            stingy = {f"λ = {t:.3g}": methods.miser_plan(bench, problem, n_trees, t) for t in some}
            found = {"miser": [best(methods.miser_trace(bench, problem, n_trees, t)) for t in grid]}
            for way, over in ways.items():
                found[way] = over(bench, problem, methods.blind(bench, problem, n_trees), f"blind {n_trees}")
                found[f"{way}, {MISER}"] = [
                    point
                    for name, plan in stingy.items()
                    for point in (over(bench, problem, plan, f"miser {n_trees} {name}") if plan.nodes else [])
                ]
            for name, points in found.items():
                if points:
                    curves.setdefault(name, []).append(curve(name, problem, points))
        out.panels.append(FrontierPanel(group[0].key, [fronts[0] for fronts in curves.values()]))
        out.rows += named(curve_rows(curves), group[0].name)
        for way in ways:
            combined = f"{way}, {MISER}"
            if combined in curves:
                says = f"(future work) {way} gains from the {MISER}"
                out.claims += [
                    above(combined, way, curves, group, says),
                    above(combined, "miser", curves, group, f"(future work) {combined}: better than the miser alone"),
                ]
    return out


STUDIES = (Study("combinations", "Combinations: cascades, trees and exits over the miser's trees", combinations),)

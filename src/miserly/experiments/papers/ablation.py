"""What each of our departures from the papers does: a method as it is, with one parameter as published, with all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from miserly.experiments import _methods as methods
from miserly.experiments._claims import Claim, Curves, above
from miserly.experiments._parts import LearningProblem
from miserly.experiments._published import PUBLISHED, single_departures
from miserly.experiments._sets import mq2008, thyroid
from miserly.experiments._study import Bench, Study, StudyResult, compare
from miserly.experiments.papers import cronus

DEPTH = 3
METHODS: dict[str, Callable[[Bench, LearningProblem], methods.Points]] = {
    "CSTC": lambda bench, problem: methods.measured(
        bench, problem, "cstc", methods.graph_plans(bench, problem, "CSTC", None, max_depth=DEPTH)
    ),
    "Cronus": lambda bench, problem: cronus.points_of(bench, problem, "optimised"),
    "ASTC": lambda bench, problem: methods.astc(bench, problem, DEPTH),
}


def ablation(bench: Bench) -> StudyResult:
    """CSTC and ASTC over raw features, Cronus over trees."""
    out, n = StudyResult(), (2 if bench.quick else 5)
    for stem, measure in METHODS.items():
        group = mq2008(bench.data, "binary", n) if stem == "Cronus" else thyroid(bench.data, n)
        ways = {stem: {}, **single_departures(stem), f"{stem}, as published": {stem: PUBLISHED[stem]}}

        def points(problem: LearningProblem, ways=ways, measure=measure) -> dict[str, methods.Points]:
            return {name: measure(bench.reverting(way), problem) for name, way in ways.items()}

        if group:
            compare(out, group, points, partial(_claims, group, stem))
    return out


def _claims(group: list[LearningProblem], stem: str, curves: Curves) -> list[Claim]:
    return [above(stem, name, curves, group) for name in curves if name != stem]


STUDIES = (Study("ablation", "Our departures from the papers, one at a time", ablation),)

"""Trees and cascades of classifiers among themselves, over raw features and over stumps.

The papers compare them over boosted trees; here each also weighs raw features, and stumps of cost-blind boosting, each
round of which is grown on 3 of 10 features, so that a learner costs what one feature costs. "Single" is a CSTC of one
node. Data: ann-thyroid with a shared blood draw, MQ2008 with shared field reads and with flat prices, the rarest class
of covertype, draws of a skewed ranking set.
"""

from __future__ import annotations

from functools import partial

from miserly.experiments import _methods as methods
from miserly.experiments._claims import Claim, Curves, above
from miserly.experiments._parts import LearningProblem
from miserly.experiments._sets import covertype_rare, mq2008, thyroid, yahoo_draws
from miserly.experiments._study import Bench, Study, StudyResult, compare

TREES, QUICK_TREES = 100, 60
DEPTH, QUICK_DEPTH = 3, 2
SHARE_OF_FEATURES = 0.3
STAGES, QUICK_STAGES = 5, 3
BOOSTING, MISER = "boosting", "Greedy Miser"
ABOVE = (
    ("CSTC, raw", "single, raw"),
    ("CSTC, raw", "cost-weighted l1"),
    ("CSTC, stumps", "single, stumps"),
    ("CSTC, stumps", BOOSTING),
    ("CSCC", "CSCC initialised"),
    ("CSCC", "Cronus optimised"),
    ("Cronus initialised", "Cronus single"),
    ("Cronus optimised", "Cronus initialised"),
    ("Cronus optimised", BOOSTING),
    ("Cronus optimised", "early exit"),
    ("CSTC, raw", MISER),
    ("CSTC, stumps", MISER),
)


def family(bench: Bench) -> StudyResult:
    """Each method of the family beside what it is said to improve on."""
    out, n = StudyResult(), (2 if bench.quick else 5)
    groups = [
        thyroid(bench.data, 2 * n),
        mq2008(bench.data, "plain", n),
        mq2008(bench.data, "plain", n, flat=True),
        covertype_rare(bench.data, n, bench.quick),
        yahoo_draws(min(n, 4), bench.quick),
    ]
    for group in groups:
        if group and bench.wants(group[0]):
            compare(out, group, partial(_points, bench), partial(_claims, group))
    return out


def _points(bench: Bench, problem: LearningProblem) -> dict[str, methods.Points]:
    n_trees = bench.trees(problem, TREES, QUICK_TREES)
    depth = bench.levels(problem, DEPTH, QUICK_DEPTH)
    stumps = methods.blind(bench, problem, n_trees, max_depth=1, max_features=SHARE_OF_FEATURES, random_state=0)
    key = {"dictionary": "stumps", "n_trees": n_trees}
    found: dict[str, methods.Points] = {}
    for name, trees in (("raw", None), ("stumps", stumps)):
        for stem, levels in (("single", 1), ("CSTC", depth)):
            more = {} if trees is None else {"key": key}
            plans = methods.graph_plans(bench, problem, "CSTC", trees, max_depth=levels, **more)
            found[f"{stem}, {name}"] = methods.measured(bench, problem, "cstc", plans)
        found[f"ASTC, {name}"] = methods.astc(bench, problem, depth, trees)
    found["cost-weighted l1"] = methods.weighted_l1(bench, problem)
    if not problem.is_graded:
        stages = QUICK_STAGES if bench.quick else STAGES
        for name, params in (("CSCC initialised", {"max_iter": 0}), ("CSCC", {})):
            plans = methods.graph_plans(bench, problem, "CSCC", stumps, n_stages=stages, key=key, **params)
            found[name] = methods.measured(bench, problem, "cscc", plans)
    if problem.is_ranking:
        ways: tuple[methods.Way, ...] = ("single", "initialised", "optimised")
        for way in ways:
            plans = methods.cronus_plans(bench, problem, stumps, way, **key)
            found[f"Cronus {way}"] = methods.measured(bench, problem, "cronus", plans)
    found[BOOSTING] = methods.stagewise(bench, problem, n_trees)
    exits = methods.best_blind(bench, problem, n_trees)
    found["early exit"] = methods.early_exits(bench, problem, exits, n_trees=n_trees)
    found[MISER] = methods.miser(bench, problem, n_trees)
    return found


def _claims(group: list[LearningProblem], curves: Curves) -> list[Claim]:
    asked = [(a, b) for a, b in ABOVE if a in curves and b in curves]
    return [above(a, b, curves, group, f"(ours) {a} is above {b}" if b == MISER else "") for a, b in asked]


STUDIES = (Study("family", "Trees and cascades of classifiers, over raw features and over stumps", family),)

"""Trees and cascades of classifiers (Xu, thesis 2014, chapter 3): figures 3.4 to 3.9.

Protocol: 3.4 four quadrants. 3.5, 3.7, 3.9 graded documents as they come (the balanced set), NDCG@5, 3000 boosted trees
as the dictionary, CSTC's depth pruned on validation from at most 10. 3.6, 3.8 the skewed set: relevant or not, the
irrelevant ten times, precision@5; CSCC and Cronus with at most ten nodes, AND-OR with five stages, AdaBoostRS as the
mean of ten draws. The thesis's λ (1/3 … 6) have a unit that it does not tell; ours are the suggested grid.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from miserly.datasets import four_quadrants
from miserly.estimators import CSTCRegressor
from miserly.experiments import _methods as methods
from miserly.experiments._claims import Claim, Curves, above, fact
from miserly.experiments._features import lines_by_price, shares_by_price, used_by
from miserly.experiments._parts import LearningProblem
from miserly.experiments._study import Bench, Study, StudyResult, compare
from miserly.experiments.papers import cronus
from miserly.plan import EXIT, Plan
from miserly.report import LinePanel, TablePanel

TREES, QUICK_TREES = 3000, 80
DEPTH, QUICK_DEPTH = 10, 3
N_QUADRANTS = 1000
SEEDS, QUICK_SEEDS = range(100, 120), range(100, 103)
SIMILAR = 0.135


# ---- four quadrants -----------------------------------------------------------------------------------------------


def figure_3_4(bench: Bench) -> StudyResult:
    """The tree of the four quadrants: two cheap questions, then the one expensive column that holds the target."""
    out, seeds = StudyResult(), QUICK_SEEDS if bench.quick else SEEDS
    found = [bench.record("quadrants", None, partial(_quadrants, s), seed=s) for s in seeds]
    out.rows = [{"seed": s, "cost": cost, "test_mse": mse} for s, (cost, mse) in zip(seeds, found)]
    good = sum(cost <= 12.5 and mse < 0.05 for cost, mse in found)
    out.claims = [
        fact(
            "four_quadrants",
            "no test error at the optimal cost of 12",
            f"cost at most 12.5 and error below 0.05 on {good} of {len(found)} seeds; median cost "
            f"{np.median([c for c, _ in found]):.2f}, error {np.median([e for _, e in found]):.1e}",
            good >= 0.9 * len(found),
            True,
        )
    ]
    costs = [cost for cost, _ in found]
    errors = {"test error": (costs, [max(e, 1e-9) for _, e in found])}
    out.panels = [LinePanel("one point per seed", "mean cost", "test error", errors)]
    return out


def _quadrants(seed: int) -> tuple[float, float]:
    """Chosen on validation within 12.5, among the suggested λ; read on other rows."""
    data = four_quadrants(3 * N_QUADRANTS, seed)
    train, validation, test = (slice(i * N_QUADRANTS, (i + 1) * N_QUADRANTS) for i in range(3))
    models = CSTCRegressor(data.costs).path(data.X[train], data.y[train])
    within = [m for m in models if m.predict_cost(data.X[validation]).mean() <= 12.5]

    def error(model: CSTCRegressor, rows: slice) -> float:
        return float(np.mean((model.predict(data.X[rows]) - data.y[rows]) ** 2))

    best = min(within, key=lambda m: error(m, validation))
    return float(best.predict_cost(data.X[test]).mean()), error(best, test)


# ---- the curves ---------------------------------------------------------------------------------------------------


def cstc_plans(bench: Bench, problem: LearningProblem, depth: int | None = None, fine_tune: bool = True) -> list[Plan]:
    """CSTC over λ and the trees of blind boosting."""
    n_trees = bench.trees(problem, TREES, QUICK_TREES)
    depth = depth or bench.levels(problem, DEPTH, QUICK_DEPTH)
    trees = methods.blind(bench, problem, n_trees)
    key = {"n_trees": n_trees}
    return methods.graph_plans(bench, problem, "CSTC", trees, max_depth=depth, fine_tune=fine_tune, key=key)


def _cstc(bench: Bench, problem: LearningProblem, **how: Any) -> methods.Points:
    return methods.measured(bench, problem, "cstc", cstc_plans(bench, problem, **how))


def cscc_plans(bench: Bench, problem: LearningProblem) -> list[Plan]:
    """CSCC over λ and the trees of blind boosting."""
    trees, n_trees = cronus.dictionary(bench, problem), cronus.n_trees_of(bench, problem)
    stages = 4 if bench.quick else methods.CSCC_STAGES
    return methods.graph_plans(
        bench, problem, "CSCC", trees, n_stages=stages, class_weight="balanced", key={"n_trees": n_trees}
    )


def figure_3_5(bench: Bench) -> StudyResult:
    """Balanced data: the tree beside one classifier, Cronus, early exits and blind boosting."""
    out = StudyResult()

    def points(problem: LearningProblem) -> dict[str, methods.Points]:
        n_trees = bench.trees(problem, TREES, QUICK_TREES)
        exits = methods.best_blind(bench, problem, n_trees)
        return {
            "stage-wise regression": methods.stagewise(bench, problem, n_trees),
            "single classifier": _cstc(bench, problem, depth=1),
            "early exit": methods.early_exits(bench, problem, exits, n_trees=n_trees),
            "Cronus": cronus.points_of(bench, problem, "optimised"),
            "CSTC without fine-tuning": _cstc(bench, problem, fine_tune=False),
            "CSTC": _cstc(bench, problem),
        }

    def claims(group: list[LearningProblem], curves: Curves) -> list[Claim]:
        pairs = [*(("CSTC", name) for name in curves if name != "CSTC"), ("single classifier", "stage-wise regression")]
        return [above(a, b, curves, group) for a, b in pairs]

    for group in bench.ranking("plain", "small"):
        compare(out, group, points, partial(claims, group))
    return out


def figure_3_6(bench: Bench) -> StudyResult:
    """Skewed data: CSCC beside the other cascades and the tree."""
    out = StudyResult()

    def points(problem: LearningProblem) -> dict[str, methods.Points]:
        n_trees = cronus.n_trees_of(bench, problem)
        trees, exits = cronus.dictionary(bench, problem), methods.best_blind(bench, problem, n_trees)
        drawn, deviations = methods.adaboost_rs(bench, problem, n_trees)
        out.rows += [
            {"data": problem.key, "method": "AdaBoostRS, deviation over draws", "test_cost": cost, "test": quality}
            for cost, quality in deviations
        ]
        return {
            "AdaBoostRS": drawn,
            "AND-OR": methods.tiered(bench, problem, "AndOr", trees, n_trees=n_trees),
            "early exit": methods.early_exits(bench, problem, exits, n_trees=n_trees),
            "CSTC": _cstc(bench, problem),
            "Cronus": cronus.points_of(bench, problem, "optimised"),
            "CSCC": methods.measured(bench, problem, "cscc", cscc_plans(bench, problem)),
        }

    def claims(group: list[LearningProblem], curves: Curves) -> list[Claim]:
        pairs = [("CSCC", name) for name in ("Cronus", "CSTC", "AND-OR", "AdaBoostRS", "early exit")]
        return [above(a, b, curves, group) for a, b in (*pairs, ("Cronus", "CSTC"))]

    for group in bench.ranking("binary", "small"):
        compare(out, group, points, partial(claims, group))
    return out


# ---- what is looked at --------------------------------------------------------------------------------------------


def depths(plan: Plan) -> list[list[int]]:
    """The nodes of a tree or a cascade by their depth."""
    depth = dict.fromkeys(plan.roots, 0)
    for k, node in enumerate(plan.nodes):
        for way in node.ways:
            if way != EXIT:
                depth[way] = depth[k] + 1
    return [[k for k in depth if depth[k] == d] for d in range(max(depth.values(), default=-1) + 1)]


def _by_depth(plan: Plan) -> list[dict[float, float]]:
    """Shares of the features of each price that are used down to each depth."""
    levels = depths(plan)
    return [
        shares_by_price(plan, used_by(plan, [k for level in levels[: d + 1] for k in level]))
        for d in range(len(levels))
    ]


def _features(out: StudyResult, problem: LearningProblem, name: str, plan: Plan) -> list[dict[float, float]]:
    shares = _by_depth(plan)
    lines = lines_by_price(plan, shares, [d + 1 for d in range(len(shares))])
    out.panels.append(LinePanel(f"{name}, {problem.name}", "depth", "fraction of used features", lines))
    out.rows += [
        {"method": name, "depth": d + 1, "price": price, "share": share}
        for d, by_price in enumerate(shares)
        for price, share in by_price.items()
    ]
    return shares


def figure_3_7(bench: Bench) -> StudyResult:
    """Balanced data: features by price and depth, of CSTC and Cronus."""
    out = StudyResult()
    problem = bench.ranking("plain", "small")[0][0]
    out.uses(problem)
    tree = cronus.middle(cstc_plans(bench, problem))
    cascade = cronus.middle(cronus.plans_of(bench, problem, "optimised"))
    for name, plan in (("CSTC", tree), ("Cronus", cascade)):
        out.claims += cronus.order_of_prices(problem, name, _features(out, problem, name, plan))
    expensive = max(out.rows, key=lambda row: row["price"])["price"]
    always = all(row["share"] > 0 for row in out.rows if row["price"] == expensive)
    out.claims.append(
        fact(
            problem.name,
            "the one feature of price 200 is extracted at all depths",
            f"{'it is' if always else 'it is not'} (the highest price: {expensive:g})",
            always,
            problem.is_real,
        )
    )
    return out


def figure_3_8(bench: Bench) -> StudyResult:
    """Skewed data: features by price and depth, of CSCC, AND-OR and Cronus at similar precision."""
    out = StudyResult()
    problem = bench.ranking("binary", "small")[0][0]
    out.uses(problem)
    trees, n_trees = cronus.dictionary(bench, problem), cronus.n_trees_of(bench, problem)
    sweeps = {
        "CSCC": (cscc_plans(bench, problem), methods.measured(bench, problem, "cscc", cscc_plans(bench, problem))),
        "AND-OR": (
            methods.tiered_plans(bench, problem, "AndOr", trees, n_trees=n_trees),
            methods.tiered(bench, problem, "AndOr", trees, n_trees=n_trees),
        ),
        "Cronus": (cronus.plans_of(bench, problem, "optimised"), cronus.points_of(bench, problem, "optimised")),
    }
    reach = min(max(p[1] for p in points) for _, points in sweeps.values())
    goal = SIMILAR if not problem.stand_in else 0.95 * reach
    for name, (plans, points) in sweeps.items():
        near = min(range(len(plans)), key=lambda i: (abs(points[i][1] - goal), i))
        shares = _features(out, problem, name, plans[near])
        at_once = bool(shares) and cronus.uses_expensive(shares[0])
        expected = name != "AND-OR"
        out.claims.append(
            fact(
                problem.name,
                f"{name} {'extracts' if expected else 'cannot extract'} features of 100 and more at its first node",
                f"{'it does' if at_once else 'it does not'} (precision@5 {points[near][1]:.3f} on validation)",
                at_once == expected,
                problem.is_real,
            )
        )
    return out


def figure_3_9(bench: Bench) -> StudyResult:
    """The average grade at each node of the tree, and how many features its leaves share (Jaccard)."""
    out = StudyResult()
    for group in bench.ranking("plain", "small"):
        problem = group[0]
        out.uses(problem)
        plan = max(cstc_plans(bench, problem), key=lambda p: (len(p.nodes), sum(len(n.learners) for n in p.nodes)))
        part = problem.split.test
        last = plan.run(part.X).exit[:, 0]
        leaves = [k for k, node in enumerate(plan.nodes) if node.passed == EXIT or node.failed == EXIT]
        means = {k: float(part.y[last == k].mean()) for k in leaves if (last == k).any()}
        order = sorted(means, key=lambda k: -means[k])
        used = {k: used_by(plan, [k]) for k in order}
        shared = np.array([[_jaccard(used[a], used[b]) for b in order] for a in order]).reshape(len(order), len(order))
        names = [f"v{k} ({means[k]:.2f})" for k in order]
        out.panels.append(TablePanel(f"{problem.name}: leaves by mean grade, shared features", names, shared))
        out.rows += [
            {"data": problem.name, "leaf": a, "other": b, "mean_grade": means[a], "shared": shared[i, j]}
            for i, a in enumerate(order)
            for j, b in enumerate(order)
        ]
        gap = np.abs(np.subtract.outer(range(len(order)), range(len(order))))
        off = [float(shared[gap == d].mean()) for d in range(1, len(order))]
        falls = len(off) > 1 and off[-1] <= off[0]
        out.claims.append(
            fact(
                problem.name,
                "leaves share fewer features the further their average labels are apart (the most different 64 %)",
                "mean share by distance: " + ", ".join(f"{v:.2f}" for v in off) if off else "one leaf only",
                falls,
                problem.is_real,
            )
        )
    return out


def _jaccard(a: set[int], b: set[int]) -> float:
    return len(a & b) / len(a | b) if a | b else math.nan


STUDIES = (
    Study("thesis-3.4", "Thesis, figure 3.4: CSTC on four quadrants", figure_3_4),
    Study("thesis-3.5", "Thesis, figure 3.5: CSTC on balanced data", figure_3_5),
    Study("thesis-3.6", "Thesis, figure 3.6: CSCC on skewed data", figure_3_6),
    Study("thesis-3.7", "Thesis, figure 3.7: features by price and depth, balanced", figure_3_7),
    Study("thesis-3.8", "Thesis, figure 3.8: features by price and depth, skewed", figure_3_8),
    Study("thesis-3.9", "Thesis, figure 3.9: grades and shared features of the leaves", figure_3_9),
)

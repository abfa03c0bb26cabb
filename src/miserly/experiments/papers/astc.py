"""ASTC (Kusner et al., AAAI 2014): figure 3 and tables 1 and 2.

Protocol: raw features, trees of at most five levels. Figure 3: precision@5 on the binary Yahoo! set, accuracy on
Forest, CIFAR and MiniBooNE with every feature at a price of 1, beside CSTC and the cost-weighted l1 classifier. Tables:
a CSTC tree for several λ; what each of its nodes newly buys is that node's budget in ASTC; CPU time of both fits.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from miserly.costs import set_bits, total_price
from miserly.estimators import ASTCClassifier, CSTCClassifier
from miserly.experiments import _methods as methods
from miserly.experiments._claims import Claim, Curves, above, fact
from miserly.experiments._parts import LearningProblem
from miserly.experiments._sets import covertype, own_table, yahoo
from miserly.experiments._study import Bench, Study, StudyResult, compare
from miserly.plan import EXIT, Plan

DEPTH, QUICK_DEPTH = 5, 3
N_TIMED = 5
PLAIN: dict[str, Any] = {"penalty": 0.0, "l2_regularization": 0.0, "threshold": "half"}


def groups(bench: Bench) -> list[list[LearningProblem]]:
    """The data sets that are there: a list of splits for each."""
    singles = [
        covertype(bench.data, bench.quick),
        own_table(bench.data, "cifar", "cifar.csv", 400, bench.quick),
        own_table(bench.data, "miniboone", "MiniBooNE_PID.txt", 50, bench.quick),
    ]
    return [*bench.ranking("binary", "small"), *([p] for p in singles if p is not None)]


def figure_3(bench: Bench) -> StudyResult:
    """ASTC, hard and soft, beside CSTC and one cost-weighted l1 classifier."""
    out = StudyResult()

    def points(problem: LearningProblem) -> dict[str, methods.Points]:
        depth = bench.levels(problem, DEPTH, QUICK_DEPTH)
        plans = methods.graph_plans(bench, problem, "CSTC", None, max_depth=depth)
        return {
            "cost-weighted l1": methods.weighted_l1(bench, problem),
            "CSTC": methods.measured(bench, problem, "cstc raw", plans),
            "ASTC": methods.astc(bench, problem, depth),
            "ASTC, soft": methods.astc(bench, problem, depth, soft=True),
        }

    def claims(group: list[LearningProblem], curves: Curves) -> list[Claim]:
        return [
            above("ASTC", "CSTC", curves, group, "ASTC is as good as CSTC", as_good=True),
            above("ASTC, soft", "CSTC", curves, group, "ASTC is as good as CSTC (soft)", as_good=True),
            above("ASTC", "cost-weighted l1", curves, group),
            above("CSTC", "cost-weighted l1", curves, group),
        ]

    for group in groups(bench):
        compare(out, group, points, partial(claims, group))
    return out


# ---- tables 1 and 2 -----------------------------------------------------------------------------------------------


def node_budgets(plan: Plan) -> dict[int, float]:
    """What each node of a tree over raw features buys beyond what the way there owns.

    The children of k are 2k + 1 (where rows pass) and 2k + 2.
    """
    budgets: dict[int, float] = {}
    waiting = [(root, 0, 0) for root in plan.roots]
    while waiting:
        k, number, owned = waiting.pop()
        node, wanted = plan.nodes[k], 0
        for learner in node.learners:
            wanted |= plan.costs.feature_masks[int(learner)]
        budgets[number] = total_price(plan.costs.price_list[a] for a in set_bits(wanted & ~owned))
        for side, way in enumerate((node.passed, node.failed)):
            if way != EXIT:
                waiting.append((way, 2 * number + 1 + side, owned | wanted))
    return budgets


def _seconds(model: Any, problem: LearningProblem) -> float:
    began = time.process_time()
    methods.fitted(model, problem)
    return time.process_time() - began


def _speed(problem: LearningProblem, depth: int, tradeoff: float) -> dict[str, float]:
    """CPU seconds of CSTC and of ASTC at the same budgets of each node."""
    slow = CSTCClassifier(problem.costs, tradeoff, depth)
    seconds = _seconds(slow, problem)
    given: dict[str, Any] = {"node_budget": node_budgets(slow.plan_), "max_depth": depth, **PLAIN}
    cost = float(slow.predict_cost(problem.split.test.X[:2000]).mean())
    hard, soft = (_seconds(ASTCClassifier(problem.costs, soft=s, **given), problem) for s in (False, True))
    return {"cost": cost, "cstc": seconds, "astc": hard, "soft": soft}


def _table(bench: Bench, problems: list[LearningProblem | None]) -> StudyResult:
    out, depth = StudyResult(), QUICK_DEPTH if bench.quick else DEPTH
    for problem in problems:
        if problem is None:
            continue
        out.uses(problem)
        grid = CSTCClassifier(problem.costs).suggest_grid(problem.split.train.y, 24)
        some = grid[np.linspace(4, 20, 3 if bench.quick else N_TIMED).round().astype(int)]
        _seconds(ASTCClassifier(problem.costs, 1.0, depth), problem)  # what is compiled is loaded
        found = [
            bench.record("speed", problem, partial(_speed, problem, depth, float(t)), tradeoff=float(t), depth=depth)
            for t in some
        ]
        found = [f for f in found if f["cost"] > 0]
        out.rows += [{"data": problem.name, **f} for f in found]
        faster = [f["cstc"] / f["astc"] for f in found]
        shown = ", ".join(f"{r:.1f}× at {f['cost']:.0f}" for r, f in zip(faster, found))
        out.claims.append(
            fact(
                problem.name,
                "ASTC trains several times faster than CSTC at the same budgets",
                shown or "CSTC bought nothing",
                bool(faster) and min(faster) > 1,
                problem.is_real,
            )
        )
    return out


def table_1(bench: Bench) -> StudyResult:
    """Speed on Yahoo! and Forest (the paper: 119× to 6.6×, and 8.4× to 1.4×)."""
    drawn_or_own = yahoo(bench.data, "binary", "small", bench.quick)
    return _table(bench, [drawn_or_own if bench.wants(drawn_or_own) else None, covertype(bench.data, bench.quick)])


def table_2(bench: Bench) -> StudyResult:
    """Speed on CIFAR and MiniBooNE (the paper: 5.6× to 0.14×, and 7.4× to 4.1×)."""
    own = [
        own_table(bench.data, "cifar", "cifar.csv", 400, bench.quick),
        own_table(bench.data, "miniboone", "MiniBooNE_PID.txt", 50, bench.quick),
    ]
    return _table(bench, own)


STUDIES = (
    Study("astc-3", "ASTC, figure 3: beside CSTC and a weighted l1 classifier", figure_3),
    Study("astc-table-1", "ASTC, table 1: faster than CSTC, Yahoo! and Forest", table_1),
    Study("astc-table-2", "ASTC, table 2: faster than CSTC, CIFAR and MiniBooNE", table_2),
)

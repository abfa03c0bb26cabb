"""The Greedy Miser (Xu, Weinberger, Chapelle, ICML 2012): figures 1 and 2, on graded documents.

Protocol: documents of grade 0 count ten times, in test data too; squared loss of the grades, step 0.1, trees of eight
leaves, 3000 of them; for each λ the iteration that is best on validation; NDCG@5. Stage-wise regression is λ = 0; its
subsets are the features of prices up to 1, 20, 100, 200; early exits every ten trees by proximity to the fifth best;
Cronus has ten stages and is tuned on validation. Figure 1 left is on the whole set, right on the small one.
Figure 3 (Scene-15) is in `scenes`.
"""

from __future__ import annotations

from functools import partial

from miserly.experiments import _methods as methods
from miserly.experiments._claims import Claim, Curves, above, fact, factor
from miserly.experiments._features import lines_by_price, shares_by_price, used_by
from miserly.experiments._measure import best, cost_share, curve
from miserly.experiments._parts import LearningProblem
from miserly.experiments._study import Bench, Study, StudyResult, compare, curve_rows, named
from miserly.report import LinePanel

LAMBDAS = (1 / 16, 1 / 4, 1 / 2, 1.0, 2.0, 4.0)
SUBSETS = (1.0, 20.0, 100.0, 200.0)
TREES, QUICK_TREES = 3000, 150
DICTIONARY_TREES, QUICK_DICTIONARY = 3000, 80
SLACK = 0.01


def figure_1_left(bench: Bench) -> StudyResult:
    """Traces of the miser as trees are added, for several λ, and the best iteration of each."""
    out = StudyResult()
    for group in bench.ranking("graded", "large"):
        problem = group[0]
        out.uses(problem)
        n_trees = bench.trees(problem, TREES, QUICK_TREES)
        traces = {"stage-wise (λ = 0)": methods.stagewise(bench, problem, n_trees)}
        for lam in methods.lambdas(bench, problem, LAMBDAS):
            traces[f"miser λ = {lam:.2g}"] = methods.miser_trace(bench, problem, n_trees, lam)
        chosen = [best(points) for points in traces.values()]
        lines = {name: ([p[2] for p in points], [p[3] for p in points]) for name, points in traces.items()}
        rings = [p[2] for p in chosen], [p[3] for p in chosen]
        out.panels.append(LinePanel(problem.name, "test-time cost", "NDCG@5", lines, rings))
        out.rows += named(curve_rows({n: [curve(n, problem, p)] for n, p in traces.items()}), problem.name)
        out.claims.append(_gradual(problem, chosen))
    return out


def _gradual(problem: LearningProblem, chosen: list) -> Claim:
    """That cost falls drastically while quality drops gently: a third of the cost for at most 2 % of the quality."""
    expensive = chosen[0]
    cheap = [p for p in chosen[1:] if p[3] >= 0.98 * expensive[3]]
    share = min((p[2] / expensive[2] for p in cheap), default=1.0)
    return fact(
        problem.name,
        "as λ grows NDCG@5 drops very gradually, the cost drastically",
        f"98 % of the NDCG@5 of λ = 0 at {share:.2f} of its cost",
        share <= 1 / 3,
        problem.is_real,
    )


def figure_1_right(bench: Bench) -> StudyResult:
    """The trade-off beside prior work."""
    out = StudyResult()

    def points(problem: LearningProblem) -> dict[str, methods.Points]:
        n_trees = bench.trees(problem, TREES, QUICK_TREES)
        exits = methods.best_blind(bench, problem, n_trees)
        return {
            "stage-wise regression": methods.stagewise(bench, problem, n_trees),
            "feature subsets": methods.subsets(bench, problem, n_trees, _subset_prices(problem)),
            "early exit": methods.early_exits(bench, problem, exits, n_trees=n_trees),
            "Cronus optimised": cronus(bench, problem),
            "Greedy Miser": methods.miser(bench, problem, n_trees, LAMBDAS),
        }

    def claims(group: list[LearningProblem], curves: Curves) -> list[Claim]:
        found = []
        full = [best(methods.stagewise(bench, p, bench.trees(p, TREES, QUICK_TREES))) for p in group]
        for name, goal in (("Greedy Miser", 0.10), ("Cronus optimised", 0.25), ("early exit", 0.50)):
            shares = [cost_share(front, ref, SLACK) for front, ref in zip(curves[name], full)]
            found.append(factor(name, shares, goal, group, SLACK))
        return found + [above("Greedy Miser", n, curves, group) for n in curves if n != "Greedy Miser"]

    for group in bench.ranking("graded", "small"):
        compare(out, group, points, partial(claims, group))
    return out


def cronus(bench: Bench, problem: LearningProblem) -> methods.Points:
    """Cronus optimised over the trees of blind boosting."""
    n_trees = bench.trees(problem, DICTIONARY_TREES, QUICK_DICTIONARY)
    trees = methods.blind(bench, problem, n_trees)
    plans = methods.cronus_plans(bench, problem, trees, n_trees=n_trees)
    return methods.measured(bench, problem, "cronus", plans)


def _subset_prices(problem: LearningProblem) -> tuple[float, ...]:
    if problem.tiers is not None:
        return SUBSETS
    prices = sorted(set(problem.costs.marginal().values()))
    return tuple(prices[round(i * (len(prices) - 1) / 3)] for i in range(4))


def figure_2(bench: Bench) -> StudyResult:
    """Which part of the features of each price the miser uses at its best iteration, as λ grows."""
    out = StudyResult()
    problem = bench.ranking("graded", "large")[0][0]
    out.uses(problem)
    n_trees = bench.trees(problem, TREES, QUICK_TREES)
    grid = methods.lambdas(bench, problem, LAMBDAS)
    plans = [methods.blind(bench, problem, n_trees), *(methods.miser_plan(bench, problem, n_trees, t) for t in grid)]
    traces = [
        methods.stagewise(bench, problem, n_trees),
        *(methods.miser_trace(bench, problem, n_trees, t) for t in grid),
    ]
    shares = []
    for plan, trace in zip(plans, traces):
        kept = (trace.index(best(trace)) + 1) * methods.EVERY
        shares.append(shares_by_price(plan, used_by(plan, range(min(kept, len(plan.nodes))))))
    out.panels.append(
        LinePanel(problem.name, "λ, from 0", "fraction of used features", lines_by_price(plans[0], shares, [0, *grid]))
    )
    out.rows = [
        {"lambda": lam, "price": price, "share": share}
        for lam, by_price in zip([0.0, *grid], shares)
        for price, share in by_price.items()
    ]
    expensive, cheap = max(shares[0]), min(shares[0])
    middle = len(shares) // 2
    out.claims = [
        fact(
            problem.name,
            "the one feature of price 200 is extracted at every λ",
            f"price {expensive:g}, the highest: used at {sum(s[expensive] > 0 for s in shares)} of {len(shares)} λ",
            all(s[expensive] > 0 for s in shares),
            problem.is_real,
        ),
        fact(
            problem.name,
            "cheap features (price 1) stay as λ grows, expensive ones (20 and more) go",
            f"from λ = 0 to the middle λ: price {cheap:g} {shares[0][cheap]:.2f} → {shares[middle][cheap]:.2f}, "
            f"price 20 to 150 {_expensive(shares[0]):.2f} → {_expensive(shares[middle]):.2f}",
            shares[middle][cheap] / max(shares[0][cheap], 1e-9)
            > _expensive(shares[middle]) / max(_expensive(shares[0]), 1e-9),
            problem.is_real,
        ),
    ]
    return out


def _expensive(shares: dict[float, float]) -> float:
    some = [share for price, share in shares.items() if 20 <= price <= 150]
    return sum(some) / max(1, len(some))


STUDIES = (
    Study("miser-1-left", "Greedy Miser, figure 1 left: more trees, several λ", figure_1_left),
    Study("miser-1-right", "Greedy Miser, figure 1 right: beside prior work", figure_1_right),
    Study("miser-2", "Greedy Miser, figure 2: features by price as λ grows", figure_2),
)

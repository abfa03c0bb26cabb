"""What the papers say of the family, asked of the results: paired differences on test with their intervals."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.family.methods import BOOSTING, TREE
from benchmarks.frontier_vs_peers.data import Problem
from benchmarks.frontier_vs_peers.scoring import ALL_OURS, ALL_PEERS, N_BUDGETS, Result
from miserly.experiments import interval

ABOVE = (
    ("CSTC, raw", "single, raw"),
    ("CSTC, raw", "CostWeightedL1"),
    ("CSTC, trees", "single, trees"),
    ("CSTC, trees", BOOSTING),
    ("CSCC", "CSCC initialised"),
    ("CSCC", "Cronus optimised"),
    ("Cronus initialised", "Cronus single stage"),
    ("Cronus optimised", "Cronus initialised"),
    ("Cronus optimised", BOOSTING),
    ("Cronus optimised", "early exit"),
)
POOLS = {ALL_OURS, ALL_PEERS}
LESS = 0.001
N_SHOWN = 5


class Chosen(NamedTuple):
    """A point of a frontier: mean cost and quality on validation, where it was chosen, and on test."""

    validation_cost: float
    validation_quality: float
    test_cost: float
    test_quality: float


def print_above(problem: Problem, results: Sequence[Result], low: float, high: float) -> None:
    """Pairs of which the papers put the first above the second: difference of areas, and of test quality by budget."""
    names = {r.method for r in results}
    budgets = np.geomspace(low, high, N_BUDGETS)
    shown = np.linspace(0, N_BUDGETS - 1, N_SHOWN + 2).round().astype(int)[1:-1]
    print(f"\n{problem.name}: the first less the second; areas, then {problem.metric.name} within a budget")
    print(f"  {'':<44}{'area':>17}" + "".join(f"{budgets[i]:>17.3g}" for i in shown))
    for first, second in ABOVE:
        if {first, second} <= names:
            of = {n: sorted((r for r in results if r.method == n), key=lambda r: r.split) for n in (first, second)}
            cells = [np.array([a.area - b.area for a, b in zip(of[first], of[second])])]
            cells += [np.array([a.steps[i] - b.steps[i] for a, b in zip(of[first], of[second])]) for i in shown]
            text = ("{:+.4f} ± {:.4f}".format(*interval(cell, problem.overlap)) for cell in cells)
            print(f"  {first + ' − ' + second:<44}" + "".join(f"{t:>17}" for t in text))


def print_tree(problem: Problem, results: Sequence[Result]) -> None:
    """Ours against the plain tree charged by path: accuracy at its cost, and cost at the accuracy of the best blind
    model less 0.1 point."""
    blind = {BOOSTING, TREE}
    everything = {r.method for r in results} - {TREE, BOOSTING} - POOLS
    family = {name for name in everything if name.startswith(("ASTC", "CSTC", "CSCC", "single"))}
    splits = sorted({r.split for r in results})
    for label, names in (("all of ours", everything), ("the family alone", family)):
        at_cost, spent, costs = [], [], []
        for split in splits:
            mine, tree = (_front(results, split, of) for of in (names, {TREE}))
            best = _best(tree)
            found = _within(mine, best.validation_cost)
            at_cost.append(found.test_quality - best.test_quality)
            spent.append((found.test_cost, best.test_cost))
            goal = _best(_front(results, split, blind)).validation_quality - LESS
            reached = [_cheapest(front, goal) for front in (mine, tree, _front(results, split, {BOOSTING}))]
            costs.append([math.nan if p is None else p.test_cost for p in reached])
        mean, half = interval(np.array(at_cost), problem.overlap)
        print(f"\n{problem.name}: {label}, chosen on validation, against the plain tree by path at its best")
        ours, theirs = np.mean(spent, axis=0)
        print(
            f"  accuracy within the tree's mean cost: {mean:+.4f} ± {half:.4f} (not below: {_yes(mean + half >= 0)}); "
            f"on test ours cost {ours:.2f}, the tree {theirs:.2f}"
        )
        table = np.array(costs)
        print("  mean cost at the accuracy of the best blind model less 0.1 point (reached on validation in n splits):")
        for name, column in zip((label, "plain tree by path", "boosting"), table.T):
            n = int(np.isfinite(column).sum())
            print(f"    {name:<20} n = {n:2d}   " + (f"{np.nanmean(column):.2f}" if n else "–"))
        for name, column in zip(("plain tree by path", "boosting"), table.T[1:]):
            mine, other = (np.nan_to_num(c, nan=math.inf) for c in (table[:, 0], column))
            print(f"    {label} against {name}, which counts as more expensive where it does not come there: ", end="")
            print(f"cheaper in {(mine < other).sum()} splits, more expensive in {(mine > other).sum()}")
            both = np.isfinite(column) & np.isfinite(table[:, 0])
            if both.sum() > 1:
                mean, half = interval((table[:, 0] - column)[both], problem.overlap)
                cheaper = _yes(mean + half < 0)
                print(f"    {label} − {name}: {mean:+.2f} ± {half:.2f} over {both.sum()} (cheaper: {cheaper})")


def _front(results: Sequence[Result], split: int, names: Collection[str]) -> list[Chosen]:
    points = (Chosen(*p) for r in results if r.split == split and r.method in names for p in r.points)
    return sorted(set(points))


def _within(front: list[Chosen], budget: float) -> Chosen:
    affordable = [p for p in front if p.validation_cost <= budget]
    return max(affordable, key=lambda p: (p.validation_quality, -p.validation_cost))


def _best(front: list[Chosen]) -> Chosen:
    return _within(front, math.inf)


def _cheapest(front: list[Chosen], quality: float) -> Chosen | None:
    return min((p for p in front if p.validation_quality >= quality), default=None)


def _yes(holds: bool) -> str:
    return "yes" if holds else "NO"

"""`python -m benchmarks.frontier_vs_frugalml [SET:SPLIT ...]`: the default call against FrugalML's strategy and the
best single service, at budgets from 5 % to 100 % of the price of all calls."""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.frontier_vs_peers.data import load
from benchmarks.frontier_vs_peers.frugal import services, strategy_points
from benchmarks.frontier_vs_peers.methods import auto_frontier, joined_rows
from miserly.kernels.threads import threads

SHARES = (0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
CASES = [f"{name}:{split}" for name in ("yelp", "expw", "waimai", "command") for split in range(4)]


def one_case(name: str, number: int) -> None:
    """Print the accuracies on test at each budget; each method chooses on rows that are not test."""
    problem = load(name)
    split, costs = problem.split(number), problem.flat
    rows, test = joined_rows(split), split.test
    front = auto_frontier(split, costs, is_ranking=False)
    found = [
        (p.validation.cost["mean"], p.validation.quality, p.on("test").quality)
        for p in strategy_points(problem, split, costs)
    ]
    singles = []
    for service in services(costs):
        column = costs.features.index(f"{service}_label")
        right = [float(np.mean(part.X[:, column] == part.y)) for part in (rows, test)]
        singles.append((costs.price([f"{service}_label"]), *right))
    lines = []
    print(f"\n{name}, split {number}\n{'budget':>10}{'ours':>9}{'cost':>9}{'FrugalML':>10}{'single':>9}")
    for share in SHARES:
        budget = share * sum(costs.price_list)
        chosen = front.choose(budget=budget)
        ours = float(np.mean(chosen.predict(test.X) == test.y))
        theirs, single = (_best(points, budget) for points in (found, singles))
        lines.append((ours - theirs, ours - single))
        spent = float(np.mean(chosen.predict_cost(test.X)))
        print(f"{budget:10.3f}{ours:9.4f}{spent:9.3f}{theirs:10.4f}{single:9.4f}")
    frugal, single = np.array(lines).T
    print(
        f"less FrugalML: mean {frugal.mean():+.4f}, least {frugal.min():+.4f}; less single: least {single.min():+.4f}"
    )


def _best(points: list[tuple[float, float, float]], budget: float) -> float:
    """The quality on test of the point that is best on other rows within a budget; 0 if there is none."""
    return max((p for p in points if p[0] <= budget), key=lambda p: p[1], default=(0.0, 0.0, 0.0))[2]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=CASES, metavar="SET:SPLIT")
    with threads(1):
        for case in parser.parse_args().cases:
            one_case(case.split(":")[0], int(case.split(":")[1]))

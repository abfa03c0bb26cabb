"""FrugalML's strategy, from its description: a base service, then for some answers one further service.

Call a base service; if its confidence is below the threshold of its label, call one further service and take its label.
Base, thresholds and further services maximise training accuracy less λ · mean cost; between two neighbours on the hull
rows are drawn with a probability, so that any mean cost in between is reached.
"""

from __future__ import annotations

import numpy as np

from benchmarks.frontier_vs_peers.data import Part, Problem, Split
from benchmarks.frontier_vs_peers.methods import joined_rows
from miserly.costs import CostTable
from miserly.frontiers import Measured, Point

N_THRESHOLDS, N_RATES, N_MIXED = 12, 40, 6


def services(costs: CostTable) -> list[str]:
    """The names of services: what has a label and a confidence."""
    return [a for a in costs.acquisitions if f"{a}_label" in costs.features and f"{a}_confidence" in costs.features]


def strategy_points(problem: Problem, split: Split, costs: CostTable) -> list[Point]:
    """The points of the strategy, learned from all rows that are not test, and measured on them and on test."""
    names = services(costs)
    rows = joined_rows(split)
    rates = np.geomspace(1e-5, 1.0, N_RATES) / min(p for p in costs.price_list if p > 0)
    found = []
    for base in names:
        for rate in [0.0, *rates]:
            rules = _rules(rows, costs, names, base, rate)
            parts = [_followed(part, costs, base, rules) for part in (rows, split.test)]
            found.append(tuple((float(right.mean()), float(cost.mean())) for right, cost in parts))
    hull: list[tuple[tuple[float, float], tuple[float, float]]] = []
    for point in sorted(set(found), key=lambda p: (p[0][1], -p[0][0])):
        if hull and point[0][0] <= hull[-1][0][0]:
            continue
        while len(hull) > 1 and _slope(hull[-2][0], hull[-1][0]) <= _slope(hull[-1][0], point[0]):
            hull.pop()
        hull.append(point)
    points = []
    for a, b in zip(hull, [*hull[1:], hull[-1]]):
        for share in np.linspace(0, 1, N_MIXED, endpoint=False):
            mixed = [tuple((1 - share) * u + share * v for u, v in zip(p, q)) for p, q in zip(a, b)]
            measured = [Measured.of(q, np.array([c])) for q, c in mixed]
            points.append(Point({}, None, measured[0], measured[1], 0.0))
    return points


def _slope(a: tuple[float, float], b: tuple[float, float]) -> float:
    return (b[0] - a[0]) / max(b[1] - a[1], 1e-300)


def _columns(part: Part, costs: CostTable, name: str) -> tuple[np.ndarray, np.ndarray]:
    at = {f: k for k, f in enumerate(costs.features)}
    return part.X[:, at[f"{name}_label"]], part.X[:, at[f"{name}_confidence"]]


def _rules(part: Part, costs: CostTable, names: list[str], base: str, rate: float) -> dict[float, tuple[float, str]]:
    """For each label of the base its threshold and further service, where one pays."""
    label, sure = _columns(part, costs, base)
    right = label == part.y
    rules = {}
    for value in np.unique(label):
        here = label == value
        best = 0.0
        for other in names:
            if other == base:
                continue
            gain = (_columns(part, costs, other)[0] == part.y).astype(float) - right
            price = costs.price([f"{other}_label"])
            for threshold in np.unique(np.quantile(sure[here], np.linspace(0, 1, N_THRESHOLDS)[1:])):
                who = here & (sure <= threshold)
                worth = float((gain[who] - rate * price).sum())
                if worth > best:
                    best, rules[float(value)] = worth, (float(threshold), other)
    return rules


def _followed(
    part: Part, costs: CostTable, base: str, rules: dict[float, tuple[float, str]]
) -> tuple[np.ndarray, np.ndarray]:
    label, sure = _columns(part, costs, base)
    final, cost = label.copy(), np.full(len(label), costs.price([f"{base}_label"]))
    for value, (threshold, other) in rules.items():
        who = (label == value) & (sure <= threshold)
        final[who] = _columns(part, costs, other)[0][who]
        cost[who] += costs.price([f"{other}_label"])
    return final == part.y, cost

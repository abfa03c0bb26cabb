"""Where a sweep looks next: between the neighbours that have most between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any

from miserly.frontiers._front import Point

ZERO = 0.1  # of the least value above it: where a value of 0 stands on a logarithmic axis
STEP_OUT = 4.0  # factor between the ends of a sweep and the next point beyond them
FURTHEST = 1e12  # between the smallest and the largest λ: then something is bought whatever it costs
PLATEAU = 1.02  # ratio of the costs of neighbours up to which a smaller λ changes nothing
NOTHING = 1 / 3  # of the least cost above it: where a cost of 0 stands


def between(lines: Sequence[Sequence[tuple[float, float]]], n: int) -> list[tuple[int, float]]:
    """The n best places for more points on lines of points (place, height): line and place of each.

    Most is between two neighbours whose places and whose heights differ most, as a product, so that a mere jump is not
    pursued for ever. A point goes half-way, and is taken to be half as high: each half has a quarter between its ends.
    """
    gaps = [
        (abs(a[1] - b[1]) * (b[0] - a[0]), number, a[0], b[0])
        for number, line in enumerate(lines)
        for a, b in pairwise(sorted(line))
    ]
    found: list[tuple[int, float]] = []
    while len(found) < n and gaps and max(gaps)[0] > 0:
        gap = max(gaps)
        width, number, low, high = gap
        gaps.remove(gap)
        middle = (low + high) / 2
        gaps += [(width / 4, number, low, middle), (width / 4, number, middle, high)]
        found.append((number, middle))
    return found


def more_points(points: Sequence[Point], axis: str, n: int) -> list[dict[str, Any]]:
    """Parameters of n more points: other values of `axis`, beside each setting of the others, in logarithms of the
    value and of the mean cost. Fewer, where costs do not differ, or no whole number is left between whole numbers."""
    lines = _lines(points, axis)
    values = [point.params[axis] for point in points]
    costs = [point.validation.cost["mean"] for point in points]
    least = [min((v for v in these if v > 0), default=1.0) for these in (values, costs)]
    places = [
        [
            (
                math.log(point.params[axis] or ZERO * least[0]),
                math.log(point.validation.cost["mean"] or NOTHING * least[1]),
            )
            for point in line
        ]
        for line in lines
    ]
    whole = all(isinstance(v, Integral) for v in values)
    taken = [{point.params[axis] for point in line} for line in lines]
    found = []
    for k, place in between(places, n):
        value = round(math.exp(place)) if whole else math.exp(place)
        if value not in taken[k]:
            taken[k].add(value)
            found.append({**lines[k][0].params, axis: value})
    return found


def beyond(points: Sequence[Point], axis: str) -> dict[str, Any] | None:
    """Parameters of one more point beyond the ends of a sweep of λ: a larger value while something is still bought, a
    smaller one while that still buys more; None if both ends are reached."""
    if axis != "tradeoff" or any([*point.params] != [axis] for point in points):
        return None
    ordered = sorted((point for point in points if point.params[axis] > 0), key=lambda point: point.params[axis])
    if len(ordered) < 2 or ordered[-1].params[axis] > FURTHEST * ordered[0].params[axis]:
        return None
    costs = [point.validation.cost["mean"] for point in ordered]
    if costs[-1] > 0:
        return {axis: STEP_OUT * ordered[-1].params[axis]}
    if costs[0] > PLATEAU * costs[1]:
        return {axis: ordered[0].params[axis] / STEP_OUT}
    return None


def along(points: Sequence[Point], axis: str) -> tuple[Point, ...]:
    """The points with later ones beside their neighbours, in the direction of the first ones."""
    ordered: list[Point] = []
    for line in _lines(points, axis):
        falls = len(line) > 1 and bool(line[1].params[axis] < line[0].params[axis])
        ordered += sorted(line, key=lambda point: point.params[axis], reverse=falls)
    return tuple(ordered)


def _lines(points: Sequence[Point], axis: str) -> list[list[Point]]:
    """The points by their other parameters."""
    lines: dict[str, list[Point]] = {}
    for point in points:
        others = {name: value for name, value in point.params.items() if name != axis}
        lines.setdefault(repr(others), []).append(point)
    return list(lines.values())

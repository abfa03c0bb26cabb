"""The neural peers on one split: trained in an environment of their own, their points measured here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.frontier_vs_peers.data import Part, Split
from benchmarks.frontier_vs_peers.measure import measured_answer
from benchmarks.neural.exchange import Way, points, ways_of
from miserly.costs import CostTable
from miserly.frontiers import Point
from miserly.metrics import Metric

EARLY = 0.1  # share of all rows that are not test by which the second training is stopped


def neural_points(
    python: str, method: str, split: Split, costs: CostTable, metric: Metric, again: bool = True
) -> tuple[list[Point], float]:
    """Points chosen on validation, and the CPU seconds of training. With `again` the tested model is trained a second
    time, on all rows that are not test, as the other methods are; otherwise it is the first one."""
    classes = np.unique(np.concatenate([split.train.y, split.validation.y]))
    train, validation = (_coded(part, classes) for part in (split.train, split.validation))
    tested = [validation[0]] if again else [validation[0], split.test.X]
    ways, seconds = ways_of(python, method, train, validation, tested, costs)
    if again:
        X, y = (np.concatenate(both) for both in zip(train, validation))
        kept, early = train_test_split(np.arange(len(y)), test_size=EARLY, random_state=0)
        more, spent = ways_of(python, method, (X[kept], y[kept]), (X[early], y[early]), [split.test.X], costs)
        ways, seconds = ways + more, seconds + spent
    return measured(method, ways, split, classes, metric), seconds


def measured(method: str, ways: list[Way], split: Split, classes: np.ndarray, metric: Metric) -> list[Point]:
    """The points of the ways on validation and test rows."""
    parts: Sequence[Part] = (split.validation, split.test)
    found = []
    for answers in points(method, ways):
        both = [measured_answer(metric, part, classes[codes], cost) for part, (codes, cost) in zip(parts, answers)]
        found.append(Point({}, None, *both, 0.0))
    return found


def _coded(part: Part, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return part.X, np.searchsorted(classes, part.y)

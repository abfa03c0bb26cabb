"""The three data sets of the family's benchmark, each with the one price table that is used."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.frontier_vs_peers.data import Part, Problem, Split, load
from miserly.costs import CostTable
from miserly.datasets import yahoo_like
from miserly.metrics import Metric, get_metric

QUERIES = {"train": 600, "validation": 500, "test": 1000}
N_DRAWS = 4
RELEVANT, COPIES = 3, 10


def _yahoo() -> Problem:
    """Relevant or not, the latter ten times: the papers' skewed set, drawn again for each split."""

    def part(n_queries: int, seed: int) -> Part:
        drawn = yahoo_like(n_queries, seed=seed)
        relevant = drawn.y >= RELEVANT
        X = np.ascontiguousarray(drawn.X, np.float32).astype(np.float64)
        return Part(X, relevant.astype(np.float64), drawn.qid, np.where(relevant, 1, COPIES))

    def split(i: int) -> Split:
        return Split(*(part(n, 1000 + 3 * i + k) for k, n in enumerate(QUERIES.values())))

    return Problem("yahoo", get_metric("precision@5"), yahoo_like(1, seed=0).costs, None, 20, N_DRAWS, 0.0, split)


def table_of(problem: Problem) -> tuple[str, CostTable]:
    """The prices in use: shared acquisitions where the data set has them."""
    return ("flat", problem.flat) if problem.shared is None else ("shared", problem.shared)


def metric_of(problem: Problem, part: Part) -> Metric:
    """The metric of one part as an estimator takes it, which does not know how often rows count."""
    metric = problem.metric
    if part.copies is None:
        return metric
    function = partial(metric.function, multiplicity=part.copies)
    return Metric(metric.name, metric.greater_is_better, metric.input, metric.grouped, function)


SETS: dict[str, Callable[[], Problem]] = {
    "thyroid": partial(load, "thyroid"),
    "mq2008": partial(load, "mq2008"),
    "yahoo": _yahoo,
}

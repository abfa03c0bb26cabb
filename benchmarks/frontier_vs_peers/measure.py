"""Plans measured: quality and cost after 1, 2, 4, … rounds, on the rows of a part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.frontier_vs_peers.data import Part, Split
from miserly.frontiers._front import Measured, Point
from miserly.metrics import Metric
from miserly.plan import EXIT, Plan
from miserly.plan._cascade import joined

ROUNDS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)  # after which a boosted model may be stopped


def constant_point(split: Split, metric: Metric) -> Point:
    """The free answer: the most frequent class, or the documents as they lie."""
    values, counts = np.unique(split.train.y, return_counts=True)
    answer = 0.0 if metric.grouped else values[np.argmax(counts)]
    measured = [
        measured_answer(metric, part, np.full(len(part.y), answer), np.zeros(len(part.y)))
        for part in (split.validation, split.test)
    ]
    return Point({}, None, *measured, 0.0)


def pair_points(tried: Plan, final: Plan, split: Split, metric: Metric) -> list[Point]:
    """The plans after some numbers of rounds, where they are sums of rounds; the first on validation, the second on
    test. A prefix that one of them lacks is left out."""
    validation = list(_measure(in_stages(tried), split.validation, metric))
    test = list(_measure(in_stages(final), split.test, metric))
    return [Point({}, None, on_validation, on_test, 0.0) for on_validation, on_test in zip(validation, test)]


def best_quality(plan: Plan, part: Part, metric: Metric) -> float:
    """The best quality after any of the numbers of rounds."""
    sign = 1.0 if metric.greater_is_better else -1.0
    return max(sign * measured.quality for measured in _measure(in_stages(plan), part, metric))


def _measure(plan: Plan, part: Part, metric: Metric) -> Iterator[Measured]:
    if _is_sum(plan):
        for run in plan.stages(part.X):
            answer = run.score[:, 0] if metric.input == "score" else plan.read(run.z)
            yield measured_answer(metric, part, answer, run.cost)
        return
    yield measure_whole(plan, part, metric)


def measure_whole(plan: Plan, part: Part, metric: Metric) -> Measured:
    """The plan as it is, without its prefixes."""
    answer = plan.rank_score(part.X, part.qid) if metric.input == "score" else plan.predict(part.X, part.qid)
    return measured_answer(metric, part, answer, plan.predict_cost(part.X, part.qid))


def measured_answer(metric: Metric, part: Part, answer: np.ndarray, cost: np.ndarray) -> Measured:
    """Quality and costs, each row as often as it counts."""
    quality = metric(part.y, answer, qid=part.qid, multiplicity=part.copies)
    return Measured.of(quality, cost if part.copies is None else np.repeat(cost, part.copies))


def _is_sum(plan: Plan) -> bool:
    chain = all(node.passed in (k + 1, EXIT) for k, node in enumerate(plan.nodes))
    return chain and len(plan.roots) <= 1 and all(n.is_sum and n.gate.kind == "open" for n in plan.nodes)


def in_stages(plan: Plan) -> Plan:
    """A sum of rounds with its nodes joined between the rounds where it may stop."""
    if not _is_sum(plan) or len(plan.nodes) < 2:
        return plan
    ends = [n for n in ROUNDS if n < len(plan.nodes)] + [len(plan.nodes)]
    nodes = []
    for k, (first, last) in enumerate(zip([0, *ends[:-1]], ends)):
        nodes.append(joined(plan.nodes[first:last], plan.n_outputs, k + 1 if last < len(plan.nodes) else EXIT))
    return replace(plan, nodes=tuple(nodes))

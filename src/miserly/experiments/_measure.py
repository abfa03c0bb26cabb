"""Quality and cost of plans on validation and test, each row as often as it counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from miserly.experiments._parts import DataPart, LearningProblem
from miserly.frontiers import Frontier, Measured, Point
from miserly.plan import EXIT, Plan, joined

# validation cost, validation quality, test cost, test quality
Figures = Sequence[float]
MOST_ROWS = 50_000


def figures(plan: Plan, problem: LearningProblem) -> Figures:
    """A plan as it is."""
    found: list[float] = []
    for part in (problem.split.validation, problem.split.test):
        if plan.by_query and part.copies is not None:
            found += _of_copies(plan, problem, part)
            continue
        grouped = problem.metric.input == "score"
        answer = plan.rank_score(part.X, part.qid) if grouped else plan.predict(part.X, part.qid)
        found += _pair(problem, part, answer, plan.predict_cost(part.X, part.qid))
    return found


def _of_copies(plan: Plan, problem: LearningProblem, part: DataPart) -> tuple[float, float]:
    """Where gates compare the documents of a query, copies are documents too: they are run, some queries at a time."""
    assert part.copies is not None
    assert part.qid is not None
    names = np.unique(part.qid)
    pieces = np.array_split(names, max(1, int(part.copies.sum()) // MOST_ROWS))
    scores, costs, rows = [], [], []
    for piece in pieces:
        mine = np.flatnonzero(np.isin(part.qid, piece))
        rows.append(np.repeat(mine, part.copies[mine]))
        X, qid = part.X[rows[-1]], part.qid[rows[-1]]
        scores.append(plan.rank_score(X, qid))
        costs.append(plan.predict_cost(X, qid))
    every = np.concatenate(rows)
    quality = problem.metric(part.y[every], np.concatenate(scores), qid=part.qid[every])
    return float(np.concatenate(costs).mean()), float(quality)


def staged_figures(plan: Plan, problem: LearningProblem, every: int = 10) -> list[Figures]:
    """A plan after every so many stages, and at its end."""
    shorter = in_steps(plan, every)
    pairs = [list(_stages(shorter, problem, part)) for part in (problem.split.validation, problem.split.test)]
    return [(*validation, *test) for validation, test in zip(*pairs)]


def _stages(plan: Plan, problem: LearningProblem, part: DataPart) -> Iterator[tuple[float, float]]:
    for run in plan.stages(part.X):
        answer = run.score[:, 0] if problem.metric.input == "score" else plan.read(run.z)
        yield _pair(problem, part, answer, run.cost)


def _pair(problem: LearningProblem, part: DataPart, answer: np.ndarray, cost: np.ndarray) -> tuple[float, float]:
    if problem.is_ranking:
        quality = problem.metric(part.y, answer, qid=part.qid, multiplicity=part.copies)
    else:
        quality = problem.metric(part.y, answer)
    return float(np.average(cost, weights=part.copies)), float(quality)


def first_rounds(plan: Plan, n: int) -> Plan:
    """A sum of rounds cut short."""
    if n >= len(plan.nodes):
        return plan
    return replace(plan, nodes=(*plan.nodes[: n - 1], replace(plan.nodes[n - 1], passed=EXIT)))


def in_steps(plan: Plan, every: int) -> Plan:
    """A sum of rounds with its nodes joined, so that it may stop after every so many rounds only."""
    if len(plan.nodes) < 2 or not all(node.is_sum and node.gate.kind == "open" for node in plan.nodes):
        return plan
    starts = range(0, len(plan.nodes), every)
    nodes = [
        joined(plan.nodes[first : first + every], plan.n_outputs, k + 1 if first + every < len(plan.nodes) else EXIT)
        for k, first in enumerate(starts)
    ]
    return replace(plan, nodes=tuple(nodes))


# ---- curves -------------------------------------------------------------------------------------------------------


def curve(name: str, problem: LearningProblem, points: Sequence[Sequence[float]]) -> Frontier:
    """Points as a frontier, chosen on validation and read on test; the first is the answer that costs nothing."""
    made = (
        Point({}, None, Measured(v_quality, {"mean": v_cost}), Measured(t_quality, {"mean": t_cost}), 0.0)
        for v_cost, v_quality, t_cost, t_quality in (constant(problem), *points)
    )
    return Frontier(tuple(made), problem.metric, problem.costs.unit, name)


def constant(problem: LearningProblem) -> Figures:
    """The most frequent class, or the documents as they lie."""
    values, counts = np.unique(problem.split.train.y, return_counts=True)
    answer = 0.0 if problem.is_ranking else values[np.argmax(counts)]
    found: list[float] = []
    for part in (problem.split.validation, problem.split.test):
        found += _pair(problem, part, np.full(len(part.y), answer), np.zeros(len(part.y)))
    return found


def best(points: Sequence[Sequence[float]]) -> Sequence[float]:
    """The point with the best quality on validation; of equals, the cheapest."""
    return max(points, key=lambda p: (p[1], -p[0]))


def area(of: Frontier, low: float, high: float) -> float:
    """Mean test quality over the logarithm of the budget."""
    return of.area(low, high, on="test")


def cost_share(of: Frontier, reference: Sequence[float], slack: float) -> float:
    """Test cost of the cheapest point that comes within `slack` (a share) of the reference's quality on validation, as
    a part of the reference's cost; infinite if none does."""
    goal = reference[1] * (1.0 - slack)
    good = [p for p in of.points if p.validation.quality >= goal]
    if not good:
        return math.inf
    return min(good, key=lambda p: p.validation.cost["mean"]).on("test").cost["mean"] / reference[2]

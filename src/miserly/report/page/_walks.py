"""Rows on their way: what each bought, step by step, and what the answer was after each purchase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from miserly.plan import Plan, Walk
from miserly.report._observed import LabelledRows, Observed

MOST_ROWS = 100
FEWEST_ROWS = 10
MOST_STEPS = 120_000


@dataclass(frozen=True)
class WalkStep:
    """What was bought just now (nothing at the beginning), what is paid by then, and the answer."""

    buys: tuple[str, ...]
    cost: float
    answer: float | str
    probability: float | None


def choose_rows(seen: Sequence[Observed]) -> np.ndarray:
    """Rows to be walked through all of these plans, spread evenly from the cheapest to the most expensive.

    The order is that of the plan whose costs differ most. Plans with many steps get fewer rows; where gates compare
    the documents of a query, whole queries are taken.
    """
    rows = seen[0].rows
    steps = sum(len(_steps_at_most(one.plan)) for one in seen)
    n = int(np.clip(MOST_STEPS // max(1, steps), FEWEST_ROWS, MOST_ROWS))
    widest = max(seen, key=lambda one: float(one.cost.std() / (one.cost.mean() or 1.0)))
    shuffled = np.random.default_rng(0).permutation(len(rows))
    if rows.qid is None or not any(one.plan.by_query for one in seen):
        order = shuffled[np.argsort(widest.cost[shuffled], kind="stable")]
        return np.sort(order[np.unique(np.linspace(0, len(order) - 1, min(n, len(order))).round().astype(int))])
    mean = np.bincount(rows.query, widest.cost) / np.bincount(rows.query)
    order = np.argsort(mean, kind="stable")
    n_queries = max(1, min(len(order), n * len(order) // len(rows)))
    chosen = order[np.unique(np.linspace(0, len(order) - 1, n_queries).round().astype(int))]
    return np.flatnonzero(np.isin(rows.query, chosen))


def walks(plan: Plan, rows: LabelledRows, numbers: np.ndarray) -> list[list[WalkStep]]:
    """The steps of each of these rows; the first is the answer before any purchase."""
    if not plan.by_query or rows.qid is None:
        return [_walk(plan, rows.X[i]) for i in numbers]
    found: dict[int, list[WalkStep]] = {}
    for q in np.unique(rows.query[numbers]):
        mine = numbers[rows.query[numbers] == q]
        found |= dict(zip(mine.tolist(), _walk_list(plan, rows.X[mine])))
    return [found[int(i)] for i in numbers]


def _walk(plan: Plan, x: np.ndarray) -> list[WalkStep]:
    walk = plan.start(given=_values(plan.tables.arriving(0, 0), x))
    steps = [_step(walk, ())]
    while not walk.done:
        bought = walk.needs
        walk.supply(_values(plan.tables.arriving(walk.owned, walk.asked), x))
        steps.append(_step(walk, bought))
    return steps


def _walk_list(plan: Plan, X: np.ndarray) -> list[list[WalkStep]]:
    free = plan.tables.arriving(0, 0)
    together = plan.start_list(len(X), given=[_values(free, x) for x in X])
    steps = [[_step(walk, ())] for walk in together.walks]
    while not together.done:
        for i, bought in together.needs.items():
            walk = together.walks[i]
            together.supply(i, _values(plan.tables.arriving(walk.owned, walk.asked), X[i]))
            steps[i].append(_step(walk, bought))
    for mine, walk in zip(steps, together.walks):  # gates that waited for the others may have opened since
        mine[-1] = _step(walk, mine[-1].buys)
    return steps


def _step(walk: Walk, bought: tuple[str, ...]) -> WalkStep:
    best, classes = walk.best, walk.plan.classes
    if classes is None or best.probabilities is None:
        return WalkStep(bought, walk.cost, float(np.ravel(best.value)[0]), None)
    probability = float(best.probabilities[np.flatnonzero(classes == best.value)[0]])
    return WalkStep(bought, walk.cost, str(best.value), probability)


def _values(arriving: Mapping[str, int], x: np.ndarray) -> dict[str, float]:
    return {name: float(x[f]) for name, f in arriving.items()}


def _steps_at_most(plan: Plan) -> list[int]:
    return [k for k in range(len(plan.nodes)) if plan.tables.new_acquisitions(k)] or [0]

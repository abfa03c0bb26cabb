"""Active models in the portfolio, where no purchase has a value alone: there a search that adds one set at a time is
blind, and which test decides may differ from row to row.

On other data they are not tried: the portfolio's own policies were better on its development sets (`docs/decisions`).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import numpy as np

from miserly._typing import Floats
from miserly.auto._candidates import Scale, TriedPlan, curve
from miserly.auto._clock import TimeLimit
from miserly.auto._search import coarse, explained
from miserly.auto._task import Task
from miserly.estimators import ActiveClassifier, ActiveRegressor
from miserly.plan import Plan, PolicyPlan

logger = logging.getLogger(__name__)
ALONE = 0.1  # of the variance that the best model explains: a feature that alone explains more is a first step
FEWEST_ROWS = 300
MOST_ROWS = 4000  # to learn from in each fold, in which few states know what matters
N_TRADEOFFS = 24
LIGHT = {"n_estimators": 200}  # as many as it takes on sets of the size that is learned from here
PART = 0.25  # of the time limit


def active_candidates(scale: Scale, clock: TimeLimit) -> list[TriedPlan]:
    """Active models at several trade-offs, measured as all others are; none where they are not worth their time."""
    task = scale.task
    if not _can_be_active(task) or clock.over(1 - PART) or not needs_look_ahead(scale):
        return []
    parts = _measuring(scale, clock)
    if not parts or any(plan.n_outputs != parts[0][0].n_outputs for plan, _ in parts):  # a fold may lack a class
        return []
    final, grid = parts[-1][0], _grid(task)
    if scale.uses_folds and not scale.uses_held:
        final = _fitted(task, np.arange(len(task.train)))
    runs = [list(plan.sweep(scale.rows.X[rows], grid)) for plan, rows in parts]
    spent = [run.cost for run in final.sweep(scale.rows.X, grid)]
    output = np.empty((len(grid), len(scale.rows), task.n_columns))
    paid = np.empty(output.shape[:2])
    for (policy, rows), of_part in zip(parts, runs):
        for k, run in enumerate(of_part):
            output[k, rows], paid[k, rows] = policy.probabilities(run.z) if task.n_classes else run.z, run.cost
    ends = [scale.add(one) for one in output]
    measured, means = [scale.quality(end) for end in ends], paid.mean(axis=1)
    along, found = curve(means, measured), []
    for k, tradeoff in enumerate(grid):  # the final model spends more or less than those of folds at the same trade-off
        quality = measured[k] + along(float(spent[k].mean())) - along(float(means[k]))
        plan = partial(_at, final, float(tradeoff))
        found.append(TriedPlan("active", quality, spent[k], ends[k], None, plan, float(tradeoff)))
    logger.info("%d active models", len(found))
    return found


def _measuring(scale: Scale, clock: TimeLimit) -> list[tuple[PolicyPlan, np.ndarray]]:
    """Models and the measured rows that they have not seen: of folds, then of all training rows for those of the user.
    Nothing if a share of the time limit does not suffice."""
    task, began, found = scale.task, clock.elapsed, []
    for fit, score in task.folds if scale.uses_folds else []:
        if clock.over(began / clock.limit + PART):
            logger.info("Time is short: no active models.")
            return []
        found.append((_fitted(task, fit), np.flatnonzero(np.isin(scale.graph.rows, score))))
    if scale.uses_held:
        first = len(scale.graph.rows) if scale.uses_folds else 0
        found.append((_fitted(task, np.arange(len(task.train))), np.arange(first, len(scale.rows))))
    return found


def needs_look_ahead(scale: Scale) -> bool:
    """Whether each feature alone explains next to nothing of what the best model does."""
    task, rows = scale.task, scale.rows
    teacher = scale.outputs[scale.graph.number[scale.graph.teacher]]
    truth = np.eye(task.n_classes)[rows.y.astype(np.intp)] if task.n_classes else rows.y[:, None]
    away = truth - truth.mean(axis=0)
    best = float(np.square(away).sum(axis=1).mean() - np.square(truth - teacher).sum(axis=1).mean())
    alone = max((explained(column, away) for column in coarse(rows.X).T), default=0.0)
    return best > ALONE * float(np.square(away).sum(axis=1).mean()) and alone < ALONE * best


def _can_be_active(task: Task) -> bool:
    train = task.train
    plain = train.prices is None and train.logged is None and train.mistakes is None and task.max_rounds is None
    free = float(np.max(task.costs.evaluation)) == 0
    return plain and free and task.kind != "lists" and task.error_costs is None and len(train) >= FEWEST_ROWS


def _fitted(task: Task, rows: np.ndarray) -> PolicyPlan:
    if len(rows) > MOST_ROWS:
        rows = np.sort(np.random.default_rng(task.seed).permutation(rows)[:MOST_ROWS])
    part = task.train.part(rows)
    return _estimator(task).fit(part.X, part.y).plan_


def _estimator(task: Task) -> Any:
    kind: Any = ActiveClassifier if task.kind == "classes" else ActiveRegressor
    return kind(task.costs, random_state=task.seed, **LIGHT)


def _grid(task: Task) -> Floats:
    """Trade-offs, falling."""
    grid: Floats = _estimator(task).suggest_grid(task.train.y, N_TRADEOFFS)[::-1]
    return grid


def _at(final: PolicyPlan, tradeoff: float, of_fold: bool) -> Plan:
    """The plan, also where that of the first fold is wanted: at the same trade-off the latter spends something else."""
    return final.at(tradeoff)

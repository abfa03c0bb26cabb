"""The menu of a portfolio: which plan is best under which hard cap, tried on rows that its models have not seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from miserly._typing import Floats
from miserly.auto._candidates import Scale, TriedPlan
from miserly.auto._labels import SoftLabels
from miserly.auto._task import Rows
from miserly.plan import Menu, Plan, Run

MOST_PLANS, MOST_CAPS, MOST_ROWS = 16, 12, 1000
LEAST = -1e9  # the quality of what cannot be measured


def make_menu(scale: Scale, kept: Sequence[TriedPlan], plans: Sequence[Plan]) -> Menu:
    """The menu of some plans, one for each candidate.

    Caps are tried with the models of the first fold on the rows that they have not seen, or on the user's validation
    rows. Without a cap quality and cost are those of the frontier; under caps they are moved by the share that is
    spent.
    """
    chosen = _thinned(len(kept))
    rows, labels = _rows(scale)
    tried = [kept[k].plan(labels is not None) for k in chosen]

    def weigh(run: Run) -> Floats:
        assert rows.logged is not None
        assert run.accounts is not None
        return rows.logged.weights_of(run.accounts)

    def quality(plan: Plan, run: Run) -> float:
        output = _output(scale, plan, run)
        if rows.logged is not None:
            counted = scale.task.quality(rows, output, weigh(run))
            return counted if np.isfinite(counted) else LEAST
        value = None if labels is None or scale.task.kind == "lists" else labels.quality(output)
        return scale.task.quality(rows, output) if value is None else value

    caps = _caps([run.cost for run in (plan.run(rows.X, rows.qid) for plan in tried)])
    weights = None if rows.logged is None else weigh
    measured = Menu.measured(tried, rows.X, quality, rows.qid, caps, weights=weights)
    table, cost = np.nan_to_num(measured.quality, neginf=LEAST), measured.cost
    moved = np.array([kept[k].quality for k in chosen]) - table[:, -1]
    spent = np.array([kept[k].mean_cost for k in chosen])
    factor = np.divide(spent, cost[:, -1], out=np.ones(len(spent)), where=cost[:, -1] > 0)
    share = np.divide(cost, cost[:, -1:], out=np.ones_like(cost), where=cost[:, -1:] > 0)
    table = table + np.nan_to_num(moved, neginf=0.0)[:, None] * share
    names = [kept[k].member for k in chosen]
    finals = [plans[k] for k in chosen]
    return Menu(
        tuple(finals),
        measured.caps,
        table,
        cost * factor[:, None],
        tuple(names),
        scale.task.metric.name,
        measured.bought,
    )


def _thinned(n: int) -> list[int]:
    """Some of the numbers below n, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, MOST_PLANS)).round().astype(int)).tolist()


def _rows(scale: Scale) -> tuple[Rows, SoftLabels | None]:
    """The rows to try caps on; with their labels, if the models of the first fold must be used there."""
    task, graph = scale.task, scale.graph
    all_rows = task.train if task.held is None else task.held
    of_fold = task.held is None and bool(task.folds)
    numbers = task.folds[0][1] if of_fold else np.arange(len(all_rows))
    if len(numbers) > MOST_ROWS and task.kind != "lists":
        numbers = np.sort(np.random.default_rng(task.seed).permutation(numbers)[:MOST_ROWS])
    rows = all_rows.part(numbers)
    teacher = graph.stages[graph.teacher].oof
    return rows, SoftLabels(task, rows.y, teacher[numbers], rows.mistakes) if of_fold else None


def _output(scale: Scale, plan: Plan, run: Run) -> Floats:
    if scale.task.kind == "classes":
        return plan.probabilities(run.z)
    if scale.task.kind == "numbers":
        return run.z
    return (run.tier * 1e6 + run.score[:, 0])[:, None]


def _caps(paid: Sequence[Floats]) -> list[float]:
    """Nothing, and amounts that rows pay."""
    amounts = np.unique(np.concatenate(paid))
    amounts = amounts[amounts > 0]
    if not len(amounts):
        return [0.0]
    wanted = np.geomspace(amounts[0], amounts[-1], MOST_CAPS)
    return [0.0, *np.unique(amounts[np.clip(np.searchsorted(amounts, wanted), 0, len(amounts) - 1)]).tolist()]

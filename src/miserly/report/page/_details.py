"""The details of one model on the page: what it buys, whom it sends where, who pays, and rows on their way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from miserly.metrics import Metric
from miserly.report._observed import Observed
from miserly.report._prefixes import prefixes
from miserly.report._protocol import protocol
from miserly.report.figures import CalibrationPicture, LeavesPicture, PlanPicture, SpendingPicture, StagesPicture
from miserly.report.page._groups import Group, fairness
from miserly.report.page._purchases import moved, purchases
from miserly.report.page._trust import errors, gap, rates, right
from miserly.report.page._walks import WalkStep, walks

MOST_WORDS = 200
MOST_STAGES = 40
MOST_LEAVES = 24


def details(
    seen: Observed,
    metric: Metric,
    numbers: Mapping[str, int],
    walked: np.ndarray,
    groups: Mapping[str, Group],
) -> dict[str, Any]:
    """Everything about a model, as plain data; `numbers` are those of acquisitions on the page, `groups` the rows of
    those that the user named."""
    steps = walks(seen.plan, seen.rows, walked)
    for i, mine in zip(walked, steps):
        if mine[-1].cost != seen.cost[i]:
            raise AssertionError(f"Row {i} paid {mine[-1].cost!r} on its way and {seen.cost[i]!r} in the batch.")
    drawing, words = PlanPicture(seen), seen.plan.describe().splitlines()
    calibration = CalibrationPicture({"": seen})
    stages, leaves = StagesPicture(seen).frame(), LeavesPicture(seen.plan)
    matrix = leaves.matrix
    bins = [] if seen.rows.qid is not None and seen.plan.classes is None else calibration.frame()
    return {
        "summary": words[:3],
        "words": words[3 : 3 + MOST_WORDS],
        "more": max(0, len(words) - 3 - MOST_WORDS),
        "purchases": purchases(seen, steps),
        "byPath": seen.plan.charge == "path",
        "funnel": drawing.is_funnel,
        "boxes": drawing.frame(),
        "stages": stages if len(stages) <= MOST_STAGES else [],
        "leaves": matrix.tolist() if 1 < len(matrix) <= MOST_LEAVES else [],
        "spending": [
            {"by": by, "groups": list(picture.groups), "bars": picture.frame(), "totals": picture.totals()}
            for by in ("label", "outcome")
            for picture in [SpendingPicture(seen, by)]
        ],
        "calibration": {"axes": calibration.axes_names, "bins": bins, "gap": gap(bins) if bins else None},
        "rates": rates(seen),
        "right": right(seen),
        "errors": errors(seen, metric),
        "groups": fairness(seen, groups),
        "protocol": _protocol(seen),
        "prefixes": prefixes(seen.plan, metric, seen.rows),
        "walks": {**_packed(steps, numbers, seen), "moved": moved(seen, steps, walked)},
    }


def _protocol(seen: Observed) -> dict[str, Any] | None:
    """The plan as a small tree of purchases; lists are ordered by scores, which no such tree says."""
    if seen.rows.qid is not None:
        return None
    found = protocol(seen.plan, seen.rows)
    if not found.n_questions:
        return None
    cells = ("sensitivity", "specificity", "positive", "negative")
    return {
        "headline": found.headline(),
        "isClass": found.is_class,
        "positive": found.named(found.positive) if found.positive else None,
        "steps": [
            {
                **step,
                "prediction": found.named(step["prediction"]),
                "right": _interval(step["right"]),
                "risk": _interval(step["risk"]),
            }
            for step in found.frame()
        ],
        "rates": [{"label": found.named(r.label), **{c: _interval(getattr(r, c)) for c in cells}} for r in found.rates],
    }


def _interval(rate: tuple[float, float, float] | None) -> list[float] | None:
    return None if rate is None or rate[0] != rate[0] else list(rate)


def _packed(steps: Sequence[Sequence[WalkStep]], numbers: Mapping[str, int], seen: Observed) -> dict[str, Any]:
    """Walks with as few words as possible: rows that bought the same in the same order share a way. Answers are
    rounded to the four digits that are shown."""
    classes = None if seen.plan.classes is None else [str(c) for c in seen.plan.classes]
    ways: dict[tuple[Any, ...], int] = {}
    rows = []
    for mine in steps:
        way = tuple((tuple(numbers[name] for name in step.buys), step.cost) for step in mine)
        row: list[Any] = [ways.setdefault(way, len(ways))]
        if classes is None:
            row.append([float(f"{step.answer:.4g}") for step in mine])
        else:
            row.append([float(f"{step.probability:.4g}") for step in mine])
            row.append([classes.index(str(step.answer)) for step in mine])
        rows.append(row)
    return {
        "ways": [[list(bought) for bought, _ in way] for way in ways],
        "costs": [[c for _, c in way] for way in ways],
        "rows": rows,
    }

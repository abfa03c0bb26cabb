"""A portfolio's frontier, measured on the rows that the page shows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from miserly.cli.progress import share_bar


def fit_portfolio(model: Any, data: Sequence[Any], quiet: bool) -> Any:
    """The frontier of a portfolio, measured on the validation rows and, if there are any, on the test rows.

    `data` is training, validation and test rows, each (X, y) or (X, y, qid); the last may be None.
    """
    train, validation, test = data
    from miserly.frontiers import logged_purchases

    extra = {"qid": train[2]} if len(train) == 3 else {}
    began = time.perf_counter()
    with share_bar(quiet=quiet) as show:
        model.fit(train[0], train[1], **extra, eval_set=validation, progress=show)
    front = model.frontier_
    each = (time.perf_counter() - began) / len(front.points)  # they are learned together
    logged = logged_purchases(model, train[0], train[1])
    points = []
    for point in front.points:
        known = {name: v for name, v in point.params.items() if v == v}
        measured = {"validation": _on_rows(point.model.plan_, validation, front.metric, logged)}
        if test is not None:
            measured["test"] = _on_rows(point.model.plan_, test, front.metric, logged)
        points.append(replace(point, params=known, seconds=each, **measured))
    return replace(front, points=tuple(points))


def _on_rows(plan: Any, rows: Sequence[Any], metric: Any, logged: Any) -> Any:
    """A plan on these rows alone, as the page measures it; the portfolio chooses by folds of training too."""
    import numpy as np

    from miserly.frontiers import Measured, measured_where_logged
    from miserly.report import LabelledRows, Observed

    X, y, *qid = rows
    if logged is not None:
        return measured_where_logged(plan, logged, X, y, metric)
    seen = Observed.of(plan, LabelledRows(X, np.asarray(y), np.asarray(qid[0]) if qid else None))
    return Measured.of(seen.quality(metric), seen.cost)

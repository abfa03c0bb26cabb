"""The page: one HTML file with its style, its script and its data inside, which needs no network."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from miserly._display import web_asset
from miserly.files import write_whole
from miserly.report._observed import refuse_logged
from miserly.report._runs import SavedRun
from miserly.report.page._content import Content, Progress
from miserly.report.page._groups import column_of

SCRIPTS = (
    "figures.js",
    "tables.js",
    "frontier.js",
    "drawing.js",
    "money.js",
    "order.js",
    "protocol.js",
    "walk.js",
    "people.js",
    "trust.js",
    "more.js",
    "page.js",
)


def write_report(
    runs: Sequence[SavedRun],
    path: str | Path,
    title: str = "What a budget buys",
    progress: Progress | None = None,
    groups: Mapping[str, Any] | None = None,
) -> None:
    """Write the page of one run, or of several methods on the same rows.

    Parameters
    ----------
    runs : sequence of SavedRun
        At least one, each with at least one model. All have the same rows, metric, unit and prices.
    path : str or Path
        The HTML file to write; it needs no other file and no network.
    title : str, default="What a budget buys"
        The heading of the page.
    progress : callable or None, default=None
        Called as `progress(done, of)` as the work goes on.
    groups : mapping of str to array-like of shape (n_rows,) or None, default=None
        Columns by which rows are grouped, one value for each validation row, in order: the page shows what each group
        pays and how often predictions about it are wrong. At most 12 groups; numbers with more values are cut into
        quarters. None as a value: the feature of that name, where the run keeps it.

    Raises
    ------
    ValueError
        If the runs do not fit together, or a column does not fit the rows.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.report import save_run, write_report
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = ms.GreedyMiserRegressor(ms.CostTable.per_feature([1.0, 5.0]), n_estimators=5)
    >>> front = ms.frontier(model, (X, X[:, 0]), (X, X[:, 0]), grid={"tradeoff": [0.0, 0.1]})
    >>> write_report([save_run(front, (X, X[:, 0]), "run")], "page.html", title="Two models")
    >>> from pathlib import Path
    >>> "Two models" in Path("page.html").read_text(encoding="utf-8")
    True
    """
    for run in runs:
        for plan in (point.model.plan_ for point in run.front.points):
            refuse_logged(plan)
    content = Content(runs, title, progress or (lambda done, of: None), _columns(runs, groups or {}))
    details = content.details()
    parts = {
        "title": escape(title),
        "style": web_asset("look.css") + _asset("page.css"),
        "script": "\n".join([web_asset("words.js"), *(_asset(name) for name in SCRIPTS)]),
        "main": _json(content.main()),
        "details": "\n".join(
            f'<script type="application/json" id="stop-{i}">{_json(part)}</script>' for i, part in enumerate(details)
        ),
    }
    page = re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))
    write_whole(path, page)


def _columns(runs: Sequence[SavedRun], groups: Mapping[str, Any]) -> dict[str, Any]:
    """The columns to group by; those without values are features of the run."""
    columns = dict(groups)
    for name, values in groups.items():
        if values is None:
            plan = runs[0].front.points[0].model.plan_
            columns[name] = column_of(runs[0].rows, name, plan.costs.features, plan.schema)
    return columns


def _asset(name: str) -> str:
    return files("miserly.report.page").joinpath("assets", name).read_text(encoding="utf-8")


def _json(content: Any) -> str:
    """JSON that may stand inside a script element, whatever names it holds."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")

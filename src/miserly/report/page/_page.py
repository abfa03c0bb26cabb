"""The page: one HTML file with its style, its script and its data inside, which needs no network."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from miserly._display import web_asset
from miserly.files import write_whole
from miserly.report._runs import SavedRun
from miserly.report.page._content import Content, Progress

SCRIPTS = (
    "figures.js",
    "tables.js",
    "frontier.js",
    "drawing.js",
    "sections.js",
    "protocol.js",
    "walk.js",
    "page.js",
)


def write_report(
    runs: Sequence[SavedRun], path: str | Path, title: str = "What a budget buys", progress: Progress | None = None
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

    Raises
    ------
    ValueError
        If the runs do not fit together.

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
    content = Content(runs, title, *(() if progress is None else (progress,)))
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


def _asset(name: str) -> str:
    return files("miserly.report.page").joinpath("assets", name).read_text(encoding="utf-8")


def _json(content: Any) -> str:
    """JSON that may stand inside a script element, whatever names it holds."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")

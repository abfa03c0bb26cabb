"""The page inside a notebook."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from miserly.frontiers import Frontier, Point
from miserly.report._runs import SavedRun, as_rows
from miserly.report.page import write_report


@dataclass(frozen=True, repr=False)
class ShownPage:
    """A page that a notebook shows in a frame of its own; `html` is the whole page.

    Parameters
    ----------
    html : str
        The page, which needs no other file.
    height : int
        The height of the frame in pixels, 1 or more.

    Examples
    --------
    >>> from miserly.report import ShownPage
    >>> ShownPage("<p>Hello</p>", height=100)
    <ShownPage: 12 characters of HTML; a notebook shows it>
    """

    html: str
    height: int

    def save(self, path: str | Path) -> None:
        """Write the page as a file."""
        Path(path).write_text(self.html, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<ShownPage: {len(self.html)} characters of HTML; a notebook shows it>"

    def _repr_html_(self) -> str:
        style = f"width:100%;height:{self.height}px;border:1px solid #ccc"
        page = escape(self.html, quote=True)
        return f'<iframe title="What a budget buys" sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'


def show(front: Frontier, validation: Sequence[Any], chosen: Point | None = None, height: int = 720) -> ShownPage:
    """The page of a sweep, for a notebook: what `miserly report` writes, in a frame.

    Parameters
    ----------
    front : Frontier
        The sweep: at least one point, and models with a plan (`plan_`).
    validation : sequence
        (X, y) or (X, y, qid): the data that the sweep was measured on.
    chosen : Point or None, default=None
        The point to begin with, one of the front's own.
    height : int, default=720
        The height of the frame in pixels.

    Returns
    -------
    ShownPage
        A notebook shows it; `save` writes it as a file.

    Examples
    --------
    >>> import numpy as np, miserly as ms
    >>> from miserly.report import show
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = ms.GreedyMiserRegressor(ms.CostTable.per_feature([1.0, 5.0]), n_estimators=5)
    >>> front = ms.frontier(model, (X, X[:, 0]), (X, X[:, 0]), grid={"tradeoff": [0.0, 0.1]})
    >>> "<iframe" in show(front, (X, X[:, 0]))._repr_html_()
    True
    """
    if not all(hasattr(point.model, "plan_") for point in front.points):
        raise ValueError("The page explains plans, and some of these models have none (no plan_). Use ms.compare.")
    run = SavedRun(front, as_rows(front.points[0].model.plan_, validation), chosen)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        write_report([run], path, title=front.name or "What a budget buys")
        return ShownPage(path.read_text(encoding="utf-8"), height)

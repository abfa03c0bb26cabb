"""One self-contained HTML page of a sweep: the picture, the table, and the chosen plan's purchases."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from miserly.frontiers import Frontier, Point, figure
from miserly.report.frontier import plot_frontier

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
img { max-width: 100%; background: white; border-radius: 6px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem; }
th, td { padding: 0.25rem 0.7rem; text-align: right; border-bottom: 1px solid #8884; }
td.words, th.words { text-align: left; }
tr.chosen { font-weight: 700; background: #e69f0033; }
.verdict { font-size: 1.15rem; border-left: 4px solid #d55e00; padding-left: 1rem; }
"""


def write_page(front: Frontier, chosen: Point, verdict: str, path: str | Path) -> None:
    """Write the page; it needs no other file and no network."""
    on = "validation" if chosen.test is None else "test"
    picture = io.BytesIO()
    plot_frontier([front], chosen=chosen, on=on).savefig(picture, format="png", dpi=150)
    encoded = base64.b64encode(picture.getvalue()).decode()
    records = front.frame()
    columns = [c for c in records[0] if c not in ("median_cost", "p99_cost", "seconds")]
    marked = {i for i, point in enumerate(front.points) if point is chosen}
    purchases = chosen.model.plan_.purchases()
    html = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(front.name)}: quality against cost</title>
<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>
<h1>What a budget buys</h1>
<p class="verdict">{escape(verdict)}</p>
<img alt="Quality against mean cost per row, the chosen model circled" src="data:image/png;base64,{encoded}">
<h2>All models</h2>
{_table(columns, ([row[c] for c in columns] for row in records), marked)}
<h2>What the chosen one buys, in order</h2>
<p>{escape(chosen.model.plan_.summary())}</p>
{_table(list(_SHOWN), ([line[c] for c in _SHOWN] for line in purchases), set())}
</body></html>
"""
    Path(path).write_text(html, encoding="utf-8")


_SHOWN = ("node", "buys", "price", "total", "learners", "gain")


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]], marked: set[int]) -> str:
    head = "".join(f"<th{_class(c)}>{escape(c.replace('_', ' '))}</th>" for c in columns)
    lines = []
    for i, row in enumerate(rows):
        cells = "".join(f"<td{_class(c)}>{escape(_text(value))}</td>" for c, value in zip(columns, row))
        lines.append(f"<tr{' class=chosen' if i in marked else ''}>{cells}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _class(column: str) -> str:
    return ' class="words"' if column == "buys" else ""


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, list):
        return ", ".join(value) or "nothing"
    return figure(value)

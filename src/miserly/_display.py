"""How objects show themselves in a notebook: small tables and a line of steps, as HTML without scripts.

Also what all web pages of the package share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

MOST_LINES = 16  # rows of a table: a representation stays within twenty lines
WIDTH, HEIGHT, MARGIN = 320, 120, 8
MOST_BARS = 8


def web_asset(name: str) -> str:
    """A file that all pages share: `look.css`, their typography and colours, or `words.js`, how they write numbers."""
    return files("miserly").joinpath("_web", name).read_text(encoding="utf-8")


def table(rows: Sequence[Mapping[str, Any]], caption: str = "") -> str:
    """Records as an HTML table, cut to a few lines."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(str(name))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell(row.get(name, '')))}</td>" for name in columns) + "</tr>"
        for row in rows[:MOST_LINES]
    )
    more = (
        f"<tr><td colspan={len(columns)}>and {len(rows) - MOST_LINES} more</td></tr>" if len(rows) > MOST_LINES else ""
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}{more}</tbody></table>"


def cell(value: Any) -> str:
    """One value as short text."""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def text(lines: str) -> str:
    """Plain text as HTML, cut to a few lines."""
    kept = lines.splitlines()
    more = [f"and {len(kept) - MOST_LINES} more lines"] if len(kept) > MOST_LINES else []
    return f"<pre>{escape(chr(10).join([*kept[:MOST_LINES], *more]))}</pre>"


def bars(values: Sequence[tuple[str, float]], label: str) -> str:
    """Named sizes as horizontal bars, the first few."""
    shown = [(name, size) for name, size in values if size > 0][:MOST_BARS]
    if not shown:
        return ""
    largest, height = max(size for _, size in shown), 18
    lines = "".join(
        f'<rect x="130" y="{height * i + 3}" width="{180 * size / largest:.1f}" height="12" fill="#00659f"/>'
        f'<text x="124" y="{height * i + 13}" font-size="11" text-anchor="end" fill="currentColor">'
        f"{escape(name if len(name) <= 18 else name[:17] + '…')}</text>"
        for i, (name, size) in enumerate(shown)
    )
    box = f'viewBox="0 0 {WIDTH} {height * len(shown)}" width="{WIDTH}" height="{height * len(shown)}"'
    return f'<svg {box} role="img" aria-label="{escape(label)}">{lines}</svg>'


def steps(points: Sequence[tuple[float, float]], label: str) -> str:
    """A front as a line of steps: cost to the right, quality upwards."""
    if len(points) < 2:
        return ""
    xs, ys = zip(*points)
    low_x, high_x, low_y, high_y = min(xs), max(xs), min(ys), max(ys)

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - low_x) / ((high_x - low_x) or 1.0)
        upwards = (y - low_y) / ((high_y - low_y) or 1.0)
        return MARGIN + across * (WIDTH - 2 * MARGIN), HEIGHT - MARGIN - upwards * (HEIGHT - 2 * MARGIN)

    path, dots = "", ""
    for i, (x, y) in enumerate(points):
        px, py = at(x, y)
        path += f"H{px:.1f}V{py:.1f}" if i else f"M{px:.1f},{py:.1f}"
        dots += f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="#00659f"/>'
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return (
        f'<svg {size} role="img" aria-label="{escape(label)}">'
        f'<path d="{path}" fill="none" stroke="#00659f" stroke-width="1.5"/>{dots}</svg>'
    )

"""The table of speed in docs/peers.md: every figure with its goal, written by `make bench`."""

import math
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "peers.md"
BEGIN, END = "<!-- speed: written by `make bench` -->\n", "<!-- end of speed -->\n"
HEAD = "| | measured | goal |\n|---|---|---|\n"
ROWS: list[str] = []


def record(what: str, value: float, unit: str, least: float | None = None, most: float = math.inf) -> None:
    """Print a figure, which should be at least or at most so much, and keep it for the table."""
    goal = f"≤ {most:g}" if least is None else f"≥ {least:g}"
    met = value <= most if least is None else value >= least
    figure = f"{value:.3g}" if value < 100 else f"{value:.0f}"
    print(f"  {what}: {figure} {unit} ({goal}: {'met' if met else 'MISSED'})")
    ROWS.append(f"| {what} | {figure if met else f'**{figure}**'} {unit} | {goal} |\n")


def write() -> None:
    """Put what was recorded in the page's table."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    PAGE.write_text(before + BEGIN + HEAD + "".join(ROWS) + END + rest.split(END)[1])

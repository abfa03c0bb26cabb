"""Draws the layers of the packages from import-linter's own table: `python docs/layers.py` writes pictures/layers.svg."""

from __future__ import annotations

import tomllib
from pathlib import Path

HERE = Path(__file__).parent
WHAT = {
    "cli": "one thin module per command",
    "experiments": "what we measure: data, methods, claims",
    "auto": "the portfolio behind AutoMiser*",
    "report": "figures and the page",
    "checks": "the cost battery",
    "serve": "a plan behind HTTP",
    "distributed": "rows on a Dask cluster",
    "frontiers": "sweeps, Pareto front, choice",
    "baselines": "what the papers compare with",
    "estimators": "one folder per paper",
    "runtime": "extractors, deadlines, cache",
    "boosting": "bins, histograms, trees, losses",
    "solvers": "what several papers share",
    "plan": "the fitted model and its execution",
    "datasets": "readers and synthetic sets",
    "costs": "prices and the ledger",
    "metrics": "ranking and classification",
    "kernels": "every numba function",
    "files": "whole files and locks",
}
WIDTH, STEP, LEFT = 960, 64, 84
STYLE = """
  .line { stroke: #cfcabd; stroke-dasharray: 2 4; }
  .box { fill: #f6f4ee; stroke: #8a8a8a; }
  .name { fill: #222222; font-size: 15px; font-weight: 600; }
  .what { fill: #5f594d; font-size: 11.5px; }
  @media (prefers-color-scheme: dark) {
    .line { stroke: #3d424c; } .box { fill: #23272f; stroke: #7d828c; }
    .name { fill: #edeae3; } .what { fill: #b4afa2; }
  }
"""


def layers() -> list[list[str]]:
    """The packages of each layer, the highest first."""
    settings = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    found = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    named = ([name.strip() for name in layer.split("|")] for layer in found)
    return [names for layer in named if (names := [name for name in layer if name in WHAT])]


def picture() -> str:
    """The layers as an SVG image."""
    rows = layers()
    height = len(rows) * STEP + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="title" '
        "font-family=\"system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif\">",
        '<title id="title">The packages of Miserly in layers; imports point down</title>',
        f"<style>{STYLE}</style>",
    ]
    for i, names in enumerate(rows):
        y = i * STEP + 8
        parts.append(f'<text class="what" x="12" y="{y + 28}">layer {len(rows) - i}</text>')
        parts.append(f'<line class="line" x1="{LEFT - 14}" y1="{y + 24}" x2="{WIDTH - 12}" y2="{y + 24}"/>')
        wide = (WIDTH - LEFT - 12 - 14 * (len(names) - 1)) / max(len(names), 3)
        for k, name in enumerate(names):
            x = LEFT + k * (wide + 14)
            parts.append(f'<rect class="box" x="{x:.0f}" y="{y}" width="{wide:.0f}" height="48" rx="7"/>')
            parts.append(f'<text class="name" x="{x + 12:.0f}" y="{y + 20}">{name}</text>')
            parts.append(f'<text class="what" x="{x + 12:.0f}" y="{y + 37}">{WHAT[name]}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    (HERE / "pictures" / "layers.svg").write_text(picture(), encoding="utf-8")

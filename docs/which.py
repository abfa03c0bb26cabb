"""Draws the figure of the page *Choose a method* from figures that stand in the cards: `python docs/which.py`."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from miserly.report.figures._style import COLOURS, FAINT, INK

# Question, method if yes, and what was measured (the cards have the rest). The last is for all others.
DECISIONS = (
    (
        "Does evaluating the model cost,\nnot obtaining its inputs?",
        "CompressedSVC",
        "page-blocks, 44 of 443 vectors: 97.5 ± 0.75 % right\ninstead of 97.9 ± 0.70 %",
    ),
    (
        "Is the budget known only\nwhen the request comes?",
        "AFR, anytime miser",
        "noisy XOR, one fit, within a cost of 95: 0.97 or more\non 18 of 20 fresh seeds",
    ),
    (
        "Are all features fetched\nbefore the model runs?",
        "Greedy Miser, by learner",
        "40,000 × 519: binning and trees 2.8 times as fast\nas LightGBM's penalties (CPU, one thread)",
    ),
    (
        "Must somebody read\nthe model?",
        "PathTree, ASTC",
        "ann-thyroid: one tree has 99.3 % at 22.9; a plain tree,\ncharged by path, needs 25.4",
    ),
    (
        "Are most rows or documents\nto be rejected?",
        "Cronus, CSCC, early exit",
        "MQ2008: Cronus less early exit, area +0.090 ± 0.046;\nbut the Greedy Miser is worth a look there too",
    ),
    (
        "Otherwise",
        "Greedy Miser, by path",
        "ann-thyroid: area 0.944 ± 0.003, the best of ten ways;\nall of ours less the best peer +0.0029 ± 0.0023",
    ),
)
THYROID = (
    ("miser by path", 0.944, 0.003),
    ("plain tree by path", 0.943, 0.001),
    ("CSTC, stumps", 0.942, 0.001),
    ("ASTC, stumps", 0.942, 0.001),
    ("CSCC, initialised", 0.941, 0.001),
    ("CSCC, optimised", 0.941, 0.001),
    ("one linear, stumps", 0.938, 0.001),
    ("CSTC, raw", 0.936, 0.004),
    ("ASTC, raw", 0.933, 0.001),
    ("one linear, raw", 0.928, 0.001),
)
MQ2008 = (
    ("miser", 0.376, None),
    ("CSTC, raw", 0.375, None),
    ("ASTC, raw", 0.373, None),
    ("one linear, raw", 0.372, None),
    ("CSCC, stumps", 0.366, None),
    ("Cronus, stumps", 0.366, None),
    ("cost-weighted l1", 0.353, None),
    ("boosting, cut short", 0.306, None),
    ("early exit", 0.276, None),
)


def areas(ax: Axes, title: str, figures: tuple[tuple[str, float, float | None], ...]) -> None:
    """Mean area under quality over log budget for each method, with its interval where the card has one."""
    for place, (_, area, half) in enumerate(figures):
        ax.errorbar(area, place, xerr=half, fmt="o", color=COLOURS[0], capsize=3)
    ax.set_yticks(range(len(figures)), [name for name, _, _ in figures])
    ax.invert_yaxis()
    ax.set_title(title, fontsize=9)
    ax.grid(axis="x", alpha=0.3)
    ax.margins(0.1)
    ax.tick_params(labelsize=8)
    ax.set_xlabel("area: mean over the logarithm of the budget", fontsize=8)


def decisions(ax: Axes) -> None:
    """Questions from the top down: yes leads to the right, no to the next."""
    ax.set_axis_off()
    ax.set_xlim(0, 10)
    ax.set_ylim(-len(DECISIONS) + 0.4, 0.6)
    box = {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": FAINT}
    for place, (question, method, measured) in enumerate(DECISIONS):
        last = place == len(DECISIONS) - 1
        ax.text(1.6, -place, question, ha="center", va="center", fontsize=9, color=INK, bbox=box)
        arrow = {"arrowstyle": "->", "color": INK}
        ax.annotate("", (4.3, -place), (3.2, -place), arrowprops=arrow)
        ax.text(3.75, -place + 0.1, "" if last else "yes", ha="center", fontsize=8, color=INK)
        ax.text(4.4, -place + 0.16, method, va="center", fontsize=10, fontweight="bold", color=COLOURS[0])
        ax.text(4.4, -place - 0.18, measured, va="center", fontsize=8, color=INK)
        if not last:
            ax.annotate("", (1.6, -place - 0.7), (1.6, -place - 0.32), arrowprops=arrow)
            ax.text(1.75, -place - 0.55, "no", fontsize=8, color=INK)


if __name__ == "__main__":
    figure = Figure(figsize=(7.5, 8.2), layout="constrained")
    panels = figure.subplot_mosaic([["decisions", "decisions"], ["thyroid", "mq2008"]], height_ratios=(5, 3))
    decisions(panels["decisions"])
    areas(panels["thyroid"], "ann-thyroid: accuracy, ten splits", THYROID)
    areas(panels["mq2008"], "MQ2008: NDCG@5, five folds", MQ2008)
    figure.savefig(Path(__file__).parent / "pictures" / "which.png", dpi=120)

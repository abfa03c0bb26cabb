"""How CPU time grows with rows, features, classes and trees: fit and predict, ours and LightGBM, one thread.

`python -m benchmarks.growth [rows features classes trees]` measures those axes and keeps them in benchmarks/out; then
it draws docs/pictures/growth.png from all that is kept, and prints the table of docs/engine.md. Along an axis all else
stays as in `BASE`; a cell takes the better of two runs, or one if that took long. An axis ends after a cell in which
either side took longer than `LIMIT`. Exponents are slopes of log CPU over log size among the upper half of the sizes.
"""

import csv
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from matplotlib.figure import Figure

from benchmarks.small import DEPTH, RATE, TRADEOFF, prices, sample, their_params
from miserly.costs import CostTable
from miserly.estimators import GreedyMiserClassifier
from miserly.kernels.threads import threads

BASE = {"rows": 2000, "features": 20, "classes": 2, "trees": 100}
AXES = {
    "rows": (100, 316, 1000, 3162, 10_000, 31_623, 100_000, 316_228, 1_000_000),
    "features": (10, 32, 100, 316, 1000, 3162, 10_000),
    "classes": (2, 5, 10, 20, 50, 100),
    "trees": (10, 32, 100, 316, 1000),
}
WORKS = ("our fit", "LightGBM fit", "our predict", "LightGBM predict")
LIMIT = 30.0  # CPU seconds of a cell, after which larger ones are left out
LONG, SHORT = 3.0, 0.02  # a run of this length is not repeated; shorter ones are repeated until they are that long
OUT = Path(__file__).parent / "out"
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "growth.png"


def cpu(work: Callable[[], Any]) -> float:
    """CPU seconds of one call, the better of two."""
    found: list[float] = []
    while not found or (len(found) < 2 and found[0] < LONG):
        times, began = 0, time.process_time()
        while not times or time.process_time() - began < SHORT:
            work()
            times += 1
        found.append((time.process_time() - began) / times)
    return min(found)


def cell(rows: int, features: int, classes: int, trees: int) -> tuple[float, ...]:
    """CPU seconds of all works."""
    X, y = sample(rows, features, classes)
    each = prices(features)
    params = their_params(rows, classes, "learner", each)
    params["min_sum_hessian_in_leaf"] = 1e-3  # its default: with 0 it fails at 50 classes
    costs = CostTable.per_feature(each)
    model = GreedyMiserClassifier(costs, TRADEOFF, n_estimators=trees, max_depth=DEPTH, learning_rate=RATE, n_jobs=1)
    theirs: list[lightgbm.Booster] = []

    def their_fit() -> None:
        theirs[:] = [lightgbm.train(params, lightgbm.Dataset(X, y, params=params), trees)]

    fits = cpu(lambda: model.fit(X, y)), cpu(their_fit)
    with threads(1):
        return *fits, cpu(lambda: model.plan_.score(X)), cpu(lambda: theirs[0].predict(X, num_threads=1))


def measure(axis: str) -> None:
    """The cells of an axis, one line of a file each."""
    OUT.mkdir(exist_ok=True)
    with (OUT / f"growth_{axis}.csv").open("w", newline="") as file:
        for size in AXES[axis]:
            found = cell(**{**BASE, axis: size})
            csv.writer(file).writerow((size, *found))
            print(f"  {size:>9,} {axis:<9}", *(f"{what} {s:.3g} s" for what, s in zip(WORKS, found)), flush=True)
            if max(found) > LIMIT:
                break


def kept() -> Iterator[tuple[str, np.ndarray]]:
    """What was measured: of each axis sizes and seconds."""
    for axis in AXES:
        if (OUT / f"growth_{axis}.csv").exists():
            yield axis, np.loadtxt(OUT / f"growth_{axis}.csv", delimiter=",", ndmin=2)


def exponent(sizes: np.ndarray, seconds: np.ndarray) -> float:
    """The slope in logarithms among the upper half of the sizes."""
    upper = sizes >= np.median(sizes)
    return float(np.polyfit(np.log(sizes[upper]), np.log(seconds[upper]), 1)[0])


def draw(found: dict[str, np.ndarray]) -> None:
    """CPU against each axis, fit above, predict below."""
    figure = Figure(figsize=(3.2 * len(found), 5.6), layout="constrained")
    panels = figure.subplots(2, len(found), squeeze=False)
    for column, (axis, table) in enumerate(found.items()):
        sizes = table[:, 0]
        for row, what in enumerate(("fit", "predict")):
            axes = panels[row, column]
            for k, (name, style) in enumerate((("Miserly", "o-"), ("LightGBM", "s--"))):
                seconds = table[:, 1 + 2 * row + k]
                axes.plot(sizes, seconds, style, label=f"{name}, exponent {exponent(sizes, seconds):.2f}", markersize=4)
            axes.set(xscale="log", yscale="log", xlabel=axis, title=f"{what} against {axis}")
            axes.legend(fontsize=8)
        panels[0, 0].set_ylabel("CPU seconds")
        panels[1, 0].set_ylabel("CPU seconds")
    figure.savefig(PICTURE, dpi=110)


def main(axes: list[str] | None = None) -> None:
    cell(**{**BASE, "trees": 3})
    cell(**{**BASE, "trees": 3, "classes": 3})
    for axis in AXES if axes is None else axes:
        measure(axis)
    found = dict(kept())
    draw(found)
    print("| | sizes | our fit | LightGBM's | our predict | LightGBM's | ours ÷ LightGBM's at the end: fit, predict |")
    print("|---|---|---|---|---|---|---|")
    for axis, table in found.items():
        slopes = (f"{exponent(table[:, 0], table[:, k]):.2f}" for k in range(1, 5))
        last = table[-1]
        ends = f"{table[0, 0]:,.0f} to {last[0]:,.0f} | {' | '.join(slopes)}"
        print(f"| {axis} | {ends} | {last[1] / last[2]:.2f}, {last[3] / last[4]:.2f} |")


if __name__ == "__main__":
    main(sys.argv[1:] or None)

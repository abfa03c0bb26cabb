"""Active models beside the neural methods that answer the same question, and beside the portfolio.

`python -m benchmarks.neural_vs_active --neural PYTHON [SET ...] [--rows N] [--splits N] [--methods WORD ...]`

PYTHON has PyTorch (see `benchmarks.neural`). Every method learns from the same training rows (at most N of them), stops
early or chooses its points on the validation rows, and is tested as it is. Areas are those of `frontier_vs_peers`.
"pairs" and "blocks" are generated: no single purchase has a value there. One line of JSON per area goes to `--out`;
areas that are there already are not computed again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.active import pairs
from benchmarks.frontier_vs_peers.data import LOADERS, Part, Problem, Split, available, load
from benchmarks.frontier_vs_peers.measure import constant_point, measure_whole, measured_answer
from benchmarks.frontier_vs_peers.neural import neural_points
from benchmarks.frontier_vs_peers.scoring import limits
from miserly import ActiveClassifier, AutoMiserClassifier, CostTable
from miserly.experiments import interval
from miserly.frontiers import Frontier, Point
from miserly.kernels.threads import threads
from miserly.metrics import get_metric

SETS = ("thyroid", "pima", "yelp", "expw", "covertype", "letter", "pairs", "blocks")
MOST_SEEN = 4000  # rows of validation and of test
N_POINTS = 24
N_BUDGETS = 200  # of a mixed area


def blocks(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The majority of three signs in the block that a context names: the context says nothing alone."""
    rng = np.random.default_rng(seed)
    context, signs = rng.integers(3, size=n), rng.choice([-1.0, 1.0], size=(n, 3, 3))
    majority = signs[np.arange(n), context].sum(axis=1) > 0
    return np.column_stack([context, signs.reshape(n, 9)]), majority.astype(int)


def problem(name: str) -> Problem:
    """One of the sets of `frontier_vs_peers`, or a generated one."""
    if name in LOADERS:
        return load(name)
    make: Callable[[int, int], tuple[np.ndarray, np.ndarray]] = {"pairs": pairs, "blocks": blocks}[name]

    def split(i: int) -> Split:
        return Split(*(Part(*make(n, 3 * i + k)) for k, n in enumerate((2000, 1000, 4000))))

    costs = CostTable.uniform().bind(make(1, 0)[0].shape[1])
    return Problem(name, get_metric("accuracy"), costs, None, 5, 10, 0.0, split)


def active_points(split: Split, costs: CostTable) -> tuple[list[Point], float]:
    """One training, many trade-offs; the seconds are those of training, as the neural methods' are."""
    began = time.process_time()
    model = ActiveClassifier(costs, n_jobs=1).fit(split.train.X, split.train.y)
    seconds, plan = time.process_time() - began, model.plan_
    grid, metric = model.suggest_grid(split.train.y, N_POINTS)[::-1], get_metric("accuracy")
    runs = zip(*(plan.sweep(part.X, grid) for part in (split.validation, split.test)))
    parts = split.validation, split.test
    both = (
        [measured_answer(metric, part, plan.read(run.z), run.cost) for part, run in zip(parts, pair)] for pair in runs
    )
    return [Point({}, None, *measured, 0.0) for measured in both], seconds


def auto_points(split: Split, costs: CostTable) -> tuple[list[Point], float]:
    """Our cascades: the documented call, with validation rows."""
    began = time.process_time()
    model = AutoMiserClassifier(costs, metric="accuracy", random_state=0)
    model.fit(split.train.X, split.train.y, eval_set=(split.validation.X, split.validation.y))
    seconds, metric = time.process_time() - began, get_metric("accuracy")
    plans = [point.model.plan_ for point in model.frontier_.points]
    parts = split.validation, split.test
    return [Point({}, None, *(measure_whole(plan, part, metric) for part in parts), 0.0) for plan in plans], seconds


def grown(name: str, split: Split, costs: CostTable, python: str) -> tuple[list[Point], float]:
    """The points of a method and the CPU seconds of training it."""
    if name in ("DIME", "GDFS"):
        return neural_points(python, name, split, costs, get_metric("accuracy"), again=False)
    return {"active": active_points, "auto": auto_points}[name](split, costs)


def measure(name: str, number: int, method: str, options: argparse.Namespace) -> dict[str, object]:
    """One area."""
    this = problem(name)
    costs, split = this.shared or this.flat, this.split(number)
    parts = zip((split.train, split.validation, split.test), (options.rows, min(options.rows, MOST_SEEN), MOST_SEEN))
    split = Split(*(Part(part.X[:n], part.y[:n]) for part, n in parts))
    with threads(1):
        points, seconds = grown(method, split, costs, options.neural)
    front = Frontier((constant_point(split, this.metric), *points), this.metric, costs.unit, method)
    low, high = limits(costs, 0)
    return {
        "set": name,
        "rows": len(split.train.y),
        "split": number,
        "method": method,
        "area": front.area(low, high, on="test"),
        "mixed": mixed_area(front, low, high),
        "seconds": seconds,
    }


def mixed_area(front: Frontier, low: float, high: float) -> float:
    """The area where each budget is spent on a mixture of two points: any method may let chance choose for each row
    between the neighbours on the hull of its validation points (`menu.predict(mean_budget=..., mix=True)` does)."""
    hull: list[Point] = []
    for point in front.pareto():
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) <= _slope(hull[-1], point):
            hull.pop()
        hull.append(point)
    costs = [point.validation.cost["mean"] for point in hull]
    quality = [point.on("test").quality for point in hull]
    return float(np.interp(np.geomspace(low, high, N_BUDGETS), costs, quality).mean())


def _slope(a: Point, b: Point) -> float:
    more = b.validation.cost["mean"] - a.validation.cost["mean"]
    return (b.validation.quality - a.validation.quality) / max(more, 1e-300)


def main(arguments: list[str] | None = None) -> None:
    """Measure what is not there yet, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--neural", metavar="PYTHON", required=True)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--methods", nargs="+", default=["active", "DIME", "GDFS", "auto"])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out/neural_vs_active.jsonl"))
    options = parser.parse_args(arguments)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    there = {(r["set"], r["split"], r["method"]) for r in done}
    here = set(available([s for s in options.sets if s in LOADERS])) | {"pairs", "blocks"}
    for number in range(options.splits):
        for name in (s for s in options.sets if s in here):
            for method in options.methods:
                if (name, number, method) not in there:
                    done.append(measure(name, number, method, options))
                    with options.out.open("a") as file:
                        file.write(json.dumps(done[-1]) + "\n")
    show(done)


def show(results: list[dict[str, object]]) -> None:
    """Areas and CPU seconds of each method, and how far the active model is from each other one."""
    areas: dict[tuple[object, object], dict[object, float]] = defaultdict(dict)
    seconds: dict[tuple[object, object], list[float]] = defaultdict(list)
    for r in results:
        areas[r["set"], r["method"]][r["split"]] = float(r["area"])  # type: ignore[arg-type]
        seconds[r["set"], r["method"]].append(float(r["seconds"]))  # type: ignore[arg-type]
    for (name, method), by_split in areas.items():
        ours = areas.get((name, "active"), {})
        paired = [ours[k] - by_split[k] for k in by_split if k in ours]
        overlap = 0.0 if str(name) not in LOADERS else load(str(name)).overlap
        less, half = interval(paired, overlap) if paired else (np.nan, np.nan)
        cpu = np.mean(seconds[name, method])
        line = f"{name:10} {method:7} area {np.mean(list(by_split.values())):.4f} ({len(by_split)} splits), {cpu:.0f} s"
        print(line + ("" if method == "active" else f"; active is better by {less:+.4f} ± {half:.4f}"))


if __name__ == "__main__":
    main()

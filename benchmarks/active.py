"""Active models: areas beside the Greedy Miser, calibration and loss from random sets of known values, speed.

`python -m benchmarks.active thyroid yelp` measures some sets; `speed` the time of a fit and of one advice. The sets are
those of `MISERLY_DATA`; "pairs" is generated, and no single purchase there has a value.
"""

from __future__ import annotations

import gzip
import os
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

from miserly import ActiveClassifier, CostTable, GreedyMiserClassifier, cascade, frontier
from miserly.plan import Plan

FOLDER = Path(os.environ.get("MISERLY_DATA", "../shared/data"))
SETS = ("pairs", "thyroid", "yelp", "expw", "covertype")
MOST_ROWS = 8000  # of training
N_SUBSETS, N_STATES = 20, 10_000
Part = tuple[np.ndarray, np.ndarray]


def pairs(n: int, seed: int) -> Part:
    """Eight numbers; the class is whether the first two have different signs."""
    X = np.random.default_rng(seed).normal(size=(n, 8))
    return X, ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)


def load(name: str) -> tuple[Part, Part, Part, CostTable]:
    """Training, validation and test rows, and the prices."""
    if name == "pairs":
        return pairs(2000, 1), pairs(1000, 2), pairs(4000, 3), CostTable.uniform().bind(8)
    if name == "thyroid":
        place = FOLDER / "ann_thyroid_cost"
        train, test = (np.loadtxt(place / f"ann-{part}.data") for part in ("train", "test"))
        order = np.random.default_rng(0).permutation(len(train))
        parts = [train[order[:2800]], train[order[2800:]], test]
        costs = CostTable.from_toml(place / "costs.toml").bind(21)
        return *((part[:, :-1], part[:, -1].astype(int)) for part in parts), costs  # type: ignore[return-value]
    if name == "covertype":
        with gzip.open(FOLDER / "covertype" / "covtype.csv.gz", "rt") as file:
            table = np.loadtxt(file, delimiter=",", skiprows=1, max_rows=100_000)
        X, y, costs = table[:, :-1], table[:, -1].astype(int), CostTable.uniform().bind(54)
    else:
        with gzip.open(FOLDER / "frugalml" / f"{name}.csv.gz", "rt") as file:
            names = file.readline().strip().split(",")
            table = np.genfromtxt(file, delimiter=",")
        costs = CostTable.from_toml(FOLDER / "frugalml" / f"{name}.costs.toml")
        X, y = table[:, [names.index(f) for f in costs.features]], table[:, names.index("truth")].astype(int)
    order = np.random.default_rng(0).permutation(len(y))
    ends = [MOST_ROWS, MOST_ROWS + MOST_ROWS // 2, min(len(y), 3 * MOST_ROWS)]
    rows = order[: ends[0]], order[ends[0] : ends[1]], order[ends[1] : ends[2]]
    return *((X[part], y[part]) for part in rows), costs  # type: ignore[return-value]


def areas(name: str) -> ActiveClassifier:
    """Print the area of each method; returns the active model."""
    train, validation, test, costs = load(name)
    fronts, seconds = {}, {}
    model = ActiveClassifier(costs)
    for label, estimator in (
        ("active", model),
        ("Greedy Miser", GreedyMiserClassifier(costs)),
        ("Greedy Miser, by path", GreedyMiserClassifier(costs, charge="path")),
    ):
        began = time.process_time()
        n_points = 24 if label == "active" else 10
        grid = {"tradeoff": estimator.suggest_grid(train[1], n_points)}
        fronts[label] = frontier(estimator, train, validation, test=test, grid=grid, metric="accuracy", n_jobs=1)
        seconds[label] = time.process_time() - began
    costs_seen = [p.validation.cost["mean"] for f in fronts.values() for p in f.points]
    low, high = min(c for c in costs_seen if c > 0), max(costs_seen)
    free = (0.0, *(float((part[1] == np.bincount(train[1]).argmax()).mean()) for part in (validation, test)))
    for label, front in fronts.items():
        points = [(p.validation.cost["mean"], p.validation.quality, p.on("test").quality) for p in front.points]
        found = f"area {area([free, *points], low, high):.4f} from {low:.3g} to {high:.3g}"
        print(f"  {label}: {found}, {seconds[label]:.0f} s of CPU", flush=True)
        shown = [f"{p.test.cost['mean']:.3g}: {p.test.quality:.4f}" for p in front.pareto() if p.test]
        print(f"    mean cost: accuracy on test rows  {'  '.join(shown)}")
    plans = [p.model.plan_ for p in fronts["Greedy Miser"].pareto() if p.model.plan_.nodes]
    points = cascade_points(cascade(plans), validation, test)
    print(f"  cascade of the Greedy Misers: area {area([free, *points], low, high):.4f}")
    fitted: ActiveClassifier = fronts["active"].points[0].model
    return fitted


def cascade_points(plan: Plan, validation: Part, test: Part) -> list[tuple[float, float, float]]:
    """Mean cost and accuracy on validation rows, accuracy on test rows, for many confidences."""
    points = []
    for confidence in (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 1.0):
        one = plan.stopping(confidence)
        quality = [float((one.predict(X) == y).mean()) for X, y in (validation, test)]
        points.append((float(one.predict_cost(validation[0]).mean()), *quality))
    return points


def area(points: list[tuple[float, float, float]], low: float, high: float) -> float:
    """Mean accuracy on test rows over the logarithm of the budget: at each, the best point on validation rows."""
    total, edges = 0.0, sorted({low, high, *(cost for cost, _, _ in points if low < cost < high)})
    for first, end in pairwise(edges):
        best = max((point for point in points if point[0] <= first), key=lambda point: point[1])
        total += best[2] * np.log(end / first)
    return float(total / np.log(high / low))


def from_any_state(name: str, model: ActiveClassifier) -> None:
    """Calibration on random states of test rows, and the loss beside models retrained on the same features."""
    train, validation, test, _ = load(name)
    plan, rng = model.plan_, np.random.default_rng(0)
    rows = rng.integers(len(test[1]), size=N_STATES)
    known = rng.random((N_STATES, test[0].shape[1])) < rng.random((N_STATES, 1))
    codes = np.searchsorted(model.classes_, test[1])
    p = plan.probabilities(plan.run(test[0][rows], known=known, steps=0).z)
    top = p.max(axis=1)
    right, bins = p.argmax(axis=1) == codes[rows], np.minimum(14, (top * 15).astype(int))
    error = sum(abs(right[bins == b].mean() - top[bins == b].mean()) * (bins == b).mean() for b in np.unique(bins))
    print(f"  expected calibration error over {N_STATES} random states: {error:.4f} (goal ≤ 0.03)")
    prior = np.bincount(codes) / len(codes)
    constant, losses = -float(np.log(prior[codes]).mean()), []
    for _ in range(N_SUBSETS):
        columns = np.flatnonzero(rng.random(test[0].shape[1]) < rng.random())
        if not len(columns):
            columns = rng.integers(test[0].shape[1], size=1)
        alone = GreedyMiserClassifier(CostTable.uniform(), tradeoff=0.0, n_estimators=400, n_iter_no_change=20)
        alone.fit(train[0][:, columns], train[1], eval_set=(validation[0][:, columns], validation[1]))
        mask = np.zeros((len(test[1]), test[0].shape[1]), bool)
        mask[:, columns] = True
        ours = plan.probabilities(plan.run(test[0], known=mask, steps=0).z)
        theirs = alone.predict_proba(test[0][:, columns])
        at = np.arange(len(codes)), codes
        losses.append([-np.log(np.maximum(q[at], 1e-12)).mean() / constant for q in (ours, theirs)])
    mine, retrained = np.array(losses).T
    print(f"  loss from {N_SUBSETS} sets of features, as a part of the constant's: {mine.mean():.4f}, ", end="")
    more = mine - retrained
    print(f"retrained {retrained.mean():.4f}; more by {more.mean():.4f}, at most {more.max():.4f}", flush=True)


def speed() -> None:
    """The time of a fit at 5,000 × 50, and of one advice."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 50))
    y = X[:, :12] @ rng.normal(size=12) + 2 * X[:, 0] * X[:, 1] + rng.normal(size=5000) > 0
    ActiveClassifier(CostTable.uniform(), n_estimators=5).fit(X[:300], y[:300])
    wall, cpu = time.perf_counter(), time.process_time()
    plan = ActiveClassifier(CostTable.uniform()).fit(X, y).plan_
    print(f"5,000 × 50: fit {time.perf_counter() - wall:.0f} s, {time.process_time() - cpu:.0f} s of CPU (goal ≤ 60 s)")
    best = np.inf
    for _ in range(20):
        cpu = time.process_time()
        for _ in range(20):
            plan.start(given={"x3": 0.1, "x7": 1.0})
        best = min(best, (time.process_time() - cpu) / 20)
    print(f"  one advice: {1e3 * best:.2f} ms (goal ≤ 1 ms)")


def main(names: list[str] | None = None) -> None:
    """Measure."""
    for name in names or ["speed", *SETS]:
        if name == "speed":
            speed()
            continue
        print(f"{name}:", flush=True)
        from_any_state(name, areas(name))


if __name__ == "__main__":
    main(sys.argv[1:])

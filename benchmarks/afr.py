"""Anytime models: one training against the Greedy Miser retrained for each budget, all with the squared hinge.

`python -m benchmarks.afr [frontier] [classes] [xor] [large] [--data NAME ...] [--splits N]`

- frontier: areas of quality over the logarithm of the budget (as in `frontier_vs_peers`: points chosen on validation,
  read on test). The retrained miser has 15 exchange rates, each stopped after 1, 2, 4, … rounds; AFR and the anytime
  miser are one fit each, their points the stages of one plan. Two ablations show what AFR's gradient does: none of its
  trees, with as many dimensions, and with twice as many.
- classes: one curve for several classes, ann-thyroid and letter.
- xor: the paper's picture; 20 seeds are a slow test.
- large: 100,000 × 519, S = 20, T = 10, five λ: time and memory beside the data.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.frontier_vs_peers.data import Part, Problem, Split, folder, load
from benchmarks.frontier_vs_peers.methods import Settings, miser
from benchmarks.frontier_vs_peers.scoring import in_stages, limits
from benchmarks.timing import memory_watched
from miserly.costs import CostTable
from miserly.datasets import noisy_xor
from miserly.estimators import AFRClassifier, AnytimeMiserClassifier
from miserly.experiments import interval
from miserly.frontiers._front import Frontier, Measured, Point
from miserly.kernels.threads import threads
from miserly.metrics import Metric, get_metric
from miserly.plan import Plan

OUT = Path(__file__).resolve().parent / "out"
SPLITS = {"covertype": 3, "letter": 5, "mq2008": 5, "yahoo_like": 10, "thyroid": 3}
RELEVANT = {"mq2008": 1, "yahoo_like": 3}
N_PICTURES = 4


# ---- data ---------------------------------------------------------------------------------------------------------


@cache
def problem(name: str) -> Problem:
    """ann-thyroid as it is; ranking sets with two grades; covertype's second class against the others; the first half
    of the alphabet against the second."""
    if name == "covertype":
        return _covertype()
    if name == "letter":
        return _halves_of_letters()
    found = load(name)
    if name not in RELEVANT:
        return found

    def split(i: int) -> Split:
        return Split(*(Part(p.X, (p.y >= RELEVANT[name]).astype(int), p.qid) for p in found.split(i)))

    return replace(found, split=split)


def _covertype(n_rows: int = 50_000) -> Problem:
    with gzip.open(folder() / "covertype" / "covtype.csv.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.float32, skiprows=1)

    def split(i: int) -> Split:
        drawn = table[np.random.default_rng(i).permutation(len(table))[:n_rows]]
        X, y = drawn[:, :-1].astype(np.float64), (drawn[:, -1] == 2).astype(int)
        ends = (0, int(0.6 * n_rows), int(0.8 * n_rows), n_rows)
        return Split(*(Part(X[a:b], y[a:b]) for a, b in pairwise(ends)))

    prices = CostTable.per_feature(np.ones(table.shape[1] - 1))
    return Problem("covertype", get_metric("accuracy"), prices, None, 20, 3, 0.0, split)


def _halves_of_letters() -> Problem:
    def split(i: int) -> Split:
        parts, _ = letter(i)
        return Split(*(Part(part.X, (part.y <= "M").astype(int)) for part in parts))

    return Problem("letter", get_metric("accuracy"), letter()[1], None, 20, 5, 0.0, split)


def letter(seed: int = 0) -> tuple[Split, CostTable]:
    """26 classes, 16 features at a price of 1."""
    with gzip.open(folder() / "letter" / "letter-recognition.data.gz", "rt") as file:
        lines = [line.strip().split(",") for line in file][1:]
    rows = np.random.default_rng(seed).permutation(len(lines))
    X, y = np.array([line[1:] for line in lines], float)[rows], np.array([line[0] for line in lines])[rows]
    parts = (Part(X[a:b], y[a:b]) for a, b in ((0, 12_000), (12_000, 16_000), (16_000, 20_000)))
    return Split(*parts), CostTable.per_feature(np.ones(X.shape[1]))


# ---- methods ------------------------------------------------------------------------------------------------------


def retrained(split: Split, found: Problem) -> list[Plan]:
    """The envelope: the miser fitted for each of 15 exchange rates."""
    how = Settings(found.min_samples_leaf, is_ranking=False)
    return [in_stages(plan) for plan in miser(split, found.flat, how, loss="squared_hinge")]


def anytime_miser(split: Split, found: Problem) -> list[Plan]:
    """One fit; trees as those of the retrained."""
    least = found.min_samples_leaf
    model = AnytimeMiserClassifier(found.flat, max_leaf_nodes=8, min_samples_leaf=least, loss="squared_hinge")
    return [model.fit(split.train.X, split.train.y).plan_]


def afr(split: Split, found: Problem, **settings: int) -> list[Plan]:
    """One fit with its defaults; held out are the rows that the points are chosen on, so that it has the same to learn
    from as the others."""
    model = AFRClassifier(found.flat, min_samples_leaf=found.min_samples_leaf, random_state=0, **settings)
    held_out = split.validation.X, split.validation.y
    return [model.fit(split.train.X, split.train.y, eval_set=held_out).plan_]


METHODS: dict[str, Callable[[Split, Problem], list[Plan]]] = {
    "miser, retrained": retrained,
    "anytime miser": anytime_miser,
    "AFR": afr,
    "AFR without its gradient": lambda split, found: afr(split, found, n_trees_per_dim=0),
    "same, twice the dimensions": lambda split, found: afr(split, found, n_trees_per_dim=0, n_dims=40),
}


# ---- frontier -----------------------------------------------------------------------------------------------------


def front(plans: Iterable[Plan], split: Split, metric: Metric) -> Frontier:
    """All stages of some plans, and the free constant answer."""
    points = [_constant(split, metric)]
    for plan in plans:
        parts = [list(_measured(plan, part, metric)) for part in (split.validation, split.test)]
        points += [Point({}, None, *both, 0.0) for both in zip(*parts)]
    return Frontier(tuple(points), metric, "units")


def _measured(plan: Plan, part: Part, metric: Metric) -> Iterable[Measured]:
    for run in plan.stages(part.X):
        answer = run.score[:, 0] if metric.input == "score" else plan.read(run.z)
        yield Measured.of(metric(part.y, answer, qid=part.qid), run.cost)


def _constant(split: Split, metric: Metric) -> Point:
    values, counts = np.unique(split.train.y, return_counts=True)
    parts = []
    for part in (split.validation, split.test):
        answer = np.full(len(part.y), 0.0 if metric.grouped else values[np.argmax(counts)])
        parts.append(Measured.of(metric(part.y, answer, qid=part.qid), np.zeros(len(part.y))))
    return Point({}, None, *parts, 0.0)


def frontiers(names: Sequence[str], n_splits: int | None) -> None:
    """One table for each data set; differences are paired by split."""
    for name in names:
        found = problem(name)
        low, high = limits(found.flat, Settings.n_estimators)
        splits = range(min(SPLITS[name], n_splits or SPLITS[name]))
        areas: dict[str, list[float]] = {method: [] for method in METHODS}
        cpu = dict.fromkeys(METHODS, 0.0)
        for i in splits:
            split = found.split(i)
            for method, fit in METHODS.items():
                began = time.process_time()
                plans = fit(split, found)
                cpu[method] += (time.process_time() - began) / len(splits)
                areas[method].append(front(plans, split, found.metric).area(low, high, on="test"))
            print(f"  {name} {i}: " + ", ".join(f"{m} {a[-1]:.4f}" for m, a in areas.items()), flush=True)
        _print(found, areas, cpu, low, high)


def _print(found: Problem, areas: dict[str, list[float]], cpu: dict[str, float], low: float, high: float) -> None:
    n = len(areas["AFR"])
    print(f"\n{found.name}: area of {found.metric.name} over log budget {low:g} … {high:g}, {n} splits")
    print(f"  {'':<28}{'area':>8}{'÷ retrained':>13}{'± 95 %':>9}{'− AFR':>10}{'± 95 %':>9}{'CPU s':>8}")
    for method, values in areas.items():
        mine = np.array(values)
        ratio, half = interval(mine / np.array(areas["miser, retrained"]), found.overlap)
        less, half_less = interval(mine - np.array(areas["AFR"]), found.overlap)
        line = (
            f"  {method:<28}{mine.mean():8.4f}{ratio:13.4f}{half:9.4f}{less:+10.4f}{half_less:9.4f}{cpu[method]:8.1f}"
        )
        print(line, flush=True)


# ---- several classes ----------------------------------------------------------------------------------------------


def classes() -> None:
    """The points of one curve that are best on validation, read on test."""
    thyroid = problem("thyroid")
    some = {"n_dims": 10, "n_trees_per_dim": 3, "n_levels": 8}
    for name, (split, costs), settings in (
        ("ann-thyroid, 3 classes", (thyroid.split(0), thyroid.flat), {}),
        ("letter, 26 classes", letter(), some),
    ):
        began = time.process_time()
        plan = AFRClassifier(costs, random_state=0, **settings).fit(split.train.X, split.train.y).plan_
        seconds = time.process_time() - began
        print(
            f"\n{name}: {len(plan.dictionary)} trees, {len(plan.nodes)} stages, {seconds:.0f} s of CPU; cost: accuracy"
        )
        best = front([plan], split, get_metric("accuracy")).pareto()
        print(
            "  " + ", ".join(f"{p.on('test').cost['mean']:.4g}: {p.on('test').quality:.3f}" for p in best), flush=True
        )


# ---- the paper's picture ------------------------------------------------------------------------------------------


def xor(seed: int = 100, path: Path = OUT / "afr_xor.png") -> None:
    """The test rows as the SVM sees them at several budgets, and the SVM over the iterations.

    Across lies the distance from the hyperplane, upwards the direction in which the rows spread most besides.
    """
    data = noisy_xor(1000, seed, squares=(1, 2))
    model = AFRClassifier(data.costs, n_dims=2, n_trees_per_dim=10, max_depth=4, random_state=seed)
    model.fit(data.X[:640], data.y[:640])
    X, y = data.X[640:], data.y[640:]
    figure = Figure(figsize=(15, 3.4), layout="constrained")
    *left, right = figure.subplots(1, N_PICTURES + 1)
    prices = [stage.cost[0] for stage in model.plan_.stages(X[:1])]
    for ax, k in zip(left, np.linspace(0, len(prices) - 1, N_PICTURES).round().astype(int)):
        stage, budget = model.stages_[k], prices[k]
        phi = np.zeros((len(X), len(stage.w)))
        for tree, s in zip(stage.trees, stage.dims):
            phi[:, s] += model.plan_.dictionary.evaluate(X, int(tree))
        length = np.linalg.norm(stage.w)
        across = (phi @ stage.w + stage.b) / length
        rest = phi - np.outer(phi @ stage.w / length**2, stage.w)
        rest -= rest.mean(axis=0)
        upwards = rest @ np.linalg.svd(rest, full_matrices=False)[2][0]
        for label, colour in ((-1, "tab:blue"), (1, "tab:red")):
            ax.scatter(across[y == label], upwards[y == label], s=6, c=colour)
        ax.axvline(0, color="black")
        for side in (-1, 1):
            ax.axvline(side / length, color="grey", linewidth=0.8)
        ax.set_title(f"cost {budget:g}: accuracy {np.mean(model.predict(X, budget) == y):.3f}", fontsize=9)
    for values, name in zip(model.trace_.T, ("w₁", "w₂", "b")):
        right.plot(values, label=name, linewidth=1)
    other = right.twinx()
    other.plot(model.trace_[:, 3] * 320, color="black", linewidth=1, linestyle=":", label="C · rows")
    right.set_xlabel("trees")
    right.legend(fontsize=8, loc="upper left")
    other.legend(fontsize=8, loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"{path}: accuracy {np.mean(model.predict(X, budget=95) == y):.3f} within 95", flush=True)


# ---- large --------------------------------------------------------------------------------------------------------


def large() -> None:
    """Measure in a process of its own."""
    subprocess.run([sys.executable, "-m", "benchmarks.afr", "measure"], check=True)


def measure(n_rows: int = 100_000) -> None:
    from miserly.datasets import yahoo_like

    data = yahoo_like(4350, seed=0)
    X, y = data.X[:n_rows], data.y[:n_rows] >= RELEVANT["yahoo_like"]
    assert len(X) == n_rows
    model = AFRClassifier(data.costs, n_dims=20, n_trees_per_dim=10, n_levels=5, random_state=0)
    AFRClassifier(data.costs, n_levels=2, random_state=0).fit(X[:2000], y[:2000])
    wall, cpu = time.perf_counter(), time.process_time()
    with memory_watched() as peak:
        model.fit(X, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    stage = model.stages_[-1]
    print(f"AFR, {X.shape[0]} × {X.shape[1]} float32 ({X.nbytes / 2**20:.0f} MiB), S = 20, T = 10, five λ:")
    print(
        f"  {len(model.plan_.dictionary)} trees in {len(stage.w)} dimensions, {len(model.plan_.nodes)} stages", end=", "
    )
    print(f"{wall:.0f} s ({cpu:.0f} s of CPU), at most {peak.extra / 2**20:.0f} MiB beside the data", flush=True)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.afr", description=__doc__)
    parser.add_argument("parts", nargs="*", default=["frontier", "classes", "xor", "large"])
    parser.add_argument("--data", nargs="+", choices=[*SPLITS], default=[*SPLITS])
    parser.add_argument("--splits", type=int)
    options = parser.parse_args(arguments)
    parts = {"classes": classes, "xor": xor, "large": large, "measure": measure}
    for part in options.parts:
        with threads(None if part in ("large", "measure") else 1):
            frontiers(options.data, options.splits) if part == "frontier" else parts[part]()


if __name__ == "__main__":
    main(sys.argv[1:])

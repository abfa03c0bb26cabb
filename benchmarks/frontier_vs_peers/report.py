"""What is printed and written: tables with intervals, verdicts, CSV files, pictures."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from benchmarks.frontier_vs_peers.data import DEVELOPMENT, Problem
from benchmarks.frontier_vs_peers.methods import AUTO, MISER
from benchmarks.frontier_vs_peers.scoring import ALL_PEERS, N_BUDGETS, Result, limits
from miserly.experiments import interval


@dataclass(frozen=True)
class Verdict:
    """One of ours less a peer on a data set under a price table, in the mean of the splits; `area` is the peer's."""

    data: str
    table: str
    ours: str
    peer: str
    area: float
    difference: float
    half: float

    @property
    def word(self) -> str:
        """What the interval says of ours."""
        if math.isnan(self.half):
            return "one split cannot tell"
        if abs(self.difference) <= self.half:
            return "undecided"
        return "better" if self.difference > 0 else "worse"

    def line(self) -> str:
        """The verdict in words."""
        where = f"{self.data} {self.table}"
        return f"{where:<18} {self.ours:<6} less {self.peer:<30} {self.difference:+.4f} ± {self.half:.4f}  {self.word}"


def report(problem: Problem, results: Sequence[Result], out: Path, n_estimators: int) -> list[Verdict]:
    """Print the tables of one data set, write its files, return its verdicts."""
    verdicts = []
    for table in dict.fromkeys(r.table for r in results):
        mine = [r for r in results if r.table == table]
        costs = problem.flat if table == "flat" else problem.shared
        low, high = limits(costs, n_estimators)
        verdicts += _print_table(problem, table, mine, low, high)
        _draw(problem, table, mine, low, high, costs.unit, out / f"{problem.name}_{table}.png")
    _write(problem, results, out)
    return verdicts


def _areas(results: Sequence[Result], attribute: str = "area") -> dict[str, np.ndarray]:
    ordered = sorted(results, key=lambda r: r.split)
    names = dict.fromkeys(r.method for r in ordered)
    return {name: np.array([getattr(r, attribute) for r in ordered if r.method == name]) for name in names}


def _print_table(problem: Problem, table: str, results: Sequence[Result], low: float, high: float) -> list[Verdict]:
    areas = _areas(results)
    ours = {r.method for r in results if r.ours}
    n = len(next(iter(areas.values())))
    metric = problem.metric.name
    print(f"\n{problem.name}, {table} prices: area of {metric} over log budget {low:g} … {high:g}, {n} splits")
    print(f"  {'method':<28}{'area':>8}{'± 95 %':>9}{'− ours':>10}{'± 95 %':>9}   {'points cost':<16}{'CPU s':>7}")
    reference = areas.get(AUTO, areas.get(MISER))
    for name, values in areas.items():
        mean, half = interval(values, problem.overlap)
        line = f"  {name + (' *' if name in ours else ''):<28}{mean:8.4f}{half:9.4f}"
        paired = (math.nan, math.nan) if reference is None else interval(values - reference, problem.overlap)
        line += f"{paired[0]:+10.4f}{paired[1]:9.4f}"
        ends = np.mean([r.ends for r in results if r.method == name], axis=0)
        seconds = np.mean([r.seconds for r in results if r.method == name])
        print(f"{line}   {f'{ends[0]:.3g} … {ends[1]:.4g}':<16}{seconds:7.2f}")
    return _verdicts(problem, table, areas, ours)


def _verdicts(problem: Problem, table: str, areas: dict[str, np.ndarray], ours: set[str]) -> list[Verdict]:
    return [
        Verdict(
            problem.name, table, name, peer, float(of_peer.mean()), *interval(areas[name] - of_peer, problem.overlap)
        )
        for name in (AUTO, MISER)
        if name in areas
        for peer, of_peer in areas.items()
        if peer not in ours and peer != ALL_PEERS
    ]


def print_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Ours less the best peer of each data set, then in the mean of each half less each peer that was on all sets."""
    print("\nLess the peer that is best on the test rows of the set:")
    cases = dict.fromkeys((v.data, v.table, v.ours) for v in verdicts)
    for case in cases:
        print("  " + max((v for v in verdicts if (v.data, v.table, v.ours) == case), key=lambda v: v.area).line())
    print("\nIn the mean of the sets (the interval is that of splits, not of sets):")
    for ours in (AUTO, MISER):
        for half in ("developed on", "kept for the end"):
            mine = [v for v in verdicts if v.ours == ours and (v.data in DEVELOPMENT) == (half == "developed on")]
            n_cases = len({(v.data, v.table) for v in mine})
            for peer in dict.fromkeys(v.peer for v in mine):
                these = [v for v in mine if v.peer == peer]
                if len(these) == n_cases:
                    mean, width = np.mean([v.difference for v in these]), math.hypot(*[v.half for v in these]) / n_cases
                    counts = ", ".join(
                        f"{sum(v.word == w for v in these)} {w}" for w in ("better", "undecided", "worse")
                    )
                    print(f"  {half:<17}{n_cases} cases  {ours:<6} less {peer:<30} {mean:+.4f} ± {width:.4f}  {counts}")


def _write(problem: Problem, results: Sequence[Result], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with (out / f"{problem.name}_areas.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["table", "split", "method", "test_area", "validation_area", "cheapest", "dearest", "cpu"])
        for r in results:
            writer.writerow([r.table, r.split, r.method, r.area, r.validation_area, *r.ends, round(r.seconds, 3)])
    with (out / f"{problem.name}_points.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        columns = ["validation_cost", "validation_quality", "test_cost", "test_quality"]
        writer.writerow(["table", "split", "method", *columns])
        writer.writerows([r.table, r.split, r.method, *point] for r in results for point in r.points)


def _draw(
    problem: Problem, table: str, results: Sequence[Result], low: float, high: float, unit: str, path: Path
) -> None:
    """The mean over splits of what each method answers within a budget."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    ax = figure.subplots()
    ax.set_prop_cycle(color=colormaps["tab20"].colors)
    budgets = np.geomspace(low, high, N_BUDGETS)
    for name, steps in _areas(results, "steps").items():
        if name == ALL_PEERS:
            continue
        is_ours = any(r.ours for r in results if r.method == name)
        style = {"linewidth": 2.4} if name == AUTO else {"linewidth": 1.3}
        ax.plot(budgets, steps.mean(axis=0), "-" if is_ours else "--", label=name, **style)
    ax.set_xscale("log")
    ax.set_xlabel(f"budget per row ({unit})")
    ax.set_ylabel(f"{problem.metric.name} on test")
    ax.set_title(f"{problem.name}, {table} prices: best within each budget, chosen on validation")
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8)
    figure.savefig(path, dpi=130)

"""The command: see the package's docstring."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from joblib import Parallel, delayed

import benchmarks.family as package
from benchmarks.family.claims import POOLS, print_above, print_tree
from benchmarks.family.data import SETS, table_of
from benchmarks.family.methods import cronus_settings, dictionary, methods_of, settings_of
from benchmarks.frontier_vs_peers.data import available
from benchmarks.frontier_vs_peers.report import report
from benchmarks.frontier_vs_peers.scoring import Result, limits, one_table
from miserly.kernels.threads import threads


def main(arguments: list[str] | None = None) -> None:
    """Run, print, write."""
    options = _options(arguments)
    for name in available(options.sets):
        problem, started = SETS[name](), time.perf_counter()
        n_splits = min(problem.n_splits, options.splits or problem.n_splits)
        results: list[Result] = []
        jobs = (delayed(one_split)(name, i) for i in range(n_splits))
        for part, seconds in Parallel(options.n_jobs, return_as="generator")(jobs):
            results += part
            best = max((r for r in part if r.method not in POOLS), key=lambda r: r.validation_area)
            print(
                f"{name} {part[0].split + 1}/{n_splits}: {seconds:.0f} CPU s, "
                f"best on validation {best.method} ({best.validation_area:.4f})",
                flush=True,
            )
        costs, how = table_of(problem)[1], settings_of(problem)
        report(problem, results, options.out, how.n_estimators)
        if problem.is_ranking:
            print_above(problem, results, *limits(costs, how.n_estimators))
        else:
            print_tree(problem, results)
        print(f"\n{name}: {time.perf_counter() - started:.0f} s; files in {options.out}\n", flush=True)


def one_split(name: str, number: int) -> tuple[list[Result], float]:
    """All methods on one split, and the CPU seconds."""
    started, problem = time.process_time(), SETS[name]()
    split, (table, costs), how = problem.split(number), table_of(problem), settings_of(problem)
    with threads(1):
        trees = dictionary(split, costs, how)
        cronus = cronus_settings(problem, split, costs, how, trees) if problem.is_ranking else {}
        methods = methods_of(problem, trees, cronus)
        results = one_table(problem, split, number, methods, how, table, costs, {})
    return results, time.process_time() - started


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.family",
        description=package.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sets", nargs="+", choices=[*SETS], default=[*SETS])
    parser.add_argument("--splits", type=int, help="at most this many splits of each data set")
    parser.add_argument("--n-jobs", type=int, default=1, help="processes, one split each at a time")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[1] / "out" / "family")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

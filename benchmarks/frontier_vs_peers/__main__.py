"""The command: see the package's docstring."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from joblib import Parallel, delayed

import benchmarks.frontier_vs_peers as package
from benchmarks.frontier_vs_peers.data import LOADERS, available, load
from benchmarks.frontier_vs_peers.methods import Settings
from benchmarks.frontier_vs_peers.report import print_verdicts, report
from benchmarks.frontier_vs_peers.scoring import Result, one_split

QUICK_SPLITS, QUICK_POINTS = 2, 8


def main(arguments: list[str] | None = None) -> None:
    """Run, print, write."""
    options = _options(arguments)
    n_points = QUICK_POINTS if options.quick else Settings.n_points
    words = tuple(options.methods)
    verdicts = []
    started = time.perf_counter()
    for name in available(options.data):
        problem = load(name)
        n_splits = min(problem.n_splits, options.splits or problem.n_splits, QUICK_SPLITS if options.quick else 1000)
        jobs = (delayed(one_split)(name, i, words, n_points, options.neural) for i in range(n_splits))
        results: list[Result] = []
        done = Parallel(options.n_jobs, return_as="generator_unordered")(jobs)
        for number, part in enumerate(done, start=1):
            results += part
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{name}: {number}/{n_splits} splits" + ("\n" if number == n_splits else ""))
        results.sort(key=lambda r: r.split)
        verdicts += report(problem, results, options.out, Settings.n_estimators)
    print_verdicts(verdicts)
    print(f"\n{time.perf_counter() - started:.0f} s on {options.n_jobs} processes; files in {options.out}")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.frontier_vs_peers",
        description=package.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_SPLITS} splits, {QUICK_POINTS} points")
    parser.add_argument("--data", nargs="+", choices=[*LOADERS], default=[*LOADERS])
    parser.add_argument("--methods", nargs="+", default=[], help="words: methods whose name has one of them")
    parser.add_argument("--neural", metavar="PYTHON", help="with PyTorch: also DIME and GDFS (see benchmarks.neural)")
    parser.add_argument("--splits", type=int, help="at most this many splits of each data set")
    parser.add_argument("--n-jobs", type=int, default=1, help="processes, one split each at a time")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[1] / "out")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

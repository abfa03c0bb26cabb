"""AFR at 100,000 × 519, S = 20, T = 10, five λ: time, and memory beside the data.

`miserly reproduce afr-anytime` measures how good it is.
"""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.timing import memory_watched
from miserly.datasets import yahoo_like
from miserly.estimators import AFRClassifier

RELEVANT = 3


def main() -> None:
    """Measure in a process of its own."""
    subprocess.run([sys.executable, "-m", "benchmarks.afr", "measure"], check=True)


def measure(n_rows: int = 100_000) -> None:
    """Fit a small model first, so that kernels are compiled, then the large one."""
    data = yahoo_like(4350, seed=0)
    X, y = data.X[:n_rows], data.y[:n_rows] >= RELEVANT
    AFRClassifier(data.costs, n_levels=2, random_state=0).fit(X[:2000], y[:2000])
    model = AFRClassifier(data.costs, n_dims=20, n_trees_per_dim=10, n_levels=5, random_state=0)
    wall, cpu = time.perf_counter(), time.process_time()
    with memory_watched() as peak:
        model.fit(X, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    n_dims = len(model.stages_[-1].w)
    print(f"AFR, {X.shape[0]} × {X.shape[1]} float32 ({X.nbytes / 2**20:.0f} MiB), S = 20, T = 10, five λ:")
    print(f"  {len(model.plan_.dictionary)} trees in {n_dims} dimensions, {len(model.plan_.nodes)} stages", end=", ")
    print(f"{wall:.0f} s ({cpu:.0f} s of CPU), at most {peak.extra / 2**20:.0f} MiB beside the data", flush=True)


if __name__ == "__main__":
    measure() if sys.argv[1:] == ["measure"] else main()

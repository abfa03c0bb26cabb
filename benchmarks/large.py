"""The size of the papers' largest set: 473,134 × 519 rows, 1000 trees of three levels, all cores (not in `make bench`).

`python -m benchmarks large`
"""

import resource
import subprocess
import sys
import time

import psutil

N_ROWS, N_QUERIES, N_TREES, TRADEOFF = 473_134, 20_100, 1000, 1e-6


def main() -> None:
    """Measure in a process of its own."""
    subprocess.run([sys.executable, "-m", "benchmarks.large"], check=True)


def measure() -> None:
    from miserly.datasets import yahoo_like
    from miserly.estimators import GreedyMiserRegressor

    data = yahoo_like(N_QUERIES, seed=0)
    X, y = data.X[:N_ROWS], data.y[:N_ROWS]
    assert len(X) == N_ROWS
    GreedyMiserRegressor(data.costs, n_estimators=2).fit(X[:2000], y[:2000])
    loaded = psutil.Process().memory_info().rss
    print(f"{N_ROWS} × {X.shape[1]} float32, {X.nbytes / 2**20:.0f} MiB; {psutil.cpu_count()} cores")
    for charge in ("learner", "path"):
        model = GreedyMiserRegressor(data.costs, TRADEOFF, n_estimators=N_TREES, max_depth=3, charge=charge)
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(X, y)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        cost = model.predict_cost(X[:20_000]).mean()
        print(f"  charge={charge}: {model.n_iter_} trees in {wall:.0f} s ({cpu:.0f} s of CPU)", end=", ")
        print(f"loss {model.train_loss_[-1]:.4f}, cost {cost:.0f}", end=", ")
        print(f"at most {(peak - loaded) / 2**20:.0f} MiB beside the data", flush=True)


if __name__ == "__main__":
    measure()

"""Extra memory of `fit`: its peak resident size over what is there with the data loaded and the kernels compiled."""

import subprocess
import sys

from benchmarks.timing import memory_watched

N_QUERIES = 8700


def main() -> None:
    """Measure in a process of its own."""
    subprocess.run([sys.executable, "-m", "benchmarks.memory"], check=True)


def measure() -> None:
    from miserly.datasets import yahoo_like
    from miserly.estimators import GreedyMiserRegressor

    data = yahoo_like(N_QUERIES, seed=0)
    model = GreedyMiserRegressor(data.costs, tradeoff=1e-5, n_estimators=20)
    model.fit(data.X[:2000], data.y[:2000])
    with memory_watched(every=0.002) as peak:
        model.fit(data.X, data.y)
    extra = peak.extra / 2**20
    allowed = 1.3 * data.X.size / 2**20 + 300
    verdict = "met" if extra <= allowed else "MISSED"
    print(f"Memory of fit, {data.X.shape[0]} × {data.X.shape[1]} float32 ({data.X.nbytes / 2**20:.0f} MiB):")
    print(f"  extra peak {extra:.0f} MiB; allowed 1.3 bytes a cell + 300 MB = {allowed:.0f} MiB: {verdict}")


if __name__ == "__main__":
    measure()

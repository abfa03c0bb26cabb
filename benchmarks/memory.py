"""Extra memory of `fit`: peak resident size over what is there with the data loaded and the kernels compiled."""

import resource
import subprocess
import sys

N_QUERIES = 8700


def main() -> None:
    """Measure in a process of its own, since a peak is never forgotten."""
    subprocess.run([sys.executable, "-m", "benchmarks.memory"], check=True)


def measure() -> None:
    from miserly.datasets import yahoo_like
    from miserly.estimators import GreedyMiserRegressor

    data = yahoo_like(N_QUERIES, seed=0)
    model = GreedyMiserRegressor(data.costs, tradeoff=1e-5, n_estimators=20)
    before = _peak()
    model.fit(data.X, data.y)
    extra = _peak() - before
    allowed = 1.3 * data.X.size / 2**20 + 300
    verdict = "met" if extra <= allowed else "MISSED"
    print(f"Memory of fit, {data.X.shape[0]} × {data.X.shape[1]} float32 ({data.X.nbytes / 2**20:.0f} MiB):")
    print(f"  extra peak {extra:.0f} MiB; allowed 1.3 bytes a cell + 300 MB = {allowed:.0f} MiB: {verdict}")


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    measure()

"""Data larger than memory: Parquet files of 4,000,000 × 519 float32 (8.3 GB), put in bins and trained on in few GB.

`python -m benchmarks out_of_core` (not in `make bench`: it needs 11 GB in TMPDIR; smaller with ROWS=400000). The peer
is our own engine with the same bins in memory: the plans must be equal.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

N_ROWS, N_FEATURES, N_PIECES, N_TREES = int(os.environ.get("ROWS", "4000000")), 519, 16, 50
MOST_GIB, MOST_RATIO = 4.0, 1.3


def main() -> None:
    """Every step in a process of its own, so that its peak of memory is its own."""
    with tempfile.TemporaryDirectory(prefix="out-of-core-") as folder:
        for step in ("make", "bins", "mapped", "memory"):
            subprocess.run([sys.executable, "-m", "benchmarks.out_of_core", step, folder], check=True)


def make(folder: Path) -> None:
    """The files, a piece at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    loading = np.random.default_rng(0).normal(size=(8, N_FEATURES)).astype(np.float32)
    for piece in range(N_PIECES):
        rng = np.random.default_rng([1, piece])
        n_rows = N_ROWS // N_PIECES
        X = rng.standard_normal((n_rows, N_FEATURES), np.float32)
        X += rng.standard_normal((n_rows, 8), np.float32) @ loading
        y = X[:, 0] * (X[:, 1] > 0) + np.abs(X[:, 2]) + X[:, 3:40:4].sum(axis=1) / 4
        X[rng.random(n_rows) < 0.1, 5] = np.nan
        columns = {f"x{f}": X[:, f] for f in range(N_FEATURES)} | {"y": y.astype(np.float32)}
        pq.write_table(pa.table(columns), folder / f"{piece:02}.parquet", compression="none", use_dictionary=False)
    size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    print(f"{N_ROWS} × {N_FEATURES} float32 in {N_PIECES} Parquet files: {size / 1e9:.1f} GB", flush=True)


def bins(folder: Path) -> None:
    """Both passes."""
    import miserly as ms

    started = time.perf_counter(), time.process_time()
    ms.BinnedDataset.from_parquet(sorted(folder.glob("*.parquet")), folder / "bins", label="y", n_jobs=1)
    report("put in bins, two passes and the check", started, N_ROWS * N_FEATURES)


def mapped(folder: Path) -> None:
    """Train from the mapped file, and predict from it."""
    import miserly as ms

    data = ms.BinnedDataset(folder / "bins")
    warm_up()
    started = time.perf_counter(), time.process_time()
    fitted = model().fit(data, data.y)
    cpu = report(f"{fitted.n_iter_} trees from the file", started, N_ROWS * N_FEATURES * fitted.n_iter_)
    started = time.perf_counter(), time.process_time()
    error = float(np.mean((fitted.predict(data) - data.y) ** 2) / np.var(data.y))
    report(f"predictions (error {error:.3f} of the variance)", started, N_ROWS * N_FEATURES)
    fitted.plan_.save(folder / "mapped.plan")
    (folder / "cpu").write_text(str(cpu))


def memory(folder: Path) -> None:
    """The same with the bins in memory."""
    import miserly as ms

    data = ms.BinnedDataset(folder / "bins")
    data.data = type(data.data)(np.array(data.data.words), data.data.cuts, data.data.n_bins)
    warm_up()
    started = time.perf_counter(), time.process_time()
    fitted = model().fit(data, data.y)
    cpu = report(f"{fitted.n_iter_} trees from memory", started, N_ROWS * N_FEATURES * fitted.n_iter_, limit=False)
    same = fitted.plan_ == ms.load_plan(folder / "mapped.plan")
    ratio = float((folder / "cpu").read_text()) / cpu
    verdict = "met" if ratio <= MOST_RATIO and same else "MISSED"
    print(f"  CPU a cell, file over memory: {ratio:.2f} (goal {MOST_RATIO}: {verdict}); same plan: {same}")


def model():
    import miserly as ms

    return ms.GreedyMiserRegressor(ms.CostTable.uniform(), tradeoff=1e-5, n_estimators=N_TREES, max_depth=3, n_jobs=1)


def warm_up() -> None:
    rng = np.random.default_rng(0)
    model().set_params(n_estimators=2).fit(rng.normal(size=(2000, 9)), rng.normal(size=2000))


def report(what: str, started: tuple[float, float], n_cells: int, limit: bool = True) -> float:
    wall, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    verdict = f" (goal {MOST_GIB:g}: {'met' if peak <= MOST_GIB else 'MISSED'})" if limit else ""
    times = f"{wall:.0f} s, {cpu:.0f} s of CPU, {1e9 * cpu / n_cells:.2f} ns a cell"
    print(f"  {what}: {times}; peak {peak:.2f} GiB{verdict}", flush=True)
    return cpu


if __name__ == "__main__":
    {"make": make, "bins": bins, "mapped": mapped, "memory": memory}[sys.argv[1]](Path(sys.argv[2]))

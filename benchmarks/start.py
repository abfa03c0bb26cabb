"""How long it takes until something happens: the import, the command's help, the first fit with compiled kernels.

Each is a process of its own, least wall-clock time of several. `import miserly` loads its packages when they are used;
of the fit only what follows the import of packages and libraries counts, which is the loading of the kernels.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.table import record

RUNS = 7
FIT = """
import time
import numpy as np
import miserly as ms
import miserly.estimators
X = np.random.default_rng(0).normal(size=(200, 4))
began = time.perf_counter()
ms.GreedyMiserRegressor(ms.CostTable.per_feature([1, 2, 3, 4]), 0.01, n_estimators=3).fit(X, X[:, 0]).predict(X)
print(time.perf_counter() - began)
"""


def seconds(*command: str) -> float:
    """The least wall-clock time of a command."""
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    python = sys.executable
    bare = seconds(python, "-c", "pass")
    loaded = seconds(python, "-c", "import miserly") - bare
    helped = seconds(str(Path(python).with_name("miserly")), "--help")
    fits = [float(subprocess.run([python, "-c", FIT], check=True, capture_output=True).stdout) for _ in range(RUNS)]
    print(f"  Python alone {1e3 * bare:.0f} ms")
    record("`import miserly`", 1e3 * loaded, "ms", most=60)
    record("`miserly --help`", 1e3 * helped, "ms", most=150)
    record("first fit and prediction of a process, kernels compiled before", min(fits), "s", most=0.7)
    record("the same with nothing compiled before, CPU with imports", cold(python), "s", most=10)


def cold(python: str) -> float:
    """CPU seconds of a process that compiles everything."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-c", FIT + "print(time.process_time())"]
        done = subprocess.run(command, check=True, capture_output=True, env={**os.environ, "NUMBA_CACHE_DIR": folder})
    return float(done.stdout.split()[-1])

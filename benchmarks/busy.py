"""CPU time on a busy machine: two fits side by side on two cores, and one AFR fit beside two processes that only count.

Default settings in processes of their own, so that all threads are those that a user gets. CPU seconds of the fits
alone, without imports and compiling, best of three.
"""

import subprocess
import sys
from contextlib import ExitStack

from benchmarks.table import record

RUNS = 3
HEAD = """
import sys, time
import numpy as np
import miserly as ms
rng = np.random.default_rng(0)
def timed(model, X, y):
    model.fit(X[:400], y[:400])
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.process_time()
    model.fit(X, y)
    print(time.process_time() - began, flush=True)
"""
FITS = {
    "Greedy Miser, 100,000 × 30": """
X = rng.normal(size=(100_000, 30))
timed(ms.GreedyMiserClassifier(ms.CostTable.uniform(), 1e-4), X, (X[:, 0] + X[:, 1] ** 2 > 1).astype(int))
""",
    "AFR, 640 × 10": """
X = rng.normal(size=(640, 10))
timed(ms.AFRClassifier(ms.CostTable.uniform(), random_state=0), X, (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int))
""",
}
COUNT = "while True: pass"


def cpu_seconds(work: str, at_once: int = 1) -> float:
    """Of this many processes that fit at the same time, all together."""
    command = [sys.executable, "-c", HEAD + work]
    fits = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(at_once)]
    for fit in fits:
        fit.stdout.readline()
    for fit in fits:
        fit.stdin.write("go\n")
        fit.stdin.flush()
    return sum(float(fit.communicate()[0]) for fit in fits)


def main() -> None:
    for name, work in FITS.items():
        alone = min(cpu_seconds(work) for _ in range(RUNS))
        together = min(cpu_seconds(work, 2) for _ in range(RUNS))
        print(f"  {name}: {alone:.2f} s of CPU alone, {together:.2f} s two side by side")
        record(f"two fits side by side ÷ one after the other, {name}, CPU", together / (2 * alone), "", most=1.2)
    with ExitStack() as stack:
        for _ in range(2):
            stack.callback(stack.enter_context(subprocess.Popen([sys.executable, "-c", COUNT])).kill)
        busy = min(cpu_seconds(work) for _ in range(RUNS))
    record(f"{name}, CPU", alone, "s", most=2)
    record("the same beside two busy processes ÷ alone", busy / alone, "", most=1.5)


if __name__ == "__main__":
    main()

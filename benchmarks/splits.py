"""Two figures over ten splits: CSTC with `eval_set` on ann-thyroid, SVMs of 1 % of the vectors on page-blocks.

`python -m benchmarks.splits thyroid` takes the splits of `miserly reproduce family`, `python -m benchmarks.splits
page-blocks` those of seeds 100 to 109, on which nothing was chosen. Accuracy on test rows, 95 % intervals.
"""

import sys
from functools import partial

import numpy as np
from sklearn.svm import SVC

from benchmarks.cvm import page_blocks, tuned
from benchmarks.frontier_vs_peers.data import folder
from miserly.estimators import CompressedSVC, CSTCClassifier
from miserly.experiments._sets import thyroid
from miserly.frontiers import interval

N_SPLITS, FIRST_SEED = 10, 100
TRADEOFF, LEVELS = 1e-4, 4
RATIO = 0.01


def cstc_on_thyroid() -> dict[str, list[float]]:
    """Accuracy on test rows with and without validation rows."""
    found: dict[str, list[float]] = {"with eval_set": [], "without": []}
    for problem in thyroid(folder(), N_SPLITS):
        train, validation, test = problem.split
        fit = partial(CSTCClassifier(problem.costs, TRADEOFF, max_depth=LEVELS).fit, train.X, train.y)
        for name, given in (("with eval_set", {"eval_set": (validation.X, validation.y)}), ("without", {})):
            model = fit(**given)
            found[name].append(float(np.mean(model.predict(test.X) == test.y)))
            print(f"  {problem.key} {name}: {found[name][-1]:.4f}, {len(model.plan_.nodes)} nodes", flush=True)
    return found


def svm_on_page_blocks() -> dict[str, list[float]]:
    """Accuracy on test rows of the full machine and of 1 % of its vectors."""
    found: dict[str, list[float]] = {"full machine": [], "1 % of the vectors": []}
    for seed in range(FIRST_SEED, FIRST_SEED + N_SPLITS):
        task = page_blocks(seed)
        C, gamma, _ = tuned(task)
        full = SVC(C=C, gamma=gamma).fit(task.X, task.y)
        small = CompressedSVC.from_sklearn(full, task.X, ratio=RATIO)
        for name, model in (("full machine", full), ("1 % of the vectors", small)):
            found[name].append(float(np.mean(model.predict(task.X_test) == task.y_test)))
        print(f"  seed {seed}: {found['full machine'][-1]:.4f} {found['1 % of the vectors'][-1]:.4f}", flush=True)
    return found


WORKS = {"thyroid": (cstc_on_thyroid, 0.25), "page-blocks": (svm_on_page_blocks, 0.3 / 0.7)}


def main(names: list[str]) -> None:
    for name in names or WORKS:
        work, overlap = WORKS[name]
        for what, values in work().items():
            mean, half = interval(values, overlap)
            print(f"{name}, {what}: {mean:.4f} ± {half:.4f}, least {min(values):.4f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

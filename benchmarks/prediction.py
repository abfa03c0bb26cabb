"""Batch prediction of 500 trees against LightGBM's `predict`, one thread, 40,000 × 519."""

import lightgbm
import numpy as np

from benchmarks.engine import workload
from benchmarks.timing import best_of, line
from miserly.estimators import GreedyMiserRegressor
from miserly.kernels.threads import threads


def main() -> None:
    X, y, costs = workload()
    model = GreedyMiserRegressor(costs, tradeoff=0.0, n_estimators=500).fit(X[:8000], y[:8000])
    params = {"num_leaves": 8, "max_depth": 3, "min_data_in_leaf": 20, "verbose": -1, "num_threads": 2}
    peer = lightgbm.train(params, lightgbm.Dataset(X[:8000], y[:8000]), 500)
    for name, data in (("float32", X), ("float64", X.astype(np.float64))):
        with threads(1):
            mine, theirs = best_of(
                5, lambda d=data: model.plan_.score(d), lambda d=data: peer.predict(d, num_threads=1)
            )
        line(f"500 trees, {name}, 1 thread, CPU", mine.cpu, theirs.cpu, 4)

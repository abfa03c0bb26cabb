"""Batch prediction of 500 trees on 40,000 × 519, one thread: against LightGBM, and what tl2cgen compiles."""

import tempfile
from pathlib import Path

import lightgbm
import numpy as np
import tl2cgen
import treelite

from benchmarks.engine import workload
from benchmarks.timing import best_of, line
from miserly.estimators import GreedyMiserRegressor
from miserly.kernels.threads import threads


def main() -> None:
    X, y, costs = workload()
    plan = GreedyMiserRegressor(costs, tradeoff=0.0, n_estimators=500).fit(X[:8000], y[:8000]).plan_
    peer = lightgbm.Booster(model_str=plan.to_lightgbm())
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "trees.so"
        tl2cgen.export_lib(treelite.frontend.from_lightgbm(peer), toolchain="gcc", libpath=library)
        compiled = tl2cgen.Predictor(library, nthread=1)
        for kind in ("float32", "float64"):
            data = X.astype(kind)
            packed = tl2cgen.DMatrix(data, dtype=kind)
            with threads(1):
                mine, theirs, theirs_compiled = best_of(
                    5,
                    lambda data=data: plan.score(data),
                    lambda data=data: peer.predict(data, num_threads=1),
                    lambda packed=packed: compiled.predict(packed),
                )
            assert np.array_equal(mine.result, theirs_compiled.result.ravel())
            line(f"prediction of 500 trees, {kind}, against LightGBM, one thread", mine.cpu, theirs.cpu, 6)
            line("the same against tl2cgen's compiled library", mine.cpu, theirs_compiled.cpu, 1)

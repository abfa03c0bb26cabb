"""Prediction of 500 trees of three levels, one thread: batches of 1, 100 and 20,000 rows of 519 features.

LightGBM, tl2cgen and onnxruntime run the very trees of our plan; XGBoost, CatBoost and ydf know no such trees and run
500 of their own of the same depth, fitted to the same rows. A peer that is not installed is left out. (lleaves 1.3
needs a pass manager that the llvmlite of today's numba does not have.)
"""

import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

from benchmarks.engine import workload
from benchmarks.table import record
from benchmarks.timing import best_of, line
from miserly.estimators import GreedyMiserRegressor
from miserly.kernels.threads import threads

N_TREES, DEPTH, N_FIT = 500, 3, 8000
BATCHES = {1: 2000, 100: 200, 20_000: 3}  # rows: how many times each is predicted
Predict = Callable[[np.ndarray], Any]


def same_trees(plan: Any, folder: Path) -> Iterator[tuple[str, Predict]]:
    """Libraries that can load our trees."""
    booster = lightgbm.Booster(model_str=plan.export("lightgbm"))
    yield "LightGBM", lambda X: booster.predict(X, num_threads=1)
    if find_spec("tl2cgen"):
        import tl2cgen
        import treelite

        tl2cgen.export_lib(treelite.frontend.from_lightgbm(booster), toolchain="gcc", libpath=folder / "trees.so")
        library = tl2cgen.Predictor(folder / "trees.so", nthread=1)
        yield "tl2cgen", lambda X: library.predict(tl2cgen.DMatrix(X, dtype="float64"))
    if find_spec("onnxruntime") and find_spec("onnx"):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(plan.export("onnx").SerializeToString(), options)
        [given, *_] = session.get_inputs()
        kind = np.float64 if "double" in given.type else np.float32
        yield "onnxruntime", lambda X: session.run(None, {given.name: X.astype(kind)})


def own_trees(X: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, Predict]]:
    """Libraries that grow their own."""
    if find_spec("xgboost"):
        import xgboost

        common = {"n_estimators": N_TREES, "max_depth": DEPTH, "learning_rate": 0.1, "n_jobs": 1}
        forest = xgboost.XGBRegressor(**common, tree_method="hist").fit(X, y).get_booster()
        forest.set_param({"nthread": 1})
        yield "XGBoost inplace_predict", forest.inplace_predict
    if find_spec("catboost"):
        import catboost

        quiet = {"verbose": False, "allow_writing_files": False}
        oblivious = catboost.CatBoostRegressor(iterations=N_TREES, depth=DEPTH, thread_count=1, **quiet).fit(X, y)
        yield "CatBoost", lambda X: oblivious.predict(X, thread_count=1)
    if find_spec("ydf"):
        import ydf

        learner = ydf.GradientBoostedTreesLearner(
            label="y", task=ydf.Task.REGRESSION, num_trees=N_TREES, max_depth=DEPTH + 1, early_stopping="NONE"
        )
        grown = learner.train({"X": X.astype(np.float32), "y": y.astype(np.float32)}, verbose=0)
        yield "ydf", lambda X: grown.predict({"X": X.astype(np.float32)}, num_threads=1)


def main() -> None:
    X, y, costs = workload()
    X = X.astype(np.float64)
    plan = GreedyMiserRegressor(costs, 0.0, n_estimators=N_TREES, max_depth=DEPTH).fit(X[:N_FIT], y[:N_FIT]).plan_
    with tempfile.TemporaryDirectory() as folder, threads(1):
        peers = [*same_trees(plan, Path(folder)), *own_trees(X[:N_FIT], y[:N_FIT])]
        for n_rows, times in BATCHES.items():
            batch = np.ascontiguousarray(X[:n_rows])

            def repeated(predict: Predict, batch: np.ndarray = batch, times: int = times) -> Callable[[], Any]:
                return lambda: [predict(batch) for _ in range(times)][-1]

            mine, *others = best_of(3, repeated(plan.score), *(repeated(predict) for _, predict in peers))
            expected = lightgbm.Booster(model_str=plan.export("lightgbm")).predict(batch)
            np.testing.assert_allclose(np.ravel(mine.result), expected, rtol=1e-12)
            print(f"Prediction, {N_TREES} trees, batch of {n_rows}: {1e6 * mine.cpu / times:.1f} µs of CPU")
            for (name, _), other in zip(peers, others):
                line(f"against {name}", mine.cpu / times, other.cpu / times)
            fastest = min(other.cpu for other in others)
            what = f"prediction of {N_TREES} trees, batches of {n_rows:,}, against the fastest of {len(peers)} peers"
            if n_rows > 1:
                record(what, fastest / mine.cpu, "times as fast", least=1)
        record("prediction of one row", 1e6 * _one_row(plan, X[0]), "µs", most=20)


def _one_row(plan: Any, x: np.ndarray) -> float:
    """Seconds for one row, as a server asks."""
    [best] = best_of(5, lambda: [plan.score(x[None]) for _ in range(2000)])
    return best.cpu / 2000

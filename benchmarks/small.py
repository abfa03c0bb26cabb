"""Training where most users are: small tables and many classes, fit and binning together, one thread, CPU.

By learner against `cegb_penalty_feature_coupled`, by path against `cegb_penalty_feature_lazy`, 100 rounds of three
levels; and blind to cost (λ = 0) against XGBoost's `hist` and CatBoost.
"""

import lightgbm
import numpy as np

from benchmarks.table import record
from benchmarks.timing import best_of
from miserly.costs import CostTable
from miserly.estimators import GreedyMiserClassifier

N_ROUNDS, DEPTH, RATE, TRADEOFF, RUNS = 100, 3, 0.1, 1e-4, 3
SIZES = {  # rows, features, classes: the most of LightGBM's CPU that we may take, by learner and by path
    (200, 10, 2): (1.5, 1.5),
    (2_000, 20, 2): (1.0, 1.0),
    (2_000, 20, 7): (1.0, 1.0),
    (8_000, 10, 7): (1.0, 1.0),
    (20_000, 50, 10): (0.7, 0.5),
    (100_000, 30, 2): (0.5, 0.5),
}
BLIND = (2_000, 20, 2), (8_000, 10, 7), (100_000, 30, 2)
PENALTY = {"learner": "cegb_penalty_feature_coupled", "path": "cegb_penalty_feature_lazy"}


def sample(n_rows, n_features, n_classes, seed=0):
    """Classes that depend on half of the features, in part through sines."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    W = rng.normal(size=(n_features, n_classes)) * (rng.random((n_features, n_classes)) < 0.5)
    return X, (X @ W + np.sin(2 * X) @ W[::-1] + rng.gumbel(size=(n_rows, n_classes))).argmax(axis=1)


def prices(n_features):
    return np.random.default_rng(1).integers(1, 20, n_features).astype(float)


def their_params(n_rows, n_classes, charge, each):
    """The same settings for LightGBM; its gain is twice ours and a sum over rows, its lazy penalty is per row."""
    factor = 2 * TRADEOFF * (n_rows if charge == "learner" else 1)
    return {
        "objective": "binary" if n_classes == 2 else "multiclass",
        "num_class": 1 if n_classes == 2 else n_classes,
        "num_leaves": 2**DEPTH,
        "max_depth": DEPTH,
        "learning_rate": RATE,
        "max_bin": 255,
        "min_data_in_bin": 1,
        "bin_construct_sample_cnt": n_rows,
        "min_data_in_leaf": 20,
        "min_sum_hessian_in_leaf": 0.0,
        "feature_pre_filter": False,
        "num_threads": 1,
        "force_col_wise": True,
        "verbose": -1,
        "cegb_tradeoff": 1.0,
        PENALTY[charge]: (factor * each).tolist(),
    }


def against_lightgbm(size, charge, most):
    n_rows, n_features, n_classes = size
    X, y = sample(*size)
    each = prices(n_features)
    params = their_params(n_rows, n_classes, charge, each)
    costs = CostTable.per_feature(each)
    model = GreedyMiserClassifier(costs, TRADEOFF, n_estimators=N_ROUNDS, max_depth=DEPTH, charge=charge, n_jobs=1)
    mine, theirs = best_of(
        RUNS,
        lambda: model.fit(X, y),
        lambda: lightgbm.train(params, lightgbm.Dataset(X, y, params=params), N_ROUNDS),
    )
    what = f"{n_rows:,} × {n_features} × {n_classes} classes, by {charge}: ours ÷ LightGBM, CPU"
    record(what, mine.cpu / theirs.cpu, "", most=most)


def blind(size):
    """λ = 0 against two libraries that know no prices."""
    import catboost
    import xgboost

    n_rows, n_features, n_classes = size
    X, y = sample(*size)
    model = GreedyMiserClassifier(
        CostTable.uniform(), 0.0, n_estimators=N_ROUNDS, max_depth=DEPTH, learning_rate=RATE, n_jobs=1
    )
    common = {"n_estimators": N_ROUNDS, "max_depth": DEPTH, "learning_rate": RATE}
    forest = xgboost.XGBClassifier(**common, tree_method="hist", max_bin=256, n_jobs=1)
    oblivious = catboost.CatBoostClassifier(
        iterations=N_ROUNDS, depth=DEPTH, learning_rate=RATE, thread_count=1, verbose=False, allow_writing_files=False
    )
    works = best_of(RUNS, lambda: model.fit(X, y), lambda: forest.fit(X, y), lambda: oblivious.fit(X, y))
    for name, theirs in zip(("XGBoost hist", "CatBoost"), works[1:]):
        what = f"{n_rows:,} × {n_features} × {n_classes} classes, λ = 0: ours ÷ {name}, CPU"
        record(what, works[0].cpu / theirs.cpu, "", most=1.0)


def main() -> None:
    print(f"Small tables and many classes, {N_ROUNDS} rounds of {DEPTH} levels, one thread, best of {RUNS}")
    for size, goals in SIZES.items():
        for charge, most in zip(("learner", "path"), goals):
            against_lightgbm(size, charge, most)
    for size in BLIND:
        blind(size)

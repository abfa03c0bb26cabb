"""Training against LightGBM with `cegb_penalty_feature_coupled` in its fastest mode, on the frozen `yahoo_like`.

40,000 × 519, 100 trees of three levels, 255 bins, all rows used for the bin edges on both sides.
"""

import lightgbm
import numpy as np

from benchmarks.timing import Best, best_of, line
from miserly.boosting import Limits, LocalBackend, Settings, Shop, SquaredLoss, bin_data, boost
from miserly.datasets import yahoo_like
from miserly.kernels import histograms
from miserly.kernels.threads import threads

N_ROWS, N_TREES, TRADEOFF = 40_000, 100, 1e-5
MODES = {
    "col-wise": {"force_col_wise": True},
    "row-wise": {"force_row_wise": True},
    "col-wise quantised": {"force_col_wise": True, "use_quantized_grad": True},
    "row-wise quantised": {"force_row_wise": True, "use_quantized_grad": True},
}


def workload():
    """The frozen data set, cut to size."""
    data = yahoo_like(1750, seed=0)
    return data.X[:N_ROWS], data.y[:N_ROWS].astype(float), data.costs


def ours(X, y, costs, n_jobs, runs=3) -> tuple[Best, Best]:
    """Binning, and the trees on binned data."""
    with threads(n_jobs):
        binning = best_of(runs, lambda: bin_data(X, sample=None, n_jobs=n_jobs))
        settings = Settings(N_TREES, 0.1, Limits(max_depth=3, min_samples_leaf=20))

        def trees():
            return boost(LocalBackend(binning.result, y, SquaredLoss()), Shop(costs, TRADEOFF), settings, 1)

        return binning, best_of(runs, trees)


def theirs(X, y, costs, n_jobs, mode, runs=3) -> tuple[Best, Best]:
    """The same for LightGBM; its gain is twice ours and a sum over rows."""
    penalty = [2 * N_ROWS * TRADEOFF * costs.price([f]) for f in costs.features]
    params = {
        "objective": "regression",
        "num_leaves": 8,
        "max_depth": 3,
        "learning_rate": 0.1,
        "max_bin": 255,
        "min_data_in_bin": 1,
        "bin_construct_sample_cnt": N_ROWS,
        "min_data_in_leaf": 20,
        "min_sum_hessian_in_leaf": 0.0,
        "feature_pre_filter": False,
        "num_threads": n_jobs,
        "verbose": -1,
        "cegb_tradeoff": 1.0,
        "cegb_penalty_feature_coupled": penalty,
        **MODES[mode],
    }
    binning = best_of(runs, lambda: lightgbm.Dataset(X, y, params=params, free_raw_data=False).construct())
    return binning, best_of(runs, lambda: lightgbm.train(params, binning.result, N_TREES))


def kernel_speed(X, y) -> None:
    """Nanoseconds per row and feature of the counting loops, one thread."""
    with threads(1):
        data = bin_data(X, sample=None, n_jobs=1)
        backend = LocalBackend(data, y, SquaredLoss())
        backend.start()
        backend.gradients()
        backend.begin(0)
        features = np.arange(data.n_features, dtype=np.int32)
        root = best_of(7, lambda: backend.histograms([0], features)).wall / X.size
        rows = np.arange(0, len(y), 2, dtype=np.uint32)
        out = np.empty((len(features), 256), np.int64)
        packed = np.ones(len(rows), np.int64)
        some = best_of(7, lambda: histograms.count_rows(data.words, rows, packed, features, out)).wall
    some /= len(rows) * len(features)
    print(f"  counting: {root * 1e9:.2f} ns per row·feature at the root, {some * 1e9:.2f} with row ids")


def main() -> None:
    X, y, costs = workload()
    print(
        f"Training, {N_ROWS} × {X.shape[1]}, {N_TREES} trees, λ = {TRADEOFF:g}, against LightGBM {lightgbm.__version__}"
    )
    ours(X[:2000], y[:2000], costs, 1, runs=1)
    kernel_speed(X, y)
    peers = {mode: theirs(X, y, costs, 1, mode, runs=1) for mode in MODES}
    for mode, (binning, trees) in peers.items():
        print(f"  LightGBM {mode:<20} binning {binning.cpu:6.2f} s, trees {trees.cpu:6.2f} s of CPU")
    fastest = min(peers, key=lambda mode: peers[mode][1].cpu)
    bins, trees = ours(X, y, costs, 1)
    their_bins, their_trees = theirs(X, y, costs, 1, fastest)
    line(f"trees, 1 thread, CPU ({fastest})", trees.cpu, their_trees.cpu, 1.5)
    line("binning + trees, 1 thread, CPU", bins.cpu + trees.cpu, their_bins.cpu + their_trees.cpu, 1.8)
    bins2, trees2 = ours(X, y, costs, 2)
    their_bins2, their_trees2 = theirs(X, y, costs, 2, fastest)
    line("trees, 2 threads, wall", trees2.wall, their_trees2.wall, 1.4)
    line("binning + trees, 2 threads, wall", bins2.wall + trees2.wall, their_bins2.wall + their_trees2.wall, 1.4)
    line("our own 1 thread to 2, wall", trees2.wall, trees.wall)
    model = their_trees.result
    used = [f for f, n in zip(costs.features, model.feature_importance()) if n]
    print(
        f"  mean squared error {2 * trees.result.losses[-1]:.4f} at {_price(trees.result, costs):g} (ours), "
        f"{np.mean((model.predict(X) - y) ** 2):.4f} at {costs.price(used):g} (LightGBM)"
    )


def _price(boosted, costs) -> float:
    used = {split.feature for this in boosted.rounds for tree in this.trees for split in tree.splits}
    return costs.price([costs.features[f] for f in used])

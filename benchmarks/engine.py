"""Training against LightGBM with `cegb_penalty_feature_coupled` in its fastest mode, on the frozen `yahoo_like`.

40,000 × 519, 100 trees of three levels, 255 bins, all rows used for the bin edges on both sides.
"""

import lightgbm
import numpy as np

from benchmarks.timing import Best, best_of, line
from miserly.boosting import LocalBackend, ModelPricing, Settings, SquaredLoss, TreeLimits, bin_data, boost
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


def our_binning(X, n_jobs):
    with threads(n_jobs):
        return bin_data(X, sample=None, n_jobs=n_jobs)


def our_trees(data, y, costs, n_jobs):
    settings = Settings(N_TREES, 0.1, TreeLimits(max_depth=3, min_samples_leaf=20))
    with threads(n_jobs):
        return boost(LocalBackend(data, y, SquaredLoss()), ModelPricing(costs, TRADEOFF), settings, 1)


def their_params(costs, n_jobs, mode):
    """The same settings for LightGBM; its gain is twice ours and a sum over rows."""
    return {
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
        "cegb_penalty_feature_coupled": [2 * N_ROWS * TRADEOFF * costs.price([f]) for f in costs.features],
        **MODES[mode],
    }


def both(X, y, costs, n_jobs, mode, runs=3) -> tuple[Best, Best, Best, Best]:
    """Our binning and trees, their binning and trees, alternating."""
    params = their_params(costs, n_jobs, mode)

    def their_binning():
        return lightgbm.Dataset(X, y, params=params, free_raw_data=False).construct()

    bins, their_bins = best_of(runs, lambda: our_binning(X, n_jobs), their_binning)
    trees, their_trees = best_of(
        runs,
        lambda: our_trees(bins.result, y, costs, n_jobs),
        lambda: lightgbm.train(params, their_bins.result, N_TREES),
    )
    return bins, trees, their_bins, their_trees


def kernel_speed(X, y) -> None:
    """Nanoseconds per row and feature of the counting loops, one thread."""
    with threads(1):
        data = bin_data(X, sample=None, n_jobs=1)
        backend = LocalBackend(data, y, SquaredLoss())
        backend.start()
        backend.gradients()
        backend.begin()
        features = np.arange(data.n_features, dtype=np.int32)
        root = best_of(7, lambda: backend.histograms(0, features))[0].wall / X.size
        rows = np.arange(0, len(y), 2, dtype=np.uint32)
        out = np.empty((len(features), 256), np.int64)
        packed = np.ones(len(rows), np.int64)
        some = best_of(7, lambda: histograms.count_rows(data.words, rows, packed, features, out))[0].wall
    some /= len(rows) * len(features)
    print(f"  counting: {root * 1e9:.2f} ns per row·feature at the root, {some * 1e9:.2f} with row ids")


def main() -> None:
    X, y, costs = workload()
    print(
        f"Training, {N_ROWS} × {X.shape[1]}, {N_TREES} trees, λ = {TRADEOFF:g}, against LightGBM {lightgbm.__version__}"
    )
    both(X[:2000], y[:2000], costs, 1, "col-wise", runs=1)
    kernel_speed(X, y)
    seconds = {}
    for mode in MODES:
        params = their_params(costs, 1, mode)
        data = lightgbm.Dataset(X, y, params=params, free_raw_data=False).construct()
        seconds[mode] = best_of(1, lambda p=params, d=data: lightgbm.train(p, d, N_TREES))[0].cpu
        print(f"  LightGBM {mode:<20} trees {seconds[mode]:6.2f} s of CPU")
    fastest = min(seconds, key=lambda mode: seconds[mode])
    bins, trees, their_bins, their_trees = both(X, y, costs, 1, fastest)
    size = f"{N_TREES} trees on {N_ROWS:,} × {X.shape[1]}"
    line(f"{size} against LightGBM CEGB ({fastest}), one thread, CPU", trees.cpu, their_trees.cpu, 1.9)
    whole, their_whole = bins.cpu + trees.cpu, their_bins.cpu + their_trees.cpu
    line("the same with binning", whole, their_whole, 3.0)
    bins2, trees2, their_bins2, their_trees2 = both(X, y, costs, 2, fastest)
    line("trees, two threads, wall", trees2.wall, their_trees2.wall, 1.4)
    line("the same with binning, two threads", bins2.wall + trees2.wall, their_bins2.wall + their_trees2.wall, 1.4)
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

"""A Dask cluster on this machine against one process, and lightgbm.dask against lightgbm.

`python -m benchmarks cluster` (not in `make bench`): 200,000 × 200, 50 trees; smaller with ROWS=20000. Wall-clock times
need a quiet machine; each is the best of three.
"""

import os
from typing import Any

import numpy as np

from benchmarks.timing import best_of

N_ROWS, N_FEATURES, N_TREES = int(os.environ.get("ROWS", "200000")), 200, 50
MOST_RATIO = 2.0
HISTOGRAM = 256 * 8
TRADEOFF, PENALTY = 1e-3, 100.0


def problem(n_rows: int = N_ROWS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, N_FEATURES), np.float32)
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3:30].sum(axis=1) / 5 + 0.1 * rng.standard_normal(n_rows)
    return X, y.astype(np.float64)


def cluster(n_workers: int) -> tuple[Any, Any]:
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "memory_limit": None}
    running = LocalCluster(n_workers=n_workers, **options)
    return running, Client(running)


def main() -> None:
    X, y = problem()
    ours(X, y)
    theirs(X, y)


def model(tradeoff: float = 0.0, n_jobs: int = 1) -> Any:
    """Without a tradeoff every feature is counted wherever it may be: the most work and traffic that there can be."""
    import miserly as ms

    costs = ms.CostTable.per_feature(1.0 + np.arange(N_FEATURES) % 7)
    return ms.GreedyMiserRegressor(costs, tradeoff, n_estimators=N_TREES, max_depth=3, n_jobs=n_jobs)


def ours(X: np.ndarray, y: np.ndarray) -> None:
    """Our own plans, times and traffic."""
    model().set_params(n_estimators=2).fit(X[:5000], y[:5000])
    [alone] = best_of(3, lambda: model(n_jobs=2).fit(X, y))
    here, local = alone.result, alone.wall
    print(f"{len(X)} × {N_FEATURES}, {here.n_iter_} trees: {local:.2f} s in one process with two threads")
    for n_workers in (1, 2, 4):
        running, client = cluster(n_workers)
        try:
            measure(client, n_workers, X, y, here, local)
        finally:
            client.close()
            running.close()


def measure(client: Any, n_workers: int, X: np.ndarray, y: np.ndarray, here: Any, local: float) -> None:
    import dask.array as da

    from miserly.distributed import DaskBackend

    size = -(-len(X) // n_workers)
    dX = da.from_array(X, chunks=(size, N_FEATURES)).persist()
    dy = da.from_array(y, chunks=size).persist()
    model().set_params(n_estimators=2).fit(dX, dy)
    [shared] = best_of(3, lambda: there_and_traffic(DaskBackend(client), dX, dy))
    (there, trees), wall = shared.result, shared.wall
    sent = np.mean([tree.n_bytes for tree in trees])
    expected = n_workers * np.mean([histograms(there, t) for t in range(len(trees))]) * N_FEATURES * HISTOGRAM
    waited = sum(tree.waited for tree in trees)
    messages = sum(tree.n_messages for tree in trees)
    verdict = f" (goal {MOST_RATIO:g}: {'met' if wall <= MOST_RATIO * local else 'MISSED'})" if n_workers == 2 else ""
    alike = there.plan_ == here.plan_
    print(f"  {n_workers} workers: {wall:.2f} s, {wall / local:.2f} × that{verdict}; same plan: {alike}")
    share = 100 * waited / sum(tree.seconds for tree in trees)
    print(
        f"    a tree: {sent / 1e6:.2f} MB ({sent / expected:.2f} × the formula), {messages / len(trees):.1f} messages"
    )
    print(f"    not spent computing: {1e3 * waited / messages:.2f} ms a message, {share:.0f} % of the time", flush=True)


def there_and_traffic(backend: Any, X: Any, y: Any) -> tuple[Any, Any]:
    return model().fit(X, y, backend=backend), backend.traffic


def histograms(model: Any, number: int) -> int:
    """How often all features were counted for a tree: at its root, and for every split whose children may be split."""
    tree = model._boosted.rounds[number].trees[0]
    depth = {0: 0}
    for split in tree.splits:
        depth[split.left] = depth[split.left + 1] = depth[split.node] + 1
    return 1 + sum(depth[split.node] < model.max_depth - 1 for split in tree.splits)


def theirs(X: np.ndarray, y: np.ndarray) -> None:
    """Each library on two workers against its own model from one process: error, and what the features used cost."""
    import dask.array as da
    import lightgbm as lgb

    n_rows = min(len(X), 40_000)
    X, y, prices = X[:n_rows], y[:n_rows], 1.0 + np.arange(N_FEATURES) % 7
    Xt, yt = (part[n_rows:] for part in problem(2 * n_rows))
    plain = {"n_estimators": N_TREES, "num_leaves": 8, "max_depth": 3, "learning_rate": 0.1, "verbose": -1}
    priced = plain | {"cegb_tradeoff": 1.0, "cegb_penalty_feature_coupled": (PENALTY * prices).tolist()}
    running, client = cluster(2)
    try:
        size = n_rows // 8
        dX, dy = da.from_array(X, chunks=(size, N_FEATURES)), da.from_array(y, chunks=size)
        found: dict[str, tuple[Any, Any]] = {
            "Miserly, priced": (model(TRADEOFF).fit(X, y), model(TRADEOFF).fit(dX, dy))
        }
        for name, options in (("LightGBM, not priced", plain), ("LightGBM, priced", priced)):
            there = lgb.DaskLGBMRegressor(client=client, **options).fit(dX, dy).to_local()
            found[name] = (lgb.LGBMRegressor(n_jobs=1, **options).fit(X, y), there)
    finally:
        client.close()
        running.close()
    print(f"\n{n_rows} × {N_FEATURES}: error / variance on new rows (price of the features used)")
    print("| | one process | two workers | greatest difference of predictions |\n|---|---|---|---|")
    for name, pair in found.items():
        cells, answers = [], []
        for fitted in pair:
            answers.append(fitted.predict(Xt))
            ours = hasattr(fitted, "plan_")
            used = list(fitted.plan_.used_features) if ours else fitted.feature_importances_ > 0
            error = np.mean((answers[-1] - yt) ** 2) / np.var(yt)
            cells.append(f"{error:.3f} ({prices[used].sum():.0f})")
        print(f"| {name} | {' | '.join(cells)} | {np.abs(answers[0] - answers[1]).max():.2g} |", flush=True)


if __name__ == "__main__":
    main()

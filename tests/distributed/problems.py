"""Data, prices and models that the tests of the cluster share."""

import json

import numpy as np

import miserly as ms

N_FEATURES = 11


def costs():
    """Two features share an acquisition; the last is free."""
    needs = {f"x{f}": (f"own {f}", f"group {f // 2}") if f < N_FEATURES - 1 else () for f in range(N_FEATURES)}
    prices = {f"own {f}": 0.2 + 0.01 * f for f in range(N_FEATURES)} | {f"group {g}": 1.0 for g in range(5)}
    return ms.CostTable(tuple(needs), needs, prices)


def data(kind, n_rows=900, seed=0):
    """X with missing values, y and the ids of queries of ten."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_FEATURES))
    X[:, 3] = np.round(X[:, 3])
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 4]) + X[:, 3] + 0.3 * rng.normal(size=n_rows)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = score if kind == "regressor" else np.digitize(score, [-1, 1])
    return X, y, np.arange(n_rows) // 10


def model(kind, **options):
    settings = {"tradeoff": 2e-3, "n_estimators": 4, "learning_rate": 0.3}
    settings |= {"loss": "lambdarank"} if kind == "ranker" else {}
    return getattr(ms, f"GreedyMiser{kind.title()}")(costs(), **settings | options)


def same(a, b):
    """Every bit of two plans, the gains of their stages and what was bought."""
    assert a == b
    assert [node.gain for node in a.nodes] == [node.gain for node in b.nodes]
    assert json.dumps(a.notes) == json.dumps(b.notes)


def parted(X, y, qid, n_parts):
    """Dask arrays whose partitions are of unequal size, at the borders of queries."""
    import dask.array as da

    borders = np.linspace(0, 1, n_parts + 1) ** 1.3
    sizes = tuple(np.diff((borders * len(X) / 10).round().astype(int) * 10).tolist())
    return (
        da.from_array(X, chunks=(sizes, X.shape[1])),
        da.from_array(y, chunks=(sizes,)),
        da.from_array(qid, chunks=(sizes,)),
    )

"""Models that are not boosted, rows on workers: the same bits whoever holds them, nearly those of one process."""

import os
import signal
import time

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from problems import N_FEATURES, costs, data, same
from sklearn.utils import Bunch

import miserly as ms
from miserly.boosting import BackendLostError
from miserly.distributed import DaskBackend
from miserly.distributed import _placement as placement
from miserly.distributed._gram import PinnedRows
from miserly.estimators._base._dictionary import order_by_content
from oracles.design import outputs, standardised

N = 400
SIZES = (130, 0, 170, 100)
OPTIONS = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "memory_limit": None}
NAMES = [f"x{f}" for f in range(N_FEATURES)]


def table(seed=0):
    """Numbers without gaps: column 6 never varies, 7 and 8 differ behind the rows that columns are sorted by."""
    X, y, _ = data("regressor", N, seed)
    X = np.nan_to_num(X)
    X[:, 6] = 0.3
    X[:, 8] = X[:, 7]
    X[-1, 8] += 1.0
    return X, y


def parted(*arrays):
    """Dask arrays in four partitions, one of which is empty."""
    return [da.from_array(a, chunks=(SIZES, *a.shape[1:])) for a in arrays]


def trees(X, y):
    return ms.GreedyMiserRegressor(costs(), tradeoff=0, n_estimators=5).fit(X, y).plan_


@pytest.mark.parametrize("kind", ["raw", "trees"])
def test_a_design_on_workers_is_the_matrix_written_out(client, kind):
    X, y = table()
    weight = np.random.default_rng(1).integers(0, 3, N) * 0.7
    dictionary = trees(X, y).dictionary
    if kind == "trees":
        X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    backend = DaskBackend(client, timeout=300)
    dX, dy, dw = parted(X, y, weight)
    backend.take(dX, dy, None, dw, missing=kind == "trees")
    found = backend.table()
    X, y, weight = (a[weight > 0] for a in (X, y, weight))
    assert np.array_equal(found.y, y)
    assert np.array_equal(found.weight, weight)
    if kind == "trees":
        design, raw = found.tree_design(dictionary), outputs(dictionary, X)
    else:
        order = found.order()
        assert np.array_equal(order, order_by_content(X))
        design, raw = found.raw_design(order), X[:, order]
    H, centre, scale = standardised(raw, weight, common=kind == "trees")
    n, m = H.shape
    np.testing.assert_allclose(design.centre, centre, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(design.scale, scale, rtol=1e-10)
    assert np.array_equal(design.varies, H.any(axis=0))
    rng, some = np.random.default_rng(3), np.array([4, 0, 3])
    for shape in ((), (3,)):
        beta, values = rng.normal(size=(m, *shape)), rng.normal(size=(n, *shape))
        beta[1] = 0.0
        np.testing.assert_allclose(design.scores(beta), H @ beta, atol=1e-11)
        np.testing.assert_allclose(design.sums(values), H.T @ values, atol=1e-9)
        np.testing.assert_allclose(design.sums(values, some), (H.T @ values)[some], atol=1e-9)
    assert not design.scores(np.zeros((m, 2))).any()
    for w in (rng.random(n) * (rng.random(n) < 0.3), rng.normal(size=n)):
        gram = H.T @ (w[:, None] * H)
        np.testing.assert_allclose(design.gram(w), gram, atol=1e-9)
        np.testing.assert_allclose(design.gram(w, some), gram[np.ix_(some, some)], atol=1e-9)
    for j in range(m):
        np.testing.assert_allclose(design.column(j), H[:, j], atol=1e-11)


def test_what_is_sent_is_what_the_formula_says(client):
    X, y = table()
    backend = DaskBackend(client, timeout=300)
    backend.take(*parted(X, y))
    design = backend.table().raw_design(np.arange(N_FEATURES))
    n_parts, n_workers = 3, len(set(design._rows.placement.values()))
    for ask, n_bytes in (
        (lambda: design.gram(np.ones(N)), 8 * (N + n_parts * N_FEATURES**2)),
        (lambda: design.sums(np.ones((N, 2))), 8 * (2 * N + n_parts * N_FEATURES * 2)),
        (lambda: design.scores(np.ones((N_FEATURES, 2))), 8 * (2 * N + n_workers * 3 * N_FEATURES)),
    ):
        before = backend.traffic[-1]
        ask()
        after = backend.traffic[-1]
        assert after.n_messages == before.n_messages + 1
        assert after.n_bytes - before.n_bytes == n_bytes
        assert 0 <= after.share <= 1


def labels(kind, y):
    return {
        "number": y,
        "rare": (y > 0.8).astype(int),
        "words": np.array(["low", "mid", "top"])[np.digitize(y, [-1, 1])],
    }[kind]


MODELS = {
    "ASTC": ("number", lambda: ms.ASTCRegressor(costs(), node_budget=3.0)),
    "CSTC": ("words", lambda: ms.CSTCClassifier(costs(), tradeoff=0.01, max_depth=2, max_iter=2, swaps=False)),
    "CSTC, swaps": ("number", lambda: ms.CSTCRegressor(costs(), tradeoff=0.3, max_depth=2, max_iter=0)),
    "CSCC": ("rare", lambda: ms.CSCCClassifier(costs(), tradeoff=0.01, max_iter=2, class_weight="balanced")),
    "Cronus": ("rare", lambda: ms.CronusClassifier(costs(), tradeoff=0.01, n_stages=2, max_iter=1)),
    "CSTC over trees": (
        "number",
        lambda: ms.CSTCRegressor(
            costs(), 0.002, max_depth=2, max_iter=2, dictionary=ms.GreedyMiserRegressor(costs(), 0.0, n_estimators=5)
        ),
    ),
    "ASTC over trees": (
        "words",
        lambda: ms.ASTCClassifier(costs(), 3.0, dictionary=ms.GreedyMiserClassifier(costs(), 0.0, 5)),
    ),
    "soft cascade": ("rare", lambda: ms.baselines.SoftCascadeClassifier(costs(), 0.1, max_iter=5)),
}
LONG = [pytest.param(name, marks=pytest.mark.slow) for name in [*MODELS][-2:]]


@pytest.mark.parametrize("name", [*[*MODELS][:-2], *LONG])
def test_models_are_the_same_on_one_worker_and_on_two(client, name, monkeypatch):
    kind, make = MODELS[name]
    X, y = table()
    y = labels(kind, y)
    here = make().fit(X, y)
    plans, watched = [], watch(monkeypatch)
    for n_workers in (1, 2):
        known = placement.workers
        with monkeypatch.context() as patched:
            patched.setattr(placement, "workers", lambda client: dict([*known(client).items()][:n_workers]))  # noqa: B023
            dX, dy = parted(X, y)
            there = make().fit(dX, dy)
        plans.append(there.plan_)
        assert len(set(watched.holders.values())) == n_workers
    same(*plans)
    assert len(here.plan_.nodes) > 1
    assert [list(n.learners) for n in there.plan_.nodes] == [list(n.learners) for n in here.plan_.nodes]
    fresh = table(seed=1)[0]
    np.testing.assert_allclose(there.plan_.score(fresh), here.plan_.score(fresh), atol=1e-6)
    np.testing.assert_allclose(there.predict_cost(fresh), here.predict_cost(fresh))


def watch(monkeypatch):
    """Who held what, and the largest answer that came to the client."""
    seen, each = Bunch(holders={}, largest=0), PinnedRows.each

    def noted(rows, *question):
        answers = each(rows, *question)
        seen.holders = rows.placement
        seen.largest = max(seen.largest, sum(a.nbytes for a in answers if a is not None))
        return answers

    monkeypatch.setattr(PinnedRows, "each", noted)
    return seen


def test_rows_never_come_to_the_client(client, monkeypatch):
    n, n_features = 4000, 40
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    y = np.where(X[:, 0] > 0, X[:, 1], -X[:, 2]) + 0.2 * X[:, 3:].sum(axis=1)
    seen, gather, gathered = watch(monkeypatch), client.gather, []
    monkeypatch.setattr(client, "gather", lambda futures, **kw: gathered.append(gather(futures, **kw)) or gathered[-1])
    dX, dy = da.from_array(X, chunks=(1000, n_features)), da.from_array(y, chunks=1000)
    model = ms.CSTCRegressor(ms.CostTable.uniform(), 1e-4, max_depth=2, max_iter=1, swaps=False).fit(dX, dy)
    assert len(model.plan_.used_features) > 30
    most = X.nbytes // 5
    assert 0 < seen.largest < most
    assert all(sum(np.asarray(a).nbytes for a in some if isinstance(a, np.ndarray)) < most for some in gathered)
    deadline = time.monotonic() + 30
    while any(client.run(lambda dask_worker: len(dask_worker.state.actors)).values()):
        assert time.monotonic() < deadline, "The workers keep rows of a fit that is over."
        time.sleep(0.1)


def test_frames_arrays_of_the_client_and_validation(client):
    X, y = table()
    frame = pd.DataFrame(X, columns=NAMES)
    collection = dd.from_pandas(frame.assign(label=y), npartitions=2)
    Xv, yv = table(seed=1)
    make = lambda: ms.CSTCRegressor(costs(), 0.01, max_depth=2, max_iter=1, swaps=False)  # noqa: E731
    here = make().fit(frame, y, eval_set=(pd.DataFrame(Xv, columns=NAMES), yv))
    there = make().fit(collection[NAMES], collection["label"], eval_set=(pd.DataFrame(Xv, columns=NAMES), yv))
    assert there.feature_names_in_.tolist() == NAMES
    np.testing.assert_allclose(there.predict(frame), here.predict(frame), atol=1e-6)
    backend = DaskBackend(client, timeout=300)
    sent = make().fit(frame, y, backend=backend)
    np.testing.assert_allclose(sent.predict(frame), make().fit(frame, y).predict(frame), atol=1e-6)
    assert backend.traffic[0].n_messages > 0


def test_what_cannot_be_done_is_refused(client):
    X, y = table()
    X[200, 2] = np.nan
    with pytest.raises(ValueError, match=r"Partition 2 .*NaN"):
        ms.CSTCRegressor(costs()).fit(*parted(X, y))
    frame = pd.DataFrame(np.nan_to_num(X), columns=NAMES).assign(x3=pd.Categorical(np.where(y > 0, "up", "down")))
    with pytest.raises(ValueError, match="categories"):
        ms.ASTCRegressor(costs()).fit(dd.from_pandas(frame, npartitions=2), dd.from_pandas(pd.Series(y), npartitions=2))
    with pytest.raises(ValueError, match="one class only"):
        ms.CSCCClassifier(costs()).fit(*parted(np.nan_to_num(X), np.ones(N, int)))


@pytest.fixture
def own_cluster():
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, **OPTIONS) as cluster, Client(cluster, timeout=120) as client:
        yield cluster, client


def trouble(monkeypatch, at, happens):
    """Something bad at some questions."""
    each, asked = PinnedRows._call, []

    def troubled(rows, *question):
        asked.append(question[0])
        if len(asked) in at:
            happens(rows)
        return each(rows, *question)

    monkeypatch.setattr(PinnedRows, "_call", troubled)
    return asked


@pytest.mark.slow
@pytest.mark.parametrize("source", ["collection", "client"])
def test_workers_killed_twice_change_nothing(own_cluster, monkeypatch, source):
    client = own_cluster[1]
    X, y = table()
    make = MODELS["CSTC"][1]
    y = labels("words", y)
    given = parted(X, y) if source == "collection" else (X, y)
    whole = make().fit(*given, backend=DaskBackend(client, timeout=300)).plan_

    def kill(rows):
        address = sorted(set(rows.placement.values()))[-1]
        os.kill(client.run(os.getpid, workers=[address])[address], signal.SIGKILL)

    asked = trouble(monkeypatch, (2, 14), kill)
    same(make().fit(*given, backend=DaskBackend(client, timeout=300)).plan_, whole)
    assert len(asked) > 14


@pytest.mark.slow
def test_without_a_scheduler_there_is_a_clear_error(own_cluster, monkeypatch):
    cluster, client = own_cluster
    trouble(monkeypatch, (9,), lambda rows: cluster.close())
    with pytest.raises(BackendLostError, match="scheduler"):
        ms.ASTCRegressor(costs(), 3.0).fit(*parted(*table()), backend=DaskBackend(client, timeout=300))


@pytest.mark.slow
def test_a_worker_that_hangs_is_told_in_time(own_cluster, monkeypatch):
    client, stopped = own_cluster[1], []

    def stop(rows):
        address = sorted(set(rows.placement.values()))[-1]
        stopped.append(client.run(os.getpid, workers=[address])[address])
        os.kill(stopped[0], signal.SIGSTOP)
        rows._stores._timeout = 3

    trouble(monkeypatch, (9,), stop)
    try:
        with pytest.raises(BackendLostError, match="no answer within 3 s"):
            ms.ASTCRegressor(costs(), 3.0).fit(*parted(*table()), backend=DaskBackend(client, timeout=300))
    finally:
        os.kill(stopped[0], signal.SIGCONT)

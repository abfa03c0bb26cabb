"""However many workers and partitions there are, every bit of the plan is that of one process."""

import time

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from problems import N_FEATURES, data, model, parted, same

from miserly.distributed import DaskBackend
from miserly.distributed import _placement as placement

KINDS = ["regressor", "classifier", "ranker"]
N_WORKERS = 3


@pytest.fixture(scope="module", params=[1, 2, pytest.param(N_WORKERS, marks=pytest.mark.slow)])
def workers(request, cluster, connected):
    """One worker, then two, then three."""
    cluster.scale(request.param)
    deadline = time.monotonic() + 60
    while len(connected.nthreads()) != request.param:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return request.param


def fit(kind, X, y, qid, backend=None, **options):
    more = {"qid": qid} if kind == "ranker" else {}
    return model(kind, **options).fit(X, y, **more, **({} if backend is None else {"backend": backend}))


@pytest.mark.parametrize("kind", KINDS)
def test_plans_are_those_of_one_process(connected, workers, kind, monkeypatch):
    if workers == 3:  # one worker collects the answers of two
        monkeypatch.setattr(placement, "FAN_OUT_OF_CLIENT", 1)
    agree(connected, workers, kind, "learner", {1: (2,), 2: (1, 2, 7), 3: (7,)}[workers])


@pytest.mark.slow
@pytest.mark.parametrize("charge", ["learner", "path"])
@pytest.mark.parametrize("kind", KINDS)
def test_plans_are_those_of_one_process_for_all_numbers_of_partitions(connected, workers, kind, charge):
    agree(connected, workers, kind, charge, (1, 2, 7))


def agree(client, n_workers, kind, charge, numbers):
    """On one thread, on two, and on the cluster with these numbers of partitions, which sit on different workers."""
    X, y, qid = data(kind)
    here = {n_jobs: fit(kind, X, y, qid, charge=charge, n_jobs=n_jobs).plan_ for n_jobs in (1, 2)}
    same(here[1], here[2])
    assert any(purchase["price"] > 0 for purchase in here[1].notes["path"])
    for n_parts in numbers:
        backend = DaskBackend(client, timeout=300)
        placed = watch_placement(backend)
        there = fit(kind, *parted(X, y, qid, n_parts), backend, charge=charge)
        same(there.plan_, here[1])
        assert sorted(placed) == list(range(n_parts))
        assert len(set(placed.values())) == min(n_parts, n_workers)


def test_roots_that_one_process_moves_are_those_that_a_cluster_counts(client):
    """From 4096 rows on; the second half of the trees goes on from the first."""
    X, y, qid = data("regressor", n_rows=5000)
    here = fit("regressor", X, y, qid, n_estimators=12).plan_
    there = fit("regressor", *parted(X, y, qid, 3), DaskBackend(client, timeout=300), n_estimators=12)
    same(there.plan_, here)
    halves = fit("regressor", X, y, qid, n_estimators=6, warm_start=True)
    same(halves.set_params(n_estimators=12).fit(X, y).plan_, here)


def watch_placement(backend):
    """Which worker held each partition, noted before the fit lets go of them."""
    placed, close = {}, backend.close

    def noted():
        placed.update(backend.placement)
        close()

    backend.close = noted
    return placed


def test_draws_and_limits_are_those_of_one_process(client):
    X, y, qid = data("regressor")
    settings = {"subsample": 0.6, "max_features": 0.7, "random_state": 1, "max_depth": None, "max_leaf_nodes": 9}
    there = fit("regressor", *parted(X, y, qid, 3), **settings)
    same(there.plan_, fit("regressor", X, y, qid, **settings).plan_)


@pytest.mark.parametrize("charge", [pytest.param("learner", marks=pytest.mark.slow), "path"])
def test_weights_validation_and_warm_start_are_those_of_one_process(client, charge):
    X, y, _ = data("classifier")
    Xv, yv, _ = data("classifier", 300, seed=1)
    weight = np.random.default_rng(2).integers(0, 3, len(X)) * 0.7
    options = {"charge": charge, "n_estimators": 30, "learning_rate": 1.0, "n_iter_no_change": 2}
    here = model("classifier", **options).fit(X, y, weight, eval_set=(Xv, yv))
    dX, dy, dw = parted(X, y, weight, 3)
    there = model("classifier", **options).fit(dX, dy, dw, eval_set=(Xv, yv))
    same(there.plan_, here.plan_)
    assert there.validation_loss_ == here.validation_loss_
    assert there.n_iter_ < 30
    half = model("classifier", charge=charge, n_estimators=2, warm_start=True).fit(dX, dy, dw)
    half.set_params(n_estimators=4).fit(dX, dy, dw)
    same(half.plan_, model("classifier", charge=charge).fit(X, y, weight).plan_)


def test_data_frames_and_arrays_of_the_client(client):
    X, y, _ = data("classifier")
    words = np.array(["low", "mid", "top"])[y]
    frame = pd.DataFrame(X, columns=[f"x{f}" for f in range(N_FEATURES)])
    frame["x3"] = pd.Categorical(frame["x3"].map(lambda v: f"is {v:g}"))
    here = model("classifier").fit(frame, words)
    collection = dd.from_pandas(frame.assign(label=words), npartitions=4)
    there = model("classifier").fit(collection[list(frame.columns)], collection["label"])
    same(there.plan_, here.plan_)
    assert there.feature_names_in_.tolist() == here.feature_names_in_.tolist()
    assert np.array_equal(there.predict(frame), here.predict(frame))
    sent = model("classifier").fit(frame, words, backend=DaskBackend(client, timeout=300))
    same(sent.plan_, here.plan_)


def test_traffic_is_logged_and_is_what_the_formula_says(client):
    X, y, qid = data("regressor")
    backend = DaskBackend(client, timeout=300)
    fit("regressor", *parted(X, y, qid, 2), backend, tradeoff=0.0, max_depth=3, min_samples_leaf=1)
    trees = backend.traffic
    assert len(trees) == 4
    edges, counted, histogram = 2, 4, 256 * N_FEATURES * 8
    for number, tree in enumerate(trees):
        assert 0 <= tree.share <= 1
        assert tree.n_messages <= 8 - (number > 1)
        assert edges * counted * histogram <= tree.n_bytes <= edges * counted * histogram + 4000


@pytest.mark.parametrize("charge", ["learner", "path"])
def test_constrained_trees_are_those_of_one_process(client, charge):
    X, y, qid = data("regressor")
    how = {"charge": charge, "monotonic_cst": [-1] * N_FEATURES, "interaction_cst": "no_interactions"}
    here = fit("regressor", X, y, qid, **how).plan_
    there = fit("regressor", *parted(X, y, qid, 2), DaskBackend(client, timeout=300), **how)
    same(there.plan_, here)
    assert here != fit("regressor", X, y, qid, charge=charge).plan_

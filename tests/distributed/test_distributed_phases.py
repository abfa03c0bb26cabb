"""A worker is lost in any phase of a fit: the same bits, or BackendLostError. It was a raw error of Dask."""

import contextlib
import os
import signal
import time

import numpy as np
import pytest
from problems import data, model, parted, same

import miserly as ms
from miserly.boosting import BackendLostError, RowsLostError
from miserly.distributed import DaskBackend
from miserly.distributed._ingest import Ingest
from miserly.distributed._placement import WorkerStores

PHASES = {  # class, method, before or after its call, which call
    "rows are sent": (Ingest, "fetch", "after", 1),
    "rows are read": (Ingest, "ask", "before", 1),
    "rows were read": (Ingest, "ask", "after", 1),
    "cuts are found": (DaskBackend, "_try_to_find_cuts", "before", 1),
    "cuts were found": (DaskBackend, "_try_to_find_cuts", "after", 1),
    "rows are placed": (Ingest, "places", "after", 2),
    "rows are put in bins": (WorkerStores, "fill", "before", 1),
    "rows were put in bins": (WorkerStores, "fill", "after", 1),
    "the constant": (DaskBackend, "start", "before", 1),
    "a round": (DaskBackend, "loss", "before", 2),
    "a tree": (DaskBackend, "histograms", "before", 3),
    "the last loss": (DaskBackend, "loss", "after", 5),
    "the end": (DaskBackend, "close", "before", 1),
}
OPTIONS = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": None}


def lose_at(monkeypatch, phase, lose, times=1):
    """Call `lose` at a phase; returns the list of the times it happened."""
    cls, name, when, nth = PHASES[phase]
    plain, calls, happened = getattr(cls, name), [], []

    def trouble():
        if len(happened) < times:
            happened.append(phase)
            lose()

    def call(self, *args, **kwargs):
        calls.append(name)
        if len(calls) >= nth and when == "before":
            trouble()
        found = plain(self, *args, **kwargs)
        if len(calls) >= nth and when == "after":
            trouble()
        return found

    monkeypatch.setattr(cls, name, call)
    return happened


def kill(client):
    """Kill the process of a worker."""
    pids = sorted(client.run(os.getpid).items())
    os.kill(pids[-1][1], signal.SIGKILL)


@pytest.fixture(scope="module")
def threads_cluster():
    """Workers in this process, that speak TCP: made and lost in milliseconds."""
    from distributed import Client, LocalCluster

    options = OPTIONS | {"processes": False, "protocol": "tcp://"}
    with LocalCluster(n_workers=0, **options) as cluster, Client(cluster, timeout=120) as client:
        yield cluster, client
        while cluster.of_test:
            close_one(cluster)


def renewed(cluster, client):
    """The client of a cluster that has two workers again."""
    present = cluster.sync(lambda: _add(cluster, 2))
    client.wait_for_workers(2, timeout=120)
    return present


async def _add(cluster, n):
    from distributed import Worker

    live = [worker for worker in getattr(cluster, "of_test", []) if worker.status.name == "running"]
    while len(live) < n:
        live.append(await Worker(cluster.scheduler_address, nthreads=1, memory_limit=0))
    cluster.of_test = live
    return live


def close_one(cluster):
    """End a worker as its process would: what it holds is gone."""

    async def end():
        await cluster.of_test.pop().close(nanny=False, executor_wait=False, reason="lost")

    cluster.sync(end)


BOTH = [(phase, False) for phase in PHASES] + [(phase, True) for phase in ("rows are sent", "rows are read", "a round")]


@pytest.mark.parametrize(("phase", "local"), BOTH, ids=[f"{p}, {'arrays' if local else 'dask'}" for p, local in BOTH])
def test_a_worker_is_lost(threads_cluster, monkeypatch, phase, local):
    cluster, client = threads_cluster
    renewed(cluster, client)
    X, y, qid = data("regressor", n_rows=300)
    given = (X, y) if local else parted(X, y, qid, 3)[:2]
    happened = lose_at(monkeypatch, phase, lambda: close_one(cluster))
    there = model("regressor", n_estimators=4).fit(*given, backend=DaskBackend(client, timeout=300))
    assert happened == [phase]
    same(there.plan_, model("regressor", n_estimators=4).fit(X, y).plan_)


@pytest.mark.parametrize("phase", ["rows are sent", "rows are read", "rows are put in bins"])
def test_a_worker_is_lost_before_a_linear_fit(threads_cluster, monkeypatch, phase):
    cluster, client = threads_cluster
    renewed(cluster, client)
    X, y, qid = data("regressor", n_rows=300)
    X = np.nan_to_num(X)
    costs = ms.CostTable.uniform(X.shape[1])
    happened = lose_at(monkeypatch, phase, lambda: close_one(cluster))
    there = ms.ASTCRegressor(costs, node_budget=3.0)
    there.fit(*parted(X, y, qid, 3)[:2], backend=DaskBackend(client, timeout=300))
    assert happened == [phase]
    here = ms.ASTCRegressor(costs, node_budget=3.0).fit(X, y)
    assert there.plan_.used_features == here.plan_.used_features
    assert np.allclose(there.predict(X), here.predict(X))


@pytest.mark.parametrize("phase", ["rows are read", "cuts are found", "rows are put in bins"])
def test_workers_that_are_always_lost_are_an_error_of_the_backend(threads_cluster, monkeypatch, phase):
    cluster, client = threads_cluster
    renewed(cluster, client)
    X, y, _ = data("regressor", n_rows=300)

    def lost(self, *args):
        raise RowsLostError("A worker was lost.")

    monkeypatch.setattr(*PHASES[phase][:2] if phase != "rows are read" else (Ingest, "results"), lost)
    with pytest.raises(BackendLostError, match="Workers were lost"):
        model("regressor").fit(X, y, backend=DaskBackend(client, timeout=300))


def _slowly(block):
    time.sleep(0.2)
    return block


@pytest.mark.slow
@pytest.mark.parametrize("local", [False, True], ids=["collection", "arrays"])
def test_a_worker_is_killed(local):
    """The same with processes and SIGKILL, while tasks run."""
    from distributed import Client, LocalCluster

    X, y, qid = data("regressor")
    whole = model("regressor").fit(X, y).plan_
    for phase in PHASES:
        with LocalCluster(n_workers=2, processes=True, **OPTIONS) as cluster, Client(cluster, timeout=120) as client:
            dX, dy, _ = parted(X, y, qid, 4)
            given = (X, y) if local else (dX.map_blocks(_slowly, dtype=float), dy)
            with pytest.MonkeyPatch.context() as patch:
                happened = lose_at(patch, phase, lambda c=client: kill(c))
                with contextlib.suppress(BackendLostError):
                    there = model("regressor").fit(*given, backend=DaskBackend(client, timeout=300))
                    same(there.plan_, whole)
                assert happened == [phase]

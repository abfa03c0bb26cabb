"""Sweeps whose points are tasks of a cluster: the same points, kept by the same store."""

import os
import signal

import numpy as np
import pytest
from problems import costs, data, parted, same
from sklearn.base import BaseEstimator, RegressorMixin

import miserly as ms
from miserly.distributed import DaskBackend
from miserly.distributed._timeouts import workers
from miserly.frontiers._sweep import SweepError

GRID = {"tradeoff": [0.0, 2e-3, 2e-2]}


def sets(kind="regressor"):
    return data(kind, 300)[:2], data(kind, 200, seed=1)[:2]


def miser(**options):
    return ms.GreedyMiserRegressor(costs(), n_estimators=4, learning_rate=0.3, **options)


def linear():
    return ms.ASTCRegressor(costs(), max_depth=2)


def agree(there, here):
    assert there.complete
    assert len(there.points) == len(here.points)
    for one, other in zip(there.points, here.points):
        same(one.model.plan_, other.model.plan_)
        assert (one.params, one.validation) == (other.params, other.validation)


def test_points_are_those_of_one_process_and_are_kept(client, tmp_path):
    train, validation = sets()
    backend = DaskBackend(client, timeout=300)
    here = ms.frontier(miser(), train, validation, grid=GRID)
    agree(ms.frontier(miser(), train, validation, grid=GRID, backend=backend, store=tmp_path / "kept"), here)
    nowhere = object()  # all points are kept: no backend is asked
    agree(ms.frontier(miser(), train, validation, grid=GRID, backend=nowhere, store=tmp_path / "kept"), here)
    train, validation = ((np.nan_to_num(X), y) for X, y in sets())
    train, validation = tuple(train), tuple(validation)
    grid = {"node_budget": [1.0, 4.0]}
    here = ms.frontier(linear(), train, validation, grid=grid)
    agree(ms.frontier(linear(), train, validation, grid=grid, backend=backend), here)


def test_what_cannot_be_swept_is_refused(client):
    train, validation = sets()
    backend = DaskBackend(client, timeout=300)
    with pytest.raises(ValueError, match="n_jobs"):
        ms.frontier(miser(), train, validation, grid=GRID, backend=backend, n_jobs=2)
    with pytest.raises(ValueError, match="as arrays"):
        ms.frontier(miser(), parted(*train, train[1], 2)[:2], validation, grid=GRID, backend=backend)
    with pytest.raises(ValueError, match="two is not possible"):
        ms.frontier(Odd("mistake"), train, validation, grid={"level": [1, 2]}, backend=backend)


class Odd(RegressorMixin, BaseEstimator):
    """Predicts its level; at level 2 it fails, or kills its worker: always, or if a file is there, which it takes."""

    def __init__(self, accident=None, level=0):
        self.accident = accident
        self.level = level

    def fit(self, X, y):
        if self.level == 2 and self.accident == "mistake":
            raise ValueError("two is not possible")
        if self.level == 2 and (self.accident == "always" or os.path.exists(self.accident)):
            if self.accident != "always":
                os.remove(self.accident)
            os.kill(os.getpid(), signal.SIGKILL)
        self.process_ = os.getpid()
        return self

    def predict(self, X):
        return np.full(len(X), float(self.level))

    def predict_cost(self, X):
        return np.full(len(X), 10.0 - self.level)


@pytest.fixture
def own_client():
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "memory_limit": None}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster, timeout=120) as client:
        yield client


@pytest.mark.slow
def test_a_lost_worker_repeats_its_point_only(own_client, tmp_path):
    train, validation = sets()
    once = tmp_path / "once"
    once.touch()
    done = []
    found = ms.frontier(
        Odd(str(once)),
        train,
        validation,
        grid={"level": [1, 2, 3]},
        backend=DaskBackend(own_client),
        progress=lambda n, of, point: done.append(point),
    )
    assert not once.exists()
    assert [point.params["level"] for point in found.points] == [1, 2, 3]
    assert len(done) == 4


@pytest.mark.slow
def test_a_point_that_kills_all_workers_is_named(own_client):
    train, validation = sets()
    with pytest.raises(SweepError, match="the point level=2 died"):
        ms.frontier(Odd("always"), train, validation, grid={"level": [2]}, backend=DaskBackend(own_client))
    assert workers(own_client)

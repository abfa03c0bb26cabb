"""Workers, clients, schedulers that die in the middle of training: the same bits, or an error from which to go on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from problems import data, model, parted, same

from miserly.boosting import BackendLostError
from miserly.distributed import DaskBackend
from miserly.distributed import _placement as placement

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parent / "fit_to_kill.py"
OPTIONS = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "memory_limit": None}


@pytest.fixture
def own_cluster():
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=3, **OPTIONS) as cluster, Client(cluster, timeout=120) as client:
        yield cluster, client


class Trouble(DaskBackend):
    """A backend that does something bad at certain trees: at their beginning, or at their first split."""

    def __init__(self, client, happens, at, in_split=False, **options):
        super().__init__(client, **options)
        self.happens, self.at, self.in_split, self.n_trees, self.n_troubles = happens, set(at), in_split, 0, 0

    def begin(self, outputs=(0,)):
        self.n_trees += 1
        if not self.in_split:
            self._trouble()
        return super().begin(outputs)

    def sums(self, node):
        if self.in_split:
            self._trouble()
        return super().sums(node)

    def _trouble(self):
        if self.n_trees in self.at:
            self.at.remove(self.n_trees)
            self.n_troubles += 1
            self.happens(self)


def kill_a_holder(backend):
    """Kill the process of a worker that holds rows, other than the one that is asked first."""
    addresses = sorted(set(backend.placement.values()))
    pids = backend._client.run(os.getpid, workers=[addresses[-1]])
    os.kill(pids[addresses[-1]], signal.SIGKILL)


def kill_the_root(backend):
    """Kill the process of the worker that is asked first."""
    address = min(set(backend.placement.values()))
    os.kill(backend._client.run(os.getpid, workers=[address])[address], signal.SIGKILL)


@pytest.mark.parametrize("in_split", [False, True])
@pytest.mark.parametrize("kill", [kill_a_holder, kill_the_root])
@pytest.mark.parametrize(("kind", "charge"), [("regressor", "path"), ("classifier", "learner"), ("ranker", "learner")])
def test_workers_killed_twice_change_nothing(own_cluster, kind, charge, kill, in_split, monkeypatch):
    if in_split:  # one worker collects the answers of two
        monkeypatch.setattr(placement, "FAN_OUT_OF_CLIENT", 1)
    X, y, qid = data(kind)
    more = {"qid": qid} if kind == "ranker" else {}
    here = model(kind, charge=charge, n_estimators=6).fit(X, y, **more)
    dX, dy, dq = parted(X, y, qid, 4)
    backend = Trouble(own_cluster[1], kill, at=(2, 5), in_split=in_split, timeout=300)
    there = model(kind, charge=charge, n_estimators=6)
    there.fit(dX, dy, backend=backend, **({"qid": dq} if more else {}))
    assert backend.n_troubles == 2
    same(there.plan_, here.plan_)


def test_rows_of_the_client_are_sent_again(own_cluster):
    X, y, _ = data("regressor")
    backend = Trouble(own_cluster[1], kill_a_holder, at=(3,), timeout=300)
    there = model("regressor").fit(X, y, backend=backend)
    assert backend.n_troubles == 1
    same(there.plan_, model("regressor").fit(X, y).plan_)


def test_after_the_scheduler_is_gone_the_fit_goes_on_elsewhere(own_cluster, tmp_path):
    X, y, qid = data("classifier")
    dX, dy, _ = parted(X, y, qid, 3)
    cluster, client = own_cluster
    backend = Trouble(client, lambda _: cluster.close(), at=(7,), timeout=300)
    there = model("classifier")
    with pytest.raises(BackendLostError, match="warm_start=True"):
        there.fit(dX, dy, backend=backend, checkpoint=tmp_path / "rounds")
    whole = model("classifier").fit(X, y).plan_
    same(there.set_params(warm_start=True).fit(X, y).plan_, whole)
    fresh = model("classifier", warm_start=True)
    same(fresh.fit(X, y, checkpoint=tmp_path / "rounds").plan_, whole)


def test_a_worker_that_hangs_is_told_in_time(own_cluster):
    X, y, qid = data("regressor")
    dX, dy, _ = parted(X, y, qid, 3)
    stopped = []

    def stop(backend):
        address = sorted(set(backend.placement.values()))[-1]
        stopped.append(backend._client.run(os.getpid, workers=[address])[address])
        os.kill(stopped[0], signal.SIGSTOP)
        backend._stores._timeout = 3

    there = model("regressor")
    try:
        with pytest.raises(BackendLostError, match="no answer within 3 s"):
            there.fit(dX, dy, backend=Trouble(own_cluster[1], stop, at=(3,), timeout=300))
    finally:
        os.kill(stopped[0], signal.SIGCONT)
    there.set_params(warm_start=True).fit(dX, dy)
    same(there.plan_, model("regressor").fit(X, y).plan_)


def test_after_the_client_is_killed_another_goes_on(own_cluster, tmp_path):
    path = tmp_path / "rounds"
    process = subprocess.Popen([sys.executable, str(SCRIPT), str(path)], start_new_session=True)
    deadline = time.monotonic() + 200
    while (len(path.read_text().splitlines()) if path.exists() else 0) < 4:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    n_done = len(path.read_text().splitlines()) - 1
    X, y, qid = data("classifier")
    dX, dy, _ = parted(X, y, qid, 2)
    backend = DaskBackend(own_cluster[1], timeout=300)
    there = model("classifier", n_estimators=25, warm_start=True).fit(dX, dy, backend=backend, checkpoint=path)
    here = model("classifier", n_estimators=25).fit(X, y)
    assert n_done < len(here.plan_.nodes)
    same(there.plan_, here.plan_)
    assert json.loads(path.read_text().splitlines()[-1])["loss"] == here.train_loss_[-1]

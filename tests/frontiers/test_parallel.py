"""Points in processes of their own: the same bits as one after another, and what is left when something dies."""

import mmap
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
from odd import Odd

import miserly as ms
from miserly.datasets import four_quadrants, yahoo_like
from miserly.frontiers import SweepError
from miserly.frontiers._job import Job
from miserly.frontiers._workers import attach, share
from miserly.metrics import get_metric

FEW = {"tradeoff": [0, 1e-4, 1e-2]}
ODD = np.zeros((5, 1)), np.zeros(5)


@pytest.fixture(autouse=True)
def nothing_stays(tmp_path, monkeypatch):
    """After every test: no shared files, no workers."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert not list(tmp_path.glob(".work-*"))
    assert not [p for p in psutil.Process().children() if "popen_loky" in " ".join(p.cmdline())]


def ranking():
    train, validation, test = (yahoo_like(12, seed) for seed in range(3))
    model = ms.GreedyMiserRanker(train.costs, n_estimators=6, n_iter_no_change=3, loss="lambdarank")
    return model, *((d.X, d.y, d.qid) for d in (train, validation, test))


def classes_in_a_frame():
    data = four_quadrants(400, 0)
    names = list(data.costs.features)[::-1]
    y = np.where(data.y > np.median(data.y), "high", "low").astype(object)
    parts = [(pd.DataFrame(data.X, columns=data.costs.features)[names][rows], y[rows]) for rows in _halves(400)]
    return ms.GreedyMiserClassifier(data.costs, n_estimators=10), *parts


def columns_out_of_a_matrix():
    data = four_quadrants(400, 0)
    wide = np.repeat(data.X, 2, axis=1)[:, ::2]
    return ms.GreedyMiserRegressor(data.costs, n_estimators=10), *((wide[r], data.y[r]) for r in _halves(400))


def _halves(n):
    return slice(0, n // 2), slice(n // 2, n)


@pytest.mark.parametrize(
    "case", [ranking, *(pytest.param(c, marks=pytest.mark.slow) for c in (classes_in_a_frame, columns_out_of_a_matrix))]
)
def test_two_processes_give_the_bits_of_one(case):
    model, *data = case()
    metric = "ndcg@5" if case is ranking else None
    one, two = (ms.frontier(model, *data, grid=FEW, metric=metric, n_jobs=n, refine=2) for n in (1, 2))
    assert two.complete
    assert (one.unit, one.name) == (two.unit, two.name)
    for a, b in zip(one.points, two.points, strict=True):
        assert (a.params, a.validation, a.test) == (b.params, b.validation, b.test)
        assert a.model.plan_ == b.model.plan_
        assert a.model.plan_.notes == b.model.plan_.notes
        assert vars(a.model).keys() == vars(b.model).keys()
        X = data[1][0]
        assert np.array_equal(a.model.predict(X), b.model.predict(X))
        assert np.array_equal(a.model.predict_cost(X), b.model.predict_cost(X))


def test_what_is_shared_lies_in_the_file(tmp_path):
    data = four_quadrants(100, 0)
    model = ms.GreedyMiserRanker(data.costs, n_iter_no_change=2)
    np.save(tmp_path / "X.npy", data.X)
    frame = pd.DataFrame(data.X, columns=data.costs.features)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    qid, names = np.arange(100), np.array(list("ab") * 50, object)
    job = Job(model, (mapped, data.y, qid), (data.X[:, ::-1], names, qid), (frame, data.y, None), get_metric("mse"))
    job = job.prepared({})
    share(job, tmp_path / "shared")
    again = attach(tmp_path / "shared")
    assert again.given["eval_set"][0] is again.validation[0]
    for array in (*again.train, again.validation[0], again.given["binned"].words, again.test[0].to_numpy()):
        assert array.flags.aligned
        base = array
        while isinstance(base, np.ndarray):
            base = base.base
        assert isinstance(base.obj, mmap.mmap)
    assert np.array_equal(again.train[0], data.X)
    assert np.array_equal(again.validation[0], data.X[:, ::-1])
    assert again.validation[1].tolist() == names.tolist()
    pd.testing.assert_frame_equal(again.test[0], frame)
    assert np.array_equal(again.given["binned"].words, job.given["binned"].words)
    again.validation[0][:] = 0
    assert np.array_equal(attach(tmp_path / "shared").validation[0], data.X[:, ::-1])


def test_a_worker_that_dies_is_named_and_the_rest_is_kept():
    grid = {"level": [1, 2, 3, 4, 5, 6, 7, 8]}
    with pytest.raises(SweepError, match=r"at the point level=2 died.*fewer n_jobs.*of 8 points are done") as caught:
        ms.frontier(Odd(accident="killed"), ODD, ODD, grid=grid, n_jobs=2)
    front = caught.value.frontier
    assert not front.complete
    assert front.points[0].params == {"level": 1}
    assert {"level": 2} not in [p.params for p in front.points]


def test_a_mistake_in_a_worker_is_told_as_it_is():
    with pytest.raises(ValueError, match="two is not possible") as caught:
        ms.frontier(Odd(accident="mistake"), ODD, ODD, grid={"level": [1, 2, 3]}, n_jobs=2)
    assert caught.value.__notes__ == ["This happened at the point level=2 of the sweep."]


def test_an_interruption_keeps_what_is_done_by_workers_of_one_thread():
    def stop_after_two(done, of, point):
        if done == 2:
            raise KeyboardInterrupt

    front = ms.frontier(Odd(), ODD, ODD, grid={"level": [4, 3, 2, 1]}, n_jobs=2, progress=stop_after_two)
    assert len(front.points) == 2
    assert not front.complete
    assert all(p.model.threads_ == 1 for p in front.points)
    assert os.getpid() not in {p.model.process_ for p in front.points}
    assert all(p.validation.quality == p.params["level"] ** 2 for p in front.points)


@pytest.mark.parametrize("n_jobs", [0, "two", 1.5, True])
def test_mistaken_n_jobs(n_jobs):
    with pytest.raises(ValueError, match="number of processes, or -1 for one per core"):
        ms.frontier(Odd(), ODD, ODD, grid={"level": [1]}, n_jobs=n_jobs)


SCRIPT = """
import sys, time
import numpy as np
sys.path.insert(0, {tests!r})
from odd import Odd
import miserly as ms

class Slow(Odd):
    def fit(self, X, y):
        time.sleep(self.level)
        return super().fit(X, y)

def progress(done, of, point):
    print("done", done, flush=True)

data = np.zeros((5, 1)), np.zeros(5)
front = ms.frontier(Slow(), data, data, grid={{"level": [0, 600, 601]}}, n_jobs=2, progress=progress)
print("kept", [p.params["level"] for p in front.points], front.complete, flush=True)
"""


@pytest.mark.parametrize("ended_by", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_ctrl_c_keeps_what_is_done_and_no_worker_outlives_its_sweep(tmp_path, ended_by):
    """Ctrl-C goes to the whole group, as on a terminal; the kill to the sweep alone."""
    sweep = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(tests=str(Path(__file__).parent))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    while sweep.stdout.readline() != "done 1\n":
        assert sweep.poll() is None
    workers = psutil.Process(sweep.pid).children(recursive=True)
    if ended_by == signal.SIGINT:
        os.killpg(sweep.pid, signal.SIGINT)
        told, complaints = sweep.communicate(timeout=300)
        assert told == "kept [0] False\n"
        assert "Interrupted: 1 of 3 points are kept." in complaints
        assert complaints.count("Traceback") == complaints.count("Exception ignored in")  # Python's own, in a callback
        assert sweep.returncode == 0
    else:
        sweep.kill()
        sweep.communicate(timeout=300)
    gone, alive = psutil.wait_procs(workers, timeout=120)
    assert gone
    assert not alive
    deadline = time.monotonic() + 60
    while list(tmp_path.glob(".work-*")) and time.monotonic() < deadline:
        time.sleep(0.1)

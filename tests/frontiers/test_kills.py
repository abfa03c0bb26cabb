"""A sweep that is killed again and again, with all its workers, ends as an undisturbed one."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sweep_to_kill import sweep

SCRIPT = Path(__file__).parent / "sweep_to_kill.py"


def start(store, tmp, n_points):
    command = [sys.executable, str(SCRIPT), str(store), "2", str(n_points)]
    return subprocess.Popen(command, start_new_session=True, env={**os.environ, "TMPDIR": str(tmp)})


def n_done(store):
    return len(list(store.glob("point-*.json")))


def kill_at_random(process, store, chance):
    """Kill the whole group a moment after it has begun to work, or after it has finished another point."""
    before, by_point = n_done(store), chance.random() < 0.6
    while process.poll() is None and not (n_done(store) > before if by_point else list(store.glob(".work-*"))):
        time.sleep(0.002)
    time.sleep(chance.uniform(0, 0.2 if by_point else 3))
    assert process.poll() is None, "the sweep ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def killed_sweep_equals_an_undisturbed_one(tmp_path, n_kills, n_points, seed):
    store, tmp, chance = tmp_path / "store", tmp_path / "tmp", random.Random(seed)
    tmp.mkdir()
    done = []
    for _ in range(n_kills):
        kill_at_random(start(store, tmp, n_points), store, chance)
        done.append(n_done(store))
    assert done == sorted(done)
    assert done[-1] > 0
    process = start(store, tmp, n_points)
    assert process.wait(timeout=240) == 0
    assert not list(tmp.iterdir())
    assert len(list(store.iterdir())) == 1 + 2 * n_points
    finished = {path: path.stat().st_mtime_ns for path in store.iterdir()}
    kept, undisturbed = sweep(store, n_points=n_points), sweep(None, n_points=n_points)
    assert {path: path.stat().st_mtime_ns for path in store.iterdir()} == finished
    for a, b in zip(kept.points, undisturbed.points, strict=True):
        assert (a.params, a.validation, a.test) == (b.params, b.validation, b.test)
        assert a.model.plan_ == b.model.plan_
        assert json.dumps(a.model.plan_.notes) == json.dumps(b.model.plan_.notes)
        assert a.model.validation_score_ == b.model.validation_score_


@pytest.mark.slow
def test_a_kill(tmp_path):
    killed_sweep_equals_an_undisturbed_one(tmp_path, n_kills=1, n_points=6, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_ten_kills(tmp_path, seed):
    killed_sweep_equals_an_undisturbed_one(tmp_path, n_kills=10, n_points=60, seed=seed)

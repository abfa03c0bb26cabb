"""Two at work in one place at once: the result is that of one of them, whole, or the later one is told."""

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import deeds
import numpy as np
import pytest

from miserly.boosting import Checkpoint, bin_data
from miserly.datasets import write_csv
from miserly.plan import load_plan
from miserly.report import load_run


def at_once(*works):
    """The results of some functions that run at the same time, an error as a result too."""
    together = threading.Barrier(len(works))

    def one(work):
        together.wait()
        try:
            return work()
        except ValueError as error:
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(one, works))


def test_a_plan_is_always_one_of_two(tmp_path):
    path = tmp_path / "a.plan"
    both = [deeds.PLANS[name]() for name in ("cascade", "wide")]
    deeds.save_plan(path, 0)

    def save(version):
        for _ in range(40):
            deeds.save_plan(path, version)

    def read():
        return all(load_plan(path) in both for _ in range(40))

    assert at_once(lambda: save(0), lambda: save(1), read)[2]
    assert [p.name for p in tmp_path.iterdir()] == ["a.plan"]


def test_a_run_is_always_one_of_two(tmp_path):
    """The plans of one were mixed with the table of the other."""
    deeds.keep_run(tmp_path, 0)
    names = [deeds.triage(60)[k].front.name for k in (0, 2)]
    sizes = dict(zip(names, (7, 2)))

    def save(version):
        for _ in range(5):
            deeds.keep_run(tmp_path, version)

    def read():
        fronts = [load_run(tmp_path).front for _ in range(10)]
        return all(len(front.points) == sizes[front.name] for front in fronts)

    assert at_once(lambda: save(0), lambda: save(1), read)[2]
    assert {p.name for p in tmp_path.iterdir()} == {"plans", "rows.npz", "run.json"}


def test_a_run_whose_files_were_not_all_moved_is_the_new_one(tmp_path):
    """A sweep that was killed while it replaced another left a table of the one with plans of the other."""
    deeds.keep_run(tmp_path, 0)
    deeds.keep_run(tmp_path / "other", 1)
    (tmp_path / "other").rename(tmp_path / ".new")
    (tmp_path / ".new/plans/000.plan").rename(tmp_path / "plans/000.plan")
    new = deeds.triage(60)[2].front
    found = load_run(tmp_path).front
    assert [p.model.plan_ for p in found.points] == [p.model.plan_ for p in new.points]
    assert found.name == new.name
    assert not (tmp_path / ".new").exists()


def test_bins_are_made_once(tmp_path):
    """Each wrote over the half-written arrays of the other."""
    X = np.random.default_rng(0).normal(size=(500, 4))
    write_csv(tmp_path / "a.csv", list("abcd"), X.T)
    one, two = at_once(*[lambda: deeds.ms.BinnedDataset.from_csv(tmp_path / "a.csv", tmp_path / "bins")] * 2)
    assert np.array_equal(one.data.words, bin_data(X).words)
    assert np.array_equal(two.data.words, one.data.words)


def test_the_second_fit_at_a_checkpoint_is_told(tmp_path, monkeypatch):
    """Its rounds stood between those of the first, and a third fit went on from both."""
    path, made = tmp_path / "rounds", []
    done = Checkpoint.__call__

    def with_another_at_the_third(progress, boosted):
        done(progress, boosted)
        made.append(boosted)
        if len(made) == 3:
            deeds.model(n_estimators=4).fit(*deeds.TRAIN, checkpoint=path)

    monkeypatch.setattr(Checkpoint, "__call__", with_another_at_the_third)
    with pytest.raises(ValueError, match=f"Another fit writes the checkpoint '{path}' too"):
        deeds.model().fit(*deeds.TRAIN, checkpoint=path)
    assert path.read_text().count("\n") == 1 + 4
    assert deeds.model().fit(*deeds.TRAIN, checkpoint=path).plan_ == deeds.model().fit(*deeds.TRAIN).plan_


def test_a_folder_is_one_sweep_at_a_time(tmp_path):
    ends = at_once(*[lambda: deeds.sweep(tmp_path)] * 2)
    told = [end for end in ends if isinstance(end, ValueError)]
    assert all("Another sweep is at work in the store" in str(error) for error in told)
    done = [[p.model.plan_ for p in end.points] for end in ends if not isinstance(end, ValueError)]
    assert done
    assert all(plans == [p.model.plan_ for p in deeds.sweep(tmp_path).points] for plans in done)


@pytest.mark.slow
def test_two_commands_with_one_out(tmp_path):
    """Their plans were mixed, and the one's were taken for the other's."""
    for part, (X, y) in (("train", deeds.TRAIN), ("validation", deeds.VALIDATION)):
        write_csv(tmp_path / f"{part}.csv", [*deeds.DATA.costs.features, "label"], [*X.T, y])
    deeds.DATA.costs.to_toml(tmp_path / "costs.toml")
    command = [sys.executable, "-c", "from miserly.cli import main; main()", "frontier", "train.csv", "validation.csv"]
    command += ["--costs", "costs.toml", "--label", "label", "--n-jobs", "1", "--out", "run", "--n-estimators", "200"]
    command += ["--method", "greedy-miser"]
    settings = [("--grid", "1e-4:1:30", "--max-depth", "2"), ("--grid", "1e-3:1:20", "--max-depth", "4")]
    started = []
    for more in settings:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen([*command, *more], cwd=tmp_path, **quiet))
        time.sleep(0.3)
    told = [(process.communicate(timeout=240)[1], process.returncode) for process in started]
    refused = [text for text, code in told if code]
    assert all("Another sweep is being written to 'run'" in text for text in refused)
    assert len(refused) < 2
    found = json.loads((tmp_path / "run/run.json").read_text())
    assert len(load_run(tmp_path / "run").front.points) == len(found["points"]) in (20, 30)
    assert not (tmp_path / "run/unfinished").exists()

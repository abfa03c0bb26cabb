"""A disk that is full: what was there stays as it was, nothing else is left, and the message names the file."""

import os
import resource
import subprocess
import sys
from contextlib import contextmanager

import pytest
from deeds import DATA, FILES, TRAIN, VALIDATION, bins, keep_run, model

import miserly as ms
from miserly.boosting import BinnedFileError
from miserly.datasets import write_csv
from miserly.report import load_run


@contextmanager
def full_disk(most):
    """No file can grow beyond so many bytes: a write is cut there, the next one is an error, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def content(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("most", [0, 100])
@pytest.mark.parametrize("name", FILES)
def test_the_old_file_stays(tmp_path, name, most):
    """Tables, prices, pages and pictures were cut short, and the message named no file."""
    path, write = tmp_path / name, FILES[name]
    write(path, 0)
    before = content(tmp_path)
    with full_disk(most), pytest.raises(OSError, match=f"Cannot write '{path}': File too large. Nothing was changed"):
        write(path, 1)
    assert content(tmp_path) == before
    write(path, 1)
    assert content(tmp_path) != before
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("most", [0, 900, 3000])
def test_the_old_run_stays(tmp_path, most):
    """It was taken away before the new one was written, of which the half was left."""
    keep_run(tmp_path / "run", 0)
    before = content(tmp_path)
    with full_disk(most), pytest.raises(OSError, match=r"Cannot write '.*/run/.*': File too large"):
        keep_run(tmp_path / "run", 1)
    assert content(tmp_path) == before
    keep_run(tmp_path / "run", 1)
    assert len(load_run(tmp_path / "run").front.points) == 2
    assert not (tmp_path / "run" / ".new").exists()


@pytest.mark.parametrize("more", [0, 1, 400])
def test_the_rounds_before_stay(tmp_path, more):
    """A part of the next one was left behind them. If there was such a part, all were written anew to be without it."""
    path = tmp_path / "rounds"
    model(n_estimators=3).fit(*TRAIN, checkpoint=path)
    before = content(tmp_path)
    model(n_estimators=6).fit(*TRAIN, checkpoint=path)  # compiles: kernels could not be kept on a full disk
    path.write_bytes(before[path.relative_to(tmp_path)])
    message = f"Cannot write '{path}': File too large. The rounds before this one are kept"
    for part in (b"", b'{"outputs": [0'):
        path.write_bytes(path.read_bytes() + part)
        with full_disk(0 if part else path.stat().st_size + more), pytest.raises(OSError, match=message):
            model().fit(*TRAIN, checkpoint=path)
        assert content(tmp_path) == before
    assert model().fit(*TRAIN, checkpoint=path).plan_ == model().fit(*TRAIN).plan_


def test_a_checkpoint_that_cannot_be_begun(tmp_path):
    """An empty file was left, which was no checkpoint to the next fit."""
    path = tmp_path / "rounds"
    with full_disk(10), pytest.raises(OSError, match=f"Cannot write '{path}': File too large"):
        model().fit(*TRAIN, checkpoint=path)
    assert not content(tmp_path)


def sweep(folder, tradeoffs, n_jobs=1):
    return ms.frontier(model(), TRAIN, VALIDATION, grid={"tradeoff": tradeoffs}, store=folder, n_jobs=n_jobs)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_points_before_stay(tmp_path, n_jobs):
    """The message named no file."""
    first = sweep(tmp_path, [0, 1e-3])
    before = content(tmp_path)
    with full_disk(500), pytest.raises(OSError, match=f"Cannot write '{tmp_path}/.*': File too large"):
        sweep(tmp_path, [0, 1e-3, 1e-2, 1e-1], n_jobs)
    assert content(tmp_path) == before
    again = sweep(tmp_path, [0, 1e-3, 1e-2, 1e-1])
    assert [p.seconds for p in again.points[:2]] == [p.seconds for p in first.points]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("most", [50, 300, 3000])
def test_bins_go_on_when_there_is_room_again(tmp_path, most):
    """A block that was cut short was noted as done, so that the bins could neither be opened nor be gone on with."""
    whole = bins(tmp_path / "whole")
    (tmp_path / "whole.csv").rename(tmp_path / "short.csv")
    with full_disk(most), pytest.raises(OSError, match=f"Cannot write '{tmp_path}/short/.*': File too large"):
        bins(tmp_path / "short")
    with pytest.raises(BinnedFileError, match=r"header\.json"):
        ms.BinnedDataset(tmp_path / "short")
    assert not list(tmp_path.glob("short/.*"))
    data = bins(tmp_path / "short")
    assert (data.data.words == whole.data.words).all()


def miserly(*args, cwd, most=None):
    """The command as a user runs it, on a disk with so much room for each file."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    command = [sys.executable, "-B", "-c", "from miserly.cli import main; main()", *map(str, args)]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, preexec_fn=limit if most is not None else None, timeout=240
    )


@pytest.mark.slow
def test_the_command_line_says_so_in_a_line(tmp_path):
    for part, (X, y) in (("train", TRAIN), ("validation", VALIDATION)):
        write_csv(tmp_path / f"{part}.csv", [*DATA.costs.features, "label"], [*X.T, y])
    DATA.costs.to_toml(tmp_path / "costs.toml")
    learn = (
        "--costs",
        "costs.toml",
        "--label",
        "label",
        "--n-estimators",
        5,
        "--n-jobs",
        1,
        "--method",
        "greedy-miser",
    )
    assert miserly("fit", "train.csv", "-o", "a.plan", *learn, cwd=tmp_path).returncode == 0
    keep_run(tmp_path / "run", 0)
    before = content(tmp_path)
    for args, file in (
        (("fit", "train.csv", "-o", "a.plan", *learn), "a.plan"),
        (("predict", "a.plan", "train.csv", "--label", "label", "-o", "costs.toml"), "costs.toml"),
        (("frontier", "train.csv", "validation.csv", "--grid", "1e-3:1:2", "--out", "run", *learn), "run/"),
        (("report", "run", "-o", "train.csv"), "train.csv"),
    ):
        done = miserly(*args, cwd=tmp_path, most=200)
        assert done.returncode == 1
        assert done.stderr.startswith("Error: ")
        assert f"Cannot write '{tmp_path}/{file}" in done.stderr
        assert "File too large. Nothing was changed." in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert {k: v for k, v in content(tmp_path).items() if "unfinished" not in str(k)} == before

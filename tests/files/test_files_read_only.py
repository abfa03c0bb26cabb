"""Places that cannot be written to: nothing changes, and the message names the place."""

import codecs
import importlib
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
from deeds import FILES, TRAIN, bins, keep_run, model, sweep

from miserly.cli.options import OUT_FILE

NOBODY = 65534


@pytest.fixture
def place():
    """A folder that others may look into."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def read_only(folder):
    """No one may write there. To root nothing is read-only, so it is nobody for a while."""
    paths = [folder, *folder.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = os.geteuid()
    codecs.lookup("cp437")  # zip files need it; where nobody cannot read Python's own files it would stay missing
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)
        importlib.invalidate_caches()  # of folders that nobody could not list
        for path in paths:
            path.chmod(0o755 if path.is_dir() else 0o644)


def content(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def more_rounds(path, version):
    model(n_estimators=3 + version).fit(*TRAIN, checkpoint=path)


def more_points(folder, version):
    """The first time, one of the points is lost."""
    sweep(folder)
    if not version:
        next(folder.glob("point-*.json")).unlink()


def bins_again(folder, version):
    """The first time, the end is lost."""
    bins(folder)
    if not version:
        (folder / "header.json").unlink()


WAYS = {**FILES, "run": keep_run, "rounds": more_rounds, "sweep": more_points, "bins": bins_again}


@pytest.mark.parametrize("name", WAYS)
def test_a_read_only_folder(place, name):
    WAYS[name](place / name, 0)
    before = content(place)
    with read_only(place), pytest.raises(PermissionError, match=f"{place}/{name}.*Permission denied|denied.*{place}"):
        WAYS[name](place / name, 1)
    assert content(place) == before
    WAYS[name](place / name, 1)


@pytest.mark.parametrize("name", WAYS)
def test_a_folder_that_is_a_file(tmp_path, name):
    (tmp_path / "file").write_text("text")
    with pytest.raises((FileNotFoundError, NotADirectoryError), match=str(tmp_path / "file")):
        WAYS[name](tmp_path / "file" / name, 0)
    assert {str(path): text for path, text in content(tmp_path).items() if path.suffix != ".csv"} == {"file": b"text"}


def test_the_command_line_asks_before_the_work(tmp_path, monkeypatch):
    """A model was fitted for hours, and then could not be saved."""
    (tmp_path / "file").write_text("text")
    for folder in ("nowhere", "file"):
        with pytest.raises(click.BadParameter, match=f"the folder '{tmp_path}/{folder}' does not exist"):
            OUT_FILE.convert(tmp_path / folder / "a.plan", None, None)
    assert OUT_FILE.convert("/dev/null", None, None) == Path("/dev/null")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(click.BadParameter, match=f"no right to write in the folder '{tmp_path}'"):
        OUT_FILE.convert(tmp_path / "a.plan", None, None)

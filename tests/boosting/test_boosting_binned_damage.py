"""Folders of bins that were damaged: an error of their own kind, or the same bins. A header that named other columns
was read, and arrays cut to nothing ended in an EOFError."""

import hashlib
import json
import random
import shutil

import numpy as np
import pytest

import miserly as ms
from miserly.boosting import BinnedFileError
from miserly.datasets import write_csv


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of bins, and the file that it was made from."""
    folder = tmp_path_factory.mktemp("bins")
    X = np.random.default_rng(0).normal(size=(400, 9))
    write_csv(folder / "a.csv", [*(f"x{f}" for f in range(9)), "y"], [*X.T, X[:, 0] > 0])
    return ms.BinnedDataset.from_csv(folder / "a.csv", folder / "bins", label="y"), folder


def assert_same(found, whole):
    assert (found.features, found.named, found.max_bins) == (whole.features, whole.named, whole.max_bins)
    np.testing.assert_array_equal(found.data.words, whole.data.words)
    np.testing.assert_array_equal(found.data.cuts, whole.data.cuts)
    np.testing.assert_array_equal(found.y, whole.y)


def changed(draw, content):
    content, at = bytearray(content), draw.randrange(len(content))
    what = draw.randrange(5)
    if what == 0:
        content[at] ^= 1 << draw.randrange(8)
    elif what == 1:
        del content[at:]
    elif what == 2:
        content[at:at] = content[at : at + 8]
    elif what == 3:
        content[at : at + 4] = draw.randbytes(4)
    else:
        content.clear()
    return bytes(content)


def test_damaged_folders_are_refused_or_the_same(made, tmp_path):
    whole, folder = made
    draw = random.Random(0)
    names = sorted(path.name for path in (folder / "bins").iterdir())
    n_refused = 0
    for _ in range(400):
        shutil.copytree(folder / "bins", tmp_path / "bins")
        name = draw.choice(names)
        (tmp_path / "bins" / name).write_bytes(changed(draw, (folder / "bins" / name).read_bytes()))
        try:
            assert_same(ms.BinnedDataset(tmp_path / "bins"), whole)
        except BinnedFileError:
            n_refused += 1
        shutil.rmtree(tmp_path / "bins")
    assert n_refused > 200


def test_damaged_notes_are_refused_or_written_again(made, tmp_path):
    whole, folder = made
    draw = random.Random(1)
    for _ in range(60):
        shutil.copytree(folder / "bins", tmp_path / "bins")
        (tmp_path / "bins" / "header.json").unlink()  # a pass that was killed before its end
        name = draw.choice(["survey.json", "blocks.jsonl"])
        (tmp_path / "bins" / name).write_bytes(changed(draw, (folder / "bins" / name).read_bytes()))
        try:
            found = ms.BinnedDataset.from_csv(folder / "a.csv", tmp_path / "bins", label="y")
            assert_same(found, whole)
        except BinnedFileError:
            pass
        shutil.rmtree(tmp_path / "bins")


def test_folders_of_the_first_version_are_read(made, tmp_path):
    whole, folder = made
    shutil.copytree(folder / "bins", tmp_path / "bins")
    header = json.loads((tmp_path / "bins" / "header.json").read_text()) | {"version": 1}
    digest = hashlib.sha256(json.dumps(header["blocks"]).encode())
    for name in ("cuts", "n_bins", "y"):
        digest.update(np.load(tmp_path / "bins" / f"{name}.npy").tobytes())
    digest.update(b"none")
    header["checksum"] = digest.hexdigest()
    (tmp_path / "bins" / "header.json").write_text(json.dumps(header))
    assert_same(ms.BinnedDataset(tmp_path / "bins"), whole)

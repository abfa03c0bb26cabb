"""What a release holds: the sdist is enough to build the wheel, and the wheel is enough to work, outside the tree."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import miserly

ROOT = Path(__file__).parent.parent
WORK = """
import numpy as np
import miserly as ms
from miserly.report import save_run, write_report

X = np.random.default_rng(0).normal(size=(60, 3))
y = X[:, 0] > 0
model = ms.GreedyMiserClassifier(ms.CostTable.per_feature([1.0, 5.0, 9.0]), n_estimators=3)
front = ms.frontier(model, (X, y), (X, y), grid={"tradeoff": [0.0, 1e-2]})
write_report([save_run(front, (X, y), "run")], "page.html")
print(ms.__file__, ms.__version__)
"""


def python(*words, folder, path=()):
    """Run Python in a folder, with these places before all others; what it printed."""
    where = os.pathsep.join([*map(str, path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": where, "MPLBACKEND": "Agg"}
    ran = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_version_is_said_once_everywhere():
    declared = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert declared[1] == newest[1] == miserly.__version__


@pytest.mark.slow
def test_sdist_and_wheel_work_outside_the_tree(tmp_path):
    python("-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path), folder=ROOT)
    stem = f"miserly-{miserly.__version__}"
    with tarfile.open(tmp_path / f"{stem}.tar.gz") as sdist:
        sdist.extractall(tmp_path, filter="data")
    unpacked = tmp_path / stem
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "PKG-INFO"} <= {
        p.name for p in unpacked.iterdir()
    }

    python("-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path), folder=unpacked)
    place = tmp_path / "place"
    with zipfile.ZipFile(tmp_path / f"{stem}-py3-none-any.whl") as wheel:
        wheel.extractall(place)
    source = ROOT / "src"
    wanted = {p.relative_to(source) for p in source.rglob("*") if p.is_file() and p.parent.name != "__pycache__"}
    assert {p.relative_to(place) for p in (place / "miserly").rglob("*") if p.is_file()} == wanted
    assert (place / f"{stem}.dist-info" / "licenses" / "LICENSE").is_file()

    empty = tmp_path / "empty"
    empty.mkdir()
    assert python("-c", WORK, folder=empty, path=[place]).split() == [
        str(place / "miserly/__init__.py"),
        miserly.__version__,
    ]
    assert (empty / "page.html").stat().st_size > 50_000
    command = "import sys; from miserly.cli import main; sys.argv = ['miserly', *sys.argv[1:]]; main()"
    assert "frontier" in python("-c", command, "--help", folder=empty, path=[place])
    assert "It may buy" in python("-c", command, "explain", "run/plans/000.plan", folder=empty, path=[place])

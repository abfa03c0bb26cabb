"""Data sets that are not a part of the project: tests that need one are skipped where it is absent."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def shared_data(*parts):
    """The path of a file of the data sets at hand, in MISERLY_DATA or beside the project."""
    path = Path(os.environ.get("MISERLY_DATA", ROOT.parent / "shared" / "data")).joinpath(*parts)
    if not path.exists():
        pytest.skip(f"the data set is not at {path}; set MISERLY_DATA to the folder that holds {parts[0]}/")
    return path

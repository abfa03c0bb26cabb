"""What replacing a file keeps, and what a kill left beside it."""

import os
import sys
import time

import pytest

from miserly.files import write_whole


@pytest.mark.skipif(sys.platform == "win32", reason="no such permissions")
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    """A plan of 0640 became 0644."""
    path = tmp_path / "a.plan"
    write_whole(path, "old")
    path.chmod(0o640)
    write_whole(path, "new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o640)


def test_what_a_kill_left_is_removed_after_a_while(tmp_path):
    names = (".a.plan.0123456789ab", ".a.plan.ba9876543210", ".b.plan.0123456789ab")
    old, young, other = (tmp_path / name for name in names)
    for path in (old, young, other):
        path.write_text("half")
    for path in (old, other):
        os.utime(path, (time.time() - 7200, time.time() - 7200))
    write_whole(tmp_path / "a.plan", "new")
    assert not old.exists()
    assert young.exists(), "somebody may be writing it"
    assert other.exists()

"""What replacing a file keeps, and what a kill left beside it."""

import gzip
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest

import miserly as ms
from miserly.datasets import read_letor
from miserly.files import whole_file, write_whole


@pytest.mark.skipif(sys.platform == "win32", reason="no such permissions")
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    """A plan of 0640 became 0644."""
    path = tmp_path / "a.plan"
    write_whole(path, "old")
    path.chmod(0o640)
    write_whole(path, "new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o640)


def test_nobody_else_can_read_what_is_being_written(tmp_path):
    path = tmp_path / "a.plan"
    write_whole(path, "old")
    path.chmod(0o600)
    with whole_file(path, encoding="utf-8") as file:
        file.write("new")
        assert {p.stat().st_mode & 0o777 for p in tmp_path.iterdir()} == {0o600}


def test_what_a_kill_left_is_removed_by_the_next_write(tmp_path):
    left, other = tmp_path / ".a.plan.0123456789ab", tmp_path / ".b.plan.0123456789ab"
    left.write_text("half")
    other.write_text("half")
    with whole_file(tmp_path / "a.plan", encoding="utf-8") as file:  # being written: the next write leaves it alone
        file.write("first")
        write_whole(tmp_path / "a.plan", "second")
        assert len([p for p in tmp_path.iterdir() if p.name.startswith(".a.plan")]) == 1
    assert (tmp_path / "a.plan").read_text() == "first"
    assert not left.exists()
    assert other.exists()


def test_many_writers_at_once(tmp_path):
    """Writers that clean up after each other never remove what another one is about to write."""
    path = tmp_path / "a.plan"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: write_whole(path, f"{i:03}"), range(60)))
    assert len(path.read_text()) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["a.plan"]


@pytest.mark.parametrize(("reader", "name"), [(ms.read_table, "a.csv.gz"), (read_letor, "a.letor.gz")])
def test_a_small_file_does_not_unpack_to_much(tmp_path, monkeypatch, reader, name):
    """408 kB took 2.4 GB."""
    monkeypatch.setattr("miserly.files._packed.SMALL", 1 << 18)
    (tmp_path / name).write_bytes(gzip.compress(b"0 qid:1 1:0\n" * 300_000))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="unpacks to more than 200 times its size"):
            reader(tmp_path / name)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()

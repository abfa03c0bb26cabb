"""A file is written whole or not at all, and a place belongs to one at a time."""

import os
import threading

import pytest

from miserly.files import locked, whole_file, write_whole


def test_a_file_is_there_when_it_is_whole(tmp_path):
    path = tmp_path / "a.txt"
    write_whole(path, "old")
    with whole_file(path, encoding="utf-8") as file:
        file.write("new, é")
        assert path.read_text() == "old"
    assert path.read_text(encoding="utf-8") == "new, é"
    assert os.listdir(tmp_path) == ["a.txt"]


def write_half(path, error):
    with whole_file(path) as file:
        file.write(b"new")
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("no"), OSError(28, "No space left on device")])
def test_the_old_file_stays_if_something_happens(tmp_path, error):
    path = tmp_path / "a.txt"
    write_whole(path, b"old")
    with pytest.raises(type(error)) as caught:
        write_half(path, error)
    if isinstance(error, OSError):
        assert str(caught.value).endswith(f"Cannot write '{path}': No space left on device. Nothing was changed.")
        assert caught.value.errno == 28
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_devices_pipes_and_links_are_written_to_as_they_are(tmp_path):
    """A device would have been replaced by a file."""
    write_whole("/dev/null", "gone")
    assert not os.path.isfile("/dev/null")
    with pytest.raises(OSError, match=r"Cannot write '/dev/full': No space left on device\.$"):
        write_whole("/dev/full", "gone")
    pipe, link, target = tmp_path / "pipe", tmp_path / "link", tmp_path / "target"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "through")
    reader.join(10)
    assert got == ["through"]
    link.symlink_to(target)
    write_whole(link, "text")
    assert link.is_symlink()
    assert target.read_text() == "text"


def test_places_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "nowhere", tmp_path / "file"):
        with pytest.raises(FileNotFoundError, match=f"Cannot write '{folder}/a': the folder '{folder}' does not exist"):
            write_whole(folder / "a", "text")
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        write_whole(tmp_path, "text")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_read_only_folder_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match=f"Cannot write '{tmp_path}/a': Permission denied. Nothing was changed"):
        write_whole(tmp_path / "a", "text")


def test_a_place_is_held_by_one(tmp_path):
    order = []

    def late():
        with locked(tmp_path):
            order.append("late")

    with locked(tmp_path):
        with pytest.raises(ValueError, match="taken"), locked(tmp_path, "taken"):
            pass
        other = threading.Thread(target=late)
        other.start()
        other.join(0.1)
        order.append("first")
    other.join(10)
    assert order == ["first", "late"]
    with locked(tmp_path, "taken"):
        pass

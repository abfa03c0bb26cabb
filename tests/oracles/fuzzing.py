"""What holds for any file that somebody meddled with: loading it is an error in words or gives a sound model, within a
second and twice the memory of the sound file. And mutations that are kept if they reach new lines of the loader."""

import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np

import miserly
from miserly.plan import PlanFileError

SECONDS = 1.0
SPARE = 1 << 17  # bytes that a message and what tells where an error was may take, for files of a few kilobytes
PACKAGES = tuple(str(Path(miserly.__file__).parent / name) for name in ("plan", "costs", "schema", "files"))


def loaded(path, load):
    """What `load` reads from a file, or None if it is refused."""
    began, found, message = time.process_time(), None, ""
    try:
        found = load(path)
    except PlanFileError as error:
        message = str(error)
    assert time.process_time() - began < SECONDS
    assert found is not None or (str(path) in message and len(message) < 1000)
    return found


def memory_to_load(path, load):
    """The most bytes that were in use while a file was read."""
    tracemalloc.start()
    loaded(path, load)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def takes_little(path, load, needs):
    """Whether a load takes at most twice the memory that the sound file needs, or that the file has. What threads that
    other tests left behind take meanwhile is measured too, so a load that seems to take more is measured again."""
    most = 2 * max(needs, path.stat().st_size) + SPARE
    return any(memory_to_load(path, load) < most for _ in range(3))


def is_kept(model, path, load):
    """Whether a model is what is read of its file."""
    model.save(path)
    kept = path.read_bytes()
    load(path).save(path)
    return path.read_bytes() == kept


def ask(plan):
    """A plan answers two rows, and may not fail."""
    with np.errstate(all="ignore"):
        result = plan.run(np.full((2, len(plan.costs.features)), 0.5), qid=np.zeros(2, int), budget=100.0)
    assert result.score.shape == (2, len(plan.prior))


class Coverage:
    """Which steps from line to line of the loader have been taken so far."""

    def __init__(self):
        self._known = set()

    def follow(self, work, *arguments):
        """Run some work; returns its result, and whether it took a step that no work before took."""
        found = set()

        def trace(frame, event, argument):
            if not frame.f_code.co_filename.startswith(PACKAGES):
                return None
            code, before = id(frame.f_code), frame.f_lineno

            def line(frame, event, argument):
                nonlocal before
                found.add((code, before, frame.f_lineno))
                before = frame.f_lineno
                return line

            return line

        outer = sys.gettrace()
        sys.settrace(trace)
        try:
            result = work(*arguments)
        finally:
            sys.settrace(outer)
        is_new = not found <= self._known
        self._known |= found
        return result, is_new

    def __len__(self):
        return len(self._known)

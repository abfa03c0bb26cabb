"""Work that is killed at any moment: what was kept is kept, no file is half there, and it goes on to the same end."""

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import deeds
import pytest

import miserly as ms
from miserly.plan import load_plan
from miserly.report import load_run

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def doer():
    with Doer() as it:
        yield it


class Doer:
    """A process that does deeds in forks of its own, one at a time, which can be killed."""

    def __enter__(self):
        environment = {**os.environ, "PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
        self.process = subprocess.Popen([sys.executable, deeds.__file__], env=environment, **pipes)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def do(self, deed, folder, kill_after=math.inf):
        """Whether it came to its end; it is killed after so many seconds of its own time."""
        self.process.stdin.write(f"{deed} {folder}\n")
        number = int(self.process.stdout.readline())
        while 0 <= seconds_of(number) < kill_after:
            time.sleep(0.001)
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
        code = int(self.process.stdout.readline())
        assert code in (0, -signal.SIGKILL)
        return code == 0


def seconds_of(process):
    """The time that a process has used; −1 if it has ended."""
    try:
        return time.clock_gettime((~process << 3) | 2)  # as Linux numbers the clocks of processes
    except OSError:
        return -1


def whole_lines(path):
    return path.read_text().splitlines(keepends=True)[: path.read_text().count("\n")] if path.exists() else []


class Fit:
    """Rounds are lines of one file; none is ever lost."""

    longest = 1.2

    def __init__(self, folder):
        pass

    def kept(self, folder):
        lines = whole_lines(folder / "rounds")
        assert all(json.loads(line) for line in lines)
        return dict(enumerate(lines))

    def end(self, folder):
        return load_plan(folder / "a.plan")


class Sweep:
    """Points are two files each; those that are whole stay as they are."""

    longest = 0.8

    def __init__(self, folder):
        pass

    def kept(self, folder):
        for path in folder.glob("[!.]*.plan"):
            load_plan(path)
        files = {path.name: path.read_text() for path in folder.glob("[!.]*.json")}
        assert all(json.loads(text) for text in files.values())
        return files | {name: (folder / name).with_suffix(".plan").read_bytes() for name in files if "point" in name}

    def end(self, folder):
        assert not list(folder.glob(".*"))
        return [(p.params, p.validation, p.model.plan_) for p in deeds.sweep(folder).points]


class Bins:
    """Blocks that are noted are never made again."""

    longest = 0.5

    def __init__(self, folder):
        pass

    def kept(self, folder):
        arrays = {path.name: path.read_bytes() for path in folder.glob("[!.]*.npy")}
        done = (folder / "survey.json").exists()
        return dict(enumerate(whole_lines(folder / "blocks.jsonl"))) | (arrays if done else {})

    def end(self, folder):
        assert not list(folder.glob(".*"))
        return ms.BinnedDataset(folder).data.words.tobytes()


class Saves:
    """A file is always in one of its two versions."""

    longest = 0.5

    def __init__(self, folder):
        self.versions = {}
        for name in ("a.plan", "a.csv", "a.toml"):
            for version in (0, 1):
                deeds.FILES[name](folder / name, version)
                self.versions.setdefault(name, []).append((folder / name).read_bytes())

    def kept(self, folder):
        assert all((folder / name).read_bytes() in both for name, both in self.versions.items())
        return {}


class Runs:
    """A run is always the old one or the new one."""

    longest = 0.5

    def __init__(self, folder):
        deeds.keep_run(folder / "run", 0)
        self.both = [deeds.triage(60)[k].front for k in (0, 2)]

    def kept(self, folder):
        found = load_run(folder / "run").front
        one = next(front for front in self.both if front.name == found.name)
        assert found.frame() == one.frame()
        assert [p.model.plan_ for p in found.points] == [p.model.plan_ for p in one.points]
        return {}


CHECKS = {"fit": Fit, "sweep": Sweep, "bins": Bins, "saves": Saves, "runs": Runs}


@pytest.mark.slow
@pytest.mark.parametrize("deed", CHECKS)
def test_ten_kills_of_each(tmp_path, doer, deed):
    """What ends before it is killed is compared with what nobody disturbed, and begun anew."""
    chance, n_killed, folder, before = random.Random(1), 0, tmp_path / "alone", {}
    folder.mkdir()
    check = CHECKS[deed](folder)
    has_end = hasattr(check, "end")
    undisturbed = check.end(folder) if has_end and doer.do(deed, folder) else None
    folder = tmp_path / "0"
    folder.mkdir()
    CHECKS[deed](folder)
    while n_killed < 10:
        ended = doer.do(deed, folder, kill_after=chance.uniform(0, check.longest))
        n_killed += not ended
        now = check.kept(folder)
        assert {name: now.get(name) for name in before} == before
        before = now
        if ended:
            assert check.end(folder) == undisturbed
            folder, before = tmp_path / f"after {n_killed}", {}
            folder.mkdir(exist_ok=True)
    if has_end:
        assert doer.do(deed, folder)
        assert check.end(folder) == undisturbed

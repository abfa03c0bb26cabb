"""Extractors in processes: one that dies or hangs is replaced, and none outlives the program."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time

import psutil
import pytest

from miserly.costs import CostTable
from miserly.plan import Node, Plan, RawFeatures
from miserly.runtime import extractor

PLAN = Plan(CostTable.per_feature({"a": 1.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.5])


class OddError(Exception):
    """Cannot be read in another process: it takes two arguments."""

    def __init__(self, first, second):
        super().__init__(first)


@extractor("a", yields="a", process=True, workers=1)
def in_another_process(row):
    if row == "die":
        os._exit(1)
    if row == "odd":
        raise OddError("odd", 1)
    if row == "strange":
        return threading.Lock()
    return row + os.getpid() * 0


@extractor("a", yields="a", process=True, workers=1, timeout=1.0)
def hangs_for_some(row):
    if row < 0:
        time.sleep(3600.0)
    return float(os.getpid())


def test_functions_that_hold_the_interpreters_lock_run_in_processes(on_demand):
    runner = on_demand(PLAN, [in_another_process])
    assert runner.predict(2.0, deadline=600.0).value == 2.5
    for row, words in (("die", "process died"), (None, "TypeError"), ("odd", "OddError"), ("strange", "pickle")):
        answer = runner.predict(row, deadline=600.0)
        assert answer.stopped == "failed:a"
        assert words in answer.calls[0].outcome
    assert "pickle" in runner.predict(threading.Lock(), deadline=600.0).calls[0].outcome
    assert runner.predict(3.0, deadline=600.0).value == 3.5, "a process that died is replaced"
    assert runner.running == 0


@extractor("a", yields="a", process=True, workers=1, timeout=0.3)
def starts_slowly(row):
    return 1.0


if multiprocessing.parent_process() is not None:
    time.sleep(0.5)  # the imports of a worker process


def test_the_start_of_a_process_does_not_count_as_a_call(on_demand):
    """On a busy machine no call was ever in time, because each time-out killed the process that had just started."""
    assert on_demand(PLAN, [starts_slowly]).predict(1.0, deadline=600.0).value == 1.5


def test_a_process_that_hangs_is_killed_and_replaced(on_demand):
    """It held its worker for ever."""
    runner = on_demand(PLAN, [hangs_for_some])
    first = int(runner.predict(1.0, deadline=600.0).value)
    answer = runner.predict(-1.0, deadline=600.0)
    assert answer.stopped == "failed:a"
    assert "TimeoutError" in answer.calls[0].outcome
    until = time.monotonic() + 60.0
    while (answer := runner.predict(1.0, deadline=600.0)).stopped != "answered" and time.monotonic() < until:
        time.sleep(0.05)
    assert answer.stopped == "answered"
    assert int(answer.value) != first
    assert not psutil.pid_exists(first)
    assert runner.close(10.0) == 0


PROGRAM = """
import sys
import test_runtime_processes as t
from miserly.runtime import OnDemand

if __name__ == "__main__":
    runner = OnDemand(t.PLAN, [t.hangs_for_some])
    print(int(runner.predict(1.0, deadline=600.0).value), flush=True)
    runner.predict(-1.0, deadline=0.01)
    if sys.argv[1] == "close":
        runner.close(0.1)
    elif sys.argv[1] == "wait":
        print("ready", flush=True)
        runner.predict(-1.0)
"""


@pytest.mark.parametrize("how", ["close", "leave", "wait"])
def test_no_process_outlives_the_program(how, tmp_path):
    """A hung call left an orphan."""
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])}
    command = [sys.executable, str(tmp_path / "program.py"), how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as program:
        worker = int(program.stdout.readline())
        if how == "wait":
            assert program.stdout.readline() == "ready\n"
            program.kill()
        program.wait(60)
    until = time.monotonic() + 60.0
    while psutil.pid_exists(worker) and time.monotonic() < until:
        time.sleep(0.02)
    assert not psutil.pid_exists(worker)

"""Several worker processes on one socket: one page of metrics, reload and end together, the dead replaced."""

import asyncio
import multiprocessing
import os
import re
import signal
import socket
import sys
import time
from types import SimpleNamespace

import psutil
import pytest

from miserly.plan import content_hash
from miserly.serve._merging import merge_pages
from miserly.serve._runner_pool import RunnerPool
from miserly.serve._supervisor import Supervisor, WorkerLink
from serve.test_serve_process import (  # noqa: F401
    PATIENCE,
    ask,
    ask_slowly,
    folder,
    look,
    plan_of,
    serving,
    wait_for,
    wait_until_it_takes_no_more,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork")


def figure(text, name):
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return None if found is None else float(found[1])


def until(condition):
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return found


def workers_of(process):
    return {child.pid for child in psutil.Process(process.pid).children()}


def test_workers_from_start_to_end(folder):  # noqa: F811
    args = ("--extractors", "own.py:kit", "--read-row", "own.py:read_row", "--workers", "2", "--stop-within", "60")
    with serving(folder, *args) as (process, port, lines):
        first = until(lambda: len(found := workers_of(process)) == 2 and found)
        assert ask(port, x=1.0) == 2.0
        for _ in range(19):
            ask(port, x=1.0)
        text = until(lambda: (t := look(port, "/metrics")) and figure(t, "miserly_workers") == 2 and t)
        assert figure(text, 'miserly_requests_total{route="/v1/predict",status="200"}') == 20

        os.kill(min(first), signal.SIGKILL)
        until(lambda: len(found := workers_of(process)) == 2 and found != first)
        wait_for(lines, "ended with -9")
        assert ask(port, x=1.0) == 2.0

        plan_of(10.0).save(folder / "a.plan")
        process.send_signal(signal.SIGHUP)
        until(lambda: sum("taken over" in line for line in lines) >= 2)
        assert {ask(port, x=1.0) for _ in range(10)} == {10.0}

        threads = ask_slowly(port, answers := [], 6)
        text = look(port, "/metrics")
        assert figure(text, "miserly_workers_replaced_total") == 1
        assert figure(text, 'miserly_plan_reloads_total{outcome="taken"}') == 2
        process.send_signal(signal.SIGTERM)
        wait_until_it_takes_no_more(port)
        (folder / "go").touch()
        for thread in threads:
            thread.join()
        assert answers == [10.0] * 6, "what is in flight is answered"
        assert process.wait(PATIENCE) == 0, lines


def test_workers_end_when_their_supervisor_is_killed(folder):  # noqa: F811
    with serving(folder, "--workers", "2", "--stop-within", "4") as (process, port, _):
        left = until(lambda: len(found := workers_of(process)) == 2 and found)
        until(lambda: "ready" in look(port, "/readyz"))
        process.kill()
        process.wait()
        until(lambda: not any(psutil.pid_exists(pid) for pid in left))


def test_a_replaced_worker_serves_what_the_others_serve(folder):  # noqa: F811
    """The plan's file is damaged by now: the others have refused it, and so must the new one."""
    with serving(folder, "--workers", "2", "--stop-within", "4") as (process, port, lines):
        first = until(lambda: len(found := workers_of(process)) == 2 and found)
        plan_of(10.0).save(folder / "a.plan")
        until(lambda: sum("taken over" in line for line in lines) == 2)
        (folder / "a.plan").write_bytes(b"PK broken")
        until(lambda: sum("not taken" in line for line in lines) == 2)
        os.kill(min(first), signal.SIGKILL)
        until(lambda: len(found := workers_of(process)) == 2 and found != first)
        until(lambda: sum("not taken" in line for line in lines) == 3)
        assert {ask(port, x=1.0) for _ in range(20)} == {10.0}
        assert figure(look(port, "/metrics"), "miserly_workers_replaced_total") == 1


def test_a_plan_that_one_worker_takes_back_all_take_back():
    """Without processes: what a worker says goes to all others, and a new worker begins with the plan before."""
    listener = socket.socket()
    supervisor = Supervisor(lambda *_: None, listener, 2, 1.0, b"first")
    pairs = [multiprocessing.Pipe() for _ in range(2)]
    workers = [SimpleNamespace(pipe=ours, page=b"") for ours, _ in pairs]
    supervisor._workers = workers
    links = [WorkerLink(theirs, b"first") for _, theirs in pairs]
    links[0].taken(b"second")
    links[1].taken(b"second")
    for _ in range(2):
        supervisor._talk([worker.pipe for worker in workers], 1.0)
    assert supervisor._plan_file == b"second"
    links[0].taken_back("abc")
    supervisor._talk([worker.pipe for worker in workers], 1.0)
    assert supervisor._plan_file == b"first"
    assert pairs[1][1].poll(1.0)
    assert pairs[1][1].recv() == ("rollback", b"abc")
    assert not pairs[0][1].poll(0.0)
    listener.close()


def test_a_version_that_another_worker_took_back():
    async def run():
        pool = RunnerPool(plan_of(1.0), None, 8)
        await pool.take_over(plan_of(2.0))
        pool.take_back("another")
        assert pool.active.version == content_hash(plan_of(2.0))
        pool.take_back(content_hash(plan_of(2.0)))
        assert pool.active.version == content_hash(plan_of(1.0))
        pool.take_back(content_hash(plan_of(1.0)))
        assert pool.active.version == content_hash(plan_of(1.0)), "there is none before it"
        assert pool.n_rollbacks == 1
        await pool.aclose()

    asyncio.run(run())


def test_pages_are_merged():
    first = b'# HELP a_total A\n# TYPE a_total counter\na_total{x="1"} 2.0\n# HELP lag L\n# TYPE lag gauge\nlag 0.5\n'
    second = b'# HELP a_total A\n# TYPE a_total counter\na_total{x="1"} 3.0\na_total{x="2"} 1.0\n'
    name = "miserly_requests_in_flight"
    in_flight = f"# HELP {name} I\n# TYPE {name} gauge\n{name} 2.0\n".encode()
    text = merge_pages([first, second, first, in_flight, in_flight]).decode()
    assert figure(text, 'a_total{x="1"}') == 7.0
    assert figure(text, 'a_total{x="2"}') == 1.0
    assert figure(text, "lag") == 0.5
    assert figure(text, "miserly_requests_in_flight") == 4.0
    assert text.count("# TYPE a_total") == 1
    gone = merge_pages([first, in_flight], is_gone=True).decode()
    assert figure(gone, "lag") is None
    assert figure(gone, 'a_total{x="1"}') == 2.0

"""The process keeps its promises to the operator: it ends in time, follows its file, survives a lack of descriptors."""

import asyncio
import json
import os
import signal
import socket
import sys
import threading
import time

import psutil
import pytest

from miserly.costs import CostTable
from miserly.plan import Node, Plan, RawFeatures
from miserly.runtime import VirtualClock
from miserly.serve._protocol import quiet_about_descriptors
from serve.test_serve_process import PATIENCE, ask, look, serving, wait_for

EXTRACTORS = """
import asyncio, threading, time
import miserly as ms

@ms.extractor("x", yields="x", process=True, workers=1)
def x(row):
    if row == "process":
        time.sleep(3600)
    return 1.0

@ms.extractor("y", yields="y", workers=8)
def y(row):
    if row == "thread":
        threading.Event().wait()
    return 1.0

async def stubborn():
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

@ms.extractor("z", yields="z")
async def z(row):
    if row == "task":
        await asyncio.shield(stubborn())
    if row == "stubborn":
        await stubborn()
    return 1.0

extractors = [x, y, z]
"""


@pytest.fixture
def folder(tmp_path):
    costs = CostTable.per_feature({"x": 1.0, "y": 1.0, "z": 1.0})
    Plan(costs, RawFeatures([0, 1, 2]), (Node([0, 1, 2], [1.0, 1.0, 1.0]),), [0.0]).save(tmp_path / "a.plan")
    (tmp_path / "own.py").write_text(EXTRACTORS)
    return tmp_path


def send(port, body, length=None):
    connection = socket.create_connection(("127.0.0.1", port))
    head = f"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length or len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


def test_sigterm_ends_it_in_time_whatever_hangs(folder):
    """A half-sent body took 34 s, hung threads 42 s, requests without a deadline 75 s, a coroutine for ever."""
    with serving(folder, "--extractors", "own.py:extractors", "--stop-within", "4") as (process, port, lines):
        connections = [send(port, b'{"row":', 100)]
        for row in ("process", "thread", "thread", "task", "stubborn"):
            connections.append(send(port, json.dumps({"row": row}).encode()))
        while "miserly_requests_in_flight 5.0" not in look(port, "/metrics"):
            time.sleep(0.05)
        while len(children := psutil.Process(process.pid).children(recursive=True)) < 1:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 1, lines
        wait_for(lines, "time to stop is over")
        _, alive = psutil.wait_procs(children, timeout=PATIENCE)
        assert not alive, "no orphan is left"
        for connection in connections:
            connection.close()


def test_it_ends_well_when_only_clients_are_slow(folder):
    with serving(folder, "--extractors", "own.py:extractors", "--stop-within", "4") as (process, port, lines):
        slow = [send(port, b'{"row":', 100), socket.create_connection(("127.0.0.1", port))]
        assert ask(port) == 3.0
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, lines
        for connection in slow:
            connection.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes as files")
def test_a_pipe_at_the_plans_path_is_refused_and_reloading_goes_on(folder):
    """Reading it waited for ever, and no later plan was seen."""
    good = (folder / "a.plan").read_bytes()
    with serving(folder, "--extractors", "own.py:extractors") as (_, port, lines):
        os.unlink(folder / "a.plan")
        os.mkfifo(folder / "a.plan")
        wait_for(lines, "not taken: .*not a regular file")
        os.unlink(folder / "a.plan")
        (folder / "a.plan").write_bytes(good)
        wait_for(lines, "taken over")
        assert ask(port) == 3.0


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP")
def test_a_hangup_at_the_start_does_not_end_it(folder):
    with serving(folder, "--extractors", "own.py:extractors", early=signal.SIGHUP) as (_, port, _):
        assert ask(port) == 3.0


@pytest.mark.skipif(sys.platform != "linux", reason="needs prlimit")
def test_a_lack_of_descriptors_does_not_end_it(folder):
    with serving(folder, "--extractors", "own.py:extractors") as (process, port, lines):
        assert ask(port) == 3.0
        server = psutil.Process(process.pid)
        soft, hard = server.rlimit(psutil.RLIMIT_NOFILE)
        server.rlimit(psutil.RLIMIT_NOFILE, (server.num_fds() + 5, hard))
        connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
        time.sleep(0.5)
        for connection in connections:
            connection.close()
        server.rlimit(psutil.RLIMIT_NOFILE, (soft, hard))
        assert ask_until_answered(port) == 3.0
        assert len(lines) < 30, lines[:30]


def test_a_lack_of_descriptors_is_said_once_a_second():
    """10,226 tracebacks in three seconds: one for each connection that waited, again and again."""
    clock, said = VirtualClock(), []

    async def main():
        loop = asyncio.get_running_loop()
        quiet_about_descriptors(loop, said.append)
        error = OSError(24, "Too many open files")
        for _ in range(3000):
            loop.call_exception_handler({"message": "socket.accept() out of system resource", "exception": error})
            await asyncio.sleep(0.001)

    clock.run(main())
    clock.close()
    assert len(said) == 3
    assert "Too many open files" in said[0]


def ask_until_answered(port):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            return ask(port)
        except OSError:
            time.sleep(0.05)
    raise AssertionError("no answer")


def test_connections_have_limits(folder):
    with serving(folder, "--extractors", "own.py:extractors", "--max-connections", "5") as (_, port, _):
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
        with socket.create_connection(("127.0.0.1", port)) as sixth:
            sixth.settimeout(PATIENCE)
            with _closed():
                assert sixth.recv(1) != b""
        for connection in idle:
            connection.close()
        assert ask_until_answered(port) == 3.0
        assert "miserly_connections_refused_total 0.0" not in look(port, "/metrics")
        with socket.create_connection(("127.0.0.1", port)) as long_head:
            long_head.settimeout(PATIENCE)
            with _closed():
                for _ in range(200):
                    long_head.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 1000)
                assert long_head.recv(1) != b""


def _closed():
    return pytest.raises((OSError, AssertionError))


def test_many_clients_that_leave_are_no_errors(folder):
    with serving(folder, "--extractors", "own.py:extractors") as (_, port, lines):

        def leave():
            for _ in range(10):
                send(port, b'{"row":', 100).close()
                send(port, b'{"row": 1}').close()

        threads = [threading.Thread(target=leave) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ask(port) == 3.0
        assert 'status="500"' not in look(port, "/metrics")
        assert not any("Traceback" in line for line in lines)

"""`miserly serve` as a process: it starts, follows its plan file, and ends without losing a request."""

import http.client
import json
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from miserly.cli.main import cli
from miserly.costs import CostTable
from miserly.plan import Node, Plan, RawFeatures

PATIENCE = 300  # seconds: on a crowded machine a process needs many to start
EXTRACTORS = """
import asyncio
from pathlib import Path
import miserly as ms

@ms.extractor("x", yields="x")
async def x(row):
    while row["wait"] and not Path("go").exists():
        await asyncio.sleep(0.01)
    return row["x"]

def kit():
    return [x]

def read_row(row):
    return {"wait": 0.0, **row}
"""


def plan_of(weight, feature="x"):
    return Plan(CostTable.per_feature({feature: 1.0}), RawFeatures([0]), (Node([0], [weight]),), [0.0])


@contextmanager
def serving(folder, *args, early=None):
    """The command in a folder; gives the process, its port and the lines of its log. `early` is a signal for it."""
    code = "from miserly.cli import main; main()"
    if early is not None:  # it comes while the plan is read
        code = (
            "import os, miserly.plan as plan; read = plan.load_plan; "
            f"plan.load_plan = lambda path: (os.kill(os.getpid(), {int(early)}), read(path))[1]; {code}"
        )
    command = [sys.executable, "-c", code, "serve", "a.plan", "--port", "0", *args]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    lines = []

    def read():
        for text in process.stderr:
            lines.append(text)

    threading.Thread(target=read, daemon=True).start()
    try:
        yield process, int(wait_for(lines, r"running on http://127\.0\.0\.1:(\d+)")[1]), lines
    finally:
        process.kill()
        process.wait()


def wait_for(lines, pattern):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        for text in lines:
            if found := re.search(pattern, text):
                return found
        time.sleep(0.01)
    raise AssertionError(f"{pattern} not in {lines}")


def ask(port, **row):
    """The answer; as clients do, ask again if a starved machine sheds the request."""
    until = time.monotonic() + PATIENCE
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.request("POST", "/v1/predict", json.dumps({"row": row}))
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        if response.status != 503 or time.monotonic() > until:
            assert response.status == 200, answer
            return answer["value"]
        time.sleep(0.1)


def look(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", path)
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def ask_slowly(port, answers, n):
    """Threads with requests that wait for a file named `go` in the server's folder; all have come."""
    threads = [threading.Thread(target=lambda: answers.append(ask(port, x=1.0, wait=1.0))) for _ in range(n)]
    for thread in threads:
        thread.start()
    while f"miserly_requests_in_flight {n}.0" not in look(port, "/metrics"):
        time.sleep(0.01)
    return threads


def wait_until_it_takes_no_more(port):
    while True:
        try:
            if "shutting down" in look(port, "/readyz"):
                return
        except OSError:
            return
        time.sleep(0.01)


@pytest.fixture
def folder(tmp_path):
    plan_of(2.0).save(tmp_path / "a.plan")
    (tmp_path / "own.py").write_text(EXTRACTORS)
    return tmp_path


def test_a_process_from_its_start_to_its_end(folder):
    with serving(folder, "--extractors", "own.py:kit", "--read-row", "own.py:read_row") as (process, port, lines):
        assert ask(port, x=1.0) == 2.0

        plan_of(10.0).save(folder / "a.plan")
        process.send_signal(signal.SIGHUP)
        wait_for(lines, r"taken over, version [0-9a-f]+: A plan: 1 node ")
        assert ask(port, x=1.0) == 10.0

        (folder / "a.plan").write_bytes(b"PK broken")  # seen without a signal
        wait_for(lines, "not taken.*write it beside its place, then move it there.*old one stays")
        plan_of(1.0, "other").save(folder / "a.plan")
        wait_for(lines, "not taken: .*'other'")
        assert ask(port, x=1.0) == 10.0

        threads = ask_slowly(port, answers := [], 8)
        process.send_signal(signal.SIGTERM)
        wait_until_it_takes_no_more(port)
        (folder / "go").touch()
        for thread in threads:
            thread.join()
        assert answers == [10.0] * 8, "what is in flight is answered"
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["a.plan", "--extractors", "own.py:nothing"], "has no 'nothing'"),
        (["a.plan", "--extractors", "own.py"], "module:name"),
        (["a.plan", "--extractors", "none.py:kit"], "no file 'none.py'"),
        (["a.plan", "--max-in-flight", "0"], "max-in-flight"),
        (["own.py"], "is not a plan file"),
    ],
)
def test_mistakes_end_with_a_word(folder, monkeypatch, args, words):
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(cli, ["serve", *args])
    assert done.exit_code
    assert words in done.output + str(done.exception)

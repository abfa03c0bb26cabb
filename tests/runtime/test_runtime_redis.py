"""Results shared by way of a real Redis, which is killed in the middle: answers go on."""

import asyncio
import multiprocessing
import os
import shutil
import socket
import subprocess
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from redis import Redis

from miserly.costs import CostTable
from miserly.plan import Node, Plan, RawFeatures
from miserly.runtime import OnDemand, Pair, RedisCache, extractor

PLAN = Plan(CostTable.per_feature({"x": 1.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.0])


class Server:
    """redis-server on a port of its own, with nothing on disk."""

    def __init__(self, folder):
        program = shutil.which("redis-server")
        if program is None:
            if os.environ.get("MISERLY_NO_SKIP"):
                pytest.fail("redis-server is not installed")
            pytest.skip("redis-server is not installed")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._command = [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 120
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        pytest.fail("redis-server does not answer")

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def server(tmp_path):
    started = Server(tmp_path)
    yield started
    started.kill()


def counted(server, is_async=False, name="x", work=lambda row: row[1], ttl=60.0):
    """A runner of its own, as another process would have it, and the rows for which its function was called."""
    calls = []

    def plain(row):
        calls.append(row)
        return work(row)

    async def later(row):
        await asyncio.sleep(0.001)
        return plain(row)

    cache = RedisCache(name, key=lambda row: row[0], ttl=ttl, url=server.url, timeout=10.0)
    return calls, OnDemand(PLAN, [extractor("x", yields="x", cache=cache)(later if is_async else plain)])


def kept(store):
    """The names of entries; the mark of a call goes a moment after its result has come."""
    return [name for name in store.scan_iter() if not name.endswith(b":flight")]


@pytest.mark.parametrize("is_async", [False, True])
def test_what_one_computed_the_other_finds(server, is_async):
    (calls, first), (others, second) = counted(server, is_async), counted(server, is_async)
    with first, second:
        assert first.predict(("a", 1.5)).calls[0].outcome == "ok"
        found = second.predict(("a", 2.0), deadline=10.0)
        assert (found.value, found.calls[0].outcome, found.cost) == (1.5, "cached", 1.0)
        assert second.predict(("b", 3.0)).value == 3.0
    assert (len(calls), len(others)) == (1, 1)


def test_names_keep_extractors_apart_and_time_runs_out(server):
    (_, first), (_, second) = counted(server, name="one", ttl=50.0), counted(server, name="two")
    _, third = counted(server, name="one")
    with first, second, third, Redis.from_url(server.url) as store:
        first.predict(("a", 1.0))
        (key,) = kept(store)
        assert 0 < store.pttl(key) <= 50_000
        assert second.predict(("a", 2.0)).value == 2.0
        assert third.predict(("a", 3.0)).value == 1.0
        store.delete(key)  # as its time does in the end
        assert third.predict(("a", 3.0)).value == 3.0


def test_requests_for_one_key_share_one_call(server):
    calls, runner = counted(server, work=lambda row: time.sleep(0.1) or row[1])
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(runner.predict(("a", 1.0)))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    runner.close()
    assert [a.value for a in answers] == [1.0] * 5
    assert len(calls) == 1


@pytest.mark.parametrize(("result", "value"), [(np.float64(2.5), 2.5), ({"x": np.float32(0.5), "more": [1, 2]}, 0.5)])
def test_results_come_back_as_they_were(server, result, value):
    (_, first), (others, second) = counted(server, work=lambda row: result), counted(server)
    with first, second:
        assert first.predict(("a", None)).value == value
        assert second.predict(("a", None)).value == value
    assert not others


@pytest.mark.parametrize(
    "more", [object(), b"bytes", {1: 2}, Pair(1, 2)], ids=["object", "bytes", "numbers as keys", "a named tuple"]
)
def test_what_json_cannot_say_is_computed(server, caplog, more):
    (_, first), (others, second) = [counted(server, work=lambda row: {"x": 1.0, "more": more}) for _ in range(2)]
    with first, second:
        assert first.predict(("a", 0.0)).value == second.predict(("a", 0.0)).value == 1.0
    assert len(others) == 1
    assert "not kept" in caplog.text


def test_answers_go_on_when_redis_is_killed_and_it_is_used_again(server):
    _, runner = counted(server)
    answers = []
    with runner:
        for i in range(60):
            if i == 20:
                server.kill()
            if i == 40:
                server.start()
                time.sleep(0.6)  # the pause after the last failure
            answers.append(runner.predict(("k", float(i)), deadline=10.0))
    assert {answer.stopped for answer in answers} == {"answered"}
    outcomes = [answer.calls[0].outcome for answer in answers]
    assert outcomes[1:20] == ["cached"] * 19
    assert outcomes[20:40] == ["ok"] * 20
    assert [a.value for a in answers[20:40]] == [float(i) for i in range(20, 40)]
    assert outcomes[-10:] == ["cached"] * 10


def test_a_redis_that_hangs_is_asked_once():
    """Also if it sends a byte now and then: the time-out is for the whole answer, not for each read."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        end, n_bytes = threading.Event(), []

        def drip():
            with suppress(OSError):
                connection, _ = silent.accept()
                connection.sendall(b"$1000000\r\n")
                while not end.wait(0.01):
                    connection.sendall(b"x")
                    n_bytes.append(1)

        thread = threading.Thread(target=drip)
        thread.start()
        cache = RedisCache("x", lambda row: 0, 1.0, f"redis://127.0.0.1:{silent.getsockname()[1]}", timeout=0.05)
        assert cache.fetch("a", "f") is None
        assert len(n_bytes) < 1_000_000, "it did not wait for the end"
        cache._ask(lambda: pytest.fail("it is left alone for a while"))
        end.set()
        silent.close()
        thread.join()
    cache._pool.close(10.0)


def test_a_value_that_is_not_ours_is_computed_and_replaced(server, caplog):
    """Another type of value under one key switched the cache off for all; a value of another shape failed until it
    expired."""
    import redis

    calls, runner = counted(server)
    foreign = redis.Redis.from_url(server.url)
    with runner:
        runner.predict(("good", 1.0))
        name = kept(foreign)[0].decode().replace("good", "{}")
        foreign.lpush(name.format("list"), "x")
        for key, text in {
            "words": '"x',
            "bare": "2.0",
            "shape": '["FINGERPRINT",[1,2,3]]',
            "old": '["other",5.0]',
        }.items():
            fingerprint = extractor("x", yields="x")(len).fingerprint
            foreign.set(name.format(key), text.replace("FINGERPRINT", fingerprint))
        calls.clear()
        for key in ("list", "words", "bare", "old"):
            answer = runner.predict((key, 3.0))
            assert (answer.value, answer.calls[0].outcome) == (3.0, "ok")
        assert len(calls) == 4
        assert runner.predict(("good", 4.0)).value == 1.0, "others are still found"
        for key in ("words", "bare", "old"):
            assert runner.predict((key, 4.0)).calls[0].outcome == "cached", "it was replaced"
    assert "does not answer" not in caplog.text


def test_a_value_of_another_shape_is_computed(server):
    import redis

    plan = Plan(
        CostTable(features=["x", "y"], needs={"x": ["a"], "y": ["a"]}, prices={"a": 1.0}),
        RawFeatures([0, 1]),
        (Node([0, 1], [1.0, 1.0]),),
        [0.0],
    )
    cache = RedisCache("shape", key=lambda row: row, ttl=60.0, url=server.url, timeout=1.0)
    both = extractor("a", yields=["x", "y"], cache=cache)(lambda row: {"x": 1.0, "y": 2.0})
    cache.share("k", both.fingerprint, {"x": 1.0})
    assert redis.Redis.from_url(server.url).keys("*")
    with OnDemand(plan, [both]) as runner:
        answer = runner.predict("k")
        assert (answer.value, answer.calls[0].outcome) == (3.0, "ok")
        assert runner.predict("k").calls[0].outcome == "cached"


def test_another_version_of_a_function_finds_nothing(server):
    for version, value in (("1", 1.0), ("2", 2.0), ("2", 2.0)):
        cache = RedisCache("v", key=lambda row: row[0], ttl=60.0, url=server.url, timeout=1.0)
        with OnDemand(PLAN, [extractor("x", yields="x", cache=cache, version=version)(lambda row: row[1])]) as runner:
            assert runner.predict(("a", value)).value == value


def calls_of(url, barrier, results, fail_first):
    """In a process of its own: answer one row when all are ready; count the calls of the function in a file."""
    from pathlib import Path

    calls = Path(results)

    @extractor(
        "x", yields="x", cache=RedisCache("joined", key=lambda row: row, ttl=60.0, url=url, timeout=5.0, join=30.0)
    )
    def x(row):
        with calls.open("ab") as file:
            file.write(b"x")
        time.sleep(0.3)
        if fail_first and calls.stat().st_size == 1:
            raise ConnectionError("the first call fails")
        return 7.0

    with OnDemand(PLAN, [x]) as runner:
        barrier.wait(60)
        answer = runner.predict("same", deadline=60.0)
    if answer.value != 7.0 and not fail_first:
        os._exit(1)
    os._exit(0)


@pytest.mark.parametrize("fail_first", [False, pytest.param(True, marks=pytest.mark.slow)])  # True depends on timing
def test_processes_join_a_call_of_another(server, tmp_path, fail_first):
    """Three processes ask for one key at once: the function is called once; again only where it failed."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    made = [
        context.Process(target=calls_of, args=(server.url, barrier, str(tmp_path / "calls"), fail_first))
        for _ in range(3)
    ]
    for process in made:
        process.start()
    for process in made:
        process.join(120)
    assert [process.exitcode for process in made] == [0] * 3
    assert (tmp_path / "calls").stat().st_size == (2 if fail_first else 1)


def test_a_process_that_died_is_waited_for_no_longer_than_said(server):
    cache = RedisCache("dead", key=lambda row: row, ttl=30.0, url=server.url, timeout=1.0, join=0.2)
    other = RedisCache("dead", key=lambda row: row, ttl=30.0, url=server.url, timeout=1.0, join=0.2)
    assert cache.fetch("k", "f") is None, "this process marks the call, and dies"
    assert other.fetch("k", "f") is None, "the call is made here in the end"
    other.share("k", "f", 3.0)
    assert cache.fetch("k", "f") == (3.0,)
    for each in (cache, other):
        each.land("k", 3.0, None)

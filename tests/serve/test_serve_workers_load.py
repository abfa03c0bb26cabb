"""Several workers under load: a hundred new plans lose nothing, a killed worker only what is in flight there."""

import json
import os
import signal
import sys
import threading
import time

import psutil
import pytest

from benchmarks.http_client import request
from benchmarks.pipelined import ask
from serve.test_serve_process import folder, look, plan_of, serving  # noqa: F401
from serve.test_serve_workers import figure, until, workers_of

pytestmark = [pytest.mark.skipif(sys.platform == "win32", reason="needs fork"), pytest.mark.slow]
N_CONNECTIONS = 8
MESSAGE = request("/v1/predict", json.dumps({"row": {"x": 1.0}}).encode())


class InBackground(threading.Thread):
    """A load beside the test, one request at a time on each connection, until it is over."""

    def __init__(self, port, seconds):
        super().__init__()
        self.port, self.seconds, self.load, self.end = port, seconds, None, threading.Event()
        self.start()

    def run(self):
        self.load = ask(self.port, MESSAGE, N_CONNECTIONS, 1, self.seconds, is_over=self.end.is_set)

    def finish(self):
        self.end.set()
        self.join()
        return self.load


def counted(port, status="200"):
    return figure(look(port, "/metrics"), f'miserly_requests_total{{route="/v1/predict",status="{status}"}}')


def test_a_hundred_new_plans_lose_no_request(folder):  # noqa: F811
    with serving(folder, "--workers", "2") as (process, port, lines):
        until(lambda: figure(look(port, "/metrics"), "miserly_workers") == 2)
        background = InBackground(port, 300.0)
        for number in range(100):
            plan_of(3.0 + number).save(folder / "a.plan")
            process.send_signal(signal.SIGHUP)
            until(lambda n=number: sum("taken over" in line for line in lines) >= 2 * (n + 1))
        load = background.finish()
        assert load.n_broken == load.n_refused == 0
        assert set(load.statuses) <= {b"200", b"503"}, "every request has its answer; a starved machine sheds some"
        assert load.n_good > 1000
        assert counted(port) == load.n_good, "the metrics of both workers add up to what the client got"
        assert (counted(port, "503") or 0) == load.statuses.get(b"503", 0)
        assert figure(look(port, "/metrics"), 'miserly_plan_reloads_total{outcome="taken"}') == 200


def test_a_killed_worker_loses_only_what_is_in_flight_there(folder):  # noqa: F811
    with serving(folder, "--workers", "2") as (process, port, _):
        first = until(lambda: len(found := workers_of(process)) == 2 and found)
        until(lambda: figure(look(port, "/metrics"), "miserly_workers") == 2)
        background = InBackground(port, 120.0)
        time.sleep(1.0)
        victim = psutil.Process(min(first))
        held = len([c for c in victim.net_connections("tcp") if c.status == "ESTABLISHED"])
        os.kill(victim.pid, signal.SIGKILL)
        until(lambda: len(found := workers_of(process)) == 2 and found != first)
        time.sleep(1.0)
        load = background.finish()
        assert set(load.statuses) <= {b"200", b"503"}
        assert load.n_refused == 0, "connections that wait are taken by the other worker"
        assert load.n_broken <= held, "only connections of the dead worker break"
        assert load.n_in_flight_when_broken <= load.n_broken, "at most the one request in flight on each"
        assert load.n_good > 100
        assert figure(look(port, "/metrics"), "miserly_workers_replaced_total") == 1

"""Too many requests, slow and vanishing clients, pages of other sites: refused early and cheaply, the rest answered."""

import asyncio
import json
import socket

import pytest
from litestar.testing import TestClient

from miserly.costs import CostTable
from miserly.plan import Node, Plan, RawFeatures
from miserly.runtime import BadRow, VirtualClock, extractor
from miserly.serve import create_app
from miserly.serve._admission import Admission
from miserly.serve._messages import RefusedError
from miserly.serve._protocol import Acceptor, LoopTurns
from oracles.hand_built import PLANS

FOREST = PLANS["forest"]()
PLAN = Plan(CostTable.per_feature({"x": 1.0}), RawFeatures([0]), (Node([0], [2.0]),), [0.0])


@pytest.fixture
def clock():
    made = VirtualClock()
    yield made
    made.close()


class Exchange:
    """One request to an ASGI application, part by part, in virtual time."""

    def __init__(self, app, clock, path="/v1/predict", headers=(), arrived=None):
        self.parts, self.sent = asyncio.Queue(), []
        scope = {"type": "http", "method": "POST", "path": path, "headers": list(headers), "root_path": ""}
        if arrived is not None:
            scope["miserly.arrived"] = arrived
        self.task = asyncio.ensure_future(app(scope, self.parts.get, self._send))
        self.clock = clock

    async def _send(self, message):
        self.sent.append(message)
        self.at = self.clock.now()

    def part(self, body, more=True):
        self.parts.put_nowait({"type": "http.request", "body": body, "more_body": more})

    def leave(self):
        self.parts.put_nowait({"type": "http.disconnect"})

    @property
    def status(self):
        return self.sent[0]["status"] if self.sent else None

    @property
    def answer(self):
        return json.loads(self.sent[1]["body"])

    @property
    def headers(self):
        return dict(self.sent[0]["headers"])


def whole(app, clock, body, **options):
    made = Exchange(app, clock, **options)
    made.part(json.dumps(body).encode(), more=False)
    return made


# ---- places -------------------------------------------------------------------------------------------------------


def test_the_limit_falls_when_the_servers_own_delay_grows_and_rises_again(clock):
    admission = Admission(256, clock.now)

    async def answer(delay):
        await admission.enter()
        await asyncio.sleep(0.001)
        admission.leave(delay)

    async def main():
        for delay, is_low in ((0.001, False), (0.2, True), (0.001, False)):
            for _ in range(4000):
                await answer(delay)
            assert (admission.limit < 20) == is_low, (delay, admission.limit)
            assert admission.in_flight == 0

    clock.run(main())


def test_the_oldest_is_refused_first_and_the_newest_served_first(clock):
    admission = Admission(2, clock.now)
    served, refused = [], []

    async def ask(number):
        try:
            await admission.enter()
        except RefusedError:
            refused.append((number, round(clock.now(), 3)))
            return
        served.append(number)
        await asyncio.sleep(0.05 if number < 2 else 1.0)
        admission.leave(None)

    async def main():
        tasks = []
        for number in range(6):
            tasks.append(asyncio.ensure_future(ask(number)))
            await asyncio.sleep(0.001)
        await asyncio.gather(*tasks)

    clock.run(main())
    assert served == [0, 1, 5, 4]
    assert [number for number, _ in refused] == [2, 3]
    assert all(at < 0.1 for _, at in refused), "at once when others came, not after their time"
    assert admission.in_flight == admission.n_waiting == 0


def test_a_place_does_not_become_free_in_time(clock):
    admission = Admission(1, clock.now)

    async def main():
        await admission.enter()
        with pytest.raises(RefusedError):
            await admission.enter()
        assert clock.now() == pytest.approx(0.1, abs=1e-6)
        waiting = asyncio.ensure_future(admission.enter())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        admission.leave(None)
        await admission.enter()
        assert (admission.in_flight, admission.n_waiting) == (1, 0)

    clock.run(main())


def test_a_newcomer_may_meet_one_whose_time_is_just_over(clock):
    """It was refused twice, which is an error."""
    admission = Admission(1, clock.now)

    async def main():
        await admission.enter()
        first = asyncio.ensure_future(admission.enter())
        await asyncio.sleep(0)
        admission._waiting[0].set_result(False)  # its timer did this a moment ago
        with pytest.raises(RefusedError):
            await admission.enter()
        with pytest.raises(RefusedError):
            await first

    clock.run(main())


def test_requests_that_waited_in_a_standing_queue_are_refused(clock):
    """Beyond saturation the server queued: 256 clients waited half a second."""
    admission = Admission(256, clock.now)

    async def main():
        statuses = []
        for i in range(1000):
            await asyncio.sleep(0.001)
            waited = 0.08 if 300 < i < 800 else 0.001
            try:
                admission.check(clock.now() - waited)
                statuses.append(True)
            except RefusedError:
                statuses.append(False)
        return statuses

    admission.check(clock.now() - 1.0)  # one alone on a starved machine is no queue
    statuses = clock.run(main())
    assert all(statuses[:300])
    assert not any(statuses[550:800])
    assert all(statuses[950:])


def test_when_data_arrived_that_is_read_only_now(clock):
    arrivals = LoopTurns(clock.loop, clock.now)
    seen = []

    async def main():
        def read(name, work=0.0):
            seen.append((name, round(arrivals.arrived(), 6)))
            clock.sleep(work)

        loop = asyncio.get_running_loop()
        for _ in range(2):
            await asyncio.sleep(1.0 - clock.now() % 1.0)
            seen.clear()
            loop.call_soon(read, "first", 0.2)
            loop.call_soon(read, "same turn", 0.2)
            await asyncio.sleep(0)
            loop.call_soon(read, "next turn", 0.1)  # it may have arrived while the first were answered
            await asyncio.sleep(0.5)
            read("later")
            t = clock.now()
        return t

    t = clock.run(main())
    first = seen[0][1]
    assert seen == [("first", first), ("same turn", first), ("next turn", first), ("later", round(t, 6))]


def test_what_does_not_fit_into_a_turn_is_refused(clock):
    """Clients without number that ask again at once: what they sent was all begun, and then most of it refused late."""
    turns, begun = LoopTurns(clock.loop, clock.now), []

    async def main():
        for n_read, takes_seconds in (
            (1000, 0.0),
            (1000, 0.0009),
            (1000, 0.0009),
            (2, 0.0009),
            (1000, 1.0),
            (1000, 0.0),
        ):
            turns.arrived()
            n = sum(turns.takes() for _ in range(n_read))
            for _ in range(n):
                asyncio.get_running_loop().call_soon(clock.sleep, takes_seconds)
            begun.append(n)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    clock.run(main())
    assert begun == [1000, 1000, 23, 2, 23, 8], "as many as take 20 ms, at least eight"


def test_connections_are_accepted_though_turns_are_long():
    """libuv accepts one connection in a turn of its loop: under load some of 1000 waited for two seconds."""
    made, now = [], [0.0]

    class Connection(asyncio.Protocol):
        def connection_made(self, transport):
            made.append(transport)

    async def main():
        with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
            acceptor = Acceptor(listener, Connection, lambda: now[0])
            clients = [socket.create_connection(listener.getsockname()) for _ in range(30)]
            for now[0], n in ((0.0, 0), (0.0021, 10), (1.5, 10), (1.6, 30)):
                acceptor._look()
                while acceptor._beginning:
                    await asyncio.sleep(0)
                assert len(made) == n, "an idle loop leaves them to other workers"
            acceptor.close()
            for connection in (*made, *clients):
                connection.close()

    asyncio.run(main())


def test_a_refusal_is_a_whole_response(clock):
    app = create_app(PLAN, clock=clock)
    scope = {"type": "http", "method": "POST", "path": "/v1/predict", "headers": [(b"x-request-id", b"r7")]}
    head, _, body = app.refusal(scope).partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 503 Service Unavailable"
    assert {b"retry-after: 1", b"x-request-id: r7", b"content-length: %d" % len(body)} < set(lines)
    assert json.loads(body)["error"]["what"] == "The server has too much to do."
    assert app.telemetry._requests == {("/v1/predict", 503): 1}
    for other in ({"path": "/healthz", "method": "GET"}, {"path": "/v1/predict", "method": "GET"}, {"path": "/x"}):
        assert app.refusal({**scope, **other}) is None, "health and metrics are told whatever there is to do"


# ---- deadlines ----------------------------------------------------------------------------------------------------


def test_the_deadline_counts_from_the_arrival(clock):
    @extractor("x", yields="x")
    async def slow(row):
        await asyncio.sleep(0.06)
        return row

    async def main():
        app = create_app(PLAN, [slow], clock=clock)
        await asyncio.sleep(1.0)
        body = {"row": 1.0, "deadline_ms": 100}
        in_time, late, too_late = (whole(app, clock, body, arrived=clock.now() - w) for w in (0.0, 0.05, 0.101))
        await asyncio.gather(in_time.task, late.task, too_late.task)
        assert in_time.answer["stopped"] == "answered"
        assert late.answer["stopped"] == "deadline"
        assert late.at == pytest.approx(1.05, abs=1e-6)
        assert (too_late.status, too_late.headers[b"retry-after"]) == (503, b"1")
        zero = whole(app, clock, {"row": 1.0, "deadline_ms": 0})
        await zero.task
        assert zero.answer["stopped"] == "deadline", "who asks for no time at all gets the free answer"
        await app.state.pool.aclose()

    clock.run(main())


def test_overload_makes_no_healthy_extractor_fail(clock):
    """128 clients with 100 ms: 17 answered, 531 too late, 3655 failed, and the extractor was switched off.

    Two workers of 10 ms answer 200 a second at best; 128 clients ask for six times as much.
    """

    @extractor("x", yields="x", workers=2)
    def busy(row):
        clock.sleep(0.01)
        return row

    reasons = []

    async def client(app):
        while clock.now() < 3.0:
            began = clock.now()
            asked = whole(app, clock, {"row": 1.0, "deadline_ms": 100})
            await asked.task
            reasons.append((clock.now(), asked.answer["stopped"] if asked.status == 200 else asked.status))
            if asked.status == 503:
                await asyncio.sleep(0.05)
            else:
                assert asked.at - began < 0.1 + 1e-6

    async def main():
        app = create_app(PLAN, [busy], clock=clock)
        await asyncio.gather(*(client(app) for _ in range(128)))
        assert not any(app.state.pool.active.runner.left_alone.values())
        await app.state.pool.aclose()

    clock.run(main())
    assert {reason for _, reason in reasons} == {"answered", "deadline", 503}
    assert sum(reason == "answered" for at, reason in reasons if 1.0 < at < 3.0) >= 0.9 * 400, "goodput"


# ---- bodies -------------------------------------------------------------------------------------------------------


def test_unfinished_bodies_share_a_budget(clock):
    """600 bodies of almost a megabyte took 790 MB."""

    async def main():
        app = create_app(PLAN, max_buffered=100_000, clock=clock)
        slow = [Exchange(app, clock) for _ in range(20)]
        for _ in range(10):
            for one in slow:
                one.part(b" " * 1000)
            await asyncio.sleep(0.01)
            assert app.state.bodies.n_buffered <= 100_000
        await asyncio.sleep(0.01)
        assert {one.status for one in slow} <= {None, 503}
        assert sum(one.status == 503 for one in slow) >= 9
        small = whole(app, clock, {"row": {"x": 1.0}})
        await small.task
        assert small.answer["value"] == 2.0
        survivor = next(one for one in slow if one.status is None)
        survivor.part(b'{"row": {"x": 2.0}}', more=False)
        await survivor.task
        assert survivor.answer.get("value") == 4.0, survivor.answer
        await asyncio.gather(*(one.task for one in slow))
        assert {one.status for one in slow} == {200, 503, 408}
        assert app.state.bodies.n_buffered == 0
        await app.state.pool.aclose()

    clock.run(main())


@pytest.mark.parametrize("parts", [[], [b"{"], [b"{"] * 5])
def test_a_body_that_does_not_arrive_is_given_up(clock, parts):
    async def main():
        app = create_app(PLAN, body_seconds=3.0, clock=clock)
        slow = Exchange(app, clock)
        for part in parts:
            slow.part(part)
        await slow.task
        assert (slow.status, round(slow.at, 3)) == (408, 3.0)
        assert slow.headers[b"connection"] == b"close"
        await app.state.pool.aclose()

    clock.run(main())


@pytest.mark.parametrize("parts", [[], [b"{"]])
def test_a_client_that_leaves_is_no_error_of_the_servers(clock, parts, caplog):
    """It was counted as a 500, with a traceback."""

    async def main():
        app = create_app(PLAN, clock=clock)
        gone = Exchange(app, clock)
        for part in parts:
            gone.part(part)
        gone.leave()
        await gone.task
        assert gone.sent == []
        assert 'status="499"' in app.state.telemetry.page().decode()
        assert 'status="500"' not in app.state.telemetry.page().decode()
        await app.state.pool.aclose()

    clock.run(main())
    assert not caplog.records


# ---- what clients may say -----------------------------------------------------------------------------------------


def test_the_smallest_of_several_headers_counts():
    """The first did."""
    row = dict.fromkeys(FOREST.costs.features, 0.5)
    with TestClient(create_app(FOREST)) as client:
        for values in (("3", "1000"), ("1000", "3")):
            headers = [("Miserly-Budget", value) for value in values]
            assert client.post("/v1/predict", json={"row": row}, headers=headers).json()["cost"] <= 3.0


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:8000"}, 200),
        ({"Host": "127.0.0.1"}, 200),
        ({"Host": "[::1]:80"}, 200),
        ({"Host": "Model.example"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost", "Origin": "http://localhost:3000"}, 200),
        ({"Host": "localhost", "Origin": "https://evil.example"}, 403),
        ({"Host": "localhost", "Origin": "null"}, 403),
    ],
)
def test_pages_of_other_sites_are_refused(headers, status):
    with TestClient(create_app(PLAN, allowed_hosts={"model.example"})) as client:
        response = client.post("/v1/predict", json={"row": {"x": 1.0}}, headers=headers)
        assert response.status_code == status
        assert client.get("/v1/plan", headers=headers).status_code == status


def test_the_words_of_a_readers_errors_stay_here(caplog):
    def read_row(row):
        if row == "bad":
            raise BadRow("rows are numbers")
        return {"secret password": 1.0}[row]

    caplog.set_level("INFO", "miserly.serve")
    app = create_app(PLAN, [extractor("x", yields="x")(lambda row: row)], read_row=read_row)
    with TestClient(app) as client:
        bad, other = (client.post("/v1/predict", json={"row": row}) for row in ("bad", "other"))
    assert (bad.status_code, other.status_code) == (400, 400)
    assert "rows are numbers" in bad.text
    assert "other" not in other.text
    assert "other" in caplog.text


def test_a_reader_that_is_slow_runs_on_a_thread_and_under_the_deadline():
    """It held up the event loop."""
    import threading

    began, release, threads = threading.Event(), threading.Event(), []

    def read_row(row):
        threads.append(threading.current_thread())
        if row == "slow":
            sum(range(200_000))
        if row == "hang":
            began.set()
            release.wait(60.0)
        return 1.0

    async def main():
        app = create_app(PLAN, [extractor("x", yields="x")(lambda row: row)], read_row=read_row)
        clock = app.clock
        for row in ("slow", "fast"):
            one = whole(app, clock, {"row": row})
            await one.task
            assert one.answer["value"] == 2.0
        hung = whole(app, clock, {"row": "hang", "deadline_ms": 50})
        await hung.task
        assert (hung.status, hung.answer["stopped"]) == (200, "deadline")
        release.set()
        await app.state.pool.aclose()

    asyncio.run(main())
    main_thread = threading.main_thread()
    assert [thread is main_thread for thread in threads] == [True, False, False]


def test_a_long_name_is_not_compared_with_all_features():
    """A megabyte of a feature's name was searched for in all names and sent back."""
    with TestClient(create_app(FOREST)) as client:
        response = client.post("/v1/predict", json={"row": {"a" * 900_000: 1.0}})
    assert response.status_code == 400
    assert len(response.content) < 1000


def test_a_long_list_lets_other_requests_through():
    """1000 documents took 164 ms for a deadline of 20 ms, and nothing else was answered meanwhile."""
    row = dict.fromkeys(FOREST.costs.features, 0.5)
    order = []

    async def main():
        app = create_app(FOREST)
        clock = app.clock
        ranking = whole(app, clock, {"documents": [row] * 1000}, path="/v1/rank")
        ranking.task.add_done_callback(lambda _: order.append("ranking"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        one = whole(app, clock, {"row": row})
        one.task.add_done_callback(lambda _: order.append("one"))
        await asyncio.gather(ranking.task, one.task)
        assert ranking.answer["stopped"] == {"answered": 1000}
        hurried = whole(app, clock, {"documents": [row] * 1000, "deadline_ms": 1}, path="/v1/rank")
        await hurried.task
        assert hurried.answer["stopped"]["deadline"] > 500
        await app.state.pool.aclose()

    asyncio.run(main())
    assert order == ["one", "ranking"]

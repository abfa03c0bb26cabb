"""Too many requests, a new plan in the middle, extractors that fail or hang: every request gets its answer."""

import asyncio
import random
import threading
from dataclasses import replace

import httpx
import pytest

from miserly.costs import CostTable
from miserly.plan import Node, Plan, RawFeatures
from miserly.runtime import extractor
from miserly.serve import Canary, create_app
from oracles.extractors import extractors_of
from oracles.hand_built import PLANS

FOREST = PLANS["forest"]()
ROW = dict.fromkeys(FOREST.costs.features, 0.5)


def line(weight, feature="x"):
    """A plan that buys one feature and answers a multiple of it."""
    return Plan(CostTable.per_feature({feature: 1.0}), RawFeatures([0]), (Node([0], [weight]),), [0.0])


def client_of(app):
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here")


def held():
    """An extractor that waits until it is let go, and how many wait."""
    waiting = []

    @extractor("x", yields="x")
    async def x(row):
        gate = asyncio.Event()
        waiting.append(gate)
        await gate.wait()
        return row

    return x, waiting


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


def test_beyond_the_limit_clients_are_asked_to_come_back():
    async def main():
        x, waiting = held()
        app = create_app(line(2.0), [x], max_in_flight=2)
        async with client_of(app) as client:
            first = [asyncio.create_task(client.post("/v1/predict", json={"row": 1.0})) for _ in range(2)]
            await until(lambda: len(waiting) == 2)
            refused = await client.post("/v1/predict", json={"row": 1.0})
            assert refused.status_code == 503
            assert refused.headers["Retry-After"] == "1"
            assert refused.json()["error"]["remedy"]
            assert (await client.get("/healthz")).status_code == 200
            for gate in waiting:
                gate.set()
            assert [(await task).json()["value"] for task in first] == [2.0, 2.0]
            later = asyncio.create_task(client.post("/v1/predict", json={"row": 3.0}))
            await until(lambda: len(waiting) == 3)
            waiting[2].set()
            assert (await later).json()["value"] == 6.0
        await app.state.pool.aclose()

    asyncio.run(main())


def test_a_new_plan_takes_over_and_the_old_one_finishes_its_requests():
    async def main():
        x, waiting = held()
        app = create_app(line(2.0), [x])
        pool = app.state.pool
        old = pool.active
        async with client_of(app) as client:
            before = asyncio.create_task(client.post("/v1/predict", json={"row": 1.0}))
            await until(lambda: len(waiting) == 1)
            await pool.take_over(line(10.0))
            after = asyncio.create_task(client.post("/v1/predict", json={"row": 1.0}))
            await until(lambda: len(waiting) == 2)
            for gate in waiting:
                gate.set()
            assert (await before).json()["value"] == 2.0
            assert (await after).json()["value"] == 10.0
        assert pool.active is not old
        assert (old.is_retired, old.in_flight, pool.in_flight) == (False, 0, 0), "kept in case the new one fails"
        await pool.take_over(line(11.0))
        assert old.is_retired
        await pool.aclose()

    asyncio.run(main())


def test_a_plan_that_does_not_fit_is_refused_and_the_old_one_stays():
    async def main():
        app = create_app(line(2.0), [extractor("x", yields="x")(lambda row: row)])
        with pytest.raises(ValueError, match="'other'"):
            await app.state.pool.take_over(line(1.0, "other"))
        async with client_of(app) as client:
            assert (await client.post("/v1/predict", json={"row": 1.0})).json()["value"] == 2.0
        await app.state.pool.aclose()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: line(3.0, "other"), "features that clients do not send, such as 'other'"),
        (lambda: replace(line(3.0), costs=CostTable.per_feature({"x": 1.0}, unit="ms")), "prices are in 'ms'"),
        (lambda: FOREST, "features that clients do not send"),
    ],
    ids=["features", "unit", "classes"],
)
def test_a_plan_that_clients_could_not_ask_is_refused(other, words):
    """A plan with other features took over, and every request of a client became a 400."""

    async def main():
        app = create_app(line(2.0))
        with pytest.raises(ValueError, match=words):
            await app.state.pool.take_over(other())
        async with client_of(app) as client:
            assert (await client.post("/v1/predict", json={"row": {"x": 1}})).json()["value"] == 2.0
        await app.state.pool.aclose()

    asyncio.run(main())


def test_a_plan_that_fails_a_canary_is_refused():
    async def main():
        canaries = [
            Canary(row={"x": 1.0}, value=2.0, tolerance=0.5),
            Canary(features={"x": 2.0}, value=4.0, tolerance=0.5, max_cost=0),
        ]
        app = create_app(line(2.0), canaries=canaries)
        await app.state.pool.take_over(line(2.001))
        with pytest.raises(ValueError, match=r"Canary 1: expected 2.0, got 3.0"):
            await app.state.pool.take_over(line(3.0))
        assert app.state.pool.active.plan.nodes[0].weights[0] == 2.001
        await app.state.pool.aclose()

    asyncio.run(main())


def test_a_new_plan_that_makes_requests_fail_is_taken_back(monkeypatch, caplog):
    async def main():
        app = create_app(line(2.0))
        pool = app.state.pool
        async with client_of(app) as client:
            await pool.take_over(line(3.0))
            monkeypatch.setattr(pool.active.check, "row", lambda row, where: 1 / 0)
            statuses = [(await client.post("/v1/predict", json={"row": {"x": 1}})).status_code for _ in range(4)]
            assert statuses == [500, 500, 500, 200]
            assert (await client.post("/v1/predict", json={"row": {"x": 1}})).json()["value"] == 2.0
            assert "miserly_plan_rollbacks_total 1.0" in (await client.get("/metrics")).text
        await pool.aclose()

    asyncio.run(main())


def test_nothing_is_left_of_a_plan_that_was_replaced():
    async def main():
        app = create_app(line(1.0), [extractor("x", yields="x")(lambda row: row)])
        async with client_of(app) as client:
            for weight in range(2, 12):
                assert (await client.post("/v1/predict", json={"row": 1.0, "deadline_ms": 9000})).status_code == 200
                await app.state.pool.take_over(line(float(weight)))
        await app.state.pool.aclose()

    asyncio.run(main())
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("miserly-x")]


def test_a_server_that_shuts_down_says_so():
    async def main():
        app = create_app(FOREST)
        async with client_of(app) as client:
            app.state.pool.is_draining = True
            assert (await client.get("/readyz")).status_code == 503
            answer = await client.post("/v1/predict", json={"row": ROW})
            assert (answer.status_code, answer.headers["Connection"]) == (200, "close")

    asyncio.run(main())


def test_extractors_that_fail_or_hang_are_reported_and_no_request_fails():
    draw, release = random.Random(0), threading.Event()

    def break_up(name, _):
        if name == "fetch":
            release.wait(30.0)
        if draw.random() < 0.1:
            raise ConnectionError

    async def main():
        app = create_app(FOREST, extractors_of(FOREST.costs, break_up=break_up))
        body = {"row": ROW, "deadline_ms": 100}
        async with client_of(app) as client:
            for _ in range(6):
                answers = await asyncio.gather(*(client.post("/v1/predict", json=body) for _ in range(5)))
                assert {answer.status_code for answer in answers} == {200}
                reasons = {answer.json()["stopped"].partition(":")[0] for answer in answers}
                assert reasons <= {"deadline", "failed"}
            text = (await client.get("/metrics")).text
            assert 'miserly_extractor_calls_total{extractor="fetch",outcome="abandoned"}' in text
        release.set()
        await app.state.pool.aclose()

    asyncio.run(main())

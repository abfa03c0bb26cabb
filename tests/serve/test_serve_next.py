"""What to buy next, over HTTP: the same as `advise` says."""

import pytest
from litestar.testing import TestClient

import miserly as ms
from miserly.serve import create_app
from oracles.hand_built import PLANS
from serve.test_serve_menu import menu

FOREST = PLANS["forest"]()


@pytest.mark.parametrize("served", [FOREST, menu()], ids=["plan", "menu"])
@pytest.mark.parametrize("budget", [None, 1.0, 10.0])
def test_what_is_served_is_what_advise_says(served, budget):
    first, second = served.costs.features[:2]
    body = {"known": {first: 0.5}, "unavailable": [second]} | ({} if budget is None else {"budget": budget})
    advice = ms.advise(served, {first: 0.5}, [second], budget)
    with TestClient(create_app(served)) as client:
        response = client.post("/v1/next", json=body)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert (answer["value"], answer["next"], answer["price"]) == (advice.value, advice.next, advice.price)
    assert (answer["stop"], answer["why"]) == (advice.stop, advice.why)
    assert [c["acquisitions"] for c in answer["ranking"]] == [list(c.acquisitions) for c in advice.ranking]


def test_what_is_owned_is_not_charged():
    prices = FOREST.costs.prices
    with TestClient(create_app(FOREST)) as client:
        first = client.post("/v1/next", json={}).json()
        after = client.post("/v1/next", json={"owned": first["together"]}).json()
    assert first["price"] == FOREST.costs.price_of(first["together"])
    assert not set(first["together"]) & {a for c in after["ranking"] for a in c["acquisitions"]}
    assert all(c["price"] == pytest.approx(sum(prices[a] for a in c["acquisitions"])) for c in after["ranking"])


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"known": {"agee": 1.0}}, "known.agee"),
        ({"known": {"age": "old"}}, "known.age"),
        ({"unavailable": ["nothing"]}, "unavailable[0]"),
        ({"unavailable": ["x" * 100_000]}, "unavailable[0]"),
        ({"owned": ["nothing"]}, "owned[0]"),
        ({"budget": -1}, "budget"),
        ({"row": 1}, "body"),
    ],
)
def test_a_wrong_question_is_a_400(body, where):
    with TestClient(create_app(FOREST)) as client:
        response = client.post("/v1/next", json=body)
    assert response.status_code == 400
    assert response.json()["error"]["where"] == where
    assert len(response.content) < 1000

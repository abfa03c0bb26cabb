"""What to buy next, over HTTP: the same as `advise` says."""

import pytest
from litestar.testing import TestClient

import miserly as ms
from miserly.plan import Node, Plan, RawFeatures
from miserly.schema import Column, Schema
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


def hospital():
    costs = ms.CostTable.per_feature({"ward": 0.0, "CRP (mg/l)": 5.0})
    columns = (Column("ward", "category", ("ICU", "surgery")), Column("CRP (mg/l)"))
    schema = Schema(columns, id="patient", label="died")
    return Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [1.0, 1.0]),), [0.0], means=[0.0, 0.0], schema=schema)


def test_unknown_words_are_named_and_the_identifier_is_ignored():
    """A slip in a word gave a prediction without a sign of it; a patient's number was refused."""
    row = {"patient": "K1", "ward": "onkology", "CRP (mg/l)": 3.0}
    with TestClient(create_app(hospital())) as client:
        one = client.post("/v1/predict", json={"row": row})
        two = client.post("/v1/predict", json={"rows": [row, {**row, "ward": "ICU"}]}).json()["answers"]
        after = client.post("/v1/next", json={"known": row})
        given = client.post("/v1/predict", json={"row": row, "features": {"patient": "K1"}})
        fine = client.post("/v1/next", json={"known": {"ward": "ICU"}})
    assert {one.status_code, after.status_code, given.status_code} == {200}
    assert one.json()["unknown_words"] == after.json()["unknown_words"] == two[0]["unknown_words"] == ["ward"]
    assert "unknown_words" not in fine.json()
    assert "unknown_words" not in two[1]


def test_a_row_that_lacks_features_is_told_which_and_where_to_ask():
    with TestClient(create_app(hospital())) as client:
        error = client.post("/v1/predict", json={"row": {"patient": "K1"}}).json()["error"]
        near = client.post("/v1/next", json={"known": {"crp": 3}}).json()["error"]
    assert error["what"] == "The row lacks 2 features that the plan may look at: 'ward', 'CRP (mg/l)'."
    assert "a number or a word" in error["remedy"]
    assert "POST /v1/next" in error["remedy"]
    assert "Did you mean 'CRP (mg/l)'?" in near["remedy"]

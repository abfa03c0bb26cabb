"""A request that is wrong gets a 4xx that says what is wrong, where, and how to do it right; never a 5xx."""

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from litestar.testing import TestClient

from miserly.costs import CostTable
from miserly.plan import Node, Plan, RawFeatures
from miserly.serve import create_app
from oracles.extractors import extractors_of
from oracles.hand_built import PLANS

FOREST = PLANS["forest"]()
LINEAR = Plan(CostTable.per_feature({"x": 1.0, "y": 2.0}), RawFeatures([0, 1]), (Node([0, 1], [1.0, 1.0]),), [0.0])
ROW = dict.fromkeys(FOREST.costs.features, 0.5)
PREDICT, RANK = "/v1/predict", "/v1/rank"


@pytest.fixture(scope="module")
def client():
    with TestClient(create_app(FOREST, max_body=1 << 20, max_documents=1000)) as client:
        yield client


def with_row(**change):
    return json.dumps({"row": ROW | change})


def body(**fields):
    return json.dumps({"row": ROW, **fields})


BAD = {
    "unknown feature": (PREDICT, with_row(agee=1), "row.agee", "Did you mean 'age'"),
    "unknown given feature": (PREDICT, body(features={"colour": 1}), "features.colour", "/v1/plan"),
    "NaN": (PREDICT, '{"row": {"age": NaN}}', "body", "null"),
    "infinity": (PREDICT, '{"row": {"age": -Infinity}}', "body", "null"),
    "number too large": (PREDICT, '{"row": {"age": 1e999}}', "row[...]", "openapi"),
    "integer too large": (PREDICT, with_row(age=10**400), "row.age", "double"),
    "a word for a number": (PREDICT, with_row(age="old"), "row.age", "a number or null"),
    "a list for a number": (PREDICT, with_row(age=[1]), "row.age", "a number or null"),
    "true for a number": (PREDICT, with_row(age=True), "row.age", "a number or null"),
    "a word given": (PREDICT, body(features={"age": "old"}), "features.age", "a number or null"),
    "a list given": (PREDICT, body(features={"age": [1]}), "features[...]", "openapi"),
    "features are a list": (PREDICT, body(features=[1]), "features", "openapi"),
    "no row": (PREDICT, "{}", "row", "age"),
    "row is a list": (PREDICT, '{"row": [1, 2]}', "row", "age"),
    "row lacks features": (PREDICT, '{"row": {"age": 1}}', "row", "null"),
    "negative budget": (PREDICT, body(budget=-1), "budget", "openapi"),
    "budget in words": (PREDICT, body(budget="5"), "budget", "openapi"),
    "deadline in the past": (PREDICT, body(deadline_ms=-0.001), "deadline_ms", "openapi"),
    "unknown field": (PREDICT, body(budgett=1), "body", "openapi"),
    "broken JSON": (PREDICT, '{"row": ', "body", "JSON"),
    "no JSON": (PREDICT, "row=1", "body", "JSON"),
    "nothing": (PREDICT, "", "body", "JSON"),
    "no UTF-8": (PREDICT, b'{"row": "\xff"}', "body", "UTF-8"),
    "nested deeply": (PREDICT, b'{"row":' + b"[" * 100_000, "body", "JSON"),
    "an array": (PREDICT, "[]", "body", "openapi"),
    "no documents": (RANK, "{}", "body", "openapi"),
    "a document that is none": (RANK, json.dumps({"documents": [ROW, 3]}), "documents[1]", "age"),
    "100,000 documents": (RANK, json.dumps({"documents": [1] * 100_000}), "documents", "--max-documents"),
    "features of other documents": (RANK, json.dumps({"documents": [ROW], "features": [{}, {}]}), "features", "each"),
    "unknown feature of one": (RANK, json.dumps({"documents": [ROW], "features": [{"z": 1}]}), "features[0].z", "plan"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_request_is_told_what_where_and_how(client, what):
    path, content, where, remedy = BAD[what]
    response = client.post(path, content=content)
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert error["where"] == where, error
    assert remedy in error["remedy"], error
    assert len(error["what"]) > 5
    assert "$" not in error["what"]


@pytest.mark.parametrize("name", ["Miserly-Budget", "Miserly-Deadline-Ms"])
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "much", ""])
def test_a_bad_header_is_told(client, name, value):
    response = client.post(PREDICT, content=body(), headers={name: value})
    assert response.status_code == 400
    assert response.json()["error"]["where"] == f"header {name.lower()}"


def test_a_huge_body_is_refused_also_if_it_does_not_say_how_long_it_is(client):
    for content in (b" " * ((1 << 20) + 1), (b" " * 65536 for _ in range(17))):
        response = client.post(PREDICT, content=content)
        assert response.status_code == 413
        assert "1048576 bytes" in response.json()["error"]["what"]


def test_other_places_and_methods(client):
    for method, path, status in (("GET", "/v2/predict", 404), ("GET", PREDICT, 405), ("DELETE", "/v1/plan", 405)):
        response = client.request(method, path)
        assert response.status_code == status
        assert response.json()["error"]["remedy"]


def test_a_linear_plan_needs_numbers():
    with TestClient(create_app(LINEAR)) as client:
        assert client.post(PREDICT, json={"row": {"x": 1, "y": 2}}).json()["value"] == 3.0
        for content in ({"row": {"x": 1, "y": None}}, {"row": {"x": 1, "y": 2}, "features": {"y": None}}):
            response = client.post(PREDICT, json=content)
            assert response.status_code == 400
            assert response.json()["error"]["where"].endswith(".y")


def test_bad_rows_do_not_make_good_ones_fail(client):
    """The client's mistakes do not count as failures of an extractor."""
    for _ in range(20):
        client.post(PREDICT, content=with_row(age="old"))
    assert client.post(PREDICT, content=body()).json()["stopped"] == "answered"


def test_an_error_of_the_servers_own_says_so_and_tells_nothing(monkeypatch, caplog):
    with TestClient(create_app(FOREST)) as client:
        monkeypatch.setattr("miserly.serve._request_handler.prediction", lambda *_: 1 / 0)
        response = client.post(PREDICT, content=body())
    assert response.status_code == 500
    assert "division" not in response.text
    assert "division" in caplog.text


APPS = {
    "rows at hand": create_app(FOREST, max_documents=5),
    "extractors": create_app(FOREST, extractors_of(FOREST.costs), max_documents=5),
}
CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
]


def fuzz(kind, n_examples):
    """Requests that the description allows, and such that it does not: none ends in a 5xx, and every answer is as
    described. Gives the statuses that came."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", APPS[kind])
    statuses = set()
    for operation in (found.ok() for found in schema.get_all_operations()):
        modes = schemathesis.GenerationMode if operation.method == "post" else [schemathesis.GenerationMode.POSITIVE]
        for mode in modes:

            @settings(max_examples=n_examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
            @seed(0)
            @given(operation.as_strategy(mode))
            def ask(case):
                response = case.call()
                statuses.add(response.status_code)
                case.validate_response(response, checks=CHECKS)

            ask()
    return statuses


@pytest.mark.parametrize("kind", APPS)
def test_no_request_ends_in_an_error_of_the_servers(kind):
    assert fuzz(kind, 8) >= {200, 400}


@pytest.mark.slow
@pytest.mark.parametrize("kind", APPS)
def test_no_request_of_many_ends_in_an_error_of_the_servers(kind):
    assert fuzz(kind, 500) >= {200, 400}

"""What is served is what the plan says: value, cost, reason, to the bit; what is given is not bought again."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from litestar import Litestar, asgi
from litestar.testing import TestClient

from miserly.plan import Node, Plan, RawFeatures
from miserly.runtime import Call, OnDemand, Pair, extractor
from miserly.serve import create_app
from miserly.serve._metrics import Calls
from oracles.extractors import extractors_of
from oracles.hand_built import PLANS, rows

FOREST = PLANS["forest"]()


def features_of(plan, X):
    return [{f: None if np.isnan(v) else v for f, v in zip(plan.costs.features, x.tolist())} for x in X]


def asked(client, path="/v1/predict", headers=None, **body):
    response = client.post(path, json=body, headers=headers)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize("own", [False, True], ids=["rows at hand", "extractors"])
@pytest.mark.parametrize("name", [name for name, make in PLANS.items() if not make().by_query])
def test_served_equals_batch(name, own):
    plan = PLANS[name]()
    X = rows(12, 4, 0.2 if plan.can_miss else 0.0, len(plan.costs.features))
    result = plan.run(X)
    values, probabilities = plan.predict(X), plan.predict_proba(X) if plan.classes is not None else None
    with TestClient(create_app(plan, extractors_of(plan.costs) if own else None)) as client:
        answers = [asked(client, row=row) for row in features_of(plan, X)]
        budget = float(np.median(result.cost)) / 2
        cheap = [asked(client, row=row, budget=budget) for row in features_of(plan, X)]
    assert [a["value"] for a in answers] == values.tolist()
    assert [a["cost"] for a in answers] == result.cost.tolist()
    assert {a["stopped"] for a in answers} == {"answered"}
    if probabilities is not None:
        assert [a["probabilities"] for a in answers] == probabilities.tolist()
    limited = plan.run(X, budget=budget)
    assert [a["cost"] for a in cheap] == limited.cost.tolist()
    assert [a["stopped"] == "budget" for a in cheap] == limited.out_of_budget.tolist()


@pytest.mark.parametrize("name", [name for name, make in PLANS.items() if make().n_outputs == 1])
def test_a_served_list_is_the_runners(name):
    plan = PLANS[name]()
    documents = features_of(plan, rows(9, 2, 0.0, len(plan.costs.features)))

    def reading(e):
        def read(pair, *others):
            assert type(pair) is Pair
            assert pair.query == "q"
            return e.function(pair.document, *others)

        read.__name__ = e.name
        return extractor(e.acquisition, yields=e.yields, needs=e.needs)(read)

    kit = [reading(e) for e in extractors_of(plan.costs)]
    with OnDemand(plan, kit) as runner:
        expected = runner.rank("q", documents)
    for extractors in (None, kit):
        with TestClient(create_app(plan, extractors)) as client:
            told = asked(client, "/v1/rank", query="q", documents=documents)
        assert told["order"] == list(expected.order)
        assert told["cost"] == expected.cost
        assert [a["value"] for a in told["answers"]] == [a.value for a in expected.answers]
        assert [a["tier"] for a in told["answers"]] == [a.tier for a in expected.answers]
        assert told["stopped"] == {"answered": 9}


def test_the_smaller_of_two_budgets_counts_and_the_servers_own_otherwise():
    row = features_of(FOREST, rows(1, 1))[0]
    with TestClient(create_app(FOREST, budget=2.0)) as client:
        assert asked(client, row=row)["cost"] <= 2.0
        free = asked(client, row=row, budget=1000)
        assert free["stopped"] == "answered"
        assert asked(client, row=row, budget=1000, headers={"Miserly-Budget": "3"})["cost"] <= 3.0
        assert asked(client, row=row, budget=3, headers={"Miserly-Budget": "1000"})["cost"] <= 3.0
        assert asked(client, row=row, headers={"Miserly-Budget": "1000"}) | {"measured_ms": 0} == free | {
            "measured_ms": 0
        }


@pytest.mark.parametrize("deadline", [1e5, 1e16, 1e300])
def test_a_deadline_may_be_far_away(deadline):
    row = features_of(FOREST, rows(1, 1))[0]
    with TestClient(create_app(FOREST, extractors_of(FOREST.costs))) as client:
        assert asked(client, row=row, deadline_ms=deadline)["stopped"] == "answered"
    with TestClient(create_app(FOREST)) as client:
        assert asked(client, "/v1/rank", documents=[row], deadline_ms=deadline)["stopped"] == {"answered": 1}


def test_given_features_are_neither_bought_nor_called():
    row = features_of(FOREST, rows(1, 1))[0]
    kit = extractors_of(FOREST.costs)
    with TestClient(create_app(FOREST, kit)) as client:
        paid = asked(client, row=row)
        given = asked(client, row=row, features={"age": row["age"], "sex": row["sex"]})
        all_given = asked(client, features=row)
        listed = asked(client, "/v1/rank", documents=[row, row], features=[{}, row])
    assert "ask" in paid["acquired"]
    assert "ask" not in given["acquired"]
    assert given["cost"] == pytest.approx(paid["cost"] - FOREST.costs.prices["ask"], abs=1e-12)
    assert given["probabilities"] == paid["probabilities"] == all_given["probabilities"]
    assert all_given["acquired"] == []
    assert all_given["measured_ms"] == 0
    assert [a["acquired"] == [] for a in listed["answers"]] == [False, True]


def test_rows_are_read_before_the_extractors_get_them():
    @extractor("ask", yields=["age", "sex"])
    def ask(row):
        assert type(row) is bytes
        return [len(row), 0.0]

    def read_row(row):
        return row.encode("ascii")

    plan = Plan(FOREST.costs, RawFeatures([0]), (Node([0], [1.0]),), [0.0])
    with TestClient(create_app(plan, [ask], read_row=read_row)) as client:
        assert asked(client, row="mail")["value"] == 4.0
        refused = client.post("/v1/predict", json={"row": "müll"})
        assert refused.status_code == 400
        assert refused.json()["error"]["where"] == "row"
        assert client.post("/v1/predict", json={"row": 3}).status_code == 400


def test_the_application_can_be_mounted_in_another():
    inner = create_app(FOREST)
    row = features_of(FOREST, rows(1, 1))[0]
    outer = Litestar([asgi("/models/forest", is_mount=True, copy_scope=True)(inner)], openapi_config=None)
    with TestClient(outer) as client, TestClient(create_app(FOREST)) as alone:
        mounted = asked(client, "/models/forest/v1/predict", row=row)
        assert mounted | {"measured_ms": 0} == asked(alone, row=row) | {"measured_ms": 0}
        assert client.get("/models/forest/readyz").text == "ready"


def test_the_plan_and_the_interface_are_told():
    with TestClient(create_app(FOREST)) as client:
        told = client.get("/v1/plan").json()
        assert {a["name"]: a["price"] for a in told["acquisitions"]} == dict(FOREST.costs.prices)
        assert told["unit"] == "CAD"
        assert told["classes"] == ["a", "b", "c"]
        assert set(told["features"]) == set(FOREST.costs.features)
        described = client.get("/openapi.json").json()
        assert described["components"]["schemas"]["PredictRequest"]["additionalProperties"] is False
        for path, methods in described["paths"].items():
            for method in methods:
                assert client.request(method, path).status_code in (200, 400)
        page = client.get("/").text
        assert "/v1/predict" in page
        loads = page.replace("http://www.w3.org/2000/svg", "")  # a name of a format, never asked for
        assert "http" not in loads.replace("For programs: ", ""), "nothing is loaded from another place"
        assert client.get("/healthz").text == "alive"


def test_metrics_count_what_happened():
    row = features_of(FOREST, rows(1, 1))[0]

    def break_up(name, _):
        if name == "fetch":
            raise ConnectionError

    with TestClient(create_app(FOREST, extractors_of(FOREST.costs, break_up=break_up))) as client:
        costs = [asked(client, row=row)["cost"] for _ in range(9)]
        asked(client, row=row, budget=2.5)
        client.post("/v1/predict", content=b"{")
        text = client.get("/metrics").text
    figures = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, figure = line.rpartition(" ")
            figures[name] = float(figure)
    assert figures['miserly_requests_total{route="/v1/predict",status="200"}'] == 10
    assert figures['miserly_requests_total{route="/v1/predict",status="400"}'] == 1
    assert figures['miserly_answers_total{stopped="failed:fetch"}'] == 9
    assert figures['miserly_answers_total{stopped="budget"}'] == 1
    assert figures["miserly_cost_priced_total"] >= sum(costs)
    assert figures['miserly_extractor_calls_total{extractor="fetch",outcome="failed"}'] == 8
    assert figures['miserly_breaker_open{extractor="fetch"}'] == 1
    assert figures['miserly_breaker_open{extractor="ask"}'] == 0
    assert figures['miserly_extractor_seconds_count{extractor="ask"}'] == 10
    assert figures['miserly_extractor_seconds_bucket{extractor="ask",le="+Inf"}'] == 10
    assert figures["miserly_cost_measured_seconds_total"] > 0
    assert figures["miserly_requests_in_flight"] == figures["miserly_calls_running"] == 0


def test_the_server_loads_nothing_that_trains():
    code = (
        "import sys, json, miserly.serve\n"
        "print(json.dumps([m for m in sys.modules if m.split('.')[0] in "
        "('sklearn', 'pandas', 'scipy') or m.startswith('miserly.')]))"
    )
    loaded = set(json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout))
    assert not {m for m in loaded if m.startswith(("sklearn", "scipy", "pandas"))}
    packages = {m.split(".")[1] for m in loaded if m.startswith("miserly.")}
    assert packages <= {"serve", "runtime", "plan", "costs", "kernels", "files", "schema", "_typing", "_display"}


def test_rows_one_by_one_are_no_question_for_plans_that_compare_documents():
    plan = PLANS[next(name for name, make in PLANS.items() if make().by_query)]()
    row = features_of(plan, rows(1, 1, 0.0, len(plan.costs.features)))[0]
    with TestClient(create_app(plan)) as client:
        for body in ({"row": row}, {"rows": [row]}):
            answer = client.post("/v1/predict", json=body)
            assert answer.status_code == 400
            assert "POST /v1/rank" in answer.json()["error"]["remedy"]
        assert client.post("/v1/rank", json={"documents": [row, row]}).status_code == 200


def test_without_extractors_no_calls_are_counted():
    plan = replace(FOREST, costs=replace(FOREST.costs, unit="ms"))
    with TestClient(create_app(plan)) as client:
        asked(client, row=features_of(plan, rows(1, 1))[0])
        text = client.get("/metrics").text
    assert "miserly_extractor_calls_total{" not in text
    assert "miserly_price_drift{" not in text
    assert "miserly_cost_measured_seconds_total 0.0" in text


@pytest.mark.parametrize(("unit", "factor"), [("ms", 1e3), ("s", 1.0), ("USD", None), ("units", None)])
def test_prices_drift_where_they_are_times(unit, factor):
    tally = Calls()
    tally.count(Call("ask", price=2.0, began=0.0, seconds=0.5, outcome="ok"))
    plan = replace(FOREST, costs=replace(FOREST.costs, unit=unit))
    app = create_app(plan, extractors_of(plan.costs))
    app.telemetry._calls["ask"] = tally
    found = [line for line in app.telemetry.page().decode().splitlines() if line.startswith("miserly_price_drift{")]
    assert found == ([] if factor is None else [f'miserly_price_drift{{extractor="ask"}} {0.25 * factor}'])

"""The Open Inference Protocol: tensors give the answers of the batch, and mistakes come back as its errors."""

import numpy as np
import pytest
from litestar.testing import TestClient

from miserly.plan import content_hash
from miserly.serve import create_app
from oracles.hand_built import PLANS, rows

SERVED = [name for name, make in PLANS.items() if not make().by_query]


def by_feature(plan, X):
    def numbers(column):
        return [None if np.isnan(v) else v for v in column.tolist()]

    return [
        {"name": f, "shape": [len(X)], "datatype": "FP64", "data": numbers(X[:, i])}
        for i, f in enumerate(plan.costs.features)
    ]


@pytest.mark.parametrize("name", SERVED)
@pytest.mark.parametrize("is_matrix", [False, True])
def test_tensors_give_the_answers_of_the_batch(name, is_matrix):
    plan = PLANS[name]()
    X = rows(9, 4, 0.0, len(plan.costs.features))
    matrix = [{"name": "X", "shape": list(X.shape), "datatype": "FP64", "data": X.tolist()}]
    with TestClient(create_app(plan, model_name="m")) as client:
        body = {"id": "7", "inputs": matrix if is_matrix else by_feature(plan, X)}
        response = client.post("/v2/models/m/infer", json=body)
        assert response.status_code == 200, response.text
        shown = client.get("/v2/models/m").json()
        assert client.get("/v2/health/live").status_code == client.get("/v2/health/ready").status_code == 200
        assert client.get("/v2/models/m/ready").json()["ready"] is True
        assert client.get("/v2/models/other").status_code == 404
    answer = response.json()
    outputs = {t["name"]: np.array(t["data"]).reshape(t["shape"]) for t in answer["outputs"]}
    assert (answer["model_name"], answer["model_version"], answer["id"]) == ("m", content_hash(plan), "7")
    assert shown["versions"] == [content_hash(plan)]
    assert {t["name"] for t in shown["outputs"]} == set(outputs)
    assert outputs["prediction"].tolist() == plan.predict(X).tolist()
    assert outputs["cost"].tolist() == plan.predict_cost(X).tolist()
    if plan.classes is not None:
        assert outputs["probabilities"].tolist() == plan.predict_proba(X).tolist()


def test_budgets_missing_values_and_mistakes():
    plan = PLANS["forest"]()
    X = rows(5, 4, 0.4, len(plan.costs.features))
    good = by_feature(plan, X)
    with TestClient(create_app(plan)) as client:
        body = {"inputs": good, "parameters": {"budget": 1.0}}
        answer = client.post("/v2/models/model/infer", json=body).json()
        costs = next(t["data"] for t in answer["outputs"] if t["name"] == "cost")
        assert costs == plan.predict_cost(X, budget=1.0).tolist()
        uneven = [{**good[0], "shape": [4], "data": good[0]["data"][:4]}, *good[1:]]
        for wrong in (
            {},
            {"inputs": []},
            {"inputs": uneven},
            {"inputs": good[1:]},
            {"inputs": [{**good[0], "shape": [-5]}]},
            {"inputs": [{**good[0], "data": [[1.0], 2.0]}]},
            {"inputs": good, "parameters": {"budget": -1}},
        ):
            response = client.post("/v2/models/model/infer", json=wrong)
            assert response.status_code == 400, wrong
            assert isinstance(response.json()["error"], str)
        headers = {"Inference-Header-Content-Length": "10"}
        assert client.post("/v2/models/model/infer", content=b"x", headers=headers).status_code == 400

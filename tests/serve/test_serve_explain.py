"""Contributions over HTTP: what a prediction's purchases moved adds up to its score."""

import numpy as np
import pytest
from litestar.testing import TestClient

from miserly.serve import create_app
from oracles.hand_built import PLANS, rows

FOREST = PLANS["forest"]().with_background(rows(200, seed=1))


def row(i):
    return dict(zip(FOREST.costs.features, rows(8, seed=0)[i].tolist()))


@pytest.mark.parametrize("query", ["?explain=1", "?explain=true"])
def test_an_explained_answer_adds_up(query):
    expected = FOREST.contributions(rows(8, seed=0))
    with TestClient(create_app(FOREST)) as client:
        sent = client.post(f"/v1/predict{query}", json={"row": row(0)}).json()
        plain = client.post("/v1/predict", json={"row": row(0)}).json()
        many = client.post(f"/v1/predict{query}", json={"rows": [row(0), row(1)]}).json()
        named = client.get("/openapi.json").json()
    found = sent.pop("contributions")
    assert "contributions" not in plain
    assert sent["value"] == plain["value"]
    total = np.array(found["base"]) + found["free"] + sum(np.array(p["moved"]) for p in found["purchases"])
    assert np.allclose(total, found["score"], rtol=1e-9, atol=1e-9)
    assert np.allclose(found["score"], expected.score[0])
    assert sum(p["paid"] for p in found["purchases"]) + found["evaluation"] == pytest.approx(sent["cost"])
    assert {p["acquisition"] for p in found["purchases"]} == set(sent["acquired"])
    assert many["answers"][0]["contributions"] == found
    assert any(p["name"] == "explain" for p in named["paths"]["/v1/predict"]["post"]["parameters"])


def test_a_plan_that_cannot_says_why():
    with TestClient(create_app(PLANS["forest"]())) as client:
        response = client.post("/v1/predict?explain=1", json={"row": row(0)})
    assert response.status_code == 400
    assert "with_background" in response.json()["error"]["what"]

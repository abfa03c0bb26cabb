"""The Open Inference Protocol: tensors give the answers of the batch, and mistakes come back as its errors."""

import json
import struct

import numpy as np
import pytest
from litestar.testing import TestClient

from miserly.plan import content_hash
from miserly.serve import create_app
from oracles.hand_built import PLANS, rows
from serve.test_serve_process import folder, serving  # noqa: F401

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
        squeezed = client.post("/v2/models/model/infer", content=b"x", headers={"Content-Encoding": "gzip"})
        assert squeezed.status_code == 415


def binary(inputs, arrays, **more):
    """A request with raw tensors, by the text of the extension: JSON, then little-endian values in row-major order."""
    raw = [array.tobytes() for array in arrays]
    described = [{**i, "parameters": {"binary_data_size": len(part)}} for i, part in zip(inputs, raw)]
    head = json.dumps({"inputs": described, **more}).encode()
    return {"content": head + b"".join(raw), "headers": {"Inference-Header-Content-Length": str(len(head))}}


def decoded(response):
    """The outputs of an answer with raw tensors."""
    size = int(response.headers["inference-header-content-length"])
    head, rest = json.loads(response.content[:size]), response.content[size:]
    found = {}
    for tensor in head["outputs"]:
        part, rest = np.split(np.frombuffer(rest, np.uint8), [tensor["parameters"]["binary_data_size"]])
        rest = rest.tobytes()
        if tensor["datatype"] == "BYTES":
            texts, at = [], 0
            while at < len(part):
                (n,) = struct.unpack("<I", part[at : at + 4].tobytes())
                texts.append(part[at + 4 : at + 4 + n].tobytes().decode())
                at += 4 + n
            found[tensor["name"]] = np.array(texts).reshape(tensor["shape"])
        else:
            kinds = {"FP64": "<f8", "INT64": "<i8", "UINT64": "<u8", "BOOL": "?"}
            found[tensor["name"]] = np.frombuffer(part, kinds[tensor["datatype"]]).reshape(tensor["shape"])
    assert rest == b""
    return found


@pytest.mark.parametrize("name", SERVED)
def test_binary_tensors_give_the_answers_of_the_batch(name):
    plan = PLANS[name]()
    X = rows(9, 4, 0.0, len(plan.costs.features))
    inputs = [{"name": "X", "shape": list(X.shape), "datatype": "FP64"}]
    with TestClient(create_app(plan, model_name="m")) as client:
        asked = binary(inputs, [X.astype("<f8")], parameters={"binary_data_output": True})
        outputs = decoded(client.post("/v2/models/m/infer", **asked))
        chosen = [{"name": "cost"}, {"name": "stopped", "parameters": {"binary_data": True}}]
        some = client.post("/v2/models/m/infer", **binary(inputs, [X.astype("<f4")], outputs=chosen))
        assert some.status_code == 400, "the bytes are those of another datatype"
        some = client.post("/v2/models/m/infer", **binary(inputs, [X.astype("<f8")], outputs=chosen))
    assert outputs["prediction"].tolist() == plan.predict(X).tolist()
    assert outputs["cost"].tolist() == plan.predict_cost(X).tolist()
    assert set(outputs["stopped"].tolist()) <= {"answered", "budget"}
    head = json.loads(some.content[: int(some.headers["inference-header-content-length"])])
    assert [t["name"] for t in head["outputs"]] == ["cost", "stopped"]
    assert head["outputs"][0]["data"] == plan.predict_cost(X).tolist()


def test_binary_tensors_by_feature_with_missing_values_and_mistakes():
    plan = PLANS["forest"]()
    X = rows(5, 7, 0.4, len(plan.costs.features)).astype("<f4")
    inputs = [{"name": f, "shape": [len(X)], "datatype": "FP32"} for f in plan.costs.features]
    columns = list(X.T)
    with TestClient(create_app(plan)) as client:

        def post(**asked):
            return client.post("/v2/models/model/infer", **asked)

        answer = post(**binary(inputs, columns)).json()
        assert answer["outputs"][1]["data"] == plan.predict_cost(X.astype(float)).tolist()
        good = binary(inputs, columns)
        assert post(content=good["content"] + b"x", headers=good["headers"]).status_code == 400
        assert post(content=good["content"][:-1], headers=good["headers"]).status_code == 400
        assert post(content=good["content"], headers={"Inference-Header-Content-Length": "-1"}).status_code == 400
        infinite = [np.full(len(X), np.inf, "<f4"), *columns[1:]]
        assert "infinite" in post(**binary(inputs, infinite)).json()["error"]
        odd = [{**inputs[0], "datatype": "BF16"}, *inputs[1:]]
        assert "BF16" in post(**binary(odd, columns)).json()["error"]
        twice = binary([{**inputs[0], "data": [1.0]}, *inputs[1:]], columns)
        assert post(**twice).status_code == 400
        unknown = post(**binary(inputs, columns, outputs=[{"name": "logit"}]))
        assert "no output 'logit'" in unknown.json()["error"]
        text = struct.pack("<I", 9) + b"short"
        words = [{**inputs[0], "datatype": "BYTES"}, *inputs[1:]]
        assert "longer" in post(**binary(words, [np.frombuffer(text, np.uint8), *columns[1:]])).json()["error"]


def test_the_client_of_triton(folder):  # noqa: F811
    """`tritonclient[http]` talks to a server: it sends and wants raw bytes unless it is asked not to."""
    triton = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed")
    with serving(folder) as (_, port, _):
        client = triton.InferenceServerClient(f"127.0.0.1:{port}")
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("a")
        assert client.get_model_metadata("a")["inputs"] == [{"name": "x", "datatype": "FP64", "shape": [-1]}]
        tensor = triton.InferInput("x", [3], "FP64")
        tensor.set_data_from_numpy(np.array([1.0, 2.0, 4.0]))
        answer = client.infer("a", [tensor], parameters={"budget": 5.0})
        assert answer.as_numpy("prediction").tolist() == [2.0, 4.0, 8.0]
        assert answer.as_numpy("stopped").tolist() == [b"answered"] * 3

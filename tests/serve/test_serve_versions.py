"""Versions, several rows at once, request ids, the access log, and options from files and the environment."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from litestar.testing import TestClient

from miserly.cli.main import cli
from miserly.plan import Menu, content_hash, load_menu, load_plan
from miserly.serve import create_app
from oracles.hand_built import PLANS, rows

FOREST = PLANS["forest"]()


def features_of(plan, X):
    return [{f: None if np.isnan(v) else v for f, v in zip(plan.costs.features, x.tolist())} for x in X]


@pytest.mark.parametrize("name", PLANS)
def test_a_version_depends_on_the_content_alone(name, tmp_path):
    plan = PLANS[name]()
    plan.save(tmp_path / "a.plan")
    assert content_hash(load_plan(tmp_path / "a.plan")) == content_hash(plan) == content_hash(PLANS[name]())
    assert content_hash(replace(plan, prior=plan.prior + 1e-9)) != content_hash(plan)


def test_versions_of_menus(tmp_path):
    menu = Menu([FOREST], [0.0, np.inf], [[0.1, 0.2]], [[0.0, 1.0]])
    menu.save(tmp_path / "a.menu")
    assert content_hash(load_menu(tmp_path / "a.menu")) == content_hash(menu)
    other = Menu([FOREST], [0.0, np.inf], [[0.1, 0.3]], [[0.0, 1.0]])
    assert len({content_hash(menu), content_hash(other), content_hash(FOREST)}) == 3


@pytest.mark.parametrize("budget", [None, 1.0])
def test_several_rows_are_answered_as_each_alone(budget):
    sent = features_of(FOREST, rows(70, 3, 0.2, len(FOREST.costs.features)))
    with TestClient(create_app(FOREST)) as client:
        alone = [client.post("/v1/predict", json={"row": row, "budget": budget}).json() for row in sent]
        together = client.post("/v1/predict", json={"rows": sent, "budget": budget}).json()
        assert client.post("/v1/predict", json={"rows": []}).json()["answers"] == []
        shown = client.get("/v1/plan").json()["version"]
        metrics = client.get("/metrics").text
    untimed = [{k: v for k, v in a.items() if k != "measured_ms"} for a in alone]
    assert [{k: v for k, v in a.items() if k != "measured_ms"} for a in together["answers"]] == untimed
    assert together["cost"] == pytest.approx(sum(a["cost"] for a in alone))
    assert {a["version"] for a in alone} == {together["version"]} == {shown} == {content_hash(FOREST)}
    counted = [line for line in metrics.splitlines() if line.startswith("miserly_version_answers_total")]
    assert all(shown in line for line in counted)
    assert sum(float(line.split()[-1]) for line in counted) == 140


def test_several_rows_are_refused_with_the_place():
    good = features_of(FOREST, rows(2, 1))
    with TestClient(create_app(FOREST, max_documents=2)) as client:
        for body, where in (
            ({"rows": [good[0], {"nobody": 1.0}]}, "rows[1].nobody"),
            ({"rows": [*good, good[0]]}, "rows"),
            ({"rows": good, "row": good[0]}, "rows"),
        ):
            response = client.post("/v1/predict", json=body)
            assert response.status_code == 400
            assert response.json()["error"]["where"] == where


def test_request_ids_come_back_and_stand_in_the_access_log(tmp_path):
    path = tmp_path / "access.jsonl"
    row = features_of(FOREST, rows(1, 1))[0]
    with TestClient(create_app(FOREST, access_log=path)) as client:
        first = client.post("/v1/predict", json={"row": row}, headers={"X-Request-Id": "mine-1"})
        second = client.post("/v1/predict", content=b"no json", headers={"X-Request-Id": "x" * 200})
        third = client.post("/v1/predict", json={"rows": [row, row]})
    assert first.headers["x-request-id"] == "mine-1"
    assert len(second.headers["x-request-id"]) == 32
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["request_id"] for line in lines] == [r.headers["x-request-id"] for r in (first, second, third)]
    assert [line["status"] for line in lines] == [200, 400, 200]
    assert lines[0]["version"] == content_hash(FOREST)
    assert lines[0]["cost"] == first.json()["cost"]
    assert lines[0]["stopped"] == "answered"
    assert lines[2]["rows"] == 2
    assert all(line["ms"] >= 0 and line["route"] == "/v1/predict" for line in lines)


def test_options_come_from_the_line_the_environment_and_a_file(tmp_path, monkeypatch):
    FOREST.save(tmp_path / "a.plan")
    (tmp_path / "serve.toml").write_text("port = 1\nbudget = 2.5\nworkers = 3\nallow-host = ['a.org', 'b.org']\n")
    taken = {}
    monkeypatch.setattr("miserly.serve.serve", lambda *_, **options: taken.update(options))
    line = ["serve", str(tmp_path / "a.plan"), "--config", str(tmp_path / "serve.toml"), "--port", "3"]
    environment = {"MISERLY_SERVE_PORT": "2", "MISERLY_SERVE_WORKERS": "4", "MISERLY_SERVE_ACCESS_LOG": "-"}
    result = CliRunner().invoke(cli, line, env=environment)
    assert result.exit_code == 0, result.output
    assert (taken["port"], taken["workers"], taken["budget"], taken["access_log"]) == (3, 4, 2.5, "-")
    assert tuple(taken["allow_host"]) == ("a.org", "b.org")
    (tmp_path / "serve.toml").write_text("prot = 1\n")
    assert "unknown options: prot" in CliRunner().invoke(cli, line).output

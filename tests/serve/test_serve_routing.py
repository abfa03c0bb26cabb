"""Challengers answer their share of keys, always the same keys; shadows are compared and never sent."""

import re
from collections import Counter
from dataclasses import replace

import pytest
from litestar.testing import TestClient

from miserly.plan import content_hash
from miserly.serve import create_app
from serve.test_serve_process import ask, folder, look, plan_of, serving  # noqa: F401

CHAMPION, CHALLENGER = plan_of(2.0), plan_of(3.0)


def asked(client, key, x=1.0):
    response = client.post("/v1/predict", json={"row": {"x": x}}, headers={"Miserly-Key": key})
    assert response.status_code == 200, response.text
    return response.json()


def test_keys_are_routed_by_share_and_stay():
    with TestClient(create_app(CHAMPION, challengers=[(CHALLENGER, 20.0)])) as client:
        answers = {f"k{i}": asked(client, f"k{i}") for i in range(500)}
        again = {key: asked(client, key, x=2.0)["version"] for key in answers}
        text = client.get("/metrics").text
    counted = Counter(answer["version"] for answer in answers.values())
    assert 60 <= counted[content_hash(CHALLENGER)] <= 140, "a fifth of 500, by a fixed hash"
    assert again == {key: answer["version"] for key, answer in answers.items()}
    values = {content_hash(CHAMPION): 2.0, content_hash(CHALLENGER): 3.0}
    assert all(answer["value"] == values[answer["version"]] for answer in answers.values())
    for version, n in counted.items():
        assert f'miserly_version_answers_total{{stopped="answered",version="{version}"}} {2.0 * n}' in text


def test_shadows_are_compared_and_not_sent():
    same = replace(CHAMPION, notes={"trained": "again"})
    with TestClient(create_app(CHAMPION, shadows=[CHALLENGER, same])) as client:
        assert {asked(client, "k", x=x)["value"] for x in (0.0, 1.0, 2.0)} == {0.0, 2.0, 4.0}
        text = client.get("/metrics").text
    lines = [line for line in text.splitlines() if line.startswith("miserly_shadow_answers_total")]
    got = {
        (re.search('shadow="(.*?)"', s)[1], re.search('compared="(.*?)"', s)[1]): float(s.split()[-1]) for s in lines
    }
    assert got == {
        (content_hash(CHALLENGER), "same"): 1.0,  # 0 is 0 by any weight
        (content_hash(CHALLENGER), "other"): 2.0,
        (content_hash(same), "same"): 3.0,
    }


def test_what_clients_could_not_use_is_refused():
    with pytest.raises(ValueError, match="features that clients do not send"):
        create_app(CHAMPION, shadows=[plan_of(1.0, "other")])
    with pytest.raises(ValueError, match="at most 100 percent"):
        create_app(CHAMPION, challengers=[(CHALLENGER, 60.0), (CHALLENGER, 60.0)])


def test_routes_of_the_command(folder):  # noqa: F811
    CHALLENGER.save(folder / "next.plan")
    args = ("--route", "next.plan:100", "--shadow", "next.plan")
    with serving(folder, *args) as (_, port, _):
        assert ask(port, x=1.0) == 3.0
        assert "miserly_shadow_answers_total" in look(port, "/metrics")

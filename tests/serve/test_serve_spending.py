"""Spending caps of a served plan: in answers, metrics and /v1/plan, shared by workers, kept over a restart."""

import re
import sys

import pytest
from click.testing import CliRunner
from litestar.testing import TestClient

from miserly.cli.main import cli
from miserly.runtime import SpendCap, VirtualClock
from miserly.serve import create_app
from runtime.test_spending import FOREST, ROW, free, paid_x
from serve.test_serve_answers import asked
from serve.test_serve_process import ask as ask_value
from serve.test_serve_process import look, serving
from serve.test_serve_workers import until

EXTRACTORS = """
import miserly as ms

@ms.extractor(yields="free")
def free(row):
    return row["free"]

@ms.extractor("x", yields="x", usage=lambda reply: reply["paid"])
def x(row):
    return {"x": row["x"], "paid": 0.5}

kit = [free, x]
"""


def figures(client):
    text = client.get("/metrics").text
    return {name: float(value) for name, value in re.findall(r"^(miserly_\S+) (\S+)$", text, re.MULTILINE)}


def test_answers_say_what_was_paid_and_why_they_stopped():
    now = [0.0]
    cap = SpendCap(["3USD/day", "2USD/minute"], now=lambda: now[0])
    with TestClient(create_app(FOREST, [free, paid_x(usage=lambda reply: 0.75)], spend_cap=cap)) as client:
        first = asked(client, row=ROW)
        assert (first["cost"], first["paid"], first["stopped"]) == (1.0, 0.75, "answered")
        stopped = [asked(client, row=ROW)["stopped"] for _ in range(3)]
        assert stopped == ["answered", "spend-cap:2USD/minute", "spend-cap:2USD/minute"]
        now[0] = 100.0
        many = asked(client, rows=[ROW] * 4)
        assert many["stopped"] == {"answered": 1, "spend-cap:3USD/day": 3}
        found = figures(client)
        assert found['miserly_spend_limit{limit="3USD/day"}'] == 3.0
        assert found['miserly_spend_spent{limit="3USD/day"}'] == 2.25
        assert found["miserly_cost_paid_total"] == 2.25
        assert found["miserly_cost_priced_total"] == 3.0
        assert found["miserly_spend_store_up"] == 1.0
        assert found['miserly_spend_refused_total{extractor="x"}'] > 0
        assert found['miserly_answers_total{stopped="spend-cap:2USD/minute"}'] == 2
        shown = client.get("/v1/plan").json()["spending"]
        assert [(s["limit"], s["spent"], s["left"]) for s in shown] == [
            ("3USD/day", 2.25, 0.75),
            ("2USD/minute", 0.75, 1.25),
        ]


def test_without_a_cap_nothing_is_added():
    with TestClient(create_app(FOREST, [free, paid_x()])) as client:
        assert "paid" not in asked(client, row=ROW)
        assert client.get("/v1/plan").json()["spending"] == []
        assert not any("spend" in name for name in figures(client))


def test_shadows_and_challengers_spend_from_the_same_cap():
    clock = VirtualClock()
    cap = SpendCap("4USD/day", now=clock.wall)
    app = create_app(FOREST, [free, paid_x()], spend_cap=cap, challengers=[(FOREST, 50.0)])
    with TestClient(app) as client:
        answers = [asked(client, row=ROW, headers={"Miserly-Key": str(k)}) for k in range(10)]
    assert sum(a["cost"] for a in answers) == 4.0
    clock.close()


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_workers_share_a_file_that_survives_a_restart(tmp_path, workers):
    FOREST.save(tmp_path / "a.plan")
    (tmp_path / "own.py").write_text(EXTRACTORS)
    args = ("--extractors", "own.py:kit", "--workers", workers)
    with serving(tmp_path, *args, "--spend-cap", "3USD/day", "--spend-cap", "100calls/min") as (process, port, _):
        values = [ask_value(port, **ROW) for _ in range(8)]
        text = until(lambda: (t := look(port, "/metrics")) and "spent" in t and t)
        assert 'miserly_spend_spent{limit="3USD/day"} 2.5' in text
        process.terminate()
        assert process.wait(60) == 0
    assert len(set(values)) == 2
    assert values.count(values[0]) == 5, "half a dollar each, until less than the price is left"
    with serving(tmp_path, *args, "--spend-cap", "3USD/day") as (_, port, _):
        assert ask_value(port, **ROW) == values[-1], "the money of this day is spent"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--spend-cap", "3EUR/day"], "is in 'EUR'"),
        (["--spend-cap", "three a day"], "A spending limit is an amount"),
        (["--spend-cap", "3USD/day", "--spend-store", "none/spent"], "Spending cannot be counted in"),
    ],
)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_wrong_caps_end_with_a_word(tmp_path, monkeypatch, args, words, workers):
    monkeypatch.chdir(tmp_path)
    FOREST.save("a.plan")
    result = CliRunner().invoke(cli, ["serve", "a.plan", "--port", "0", "--workers", workers, *args])
    assert result.exit_code != 0
    assert words in f"{result.output} {result.exception}"

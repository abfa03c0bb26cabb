"""`miserly demo`: what it writes and prints, on small sizes."""

import pytest
from click.testing import CliRunner

from miserly.cli import demo
from miserly.cli.main import cli
from miserly.plan import load_menu, load_plan


@pytest.mark.parametrize(("words", "unit"), [(["demo"], "CAD"), (["demo", "search"], "tree evaluations")])
def test_the_demo_ends_with_a_plan_a_page_and_the_next_commands(words, unit, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "PATIENTS", (300, 200, 200))
    monkeypatch.setattr(demo, "SECONDS", 2)
    monkeypatch.setattr(demo, "QUERIES", (20, 10, 10))
    done = CliRunner().invoke(cli, [*words, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "On test data the chosen model has" in done.output
    assert "miserly serve" in done.output
    assert load_plan(tmp_path / "demo.plan").costs.unit == unit
    assert load_menu(tmp_path / "demo.menu").plans
    assert (tmp_path / "report.html").stat().st_size > 20_000
    assert (tmp_path / "protocol.md").exists() == ("search" not in words)
    assert "generated" in done.output.splitlines()[0]

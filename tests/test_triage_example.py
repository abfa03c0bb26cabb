"""The triage example: what its prices say, and that it runs."""

import re

import numpy as np
import pytest

from examples.triage import __main__ as triage
from examples.triage.patients import one_by_one, patients
from miserly.datasets import triage_like
from miserly.plan import load_plan


@pytest.fixture(autouse=True)
def _nothing_at_hand(monkeypatch):
    monkeypatch.delenv("MISERLY_DATA", raising=False)


def test_a_draw_is_paid_once_and_an_index_is_free_for_who_has_its_parts():
    costs = triage_like(1, 0).costs
    assert costs.price(["TSH", "T3"]) == pytest.approx(2.10 + 20.68 + 9.31)
    assert costs.price(["TT4", "T4U", "FTI"]) == costs.price(["TT4", "T4U"])
    alone = one_by_one(costs)
    assert alone.price(["TSH", "T3"]) == pytest.approx(2 * 2.10 + 20.68 + 9.31)


def test_pregnancy_moves_the_parts_of_the_index_but_not_the_index():
    X, y, costs, _ = patients(4000)
    column = costs.features.index
    well = y == "well"
    pregnant = X[:, column("pregnant")] > 0
    rise = {
        f: np.median(X[well & pregnant, column(f)]) / np.median(X[well & ~pregnant, column(f)]) for f in ("TT4", "FTI")
    }
    assert rise["TT4"] > 1.3
    assert 0.9 < rise["FTI"] < 1.1


def test_it_runs_and_its_lines_are_charged_at_the_true_prices(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(triage, "N_ROUNDS", 10)
    triage.main(["--patients", "600", "--out", str(tmp_path / "triage.plan")])
    told = capsys.readouterr().out
    lines = re.findall(r"^  ([a-z][^\d\n]+?) +([\d.]+)% +([\d.]+)$", told, re.MULTILINE)
    paid = {name: float(cost) for name, _, cost in lines}
    assert len(paid) == 5
    assert max(paid.values()) <= triage_like(1, 0).costs.price(triage_like(1, 0).costs.features)
    assert paid["and patients differ (by path)"] < paid["blind to cost"]
    assert load_plan(tmp_path / "triage.plan").charge == "path"

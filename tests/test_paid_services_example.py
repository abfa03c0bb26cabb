"""The example of paid services: the cap holds, the certificate is shown; made-up data, and FrugalML's if there."""

import os
import re
from pathlib import Path

import pytest

from examples.paid_services import __main__ as paid

DATA = Path(os.environ.get("MISERLY_DATA", Path(__file__).parents[2] / "shared/data"))


def run(capsys, *arguments):
    paid.main(arguments)
    text = capsys.readouterr().out
    cost = float(re.search(r"new texts: agreement \S+, (\S+) USD", text)[1])
    best = float(re.search(r"best service costs (\S+) USD", text)[1])
    amount, spent = map(float, re.search(r"a cap of (\S+) USD a day: spent (\S+),", text).groups())
    assert spent <= amount
    assert "'spend-cap'" in text
    return text, cost / best


def test_it_runs_on_made_up_services(capsys, monkeypatch):
    monkeypatch.delenv("MISERLY_DATA", raising=False)
    monkeypatch.setattr(paid, "SECONDS", 5.0)
    text, _ = run(capsys, "--rows", "1500", "--target", "0.8")
    assert "made up" in text
    assert "Certified: accuracy of at least 0.8" in text


@pytest.mark.slow
def test_it_saves_on_reviews(capsys, monkeypatch):
    if not (DATA / "frugalml/yelp.csv.gz").exists():
        pytest.skip("frugalml is not at hand")
    monkeypatch.setenv("MISERLY_DATA", str(DATA))
    text, share = run(capsys, "--rows", "6000", "--target", "0.95")
    assert "FrugalML" in text
    assert share < 0.9
    assert float(re.search(r"new texts: agreement (\S+),", text)[1]) > 0.94

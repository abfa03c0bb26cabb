"""The command line with prices by row and in currencies, with caps, and with guarantees: what it does and refuses."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from command import miserly

import miserly as ms

PRICES = """
[exchange]
usd = 1
minutes = 2
[acquisitions]
ask = { usd = 1, minutes = 1 }
scan = { usd = 40, minutes = 20 }
[features]
age = ["ask"]
scan = ["scan"]
"""
WRONG = {
    "unknown": (PRICES.replace("minutes = 20", "eur = 20"), "'eur', which has no exchange rate"),
    "no-rate": (PRICES.replace("minutes = 2\n", "", 1), "'minutes', which has no exchange rate"),
    "rounds": (PRICES.replace("minutes = 20", "rounds = 2"), "every order counts one by itself"),
    "bare": (PRICES.replace("{ usd = 40, minutes = 20 }", "40"), "has no currency"),
    "later": (
        "[acquisitions]\nask = 1\nscan = { base = 1, per = { scan = 2 } }\n"
        '[features]\nage = ["ask"]\nscan = ["scan"]\n',
        "a circle",
    ),
    "unneeded": (
        '[acquisitions]\nask = 1\nscan = { base = 1, per = { age = 2 } }\n[features]\nage = ["ask"]\nscan = ["scan"]\n',
        "Add 'ask' to the needs of 'scan'",
    ),
    "below": (
        "[acquisitions]\nask = 1\nscan = { base = 1, per = { age = 2 } }\n"
        '[features]\nage = ["ask"]\nscan = ["ask", "scan"]\n',
        r"Row \d+ .* would pay -.* for 'scan' .* Correct the price or the value",
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("prices")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    frame = pd.DataFrame(X, columns=["age", "scan"]).assign(ill=(X.sum(axis=1) > 0).astype(int))
    frame[:200].to_csv(path / "train.csv", index=False)
    frame[200:].to_csv(path / "new.csv", index=False)
    frame[200:205].to_csv(path / "few.csv", index=False)
    (path / "costs.toml").write_text(PRICES)
    for name, (text, _) in WRONG.items():
        (path / f"{name}.toml").write_text(text)
    costs = ms.CostTable.from_file(path / "costs.toml")
    model = ms.GreedyMiserClassifier(costs, n_estimators=10, tradeoff=1e-5, random_state=0)
    model.fit(frame[:200][["age", "scan"]], frame["ill"][:200]).plan_.save(path / "a.plan")
    return path


def test_caps_by_currency(folder):
    def costs(*args):
        lines = json.loads(miserly("predict", "a.plan", "new.csv", *args, "--json", cwd=folder))
        return [line["cost"] for line in lines]

    assert max(costs()) == 40 + 40 + 1 + 2
    assert max(costs("--budget", "usd=900,minutes=5")) == 3
    assert max(costs("--budget", "3")) == 3
    assert max(costs("--budget", "rounds=0")) == 0
    lines = miserly("predict", "a.plan", "new.csv", "--budget", "minutes=5", cwd=folder).splitlines()
    assert {line.split(",")[1] for line in lines[1:]} == {"3.0"}


@pytest.mark.parametrize(
    ("budget", "code", "says"),
    [
        ("eur=3", 1, "unknown currency 'eur'"),
        ("usd=much", 2, "usd=900"),
        ("usd", 2, "usd=900"),
        ("nan", 1, "not a number"),
    ],
)
def test_caps_that_are_none(folder, budget, code, says):
    assert says in miserly("predict", "a.plan", "new.csv", "--budget", budget, "--json", cwd=folder, code=code)


@pytest.mark.parametrize("name", WRONG)
def test_prices_that_are_none(folder, name):
    args = ("--label", "ill", "--method", "greedy-miser", "--n-estimators", 2, "-o", "b.plan")
    said = miserly("fit", "train.csv", "--costs", f"{name}.toml", *args, cwd=folder, code=1)
    assert re.search(WRONG[name][1], said), said
    assert "Traceback" not in said


def test_certificates(folder):
    args = ("--label", "ill", "--target", 0.8, "-o", "safe.plan")
    printed = miserly("certify", "a.plan", "new.csv", *args, cwd=folder)
    assert "Certified: accuracy of at least 0.8" in printed
    assert ms.load_plan(folder / "safe.plan").certificate.target == 0.8
    assert "Certified: accuracy" in miserly("explain", "safe.plan", cwd=folder)
    recall = ("--of", "recall", "--positive", "1", "--delta", 0.1, "--json")
    [found] = json.loads(miserly("certify", "a.plan", "new.csv", *args, *recall, cwd=folder))
    assert (found["of"], found["delta"]) == ("recall", 0.1)
    assert found["bound"] >= 0.8


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("few.csv", "--target", "0.75"), 1, "calibration rows would be needed"),
        (("few.csv", "--target", "0.95"), 1, "no number of rows would do"),
        (("new.csv", "--target", "1"), 2, "0<x<1"),
        (("new.csv", "--of", "recall", "--positive", "maybe"), 1, "none of the classes"),
        (("new.csv", "--of", "luck"), 2, "recall"),
    ],
)
def test_targets_that_cannot_be_certified(folder, args, code, says):
    assert says in miserly("certify", "a.plan", *args, "--label", "ill", "-o", "no.plan", cwd=folder, code=code)
    assert not (folder / "no.plan").exists()

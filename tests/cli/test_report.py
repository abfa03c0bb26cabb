"""The page from the command line: a sweep leaves a run, a run becomes a page; the likeliest mistakes."""

import json
import re
from functools import partial

import command
import pytest

from miserly.frontiers import figure

TRAIN = ("--costs", "costs.toml", "--label", "label", "--method", "greedy-miser")


@pytest.fixture(scope="module")
def miserly(tmp_path_factory):
    """The command in a folder of its own."""
    folder = tmp_path_factory.mktemp("user")
    run = partial(command.miserly, cwd=folder)
    run.folder = folder
    run("data", "four_quadrants", "-n", 300)
    train = (
        "--costs",
        "costs.toml",
        "--label",
        "label",
        "--method",
        "greedy-miser",
        "--n-estimators",
        10,
        "--grid",
        "1e-3:10:4",
    )
    run("frontier", "train.csv", "validation.csv", *train, "--budget", 25, "--out", "learner")
    how = ("--charge", "path", "--learning-rate", "0.5")
    run("frontier", "train.csv", "validation.csv", *train, *how, "--out", "path")
    return run


def main_data(page):
    return json.loads(re.search(r'id="main-data">(.*?)</script>', page.read_text())[1])


def test_a_sweep_becomes_a_page(miserly):
    run = json.loads((miserly.folder / "learner/run.json").read_text())
    assert len(run["points"]) == 4
    assert run["chosen"] is not None
    assert "page.html" in miserly("report", "learner", "-o", "page.html")
    shown = main_data(miserly.folder / "page.html")["methods"][0]["points"]
    measured = [p["validation"] for p in run["points"]]
    assert [p["quality"] for p in shown] == [m["quality"] for m in measured]
    assert [p["cost"] for p in shown] == [m["cost"]["mean"] for m in measured]
    table = (miserly.folder / "learner/frontier.txt").read_text()
    assert all(figure(m["quality"]) in table for m in measured)


def test_two_sweeps_on_one_page(miserly):
    miserly("report", "learner", "path", "--title", "Both")
    shown = main_data(miserly.folder / "report.html")
    assert shown["title"] == "Both"
    assert [len(m["points"]) for m in shown["methods"]] == [4, 4]
    assert [m["name"] for m in shown["methods"]] == ["learner", "path"]


def test_likely_mistakes(miserly):
    assert "no run.json" in miserly("report", ".", code=1)
    assert "does not exist" in miserly("report", "nothing", code=2)
    assert "RUN" in miserly("report", code=2)
    miserly("data", "four_quadrants", "-n", 200, "--out", "other")
    train = (
        "--costs",
        "costs.toml",
        "--label",
        "label",
        "--method",
        "greedy-miser",
        "--n-estimators",
        5,
        "--grid",
        "1:10:2",
    )
    miserly("frontier", "train.csv", "other/validation.csv", *train, "--out", "third")
    assert "other rows" in miserly("report", "learner", "third", code=1)

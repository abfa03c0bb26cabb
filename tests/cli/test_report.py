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
    assert len(run["points"]) == 5, "four of the sweep and the free constant"
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
    assert [len(m["points"]) for m in shown["methods"]] == [5, 5]
    assert [m["name"] for m in shown["methods"]] == ["learner", "path"]


def test_groups_of_a_feature_and_of_a_column_of_the_table(miserly):
    miserly("report", "learner", "-o", "page.html")
    feature = json.loads(re.search(r'id="stop-0">(.*?)</script>', (miserly.folder / "page.html").read_text())[1])
    assert feature["groups"] == [], "none unless named"
    lines = (miserly.folder / "validation.csv").read_text().splitlines()
    head, sites = lines[0].split(","), ["Bern" if i % 3 else "Basel" for i in range(len(lines) - 1)]
    table = [lines[0] + ",site", *(f"{line},{site}" for line, site in zip(lines[1:], sites))]
    (miserly.folder / "sites.csv").write_text("\n".join(table) + "\n")
    miserly("report", "learner", "-o", "sites.html", "--rows", "sites.csv", "--group-by", "site")
    found = json.loads(re.search(r'id="stop-0">(.*?)</script>', (miserly.folder / "sites.html").read_text())[1])
    assert {g["group"]: g["rows"] for g in found["groups"]} == {
        "Basel": sites.count("Basel"),
        "Bern": sites.count("Bern"),
    }
    used = main_data(miserly.folder / "page.html")["features"][0][0]
    miserly("report", "learner", "-o", "own.html", "--group-by", used)
    assert used in head
    assert "no feature 'sight'" in miserly("report", "learner", "--group-by", "sight", code=1)
    assert "no column 'sight'" in miserly("report", "learner", "--rows", "sites.csv", "--group-by", "sight", code=1)
    assert "--group-by" in miserly("report", "learner", "--rows", "sites.csv", code=2)


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

"""The benchmark of classifier trees and cascades: it runs, and its claims are read from the right points."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.family import __main__ as command
from benchmarks.family import claims, data, methods
from benchmarks.frontier_vs_peers.data import Split
from benchmarks.frontier_vs_peers.methods import Settings
from benchmarks.frontier_vs_peers.scoring import ALL_PEERS, Result
from miserly.costs import CostTable


def a_result(method, split, points):
    return Result("flat", split, method, True, 0.0, 0.0, np.zeros(1), (0.0, 0.0), 0.0, tuple(points))


def test_points_are_chosen_on_validation():
    results = [
        a_result("one", 0, [(0.0, 0.5, 0.0, 0.9), (3.0, 0.8, 9.0, 0.1)]),
        a_result("two", 0, [(2.0, 0.7, 2.5, 0.6)]),
        a_result("two", 1, [(1.0, 1.0, 1.0, 1.0)]),
    ]
    front = claims._front(results, 0, {"one", "two"})
    assert claims._within(front, 2.0).test_quality == 0.6
    assert claims._best(front).test_cost == 9.0
    assert claims._cheapest(front, 0.6).test_cost == 2.5
    assert claims._cheapest(front, 0.9) is None


def test_irrelevant_documents_count_ten_times(monkeypatch):
    monkeypatch.setattr(data, "QUERIES", {"train": 3, "validation": 3, "test": 3})
    problem = data.SETS["yahoo"]()
    part = problem.split(0).validation
    assert set(np.unique(part.copies[part.y == 0])) == {10}
    assert set(np.unique(part.copies[part.y == 1])) <= {1}
    score = np.random.default_rng(0).random(len(part.y))
    repeated = (np.repeat(of, part.copies) for of in (part.y, score))
    expected = problem.metric(*repeated, qid=np.repeat(part.qid, part.copies))
    assert problem.metric(part.y, score, qid=part.qid, multiplicity=part.copies) == pytest.approx(expected)


def few_columns(problem, n=8):
    """The same problem with its first columns only."""
    prices = dict(zip(problem.flat.features[:n], problem.flat.price_list[:n]))

    def split(i):
        return Split(*(part._replace(X=part.X[:, :n]) for part in problem.split(i)))

    return replace(problem, flat=CostTable.per_feature(prices, evaluation=1.0), split=split)


@pytest.mark.slow
def test_a_tiny_run(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(data, "QUERIES", {"train": 12, "validation": 8, "test": 8})
    tiny = few_columns(data.SETS["yahoo"]())
    monkeypatch.setitem(data.SETS, "yahoo", lambda: tiny)
    monkeypatch.setattr(methods, "settings_of", lambda problem: Settings(5, True, n_estimators=4, n_points=3))
    monkeypatch.setattr(command, "settings_of", methods.settings_of)
    command.main(["--sets", "yahoo", "--splits", "1", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "Cronus optimised − Cronus initialised" in printed
    with (tmp_path / "yahoo_areas.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = [method.name for method in methods.methods_of(tiny, None, {})]
    expected = [*names, *(command.POOLS - {ALL_PEERS})]
    assert sorted(row["method"] for row in rows) == sorted(expected)
    assert (tmp_path / "yahoo_flat.png").stat().st_size > 10_000

"""The sweep, its front, choosing, and what an interruption leaves."""

import math
from dataclasses import replace

import numpy as np
import pytest

import miserly as ms
from miserly.baselines import StagewiseRegressor
from miserly.datasets import four_quadrants, yahoo_like
from miserly.frontiers import Frontier, Point
from miserly.frontiers._between import between
from miserly.frontiers._front import Measured
from miserly.metrics import get_metric


def points(*pairs, metric="accuracy"):
    made = []
    for i, (cost, quality) in enumerate(pairs):
        measured = Measured.of(quality, np.full(4, float(cost)))
        made.append(Point({"tradeoff": float(i)}, f"model {i}", measured, measured, 0.0))
    return Frontier(tuple(made), get_metric(metric), "units")


def test_the_front_keeps_what_nothing_beats():
    front = points((10, 0.9), (5, 0.8), (7, 0.7), (20, 0.9), (1, 0.5))
    assert [p.model for p in front.pareto()] == ["model 4", "model 1", "model 0"]
    lower_is_better = points((10, 0.9), (5, 0.8), (7, 0.7), metric="mse")
    assert [p.model for p in lower_is_better.pareto()] == ["model 1", "model 2"]


def test_choosing_by_budget_and_by_quality():
    front = points((10, 0.9), (5, 0.8), (1, 0.5))
    assert front.choose(budget=9) == "model 1"
    assert front.choose(budget=10) == "model 0"
    assert front.choose(quality=0.8) == "model 1"
    assert points((10, 0.1), (5, 0.2), metric="mse").choose(quality=0.2) == "model 1"
    assert front.choose(budget=0.5) == "model 2", "where nothing fits, the cheapest"
    with pytest.raises(ValueError, match=r"best has 0\.9"):
        front.choose(quality=0.99)
    with pytest.raises(ValueError, match="either a budget or a quality"):
        front.choose()
    with pytest.raises(ValueError, match="statistic is one of"):
        front.choose(budget=1, statistic="p33")


def test_two_frontiers_as_one():
    one, other = (
        replace(points(*pairs), name=name) for name, pairs in (("a", [(10, 0.9), (1, 0.5)]), ("b", [(5, 0.8)]))
    )
    both = one | other
    assert [(p.params["model"], p.model) for p in both.pareto()] == [
        ("a", "model 1"),
        ("b", "model 0"),
        ("a", "model 0"),
    ]
    assert both.choose(budget=6) == "model 0"
    assert both.name == "a | b"
    assert [row["model"] for row in (both | replace(one, name="c")).records()] == ["a", "a", "b", "c", "c"]
    assert not (one | replace(other, complete=False)).complete
    with pytest.raises(ValueError, match="the other mse and units"):
        one | points((5, 0.8), metric="mse")
    with pytest.raises(TypeError):
        one | 3


def test_the_area_is_the_mean_quality_over_log_budget():
    front = points((10, 0.9), (1, 0.5))
    assert front.area(1, 100) == pytest.approx((0.5 + 0.9) / 2)
    assert front.area(10, 100) == pytest.approx(0.9)
    assert front.area() == pytest.approx(0.5)
    assert front.area(1, 100, on="test") == front.area(1, 100)
    assert points((3, 0.5)).area() == 0.5
    assert points((0, 0.25)).area() == 0.25
    with pytest.raises(ValueError, match="from a budget above 0 to a larger one, got 5 to 3"):
        points((1, 0.5), (3, 0.6)).area(5, 3)


@pytest.fixture(scope="module")
def swept():
    train, validation, test = (yahoo_like(40, seed) for seed in range(3))
    model = ms.GreedyMiserRegressor(train.costs, n_estimators=20)
    data = {name: (d.X, d.y, d.qid) for name, d in (("train", train), ("validation", validation), ("test", test))}
    grid = {"tradeoff": [0, 1e-4, 1e-3, 1e-2]}
    return data, ms.frontier(model, **data, grid=grid, metric="ndcg@5")


def test_a_sweep_measures_each_point_on_validation_and_test(swept):
    data, front = swept
    assert len(front.points) == 4
    assert front.complete
    for point in front.points:
        X, y, qid = data["validation"]
        assert point.validation.cost["mean"] == point.model.predict_cost(X).mean()
        assert point.validation.quality == get_metric("ndcg@5")(y, point.model.predict(X), qid=qid)
        assert point.test.cost["mean"] == point.model.predict_cost(data["test"][0]).mean()
    costs = [p.validation.cost["mean"] for p in front.points]
    assert costs == sorted(costs, reverse=True)
    assert front.unit == "tree evaluations"


def test_the_table_and_the_picture(swept, tmp_path):
    _, front = swept
    assert front.table().count("\n") == 5  # the head, the constant, four models
    assert len(front.frame()) == 5  # the constant, four models
    front.plot(tmp_path / "front.png", chosen=front.points[1], on="test")
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")


def test_equal_to_fitting_by_hand(swept):
    data, front = swept
    again = ms.GreedyMiserRegressor(front.points[1].model.costs, n_estimators=20, tradeoff=1e-4)
    assert again.fit(*data["train"][:2]).plan_ == front.points[1].model.plan_


def test_an_interruption_keeps_what_is_done():
    data = four_quadrants(200, 0)

    def stop_after_two(done, of, point):
        if done == 2:
            raise KeyboardInterrupt

    front = ms.frontier(
        ms.GreedyMiserRegressor(data.costs, n_estimators=3),
        train=(data.X, data.y),
        validation=(data.X, data.y),
        progress=stop_after_two,
    )
    assert len(front.points) == 2
    assert not front.complete
    assert front.choose(budget=1e9) is not None


def test_the_own_grid_spans_the_trade_off():
    data = four_quadrants(600, 0)
    train, validation = data.split(0.5, 0.5, seed=0)
    for k in (1.0, 1000.0):
        model = ms.GreedyMiserRegressor(data.costs.scaled(k), n_estimators=30)
        front = ms.frontier(model, (train.X, train.y), (validation.X, validation.y))
        costs = [p.validation.cost["mean"] for p in front.points]
        assert costs[0] == 42 * k
        assert costs[-1] < 42 * k


def test_more_points_go_where_most_is_between():
    """By hand: gaps of 1 × 4 and 3 × 2; the second is cut, its halves have 1.5 each, so the first comes next."""
    line = [(0.0, 0.0), (1.0, 4.0), (4.0, 6.0)]
    assert between([line], 1) == [(0, 2.5)]
    assert between([line[::-1]], 2) == [(0, 2.5), (0, 0.5)]
    assert between([line, [(0.0, 0.0), (9.0, 1.0)]], 3) == [(1, 4.5), (0, 2.5), (0, 0.5)]
    assert between([[(0.0, 1.0), (5.0, 1.0)], [(2.0, 2.0)]], 3) == []


def test_a_refined_sweep():
    data = four_quadrants(300, 0)
    parts = (data.X[:200], data.y[:200]), (data.X[200:], data.y[200:])
    model = ms.GreedyMiserRegressor(data.costs, n_estimators=5, charge="path")
    grid = {"tradeoff": [1e3, 1e-1, 1e-2, 0]}
    coarse, fine = (ms.frontier(model, *parts, grid=grid, refine=n) for n in (0, 3))
    rates = [p.params["tradeoff"] for p in fine.points]
    assert rates == sorted(rates, reverse=True)
    assert fine.complete
    assert len(rates) == 7
    costs = [math.log(p.validation.cost["mean"] or coarse.points[1].validation.cost["mean"] / 3) for p in coarse.points]
    expected = between([[*zip(np.log([1e3, 1e-1, 1e-2, 1e-3]), costs)]], 3)
    new = [p for p in fine.points if p.params["tradeoff"] not in grid["tradeoff"]]
    assert sorted(p.params["tradeoff"] for p in new) == pytest.approx(sorted(math.exp(x) for _, x in expected))
    by_hand = ms.GreedyMiserRegressor(**{**model.get_params(), **new[0].params}).fit(*parts[0])
    assert new[0].model.plan_ == by_hand.plan_

    both = ms.frontier(model, *parts, grid={**grid, "charge": ["learner", "path"]}, refine=4)
    assert [p.params["charge"] for p in both.points] == sorted(p.params["charge"] for p in both.points)
    assert len(both.points) == 12


def test_a_refined_sweep_of_whole_numbers():
    data = four_quadrants(300, 0)
    parts = (data.X[:200], data.y[:200]), (data.X[200:], data.y[200:])
    model = StagewiseRegressor(data.costs, n_estimators=5)
    front = ms.frontier(model, *parts, grid={"n_estimators": np.array([1, 4, 5])}, refine=9)
    numbers = [p.params["n_estimators"] for p in front.points]
    assert len(set(numbers)) == len(numbers)
    assert set(numbers) <= {1, 2, 3, 4, 5}
    assert numbers == sorted(numbers)


def test_mistakes():
    data = four_quadrants(50, 0)
    model = ms.GreedyMiserRegressor(data.costs)
    with pytest.raises(ValueError, match="train is"):
        ms.frontier(model, data.X, (data.X, data.y))
    with pytest.raises(ValueError, match="qid"):
        ms.frontier(model, (data.X, data.y), (data.X, data.y), metric="ndcg@5")
    for grid in ({"tradeoff": 0.1}, "tradeoff", {}, {"tradeoff": []}):
        with pytest.raises(ValueError, match="grid is a dict of lists"):
            ms.frontier(model, (data.X, data.y), (data.X, data.y), grid=grid)
    with pytest.raises(ValueError, match="tradeoff"):
        ms.frontier(model, (data.X, data.y), (data.X, data.y), grid={"tradeoff": [0, -1]})
    with pytest.raises(ValueError, match="probabilities"):
        ms.frontier(model, (data.X, data.y), (data.X, data.y), metric="logloss")
    with pytest.raises(ValueError, match="validation' or 'test'"):
        points((10, 0.9), (1, 0.5)).area(on="tset")
    with pytest.raises(ValueError, match="refine is a number of points"):
        ms.frontier(model, (data.X, data.y), (data.X, data.y), refine=-1)
    for grid in ({"tradeoff": [1.0]}, {"max_depth": [1, 2]}):
        with pytest.raises(ValueError, match="refine looks between values of tradeoff"):
            ms.frontier(model, (data.X, data.y), (data.X, data.y), grid=grid, refine=2)
    trees = ms.ASTCRegressor(data.costs, max_depth=2)
    with pytest.raises(ValueError, match="refine looks between values of node_budget"):
        ms.frontier(trees, (data.X, data.y), (data.X, data.y), grid={"node_budget": [1.0, None]}, refine=2)
    with pytest.raises(ValueError, match="no metric"):
        ms.frontier(model, (data.X, data.y), (data.X, data.y), metric="nonsense")


def test_a_parameter_keeps_out_of_the_way_of_a_statistic():
    """A swept `max_cost` overwrote the greatest cost of a row in tables and files."""
    swept = points((1, 0.5), (3, 0.6))
    named = replace(swept, points=tuple(replace(p, params={"max_cost": 7.0}) for p in swept.points))
    frame = named.frame()
    assert frame["param_max_cost"].tolist() == [7.0, 7.0]
    assert frame["max_cost"].tolist() == [p.validation.cost["max"] for p in named.points]
    assert "param_max_cost" in named.table()

"""A menu behind a runner and behind HTTP: the budget of each request chooses the plan."""

import asyncio

import numpy as np
import pytest
from litestar.testing import TestClient

from miserly.costs import CostTable
from miserly.plan import Menu, Node, Plan, RawFeatures
from miserly.runtime import OnDemand, extractor
from miserly.serve import create_app
from miserly.serve._rollout import load_plan_or_menu

COSTS = CostTable.per_feature({"a": 1.0, "b": 5.0, "c": 20.0})


def menu():
    free = Plan(COSTS, RawFeatures([0]), (), [0.5], roots=())
    plans = [free]
    for n in (1, 2, 3):
        chosen = list(range(n))
        plans.append(Plan(COSTS, RawFeatures(chosen), (Node(chosen, [1.0] * n),), [0.5], means=[0.0] * 3))
    caps = [0.0, 1.0, 6.0, 26.0, np.inf]
    quality = [[0, 0, 0, 0, 0], [0, 1, 1, 1, 1], [0, 1, 2, 2, 2], [0, 1, 2, 3, 3]]
    cost = [[0, 0, 0, 0, 0], [0, 1, 1, 1, 1], [0, 1, 6, 6, 6], [0, 1, 6, 26, 26]]
    return Menu(plans, caps, quality, cost)


BUDGETS = [None, 0.0, 0.5, 1.0, 3.0, 6.0, 10.0, 26.0, 1000.0]
ROW = {"a": 1.0, "b": 2.0, "c": 4.0}


def extractors(calls):
    def reading(name):
        def read(row):
            calls.append(name)
            return row[name]

        return extractor(name, yields=name)(read)

    return [reading(name) for name in "abc"]


@pytest.mark.parametrize("budget", BUDGETS)
def test_one_row_on_demand_is_the_batch(budget):
    served, calls = menu(), []
    X = np.array([list(ROW.values())])
    value, cost = served.predict(X, budget=budget)[0], served.predict_cost(X, budget=budget)[0]
    with OnDemand(served, extractors(calls)) as runner:
        for answer in (
            runner.predict(ROW, budget),
            runner.predict(ROW, budget, deadline=60.0),
            asyncio.run(runner.apredict(ROW, budget)),
            *runner.predict_many([ROW] * 2, budget),
        ):
            assert (answer.value, answer.cost) == (value, cost)
        assert len(calls) == 5 * len(answer.acquired)
    with TestClient(create_app(menu())) as client:
        sent = client.post("/v1/predict", json={"row": ROW} | ({} if budget is None else {"budget": budget})).json()
    assert (sent["value"], sent["cost"]) == (value, cost)


def test_one_breaker_for_all_plans_of_a_menu():
    def broken(row):
        raise ConnectionError

    kit = [*extractors([])[1:], extractor("a", yields="a")(broken)]
    runner = OnDemand(menu(), kit, failures=2)
    for budget in (1.0, None, 6.0):
        assert runner.predict(ROW, budget).stopped == "failed:a"
    assert runner.left_alone == {"a": True, "b": False, "c": False}


def test_a_list_is_ranked_by_the_plan_of_its_budget():
    documents = [ROW, {"a": 0.0, "b": 9.0, "c": 0.0}]
    with TestClient(create_app(menu())) as client:
        for budget, order, cost in ((1.0, [0, 1], 2.0), (6.0, [1, 0], 12.0)):
            ranked = client.post("/v1/rank", json={"documents": documents, "budget": budget}).json()
            assert (ranked["order"], ranked["cost"]) == (order, cost)


def test_a_menu_file_is_served_and_described(tmp_path):
    menu().save(tmp_path / "a.menu")
    menu().plans[3].save(tmp_path / "a.plan")
    assert isinstance(load_plan_or_menu(tmp_path / "a.menu"), Menu)
    assert isinstance(load_plan_or_menu(tmp_path / "a.plan"), Plan)
    with TestClient(create_app(load_plan_or_menu(tmp_path / "a.menu"))) as client:
        shown = client.get("/v1/plan").json()
        assert shown["n_plans"] == 4
        assert shown["features"] == ["a", "b", "c"]
        assert "A menu of 4 plans" in shown["summary"]
        assert "A menu of 4 plans" in client.get("/").text


def test_a_menu_takes_over_from_a_plan_and_back():
    async def main():
        app = create_app(menu().plans[3])
        await app.state.pool.take_over(menu())
        assert app.state.pool.active.menu is not None
        await app.state.pool.take_over(menu().plans[1])
        assert app.state.pool.active.menu is None
        await app.state.pool.aclose()

    asyncio.run(main())

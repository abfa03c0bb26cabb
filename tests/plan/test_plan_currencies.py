"""Caps on currencies and on rounds: kept by batch and walk alike, whatever the plan."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import miserly as ms
from miserly.costs import CostTable
from miserly.plan import Menu, Node, Plan, PlanFileError, RawFeatures, load_plan
from miserly.plan._run import FIELDS
from oracles.driver import gift
from oracles.random_plans import random_plan, random_rows
from oracles.row_prices import row_priced

SEEDS = st.integers(0, 2**32 - 1)
CHARGES = pytest.mark.parametrize("charge", ["learner", "path"])
EXCHANGE = {"usd": 1.0, "minutes": 2.0}
COSTS = CostTable(
    ["crp", "mri", "ct"],
    {"crp": ["draw", "crp"], "mri": ["mri"], "ct": ["ct"]},
    {
        "draw": {"usd": 5, "minutes": 10},
        "crp": {"usd": 20, "minutes": 30},
        "mri": {"usd": 800, "minutes": 45},
        "ct": {"usd": 100, "minutes": 15},
    },
    exchange=EXCHANGE,
)
NODES = (Node([0], [1.0], passed=1), Node([1, 2], [1.0, 1.0]))
PLAN = Plan(COSTS, RawFeatures([0, 1, 2]), NODES, [0.0], means=[0.0, 0.0, 0.0])
ROW = np.array([[1.0, 2.0, 4.0]])


def in_currencies(plan, seed, rates=(1.0, 2.0)):
    """The plan with amounts of money and time instead of its prices."""
    rng = np.random.default_rng(seed + 3)
    prices = {
        a: {"usd": float(rng.choice([0.0, 0.5, 1.0, 2.0])), "minutes": float(rng.choice([0.0, 0.25, 1.0, 3.0]))}
        for a in plan.costs.prices
    }
    table, exchange = plan.costs, dict(zip(("usd", "minutes"), rates))
    return replace(plan, costs=CostTable(table.features, table.needs, prices, table.evaluation, exchange=exchange))


def orders_of(plan, x, budget):
    """The orders of a row's walk, and the walk."""
    walk, owned, orders = plan.start(budget), [], []
    while walk.needs:
        orders.append(walk.needs)
        walk.supply(gift(plan, x, owned, walk.needs))
        owned += orders[-1]
    return orders, walk


@CHARGES
@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, usd=st.sampled_from([0.5, 1.5, 4.0, 1e9]), minutes=st.sampled_from([0.2, 1.0, 3.2, 1e9]))
def test_caps_hold_in_each_currency_and_walk_agrees(charge, seed, usd, minutes):
    plan = in_currencies(random_plan(seed, queries=False, charge=charge), seed)
    X, _ = random_rows(plan, seed, 6)
    for budget in (
        {"usd": usd, "minutes": minutes},
        {"usd": usd, "rounds": 2},
        {"rounds": 1},
        {"usd": usd, "total": 3},
    ):
        run = plan.run(X, budget=budget)
        for i, x in enumerate(X):
            orders, walk = orders_of(plan, x, budget)
            amounts = plan.costs.amounts
            money = sum(amounts[a]["usd"] for order in orders for a in order)
            time = sum(max(amounts[a]["minutes"] for a in order) for order in orders)
            assert money <= budget.get("usd", np.inf) + 1e-9
            assert time <= budget.get("minutes", np.inf) + 1e-9
            assert len(orders) <= budget.get("rounds", np.inf)
            assert walk.cost <= budget.get("total", np.inf)
            found = (walk.cost, walk.tier, walk.exit, walk.stopped == "budget")
            assert found == (run.cost[i], run.tier[i], run.exit[i].tolist(), run.out_of_budget[i])
            np.testing.assert_array_equal(walk.scores[0], run.score[i])
        for currency, cap in budget.items():
            if currency != "total":
                assert (plan.predict_cost(X, budget=budget, currency=currency) <= cap + 1e-9).all()


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, power=st.sampled_from([-3, 1, 5]))
def test_scaling_a_currency_and_its_rate_changes_nothing(seed, power):
    plan = in_currencies(random_plan(seed, queries=False), seed)
    X, _ = random_rows(plan, seed, 6)
    k = 2.0**power
    amounts = {a: {"usd": p["usd"], "minutes": p["minutes"] * k} for a, p in plan.costs.amounts.items()}
    table = plan.costs
    rates = {"usd": 1.0, "minutes": 2.0 / k}
    other = replace(plan, costs=CostTable(table.features, table.needs, amounts, table.evaluation, exchange=rates))
    assert other.costs.prices == table.prices
    for usd, minutes in ((1.5, 1.0), (0.5, 3.2), (1e9, 0.2)):
        one = plan.run(X, budget={"usd": usd, "minutes": minutes})
        two = other.run(X, budget={"usd": usd, "minutes": minutes * k})
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_rounds_of_rows_with_prices_of_their_own(seed):
    plan, X, qid = row_priced(seed, paid=True, queries=True)
    for budget in ({"rounds": 1}, {"rounds": 3, "total": 2.2}):
        run = plan.run(X, qid, budget=budget)
        assert (run.cost <= budget.get("total", np.inf)).all()
        assert (plan.predict_cost(X, qid, budget=budget, currency="rounds") <= budget["rounds"]).all()


def test_currencies_of_a_row():
    assert PLAN.predict_cost(ROW).tolist() == [25.0 + 80.0 + 890.0 + 130.0]
    assert PLAN.predict_cost(ROW, currency="usd").tolist() == [925.0]
    assert PLAN.predict_cost(ROW, currency="minutes").tolist() == [30.0 + 45.0]
    assert PLAN.predict_cost(ROW, currency="rounds").tolist() == [2.0]
    assert PLAN.predict(ROW, budget={"usd": 900, "minutes": 60}).tolist() == [5.0]  # the mri would take too long
    assert PLAN.predict(ROW, budget={"rounds": 1}).tolist() == [1.0]
    assert PLAN.predict(ROW, budget={"total": 300}).tolist() == PLAN.predict(ROW, budget=300).tolist()


def test_what_is_refused():
    for budget in ({"eur": 5}, {"usd": "much"}):
        with pytest.raises(ValueError, match=r"currency|number"):
            PLAN.predict(ROW, budget=budget)
    with pytest.raises(ValueError, match="no currency 'eur'"):
        PLAN.predict_cost(ROW, currency="eur")


def test_files(tmp_path):
    PLAN.save(tmp_path / "a.plan")
    again = load_plan(tmp_path / "a.plan")
    assert again == PLAN
    assert again.predict_cost(ROW, currency="minutes").tolist() == [75.0]
    damaged = tmp_path / "b.plan"
    damaged.write_bytes((tmp_path / "a.plan").read_bytes()[:-30])
    with pytest.raises(PlanFileError):
        load_plan(damaged)


def test_menus_and_runners_keep_caps_by_currency():
    free = Plan(COSTS, RawFeatures([0]), (), [0.0], roots=())
    menu = Menu.measured([free, PLAN], np.tile(ROW, (3, 1)), lambda plan, run: float(run.score.sum()))
    extractors = [
        ms.extractor(a, yields=[a] if a in COSTS.needs else [])(lambda row, a=a: {a: row.get(a)}) for a in COSTS.prices
    ]
    row = dict(zip(COSTS.features, ROW[0].tolist()))
    for budget in ({"usd": 900, "minutes": 60}, {"usd": 130, "minutes": 75}, {"rounds": 1}, {"usd": 3}):
        answer = PLAN.predict(ROW, budget=budget).tolist()[0]
        assert menu.predict(ROW, budget=budget).tolist()[0] == answer
        for thing in (PLAN, menu):
            with ms.OnDemand(thing, extractors) as runner:
                assert runner.predict(row, budget=budget).value == answer

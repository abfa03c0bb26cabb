"""A menu keeps hard caps and means, chooses by its validation table, and survives its file."""

import math
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miserly.costs import CostTable
from miserly.plan import Menu, Node, Plan, PlanFileError, RawFeatures, load_menu
from oracles.driver import gift

RNG = np.random.default_rng(5)
X = RNG.normal(size=(400, 4))
Y = X @ [1.0, 2.0, 3.0, 4.0]
COSTS = CostTable.per_feature({"free": 0.0, "a": 1.0, "b": 3.0, "c": 10.0})


def linear(*columns):
    weights = [[1.0, 2.0, 3.0, 4.0][c] for c in columns]
    nodes = (Node(columns, weights),) if columns else ()
    return Plan(COSTS, RawFeatures(np.arange(4)), nodes, [0.0], roots=(0,) if nodes else (), means=np.zeros(4))


def goodness(plan, run):
    return -float(np.mean((plan.read(run.z) - Y[: len(run.z)]) ** 2))


MENU = Menu.measured([linear(), linear(0, 1), linear(0, 2), linear(0, 1, 2, 3)], X, goodness)
BUDGETS = st.floats(-1.0, 20.0)


@settings(max_examples=60, deadline=None)
@given(BUDGETS)
def test_a_hard_cap_is_kept_and_more_money_is_not_worse(budget):
    cost = MENU.predict_cost(X, budget=budget)
    assert (cost <= max(budget, 0.0)).all()
    more = MENU.choose(budget + 1.0)
    assert more.quality >= MENU.choose(budget).quality
    fits = [plan for plan in MENU.plans if plan.tables.most_expensive <= budget]
    best = max([goodness(plan, plan.run(X)) for plan in fits], default=-math.inf)
    assert -np.mean((MENU.predict(X, budget=budget) - Y) ** 2) >= best - 1e-9


def test_free_features_are_always_used():
    assert len(np.unique(MENU.predict(X, budget=0.0))) == len(X)


def test_a_choice_is_the_best_of_the_table():
    rng = np.random.default_rng(1)
    plans = [linear(), linear(1), linear(2), linear(1, 2)]
    caps = np.array([0.0, 1.0, 2.0, 5.0, math.inf])
    menu = Menu(plans, caps, rng.random((4, 5)), rng.random((4, 5)) * 4)
    for budget in (-1.0, 0.0, 0.5, 1.0, 3.5, 7.0, None):
        cap = math.inf if budget is None else budget
        table = [
            (menu.quality[i, j], -menu.cost[i, j])
            for i in range(4)
            for j in range(5)
            if caps[j] <= cap or plans[i].tables.most_expensive <= cap
        ]
        chosen = menu.choose(budget)
        assert chosen.cap <= cap
        if table:
            assert (chosen.quality, -chosen.cost) == max(table)
    for mean in (0.1, 1.0, 3.0):
        fits = menu.quality[menu.cost <= mean]
        assert not len(fits) or menu.choose(mean_budget=mean).quality == fits.max()


@pytest.mark.parametrize("mean", [0.5, 2.0, 3.9, 8.0, 13.5])
def test_a_mean_is_kept_and_mixing_uses_it_up(mean):
    assert MENU.predict_cost(X, mean_budget=mean).mean() <= mean + 1e-9
    low, high, share = MENU.neighbours(mean)
    assert low.cost <= mean <= high.cost
    assert (1 - share) * low.cost + share * high.cost == pytest.approx(mean)
    many = np.random.default_rng(2).normal(size=(4000, 4))
    cost = MENU.predict_cost(many, mean_budget=mean, mix=True)
    assert cost.mean() == pytest.approx(mean, abs=0.06 * (high.cost - low.cost) + 1e-9)
    some = np.random.default_rng(3).permutation(4000)[:50]
    assert (MENU.predict_cost(many[some], mean_budget=mean, mix=True) == cost[some]).all()


def test_keys_draw_the_plan_of_a_walk_and_of_a_row():
    keys = [f"patient {i}" for i in range(60)]
    cost = MENU.predict_cost(X[:60], mean_budget=5.0, mix=True, key=keys)
    assert len(np.unique(cost)) > 1
    for x, key, paid in zip(X, keys, cost):
        walk, owned = MENU.start(mean_budget=5.0, key=key, given={"free": x[0]}), {"free"}
        while not walk.done:
            values = gift(walk.plan, x, owned, walk.needs)
            owned |= set(walk.needs)
            walk.supply(values)
        assert walk.cost == paid


def test_a_walk_is_a_row_of_the_batch():
    for budget in (0.0, 1.0, 4.0, None):
        expected, cost = MENU.predict(X[:5], budget=budget), MENU.predict_cost(X[:5], budget=budget)
        for i, x in enumerate(X[:5]):
            walk, owned = MENU.start(budget, given={"free": x[0]}), {"free"}
            while not walk.done:
                values = gift(walk.plan, x, owned, walk.needs)
                owned |= set(walk.needs)
                walk.supply(values)
            assert (walk.best.value, walk.cost) == (expected[i], cost[i])


def test_the_file_is_the_menu(tmp_path):
    path = tmp_path / "a.menu"
    MENU.save(path)
    again = load_menu(path)
    assert again == MENU
    assert (again.predict(X, budget=4.0) == MENU.predict(X, budget=4.0)).all()
    whole = path.read_bytes()
    for cut in (10, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:cut])
        with pytest.raises(PlanFileError, match=r"a\.menu"):
            load_menu(path)
    linear(1).save(path)
    with pytest.raises(PlanFileError, match="load_plan"):
        load_menu(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("menu.json", b"{}")
    with pytest.raises(PlanFileError, match="menu"):
        load_menu(path)


def test_what_is_no_menu_is_refused():
    caps, table = [0.0, math.inf], [[0.0, 0.0]]
    with pytest.raises(ValueError, match="rise to infinity"):
        Menu([linear()], [0.0, 1.0], table, table)
    with pytest.raises(ValueError, match="plans × caps"):
        Menu([linear(), linear(1)], caps, table, table)
    with pytest.raises(ValueError, match="numbers"):
        Menu([linear()], caps, [[0.0, math.nan]], table)
    other = replace(linear(1), costs=COSTS.scaled(2.0))
    with pytest.raises(ValueError, match="prices"):
        Menu([linear(), other], caps, [[0.0, 0.0]] * 2, [[0.0, 0.0]] * 2)
    with pytest.raises(ValueError, match="mean_budget"):
        MENU.predict(X, budget=3.0, mix=True)
    with pytest.raises(ValueError, match="not a number"):
        MENU.predict(X, budget=math.nan)


def test_a_menu_says_what_it_offers():
    text = MENU.describe()
    assert "A menu of 4 plans" in text
    assert "under a cap of 14: plan 3" in text

"""Prices that depend on the row: what rows pay, what fits a budget, one row at a time, files; against plain oracles."""

import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import miserly as ms
from miserly.costs import CostTable, LinearPrice
from miserly.plan import Gate, Menu, Node, Plan, PlanFileError, RawFeatures, load_menu, load_plan
from miserly.plan._run import FIELDS
from oracles.driver import gift
from oracles.row_prices import constant_for, row_priced

SEEDS = st.integers(0, 2**32 - 1)
CHARGES = pytest.mark.parametrize("charge", ["learner", "path"])
BUDGETS = (None, 0.0, 0.3, 1.0, 2.2, 5.0, 1e6)
COSTS = CostTable(
    ["age", "tokens", "answer"],
    {"age": ["ask"], "tokens": ["count"], "answer": ["count", "llm"]},
    {"ask": 1.0, "count": 0.5, "llm": LinearPrice(0.01, {"tokens": 2e-5})},
    unit="USD",
)
NODES = (Node([0], [0.1], passed=1), Node([2], [1.0]))
PLAN = Plan(COSTS, RawFeatures([0, 1, 2]), NODES, [0.0], means=[40.0, 100.0, 2.0])
ROWS = np.array([[30.0, 1000.0, 1.0], [31.0, 100000.0, 2.0]])


def walked(plan, x, budget):
    walk = plan.start(budget, given=gift(plan, x, (), ()) | free(plan, x))
    owned = []
    while walk.needs:
        needs = walk.needs
        walk.supply(gift(plan, x, owned, needs))
        owned += needs
    return walk


def free(plan, x):
    return {f: float(v) for f, v in zip(plan.costs.features, x) if not plan.costs.needs[f]}


def assert_same(a, b):
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


@CHARGES
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_a_row_runs_as_if_its_prices_were_constants(charge, seed):
    plan, X, _ = row_priced(seed, charge=charge)
    for budget in BUDGETS:
        whole = plan.run(X, budget=budget)
        for i in range(0, len(X), 5):
            alone = constant_for(plan, X[i]).run(X[i : i + 1], budget=budget)
            for name in FIELDS:
                np.testing.assert_array_equal(getattr(whole, name)[i : i + 1], getattr(alone, name), err_msg=name)


@CHARGES
@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, queries=st.booleans())
def test_batch_and_walk_agree_and_no_cap_is_exceeded(charge, seed, queries):
    plan, X, qid = row_priced(seed, charge=charge, queries=queries, paid=True)
    for budget in BUDGETS:
        whole = plan.run(X, qid, budget=budget)
        assert budget is None or (whole.cost <= budget).all()
        constant = [constant_for(plan, x) for x in X]
        owned = [whole.accounts.accounts[n] for n in whole.accounts.of_row]
        for own, account, cost in zip(constant, owned, whole.cost.tolist()):
            assert own.tables.ledger.price(account.owned, account.evaluated) == cost
        if not plan.by_query:
            for i in range(0, len(X), 4):
                walk = walked(plan, X[i], budget)
                score, z = walk.scores
                found = (walk.cost, walk.tier, walk.exit, walk.stopped == "budget")
                assert found == (whole.cost[i], whole.tier[i], whole.exit[i].tolist(), whole.out_of_budget[i])
                np.testing.assert_array_equal(np.append(score, z), np.append(whole.score[i], whole.z[i]))


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, budget=st.sampled_from([0.3, 1.0, 2.2]))
def test_values_that_a_row_does_not_buy_change_nothing(seed, budget):
    plan, X, qid = row_priced(seed, paid=True)
    whole = plan.run(X, qid, budget=budget)
    poisoned = X.copy()
    for i, n in enumerate(whole.accounts.of_row):
        bought = whole.accounts.accounts[n].owned
        for f, mask in enumerate(plan.costs.feature_masks):
            if mask & ~bought:
                poisoned[i, f] = -1e6
    assert_same(whole, plan.run(poisoned, qid, budget=budget))


def test_the_price_is_found_before_it_is_paid():
    np.testing.assert_allclose(PLAN.predict_cost(ROWS), [1.53, 3.51], rtol=1e-15)
    walk = PLAN.start(budget=2)
    orders = []
    while walk.needs:
        orders.append(walk.needs)
        walk.supply(gift(PLAN, ROWS[1], [a for o in orders[:-1] for a in o], walk.needs))
    assert orders == [("ask",), ("count",)]  # then the answer would cost 2.01
    assert (walk.cost, walk.stopped) == (1.5, "budget")
    assert PLAN.predict_cost(ROWS, budget=2).tolist() == [PLAN.predict_cost(ROWS)[0], 1.5]


@pytest.mark.parametrize(
    ("tokens", "says"),
    [(np.nan, "Row 1 .*llm.*missing"), (-1e6, "Row 1 .*-19.99 USD for 'llm'.*0 or more"), (np.inf, "Row 1 ")],
)
def test_a_row_without_a_price_is_an_error(tokens, says):
    X = ROWS.copy()
    X[1, 1] = tokens
    with pytest.raises(ValueError, match=says):
        PLAN.predict_cost(X)
    with pytest.raises(ValueError, match="llm"):
        PLAN.predict_cost(X, budget=2)
    with pytest.raises(ValueError, match="llm"):
        walked(PLAN, X[1], None)
    assert PLAN.predict_cost(X, budget=1.2).tolist() == [1.0, 1.0]  # nobody gets as far


def test_blocks_of_rows_name_the_row(monkeypatch):
    monkeypatch.setattr("miserly.plan._run.BLOCK_CELLS", 1)
    tree_rows = np.tile(ROWS[:1], (200, 1))
    whole = PLAN.run(tree_rows, budget=5)
    assert (whole.cost == PLAN.predict_cost(ROWS[:1])[0]).all()


def test_what_does_not_hold_for_all_rows_is_refused():
    with pytest.raises(ValueError, match=r"predict\(X, budget"):
        PLAN.truncate(2.0)
    with pytest.raises(ValueError, match=r"tokens.*unavailable"):
        replace(PLAN, unavailable=("tokens",))


def test_plan_files(tmp_path):
    PLAN.save(tmp_path / "a.plan")
    again = load_plan(tmp_path / "a.plan")
    assert again == PLAN
    assert again.costs.row_prices == COSTS.row_prices
    assert again.predict_cost(ROWS, budget=2).tolist() == PLAN.predict_cost(ROWS, budget=2).tolist()
    assert header_of(tmp_path / "a.plan")["version"] == 6
    constant = replace(PLAN, costs=CostTable(COSTS.features, COSTS.needs, COSTS.prices))
    constant.save(tmp_path / "b.plan")
    header = header_of(tmp_path / "b.plan")
    assert header["version"] == 5
    assert not {"row_prices", "amounts", "exchange"} & set(header["costs"])


@pytest.mark.parametrize(
    "damage",
    [
        {"llm": {"base": 0.01, "per": {"words": 1.0}}},
        {"llm": {"base": 0.01, "per": {"answer": 1.0}}},
        {"llm": {"base": "much", "per": {"tokens": 1.0}}},
        {"llm": {"base": 1.0, "per": ["tokens"]}},
        {"llm": {"base": 1.0, "per": {"tokens": 1.0}, "mean": -1.0}},
        {"llm": {"base": 1.0, "per": {"tokens": 1.0}, "median": 1.0}},
        {"llm": "tokens"},
        ["llm"],
        7,
    ],
)
def test_damaged_prices_are_refused(tmp_path, damage):
    PLAN.save(tmp_path / "a.plan")
    with zipfile.ZipFile(tmp_path / "a.plan") as old, zipfile.ZipFile(tmp_path / "b.plan", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "plan.json":
                header = json.loads(data)
                header["costs"]["row_prices"] = damage
                data = json.dumps(header).encode()
            new.writestr(name, data)
    with pytest.raises(PlanFileError):
        load_plan(tmp_path / "b.plan")


def test_menus(tmp_path):
    free_answer = Plan(COSTS, RawFeatures([0]), (), [0.0], roots=())
    y = PLAN.predict(ROWS)
    menu = Menu.measured([free_answer, PLAN], ROWS, lambda plan, run: -float(((plan.read(run.z) - y) ** 2).mean()))
    menu.save(tmp_path / "a.menu")
    again = load_menu(tmp_path / "a.menu")
    for budget in (None, 0, 1.6, 2, 4):
        cost = again.predict_cost(ROWS, budget=budget)
        assert budget is None or (cost <= budget).all()
        np.testing.assert_array_equal(cost, menu.predict_cost(ROWS, budget=budget))
    np.testing.assert_array_equal(again.predict(ROWS), y)


def test_a_gate_by_query_compares_rows_with_prices_of_their_own():
    nodes = (Node([0], [1.0], gate=Gate.top(1), passed=1), Node([2], [1.0]))
    plan = replace(PLAN, nodes=nodes)
    X = np.array([[1.0, 1000.0, 5.0], [2.0, 100000.0, 7.0], [3.0, 10.0, 9.0], [0.0, 10.0, 9.0]])
    run = plan.run(X, [0, 0, 1, 1], budget=2)
    np.testing.assert_allclose(run.cost, [1.0, 1.5, 1.5102, 1.0], rtol=1e-12)


@pytest.mark.parametrize("plan", [PLAN, replace(PLAN, means=None)], ids=["can miss", "cannot miss"])
def test_on_demand_a_row_without_a_price_does_without(plan):
    @ms.extractor("ask", yields=["age"])
    def ask(row):
        return row["age"]

    @ms.extractor("count", yields=["tokens"])
    def count(row):
        return row["tokens"]

    @ms.extractor("llm", yields=["answer"])
    def llm(row):
        return row["answer"]

    with ms.OnDemand(plan, [ask, count, llm]) as runner:
        for x in ROWS:
            answer = runner.predict(dict(zip(COSTS.features, x.tolist())), budget=9)
            assert answer.cost == plan.predict_cost(x[None])[0]
            assert answer.value == plan.predict(x[None])[0]
        for tokens in (None, -1e6):
            answer = runner.predict({"age": 30.0, "tokens": tokens, "answer": 1.0})
            assert (answer.cost, answer.stopped) == (1.5, "failed:llm")


def header_of(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("plan.json"))

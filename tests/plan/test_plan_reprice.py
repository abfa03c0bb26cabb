"""New prices without retraining: counted again, chosen again, against menus that are measured from the beginning."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import miserly as ms
from miserly.plan import EXIT, Gate, Menu, Node, Plan, RawFeatures, Repricing, load_menu
from miserly.plan._reprice import shares_bought

COSTS = ms.CostTable(
    ["a", "b", "c", "d"],
    {"a": ["draw", "a"], "b": ["draw", "b"], "c": ["c"], "d": []},
    {"draw": 2.0, "a": 1.0, "b": 5.0, "c": 20.0},
)
X = np.random.default_rng(0).normal(size=(400, 4))
Y = X @ [1.0, 1.0, 2.0, 0.5]
TRAIN, VALID = slice(0, 200), slice(200, 400)


def quality(plan, run):
    return -float(((run.z[:, 0] - Y[VALID]) ** 2).mean())


def made():
    fit = [ms.GreedyMiserRegressor(COSTS, tradeoff=t, n_estimators=8).fit(X[TRAIN], Y[TRAIN]).plan_ for t in (0, 0.02)]
    by_path = ms.GreedyMiserRegressor(COSTS, charge="path", tradeoff=0.01, n_estimators=8).fit(X[TRAIN], Y[TRAIN])
    free = replace(fit[0], nodes=(), roots=())
    return Menu.measured([free, *fit[::-1], by_path.plan_], X[VALID], quality)


@pytest.fixture(autouse=True, scope="module")
def _menu():
    """Fitted before the first test, not while tests are collected."""
    global MENU
    MENU = made()


def staged():
    nodes = (
        Node([0], [1.0], gate=Gate.above(0.0), combine="replace", passed=1),
        Node([2], [1.0], combine="replace", passed=EXIT),
    )
    return Plan(COSTS, RawFeatures([0, 1, 2, 3]), nodes, [0.0])


def test_shares_are_those_of_the_ledger():
    shares = dict(zip(COSTS.prices, shares_bought(staged(), X)))
    passed = float((X[:, 0] > 0).mean())
    assert shares == pytest.approx({"draw": 1.0, "a": 1.0, "b": 0.0, "c": passed})
    many = ms.CostTable.per_feature(np.ones(130))
    plan = Plan(many, RawFeatures(np.arange(130)), (Node([3, 70, 129], [1.0] * 3),), [0.0])
    assert np.flatnonzero(shares_bought(plan, np.zeros((5, 130)))).tolist() == [3, 70, 129]


@given(st.lists(st.floats(0.01, 100), min_size=4, max_size=4))
@settings(max_examples=15, deadline=None)
def test_costs_without_a_cap_are_exact(prices):
    new = dict(zip(COSTS.prices, prices))
    menu = MENU.reprice(new)
    for plan, cost in zip(menu.plans, menu.cost[:, -1]):
        assert plan.predict_cost(X[VALID]).mean() == pytest.approx(cost)
    assert menu.quality[:, -1].tolist() == MENU.quality[:, -1].tolist()
    assert menu.predict(X[VALID]).tolist() == MENU.predict(X[VALID]).tolist()
    assert menu.predict_cost(X[VALID], budget=10.0).max() <= 10.0


@pytest.mark.parametrize("factor", [0.25, 3.0, 8.0])
def test_one_factor_for_all_changes_nothing_but_the_unit(factor):
    menu = MENU.reprice({name: factor * price for name, price in COSTS.prices.items()})
    assert menu.caps.tolist() == pytest.approx((factor * MENU.caps).tolist())
    np.testing.assert_allclose(menu.quality, MENU.quality)
    np.testing.assert_allclose(menu.cost, factor * MENU.cost)
    assert menu.repriced.spread == pytest.approx(0.0, abs=1e-7)
    assert not menu.repriced.retrain
    assert "would not pay" in menu.describe()


def test_with_rows_all_is_measured_again():
    new = {"a": 9.0, "c": 0.5}
    menu = MENU.reprice(new, X[VALID], quality)
    costs = replace(COSTS, prices={**COSTS.prices, **new})
    expected = Menu.measured([replace(p, costs=costs) for p in MENU.plans], X[VALID], quality, names=MENU.names)
    assert menu == expected
    old = Menu(MENU.plans, MENU.caps, MENU.quality, MENU.cost, MENU.names)
    assert old.reprice(new, X[VALID], quality) == expected


def test_choices_follow_the_prices():
    before = MENU.choose(mean_budget=15.0)
    cheap = MENU.reprice({"c": 0.1, "b": 0.1}).choose(mean_budget=15.0)
    assert cheap.quality > before.quality


def test_advice_says_when_retraining_pays():
    assert MENU.reprice({"c": 0.2}).repriced.retrain
    assert "prices moved apart, 'c' most of all: 20 to 0.2" in MENU.reprice({"c": 0.2}).describe()
    assert "'d'" not in MENU.reprice({"c": 0.2}).describe()
    assert not MENU.reprice({"c": 22.0}).repriced.retrain
    assert MENU.reprice({"c": 0.0}).repriced.reasons == ("'c' is free now",)
    unused = Menu([staged()], [np.inf], [[1.0]], [[5.0]], bought=[[1.0, 1.0, 0.0, 0.4]])
    assert "'b' is much cheaper now" in unused.reprice({"b": 0.1}).describe()
    assert Repricing(1.0, 2.0, 0.0, ()).describe().startswith("New prices: mean cost 2, before 1.")


def test_files_keep_what_was_bought(tmp_path):
    MENU.save(tmp_path / "a.menu")
    again = load_menu(tmp_path / "a.menu")
    assert again.bought.tolist() == MENU.bought.tolist()
    assert again.reprice({"c": 3.0}) == MENU.reprice({"c": 3.0})


def test_certificates_of_decisions_stay():
    costs = ms.CostTable.per_feature({"cheap": 1.0, "full": 10.0})
    nodes = (Node([0], [1.0], combine="replace", passed=1), Node([1], [1.0], combine="replace", passed=EXIT))
    plan = Plan(costs, RawFeatures([0, 1]), nodes, [0.0], link="logistic", classes=np.array(["no", "yes"]))
    rows = np.random.default_rng(0).normal(scale=5.0, size=(800, 2))
    assert plan.certified(rows, of="agreement", target=0.9).reprice({"full": 2.0}).certificate is not None
    capped = plan.certified(rows, of="agreement", target=0.9, budget=11.0)
    assert capped.reprice({"full": 2.0}).certificate is None


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ({"e": 1.0}, "buys no 'e'"),
        ({"a": -1.0}, "price of 'a'"),
        ({"a": np.nan}, "price of 'a'"),
        (ms.CostTable.per_feature({"a": 1.0}), "same features"),
    ],
)
def test_other_tables_are_refused(costs, words):
    with pytest.raises(ValueError, match=words):
        MENU.reprice(costs)
    with pytest.raises(ValueError, match=words):
        MENU.plans[1].reprice(costs)


def test_what_is_missing_is_said():
    with pytest.raises(ValueError, match="give both X and quality"):
        MENU.reprice({"a": 2.0}, X[VALID])
    with pytest.raises(ValueError, match="does not say what its plans bought"):
        Menu(MENU.plans, MENU.caps, MENU.quality, MENU.cost).reprice({"a": 2.0})


def test_prices_by_row_are_counted_on_rows():
    new = {"c": ms.LinearPrice(1.0, {"d": 0.1})}
    with pytest.raises(ValueError, match="on rows only"):
        MENU.reprice(new)
    rows = np.abs(X[VALID])
    menu = MENU.reprice(new, rows, quality)
    assert menu.plans[-1].costs.row_prices
    assert menu.cost[-1, -1] == pytest.approx(menu.plans[-1].predict_cost(rows).mean())
    assert shares_bought(menu.plans[-1], rows).tolist() == shares_bought(MENU.plans[-1], rows).tolist()

"""Learning with prices of rows: declared ones, measured ones, by learner and by path, and what a plan keeps of them."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import miserly as ms
from miserly.boosting import EachRowPricing, Grower, LocalBackend, RowPricing, SquaredLoss, TreeLimits, bin_data
from miserly.costs import CostTable, LinearPrice
from miserly.plan import content_hash, load_plan

NEEDS = {"kind": [], "a": ["pa"], "b": ["pb"], "c": ["pc", "pb"]}
COSTS = CostTable(list(NEEDS), NEEDS, {"pa": 1, "pb": 2, "pc": 1})
ROWS = 600


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 4))
    X[:, 0] = rng.integers(0, 3, ROWS)
    y = X[:, 0] + X[:, 1] + X[:, 2] + 0.1 * rng.normal(size=ROWS)
    low = np.where(X[:, 0] == 2, 0.5, 20.0)
    prices = np.column_stack([rng.gamma(2.0, 1.0, ROWS), low * rng.uniform(0.5, 1.5, ROWS), np.ones(ROWS)])
    return X, y, prices


def miser(costs=COSTS, **how):
    return ms.GreedyMiserRegressor(costs, **{"tradeoff": 0.02, "n_estimators": 15, "n_jobs": 1} | how)


@pytest.mark.parametrize("charge", ["learner", "path"])
def test_constants_cost_nothing_extra(data, charge):
    X, y, _ = data
    plain = miser(charge=charge).fit(X, y).plan_
    spelled = CostTable(COSTS.features, COSTS.needs, {a: LinearPrice(p, {}) for a, p in COSTS.prices.items()})
    assert content_hash(miser(spelled, charge=charge).fit(X, y).plan_) == content_hash(plain)
    measured = miser(charge=charge).fit(X, y, prices=np.tile([1.0, 2.0, 1.0], (ROWS, 1))).plan_
    assert measured.nodes == plain.nodes
    assert measured.dictionary == plain.dictionary


def test_a_node_costs_what_its_rows_would_pay(data):
    X, y, prices = data
    backend = LocalBackend(bin_data(X), y, SquaredLoss())
    backend.start()
    backend.gradients()
    pricing = EachRowPricing(COSTS, 0.5, backend, prices)
    backend.begin()
    pricing.begin()
    np.testing.assert_allclose(
        pricing.prices_in(0),
        0.5 * np.array([0, prices[:, 0].mean(), prices[:, 1].mean(), prices[:, 1:].sum(axis=1).mean()]),
    )
    pricing = EachRowPricing(COSTS, 1e-4, backend, prices)
    first = Grower(backend, pricing, TreeLimits(max_depth=2)).grow().splits[0]
    rows = backend.rows.in_node(first.left).copy()
    backend.own([(first.left, (1,))])
    backend.begin()
    pricing.begin()
    owns = np.isin(np.arange(ROWS), rows)
    lacking = np.where(owns, 0.0, prices[:, 1]).mean()
    np.testing.assert_allclose(pricing.prices_in(0)[2:], 1e-4 * np.array([lacking, lacking + 1.0]))


def test_rows_with_the_same_prices_are_charged_as_by_the_table(data):
    X, y, _ = data
    trees = []
    for own in (False, True):
        backend = LocalBackend(bin_data(X), y, SquaredLoss())
        backend.start()
        backend.gradients()
        prices = np.tile(np.array(COSTS.price_list), (ROWS, 1))
        pricing = EachRowPricing(COSTS, 0.03, backend, prices) if own else RowPricing(COSTS, 0.03, backend)
        trees.append(Grower(backend, pricing, TreeLimits(max_depth=3)).grow())
    plain, own = trees
    assert [(s.node, s.feature, s.cut, s.bought) for s in plain.splits] == [
        (s.node, s.feature, s.cut, s.bought) for s in own.splits
    ]
    np.testing.assert_allclose([s.price for s in plain.splits], [s.price for s in own.splits])


def test_paths_buy_where_the_row_pays_little(data):
    X, y, prices = data
    model = miser(charge="path", tradeoff=0.06).fit(X, y, prices=prices)
    bought = model.plan_.run(X).accounts
    owns = np.array([bought.accounts[n].owned >> 1 & 1 for n in bought.of_row], bool)
    assert owns[X[:, 0] == 2].mean() > 0.5
    assert owns[X[:, 0] < 2].mean() < 0.1
    by_means = miser(
        CostTable(COSTS.features, COSTS.needs, dict(zip(COSTS.prices, prices.mean(axis=0)))),
        charge="path",
        tradeoff=0.06,
    )
    by_means.fit(X, y)
    gain = ((by_means.predict(X) - y) ** 2).mean() - ((model.predict(X) - y) ** 2).mean()
    more = model.predict_cost(X, prices=prices).mean() - by_means.predict_cost(X, prices=prices).mean()
    assert 0.5 * gain > 0.06 * more


def test_the_plan_keeps_an_estimate(data, tmp_path):
    X, y, prices = data
    frame = pd.DataFrame(prices, columns=["pa", "pb", "pc"])[["pb", "pa"]]
    model = miser(charge="path").fit(X, y, prices=frame)
    costs = model.plan_.costs
    assert costs.prices["pa"] == pytest.approx(prices[:, 0].mean())  # nothing is known before that tells it
    assert costs.upper == {"pa": pytest.approx(np.quantile(prices[:, 0], 0.9))}
    assert costs.row_prices["pb"].features == ("kind",)
    for kind in (0.0, 2.0):
        there = prices[X[:, 0] == kind, 1]
        assert costs.row_prices["pb"].at({"kind": kind}) == pytest.approx(there.mean(), rel=0.05)
    assert costs.prices["pc"] == 1.0  # was not measured
    model.plan_.save(tmp_path / "a.plan")
    again = load_plan(tmp_path / "a.plan")
    assert again == model.plan_
    np.testing.assert_array_equal(again.predict_cost(X, budget=4.0), model.predict_cost(X, budget=4.0))


def test_what_was_really_paid(data):
    X, y, prices = data
    plan = miser(charge="path").fit(X, y, prices=prices).plan_
    for budget in (None, 1.0, 4.0):
        run = plan.run(X, budget=budget)
        owned = [run.accounts.accounts[n].owned for n in run.accounts.of_row]
        expected = [sum(p for a, p in enumerate(line) if own >> a & 1) for own, line in zip(owned, prices.tolist())]
        paid = plan.predict_cost(X, budget=budget, prices=prices)
        np.testing.assert_allclose(paid, expected, rtol=1e-12)
        if budget is not None:
            assert (run.cost <= budget).all()
            np.testing.assert_allclose(plan.overrun(X, prices, budget), np.maximum(0.0, paid - budget))


def test_strict_caps_are_overrun_less_often(data):
    X, y, prices = data
    plan = miser(charge="path", tradeoff=1e-3).fit(X, y, prices=prices).plan_
    over = {strict: plan.overrun(X, prices, 3.0, strict=strict) for strict in (False, True)}
    assert (over[True] > 0).mean() < 0.5 * (over[False] > 0).mean()
    assert (plan.predict_cost(X, budget=3.0, strict=True) <= 3.0).all()


def test_a_declared_price_is_charged_to_the_row(data):
    X, y, _ = data
    declared = {"pa": 1, "pb": LinearPrice(20.0, {"kind": -9.75}), "pc": 1}
    costs = CostTable(COSTS.features, COSTS.needs, declared)
    model = miser(costs, charge="path", tradeoff=0.06).fit(X, y)
    price = 20 - 9.75 * X[:, 0]
    assert model.plan_.costs.prices["pb"] == pytest.approx(price.mean())
    bought = model.plan_.run(X).accounts
    owns = np.array([bought.accounts[n].owned >> 1 & 1 for n in bought.of_row], bool)
    assert owns[X[:, 0] == 2].mean() > 0.5 > owns[X[:, 0] == 0].mean()
    for other in (ms.GreedyMiserRegressor, ms.CSTCRegressor):
        assert other(costs).fit(X, y).plan_.costs.prices["pb"] == pytest.approx(price.mean())
    sparse = miser(costs, charge="path").fit(csr_array(X), y)
    assert sparse.plan_.costs.row_prices == model.plan_.costs.row_prices
    with pytest.raises(ValueError, match="Row 3"):
        miser(costs).fit(np.where(np.arange(ROWS)[:, None] == 3, 9.0, X), y)


def test_rows_of_weight_zero_have_no_prices(data):
    X, y, prices = data
    weight = np.ones(ROWS)
    weight[:300] = 0.0
    one = miser(charge="path").fit(X, y, weight, prices=prices).plan_
    two = miser(charge="path").fit(X[300:], y[300:], prices=prices[300:]).plan_
    assert one.costs == two.costs


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: p[:, :2], "shape"),
        (lambda p: p[:10], "shape"),
        (lambda p: np.where(np.arange(ROWS)[:, None] == 7, np.nan, p), "row 7 .*nan for 'pa'"),
        (lambda p: np.where(np.arange(ROWS)[:, None] == 7, -1.0, p), "row 7 .*-1 for 'pa'"),
        (lambda p: pd.DataFrame(p, columns=["pa", "pb", "px"]), "'px', which is no acquisition"),
    ],
)
def test_measured_prices_that_are_none(data, change, says):
    X, y, prices = data
    with pytest.raises(ValueError, match=says):
        miser().fit(X, y, prices=change(prices))


def test_frontiers(data):
    X, y, prices = data
    train, rest = slice(0, 400), slice(400, None)
    own = {"train": prices[train], "validation": prices[rest]}
    front = ms.frontier(
        miser(charge="path"), (X[train], y[train]), (X[rest], y[rest]), grid={"tradeoff": [1e-3, 0.1]}, prices=own
    )
    for point in front.points:
        paid = point.model.predict_cost(X[rest], prices=prices[rest])
        assert point.validation.cost["mean"] == pytest.approx(paid.mean())
    with pytest.raises(ValueError, match="no measured prices"):
        ms.frontier(ms.CSTCRegressor(COSTS), (X, y), (X, y), prices=prices)

"""ASTC: its choices are those of naive least squares; budgets, groups, trees, soft routing, probabilities."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss

import miserly as ms
from miserly.baselines import CostWeightedL1Regressor
from miserly.costs import CostTable, set_bits
from miserly.datasets import four_quadrants
from miserly.estimators._base._dictionary import find_learners
from miserly.estimators.astc._astc import threshold_between
from miserly.plan import stack_trees
from oracles.astc import NaiveASTC

PAPERS = {"penalty": 0, "l2_regularization": 0, "threshold": "half"}


@st.composite
def problems(draw):
    """Small random data, with a price for each feature and some for groups of them."""
    seed, n, d = draw(st.integers(0, 2**32 - 1)), draw(st.integers(50, 90)), draw(st.integers(2, 6))
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)
    y = X @ rng.normal(size=d) + np.abs(X[:, 0]) * 2 + rng.normal(size=n)
    groups = draw(st.integers(0, 2))
    needs = {f"x{j}": [f"own{j}"] + ([f"g{j % groups}"] if groups else []) for j in range(d)}
    names = sorted({a for wanted in needs.values() for a in wanted})
    prices = {a: draw(st.floats(0.25, 4.0)) for a in names}
    if draw(st.booleans()):
        prices[names[0]] = 0.0
    evaluation = draw(st.sampled_from([0.0, 0.3]))
    costs = CostTable(features=list(needs), needs=needs, prices=prices, evaluation=evaluation)
    budgets = draw(st.lists(st.floats(0.0, 6.0), min_size=1, max_size=3))
    return X, y, costs, budgets


@settings(max_examples=60, deadline=None)
@given(
    problem=problems(),
    rule=st.sampled_from(["half", "otsu"]),
    soft=st.booleans(),
    ridge=st.sampled_from([0.0, 1.0, 9.0]),
)
def test_choices_and_answers_are_those_of_naive_least_squares(problem, rule, soft, ridge):
    X, y, costs, budgets = problem
    settings = {"threshold": rule, "penalty": 0, "l2_regularization": ridge, "min_samples_leaf": 15}
    model = ms.ASTCRegressor(costs, budgets, len(budgets), soft, temperature=0.5, **settings).fit(X, y)
    naive = NaiveASTC(
        X,
        y,
        [costs.needs[f] for f in costs.features],
        costs.prices,
        costs.evaluation_prices(X.shape[1]),
        budgets,
        15,
        rule,
        0.5 if soft else None,
        ridge,
    )
    places = {0: 0}
    for number in sorted(naive.nodes):
        at, node = naive.nodes[number], model.plan_.nodes[places[number]]
        assert set(node.learners.tolist()) == set(at["chosen"])
        assert np.allclose(X[:, node.learners] @ node.weights + node.bias, at["prediction"], atol=1e-6 * y.std())
        assert (node.gate.kind == "open") == (at["cut"] is None)
        if at["cut"] is not None:
            assert node.gate.value == pytest.approx(at["cut"] * y.std(), abs=1e-6 * y.std())
            places[2 * number + 1], places[2 * number + 2] = node.passed, node.failed
    assert len(places) == len(model.plan_.nodes)


@pytest.mark.parametrize("settings", [{}, {"threshold": "half"}, {"penalty": 0}, {"soft": True}, PAPERS], ids=repr)
@pytest.mark.parametrize("seed", range(100, 120))
def test_four_quadrants(seed, settings):
    """The papers' task: two signs for everyone, then the one expensive feature of the quadrant. Cost 12, no error."""
    data = four_quadrants(2000, seed)
    model = ms.ASTCRegressor(data.costs, node_budget=(2, 0, 10), max_depth=3, **settings)
    model.fit(data.X[:1000], data.y[:1000])
    assert np.array_equal(model.predict_cost(data.X[1000:]), np.full(1000, 12.0))
    error = np.mean((model.predict(data.X[1000:]) - data.y[1000:]) ** 2)
    assert error < (1e-20 if settings == PAPERS else 1e-3)


def linear_data(n=500, seed=0, d=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.arange(d, 0, -1.0) + 0.5 * rng.normal(size=n)


def node_prices(model):
    """What each node adds to what its way down owns for certain."""
    plan = model.plan_
    prices = plan.costs.price_list
    return [math.fsum(prices[a] for a in set_bits(plan.tables.new_acquisitions(k))) for k in range(len(plan.nodes))]


@pytest.mark.parametrize("budget", [0.0, 1.0, 2.5, 7.0])
def test_no_node_spends_more_than_its_budget(budget):
    X, y = linear_data()
    y = y + 3 * np.abs(X[:, 1])
    costs = CostTable.per_feature([3.0, 2.5, 1.5, 1.0, 0.7, 0.3])
    model = ms.ASTCRegressor(costs, budget, 3, penalty=0).fit(X, y)
    spent = node_prices(model)
    assert max(spent) <= budget
    assert budget == 0 or max(spent) > 0


def test_budgets_by_number_by_level_and_by_node():
    data = four_quadrants(1000, 3)
    by_level = ms.ASTCRegressor(data.costs, [2, 0, 10]).fit(data.X, data.y)
    by_node = ms.ASTCRegressor(data.costs, {0: 2, 3: 10, 4: 10, 5: 10, 6: 10}).fit(data.X, data.y)
    assert by_level.plan_ == by_node.plan_
    one_dear = ms.ASTCRegressor(data.costs, {0: 2, 3: 10}).fit(data.X, data.y)
    assert sorted(set(one_dear.predict_cost(data.X))) == [2.0, 12.0]
    alike = ms.ASTCRegressor(data.costs, 2.0).fit(data.X, data.y)
    assert alike.plan_ == ms.ASTCRegressor(data.costs, np.full(3, 2.0)).fit(data.X, data.y).plan_
    unlimited = ms.ASTCRegressor(data.costs, None).fit(data.X, data.y)
    assert unlimited.plan_ == ms.ASTCRegressor(data.costs, math.fsum(data.costs.price_list)).fit(data.X, data.y).plan_


@pytest.mark.parametrize(
    ("budget", "message"),
    [([1.0, 2.0], "one per level"), ([1, 2, -1.0], "0 or more"), ({0: -1}, "0 or more"), (-1.0, "node_budget")],
)
def test_budgets_that_make_no_sense_are_refused(budget, message):
    X, y = linear_data()
    with pytest.raises(ValueError, match=message):
        ms.ASTCRegressor(CostTable.uniform(), budget, 3).fit(X, y)


def test_what_shares_an_acquisition_is_bought_together():
    """Alone, each of the three features of a group explains less per price than the single one; together more."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    y = X[:, 0] + X[:, 1] + X[:, 2] + 1.3 * X[:, 3]
    costs = CostTable(
        features=["a", "b", "c", "single"],
        needs={"a": ["draw"], "b": ["draw"], "c": ["draw"], "single": ["scan"]},
        prices={"draw": 10.0, "scan": 10.0},
    )
    model = ms.ASTCRegressor(costs, 10.0, max_depth=1).fit(X, y)
    assert model.selected_features_ == ["a", "b", "c"]
    both = ms.ASTCRegressor(costs, 10.0, max_depth=2).fit(X, y)
    assert set(both.predict_cost(X)) == {20.0}


def test_what_is_handed_on_as_owned_has_been_paid_for():
    """`b` comes with `a` for next to nothing and says the same at the root; below, it is what makes the difference."""
    rng = np.random.default_rng(2)
    a, difference = rng.normal(size=(2, 1000))
    X = np.column_stack([a, a + 0.1 * difference, rng.normal(size=1000)])
    y = a + 0.8 * np.sign(a) * difference + 0.1 * rng.normal(size=1000)
    costs = CostTable(
        features=["a", "b", "c"],
        needs={"a": ["group"], "b": ["group", "own"], "c": ["other"]},
        prices={"group": 4.0, "own": 2.0**-20, "other": 1.0},
    )
    model = ms.ASTCRegressor(costs, [5.0, 0.0], max_depth=2).fit(X, y)
    spent = node_prices(model)
    assert len(spent) == 3
    assert spent[1:] == [0.0, 0.0]
    assert model.score(X, y) > 0.9


def test_a_price_for_each_evaluation_is_paid_and_weighed():
    X, y = linear_data()
    costs = CostTable.per_feature(np.zeros(6), evaluation=1.0)
    model = ms.ASTCRegressor(costs, 2.0, max_depth=1).fit(X, y)
    assert set(model.predict_cost(X)) == {2.0}
    assert model.selected_features_ == ["x0", "x1"]
    deeper = ms.ASTCRegressor(costs, [2.0, 1.0], max_depth=2, penalty=0).fit(X, y)
    assert set(deeper.predict_cost(X)) == {3.0}


def test_what_does_not_earn_its_coefficient_is_not_bought():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 20))
    y = X[:, 0] + 0.5 * rng.normal(size=400)
    costs = CostTable.per_feature(np.r_[5.0, np.ones(19)])
    assert ms.ASTCRegressor(costs).fit(X, y).selected_features_ == ["x0"]
    assert len(ms.ASTCRegressor(costs, max_depth=1, penalty=0).fit(X, y).selected_features_) == 20


def test_a_cold_soft_tree_is_the_hard_tree():
    X, y = linear_data()
    y = y + 3 * np.abs(X[:, 1])
    costs = CostTable.per_feature([3.0, 2.5, 1.5, 1.0, 0.7, 0.3])
    hard = ms.ASTCRegressor(costs, 3.0).fit(X, y)
    cold = ms.ASTCRegressor(costs, 3.0, soft=True, temperature=1e-12).fit(X, y)
    warm = ms.ASTCRegressor(costs, 3.0, soft=True, temperature=1.0).fit(X, y)
    assert np.array_equal(hard.predict_cost(X), cold.predict_cost(X))
    assert np.allclose(hard.predict(X), cold.predict(X))
    assert not np.allclose(hard.predict(X), warm.predict(X))
    run = warm.plan_.run(X)
    assert len(np.unique(run.exit)) > 1


def test_rows_of_weight_two_are_two_rows():
    X, y = linear_data(300)
    twice = np.arange(300) % 3 == 0
    costs = CostTable.per_feature([3.0, 2.5, 1.5, 1.0, 0.7, 0.3])
    weighted = ms.ASTCRegressor(costs, 3.0).fit(X, y, np.where(twice, 2.0, 1.0))
    repeated = ms.ASTCRegressor(costs, 3.0).fit(np.r_[X, X[twice]], np.r_[y, y[twice]])
    assert np.allclose(weighted.predict(X), repeated.predict(X))


def test_sparse_data_give_the_same_tree():
    X, y = linear_data()
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    costs = CostTable.per_feature([3.0, 2.5, 1.5, 1.0, 0.7, 0.3])
    dense, sparse = ms.ASTCRegressor(costs, 3.0).fit(X, y), ms.ASTCRegressor(costs, 3.0).fit(csr_array(X), y)
    assert dense.plan_ == sparse.plan_
    assert np.array_equal(dense.predict(X), sparse.predict(csr_array(X)))


def test_probabilities_of_two_classes_are_calibrated_at_every_exit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 6))
    z = 2 * X[:, 0] + np.where(X[:, 1] > 0, 2.0, -2.0) * X[:, 2]
    y = np.where(rng.random(4000) < 1 / (1 + np.exp(-z)), "yes", "no")
    model = ms.ASTCClassifier(CostTable.uniform(), 2, max_depth=4).fit(X, y)
    p, leaves = model.predict_proba(X)[:, 1], model.plan_.run(X).exit[:, 0]
    assert len(np.unique(leaves)) > 2
    for leaf in np.unique(leaves):
        assert p[leaves == leaf].mean() == pytest.approx((y[leaves == leaf] == "yes").mean(), abs=0.02)
    flat = ms.ASTCClassifier(CostTable.uniform(), 2, max_depth=1).fit(X, y)
    assert log_loss(y, p) < log_loss(y, flat.predict_proba(X)[:, 1])
    assert np.array_equal(model.predict(X), np.where(model.decision_function(X) > 0, "yes", "no"))


def test_ten_classes_share_one_tree_and_one_purse():
    X, y = load_digits(return_X_y=True)
    model = ms.ASTCClassifier(CostTable.uniform(), 16, max_depth=3).fit(X[:1200], y[:1200])
    assert model.score(X[1200:], y[1200:]) > 0.87
    assert model.predict_cost(X).max() <= 3 * 16
    assert log_loss(y[1200:], model.predict_proba(X[1200:])) < 0.6
    assert len(model.plan_.roots) == 1


def test_a_class_that_does_not_reach_a_node_stays_unlikely_there():
    rng = np.random.default_rng(0)
    X = np.repeat(np.eye(4)[:, :3], 100, axis=0) + 0.05 * rng.normal(size=(400, 3))
    y = np.repeat(np.arange(4), 100)
    model = ms.ASTCClassifier(CostTable.uniform(), max_depth=3).fit(X, y)
    assert len(model.plan_.nodes) > 1
    assert model.score(X, y) == 1.0
    assert model.predict_proba(X).min() > 0
    assert model.predict_proba(X)[np.arange(400), y].min() > 0.8


def tree_task():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=1500)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y, CostTable.per_feature([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])


def test_all_ways_of_giving_trees_are_one():
    X, y, costs = tree_task()
    inner = ms.GreedyMiserRegressor(costs, tradeoff=1e-3, n_estimators=40)
    fitted = clone(inner).fit(X, y)
    plans = [
        ms.ASTCRegressor(costs, 4.0, dictionary=given).fit(X, y).plan_
        for given in (inner, fitted, fitted.plan_, fitted.plan_.dictionary, ms.GreedyMiserRegressor(None, 1e-3, 40))
    ]
    assert all(plan == plans[0] for plan in plans)
    assert plans[0].dictionary == fitted.plan_.dictionary
    assert not hasattr(inner, "plan_")
    frozen = clone(ms.ASTCRegressor(costs, 4.0, dictionary=FrozenEstimator(fitted)))
    assert frozen.fit(X[:800], y[:800]).plan_.dictionary == fitted.plan_.dictionary


def test_trees_cost_less_than_their_model_and_more_than_nothing():
    X, y, costs = tree_task()
    inner = ms.GreedyMiserRegressor(costs, tradeoff=0.0, n_estimators=100).fit(X[:1000], y[:1000])
    model = ms.ASTCRegressor(costs, 3.0, dictionary=inner).fit(X[:1000], y[:1000])
    assert 0 < model.predict_cost(X[1000:]).mean() < inner.predict_cost(X[1000:]).mean()
    assert max(node_prices(model)) <= 3.0
    unlimited = ms.ASTCRegressor(costs, dictionary=inner).fit(X[:1000], y[:1000])
    assert unlimited.score(X[1000:], y[1000:]) > inner.score(X[1000:], y[1000:]) - 0.05


def test_frames_with_categories_and_prices_in_another_order():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(800, 3)), columns=["a", "b", "c"])
    frame["kind"] = pandas.Categorical(rng.choice(["x", "y", "z"], 800))
    y = frame["a"] + 2.0 * (frame["kind"] == "y") + 0.1 * rng.normal(size=800)
    costs = CostTable.per_feature({"kind": 1.0, "c": 20.0, "b": 50.0, "a": 500.0})
    inner = ms.GreedyMiserRegressor(costs, tradeoff=1e-2, n_estimators=30)
    model = ms.ASTCRegressor(costs, dictionary=inner).fit(frame, y)
    assert model.selected_features_ == ["kind"]
    assert model.score(frame, y) > 0.3
    assert model.plan_.dictionary == clone(inner).fit(frame, y).plan_.dictionary
    with pytest.raises(ValueError, match="categories"):
        ms.ASTCRegressor(costs).fit(frame, y)


def test_learners_know_what_they_need():
    X, y, _ = tree_task()
    costs = CostTable(
        features=[f"x{i}" for i in range(6)],
        needs={f"x{i}": ["draw", f"test{i}"] if i < 3 else [] for i in range(6)},
        prices={"draw": 4.0, "test0": 1.0, "test1": 2.0, "test2": 3.0},
        evaluation=0.5,
    )
    trees = ms.GreedyMiserRegressor(costs, tradeoff=0.0, n_estimators=10).fit(X, y).plan_.dictionary
    found = find_learners(trees, costs, X, y)
    for j in range(len(trees)):
        names = {a for f in trees.features_of(j) for a in costs.needs[f"x{f}"]}
        assert {costs.acquisitions[a] for a in set_bits(found.masks[j])} == names
        assert set(np.flatnonzero(found.needs[:, j])) == set(set_bits(found.masks[j]))
        assert found.price([j]) == math.fsum(costs.prices[a] for a in names) + 0.5
    raw = find_learners(None, costs, np.nan_to_num(X), y)
    assert sorted(raw.number) == list(range(6))
    both = [int(np.flatnonzero(raw.number == f)[0]) for f in (0, 1)]
    assert raw.price(both) == 4.0 + 1.0 + 2.0 + 1.0
    assert raw.price(both, owned=raw.masks[both[0]]) == 2.0 + 1.0
    weights = np.zeros((6, 2))
    weights[both] = [[1.0, 2.0], [0.0, 3.0]]
    learners, plain, bias = raw.for_node(weights, [0.5, -0.5])
    full = np.nan_to_num(X)
    standard = (full - full.mean(axis=0)) / full.std(axis=0)
    assert sorted(learners) == [0, 1]
    expected = standard[:, raw.number] @ weights + [0.5, -0.5]
    assert np.allclose(full[:, learners] @ plain + bias, expected)


def test_imported_trees_are_a_dictionary():
    X, y, costs = tree_task()
    forest = RandomForestRegressor(30, max_depth=4, random_state=0).fit(X, y)
    model = ms.ASTCRegressor(costs, dictionary=ms.import_trees(forest)).fit(X, y)
    assert model.score(X, y) > forest.score(X, y)


def test_dictionaries_that_make_no_sense_are_refused():
    X, y, costs = tree_task()
    full = np.nan_to_num(X)
    with pytest.raises(ValueError, match="NaN"):
        ms.ASTCRegressor(costs).fit(X, y)
    with pytest.raises(ValueError, match="not over trees"):
        ms.ASTCRegressor(costs, dictionary=CostWeightedL1Regressor(costs)).fit(full, y)
    with pytest.raises(ValueError, match="import_trees"):
        ms.ASTCRegressor(costs, dictionary=RandomForestRegressor(3)).fit(full, y)
    with pytest.raises(ValueError, match="dictionary"):
        ms.ASTCRegressor(costs, dictionary="words").fit(full, y)
    wide = ms.GreedyMiserRegressor(CostTable.uniform(), n_estimators=5).fit(np.c_[full, y], y).plan_
    with pytest.raises(ValueError, match="feature 6"):
        ms.ASTCRegressor(costs, dictionary=wide).fit(full, y)
    constant = ms.ASTCRegressor(costs, dictionary=stack_trees([])).fit(full, y)
    assert np.allclose(constant.predict(X), y.mean())


def test_a_threshold_lies_between_distinct_values():
    values, weight = np.array([0.0, 0.0, 1.0, 1.0 + 1e-16, 5.0]), np.ones(5)
    assert threshold_between(values, weight, 1, "half") == 0.5
    assert threshold_between(values, weight, 1, "otsu") == 3.0
    assert threshold_between(values, weight, 2, "otsu") == 0.5
    assert threshold_between(values, weight, 3, "otsu") is None
    assert threshold_between(np.full(5, 0.1), weight, 1, "half") is None
    assert threshold_between(values, np.array([1, 1, 1, 1, 0.0]), 1, "otsu") == 0.5


def test_a_frontier_needs_no_grid():
    X, y = linear_data(400)
    costs = CostTable.per_feature([3.0, 2.5, 1.5, 1.0, 0.7, 0.3])
    front = ms.frontier(ms.ASTCRegressor(costs, max_depth=2), train=(X[:300], y[:300]), validation=(X[300:], y[300:]))
    assert len(front.pareto()) > 2
    for table, first in (
        (CostTable.uniform(2.0), 2.0),
        (CostTable.per_feature(np.zeros(6), evaluation=3.0), 3.0),
        (CostTable.uniform(0.0), 1.0),
        (costs, 0.3),
    ):
        grid = ms.ASTCRegressor(table).suggest_grid(y)
        assert grid[0] == pytest.approx(first)
        assert len(grid) == 8
    assert grid[-1] == pytest.approx(9.0)

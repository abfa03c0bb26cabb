"""Fast-and-frugal trees: the published tree, a slow twin, prices, missing values, and the plan."""

import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import miserly as ms
from miserly.baselines import PathTreeClassifier
from oracles import fast_frugal as oracle
from oracles.shared_data import shared_data

COSTS = ms.CostTable(
    ["age", "crp", "white", "scan"],
    {"age": [], "crp": ["draw", "crp_test"], "white": ["draw", "white_test"], "scan": ["scan"]},
    {"draw": 5.0, "crp_test": 8.0, "white_test": 4.0, "scan": 40.0},
)
ORDERS = {"cp": ["a", "aa", "np", "ta"], "thal": ["normal", "fd", "rd"]}


def patients(n, seed, missing=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(1)
    y = X @ [0.3, 1.0, 0.7, 1.5] + rng.normal(size=n) > 0.3
    X[rng.random(X.shape) < missing] = np.nan
    y[:2] = [False, True]
    return X, y


def heart(part):
    """FFTrees' own data set, its words numbered in the order of risk."""
    with shared_data("heart_cost", f"heart.{part}.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name != "diagnosis"]
    others = {name: sorted({row[name] for row in rows}) for name in ("restecg", "slope")}
    coded = {**others, **ORDERS}
    X = [[coded[n].index(row[n]) if n in coded else float(row[n]) for n in names] for row in rows]
    return names, np.array(X, float), np.array([row["diagnosis"] == "True" for row in rows])


def test_the_published_tree_of_heart_disease():
    """FFTrees 1.x prints this tree and these counts for `FFTrees(diagnosis ~ ., heart.train, heart.test)`."""
    names, X, y = heart("train")
    costs = ms.CostTable.from_csv(shared_data("heart_cost", "costs.csv"))
    model = ms.FastFrugalTreeClassifier(costs, tradeoff=0.0, algorithm="ifan", min_samples_leaf=1).fit(X, y)
    assert [(names[c.feature], c.above, c.exit) for c in model.levels_] == [
        ("thal", True, "positive"),  # {rd, fd}: decide high risk
        ("cp", False, "negative"),  # not {a}: decide low risk
        ("ca", True, "both"),  # above 0: decide high risk
    ]
    for rows, labels, counts in ((X, y, (54, 18, 12, 66)), (*heart("test")[1:], (64, 19, 9, 61))):
        said = model.predict(rows)
        assert counts == (
            (said & labels).sum(),
            (said & ~labels).sum(),
            (~said & labels).sum(),
            (~said & ~labels).sum(),
        )


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("tradeoff", [0.0, 0.002, 0.01])
def test_ifan_is_the_best_structure_of_exits(tradeoff, missing):
    for seed in range(4):
        X, y = patients(60, seed, missing)
        model = ms.FastFrugalTreeClassifier(COSTS, tradeoff, max_levels=3, algorithm="ifan", min_samples_leaf=3)
        expected = oracle.ifan(X, y, COSTS, tradeoff, 0.5, 3, 3)
        assert reached(model.fit(X, y), X, y, tradeoff) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("tradeoff", [0.0, 0.004])
def test_best_is_at_least_as_good_as_every_order_of_cues(tradeoff):
    for seed in range(3):
        X, y = patients(50, seed, 0.1)
        model = ms.FastFrugalTreeClassifier(COSTS, tradeoff, max_levels=3, algorithm="best", min_samples_leaf=3)
        expected = oracle.every_order(X, y, COSTS, tradeoff, 0.5, 3, 3)
        assert reached(model.fit(X, y), X, y, tradeoff) >= expected - 1e-9


def reached(model, X, y, tradeoff, w=0.5):
    """The objective, from what the plan predicts and charges."""
    return oracle.wacc(model.predict(X), y, w) - tradeoff * model.predict_cost(X).mean()


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000), algorithm=st.sampled_from(["ifan", "dfan", "best"]), missing=st.sampled_from([0, 0.3])
)
def test_the_plan_walks_as_the_levels_say(seed, algorithm, missing):
    X, y = patients(40, seed, missing)
    model = ms.FastFrugalTreeClassifier(COSTS, 1e-3, algorithm=algorithm, min_samples_leaf=2).fit(X, y)
    said, cost = model.predict(X), model.predict_cost(X)
    levels = model.levels_
    assert len({level.feature for level in levels}) == len(levels) <= 4
    for i, x in enumerate(X):
        if not levels:
            break
        ways = [oracle.walk(levels, x, positive) for positive in (False, True)]
        assert said[i] in {way[0] for way in ways}
        needs = {a for f in ways[0][1] for a in COSTS.needs[COSTS.features[f]]}
        assert cost[i] == pytest.approx(COSTS.price_of(needs))


def test_higher_prices_buy_less_and_weights_move_the_exits():
    X, y = patients(400, 0)
    costs = [
        ms.FastFrugalTreeClassifier(COSTS, t, algorithm="best").fit(X, y).predict_cost(X).mean()
        for t in (0.0, 3e-3, 3e-2, 1.0)
    ]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 0.0
    careful, plain = (
        ms.FastFrugalTreeClassifier(COSTS, 0.0, sensitivity_weight=w).fit(X, y).predict(X)[y].mean() for w in (0.9, 0.5)
    )
    assert careful > plain
    accurate = ms.FastFrugalTreeClassifier(COSTS, 0.0, sensitivity_weight=None, algorithm="best").fit(X, y)
    balanced = ms.FastFrugalTreeClassifier(COSTS, 0.0, algorithm="best").fit(X, y)
    assert (accurate.predict(X) == y).mean() >= (balanced.predict(X) == y).mean()


def test_weights_are_copies_of_rows():
    X, y = patients(80, 3)
    weight = np.arange(80) % 3
    one = ms.FastFrugalTreeClassifier(COSTS, 1e-3, min_samples_leaf=1).fit(X, y, sample_weight=weight)
    other = ms.FastFrugalTreeClassifier(COSTS, 1e-3, min_samples_leaf=1).fit(
        np.repeat(X, weight, 0), np.repeat(y, weight)
    )
    assert one.levels_ == other.levels_


def test_it_refuses_three_classes_and_sweeps():
    X, y = patients(300, 1)
    with pytest.raises(ValueError, match="binary"):
        ms.FastFrugalTreeClassifier(COSTS).fit(X, np.arange(300) % 3)
    front = ms.frontier(ms.FastFrugalTreeClassifier(COSTS), (X, y), (X, y))
    assert len({p.validation.cost["mean"] for p in front.points}) >= 3


def areas(sets, costs):
    """Test accuracy over the logarithm of the budget, of fast-and-frugal trees and of path trees."""
    models = ms.FastFrugalTreeClassifier(costs, sensitivity_weight=None), PathTreeClassifier(costs)
    fronts = [ms.frontier(model, *sets[:2], test=sets[2], metric="accuracy") for model in models]
    low = min(p.validation.cost["mean"] for front in fronts for p in front.points if p.validation.cost["mean"] > 0)
    return [front.area(low, costs.price(costs.features), on="test") for front in fronts]


def test_by_area_against_one_path_tree_on_thyroid():
    """Ill or well: four cues with free exits do what a path tree of any shape does, within five thousandths."""
    train, test = (np.loadtxt(shared_data("ann_thyroid_cost", f"ann-{part}.data")) for part in ("train", "test"))
    held = np.random.default_rng(0).random(len(train)) < 0.3
    sets = [(part[:, :-1], part[:, -1] != 3) for part in (train[~held], train[held], test)]
    mine, path = areas(sets, ms.CostTable.from_toml(shared_data("ann_thyroid_cost", "costs.toml")))
    assert mine > path - 0.005


def test_by_area_against_one_path_tree_on_heart():
    """On few rows of many features the smaller tree is ahead."""
    (_, X, y), (_, T, t) = heart("train"), heart("test")
    costs = ms.CostTable.from_csv(shared_data("heart_cost", "costs.csv"))
    mine, path = areas([(X, y), (T[:75], t[:75]), (T[75:], t[75:])], costs)
    assert mine > path

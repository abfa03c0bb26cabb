"""Logged purchases: chances of purchases, and means over rows that were logged, against worlds whose truth is known."""

import numpy as np
import pytest

import miserly as ms
from miserly.costs import Ledger, RowAccounts
from miserly.solvers import LoggedPurchases, effective_number, weighted_mean

MARKS = {"a": "not_ordered", "b": "not_ordered"}


def test_which_acquisitions_are_logged():
    needs = {"age": [], "tsh": ["draw", "tsh"], "t3": ["draw", "t3"], "crp": ["crp"]}
    prices = {"draw": 1, "tsh": 2, "t3": 3, "crp": 4}
    assert ms.CostTable(list(needs), needs, prices).not_ordered == {}
    one = ms.CostTable(list(needs), needs, prices, missing={"tsh": "not_ordered"})
    assert one.not_ordered == {1: (1,)}  # the draw may serve t3, which is always there
    drawn = ms.CostTable(list(needs), needs, prices, missing={"draw": "not_ordered"})
    assert drawn.not_ordered == {0: (1, 2), 1: (1,), 2: (2,)}
    with pytest.raises(ValueError, match="no feature and no acquisition"):
        ms.CostTable(list(needs), needs, prices, missing={"tshh": "not_ordered"})
    with pytest.raises(ValueError, match="it knows 'not_ordered'"):
        ms.CostTable(list(needs), needs, prices, missing={"tsh": "at random"})
    assert drawn.restrict(["age", "crp"]).missing == {}
    assert ms.CostTable(**drawn.to_dict()) == drawn != one


def test_tables_keep_it_in_files(tmp_path):
    costs = ms.CostTable.per_feature({"age": 0.0, "a": 1.0, "b": 2.0}, missing=MARKS)
    costs.to_toml(tmp_path / "costs.toml")
    assert ms.CostTable.from_toml(tmp_path / "costs.toml") == costs
    lines = '[columns]\nage = 0\na = { price = 1, missing = "not_ordered" }\nb = { price = 2, missing = "often" }\n'
    (tmp_path / "columns.toml").write_text(lines)
    with pytest.raises(ValueError, match="line 4, column 'b': missing is 'often'"):
        ms.CostTable.from_toml(tmp_path / "columns.toml")
    (tmp_path / "columns.toml").write_text(lines.replace("often", "not_ordered"))
    assert dict(ms.CostTable.from_toml(tmp_path / "columns.toml").missing) == MARKS
    assert ms.CostTable.per_feature([1.0, 2.0], missing={"x1": "not_ordered"}).bind(["p", "q"]).missing == {
        "q": "not_ordered"
    }


def _hospital(n, seed):
    """Age is known; `a` is ordered for the old, `b` where a was high; `X` is the log, `whole` what was never seen."""
    rng = np.random.default_rng(seed)
    age = rng.normal(size=n)
    a = age + rng.normal(size=n)
    b = a + rng.normal(size=n)
    has_a = rng.random(n) < 1 / (1 + np.exp(-age))
    has_b = rng.random(n) < np.where(has_a, 1 / (1 + np.exp(-a)), 0.3)
    whole = np.column_stack([age, a, b])
    return np.column_stack([age, np.where(has_a, a, np.nan), np.where(has_b, b, np.nan)]), whole


COSTS = ms.CostTable.per_feature({"age": 0.0, "a": 1.0, "b": 5.0}, missing=MARKS)


def test_weighted_means_are_those_of_all_rows():
    X, whole = _hospital(4000, 0)
    found = LoggedPurchases.learn(COSTS, X, np.zeros(len(X)))
    for rows in (found.own, found.rows(X, np.zeros(len(X)))):
        both = rows.weights(0b110)
        assert (both > 0).tolist() == (~np.isnan(X[:, 1:]).any(axis=1)).tolist()
        naive = np.mean(whole[both > 0, 2])
        assert naive > 0.9
        assert abs(weighted_mean(whole[:, 2], both) - whole[:, 2].mean()) < 0.2
        assert abs(weighted_mean(whole[:, 1], rows.weights(0b010)) - whole[:, 1].mean()) < 0.1
        assert both.sum() == pytest.approx(len(X), rel=0.15)
        assert rows.weights(0b001).tolist() == np.ones(len(X)).tolist()


def test_rows_count_by_what_they_buy_themselves():
    X, whole = _hospital(3000, 1)
    rows = LoggedPurchases.learn(COSTS, X, np.zeros(len(X))).own
    accounts = RowAccounts(Ledger(COSTS.price_list, ()), len(X))
    accounts.buy(np.flatnonzero(X[:, 0] > 0), 0b010)  # who is old buys a
    weights = rows.weights_of(accounts)
    old = X[:, 0] > 0
    assert (weights[~old] == 1.0).all()
    assert (weights[old] > 0).tolist() == (~np.isnan(X[old, 1])).tolist()
    truth = np.where(old, whole[:, 1], 0.0).mean()
    assert abs(weighted_mean(np.where(old, whole[:, 1], 0.0), weights) - truth) < 0.05
    assert effective_number(weights) < (weights > 0).sum()
    assert effective_number(np.ones(7)) == 7.0


def test_chances_without_a_cause_are_the_share():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(900, 3))
    X[rng.random(900) < 0.5, 1] = np.nan
    X[:10, 2] = np.nan
    inverse = LoggedPurchases.learn(COSTS, X, np.zeros(len(X))).own.inverse
    assert np.abs(inverse[inverse[:, 1] > 0, 1] - 2.0).mean() < 0.3
    assert np.abs(inverse[inverse[:, 2] > 0, 2] - 1.0).max() < 0.05

"""AutoMiser with few orders for each row: which tests are ordered together is learned."""

import numpy as np
import pytest

import miserly as ms
from oracles.driver import gift

RNG = np.random.default_rng(0)
N = 100
X = RNG.normal(size=(2 * N, 4))
Y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)  # neither of the two says anything alone
X[:, 2] = Y + 1.5 * RNG.normal(size=2 * N)
COSTS = ms.CostTable(
    ["a", "b", "weak", "noise"],
    {"a": ["draw", "a"], "b": ["draw", "b"], "weak": ["ask"], "noise": ["noise"]},
    {"draw": 1.0, "a": 1.0, "b": 1.0, "ask": 0.5, "noise": 1.0},
)
TRAIN, TEST = slice(0, N), slice(N, None)


@pytest.fixture(scope="module", params=[1, 2])
def fitted(request):
    model = ms.AutoMiserClassifier(COSTS, time_limit=None, max_rounds=request.param)
    return request.param, model.fit(X[TRAIN], Y[TRAIN])


def test_no_row_makes_more_orders(fitted):
    rounds, model = fitted
    plans = [point.model.plan_ for point in model.frontier_.points]
    assert 1 <= max(plan.predict_cost(X[TEST], currency="rounds").max() for plan in plans) <= rounds
    for budget in (0.5, 2.0, 3.0, 9.0):
        chosen = model.menu_.choose(budget, None)
        assert chosen.plan.predict_cost(X[TEST], budget=chosen.cap, currency="rounds").max() <= rounds


def test_what_says_something_only_together_is_ordered_together(fitted):
    rounds, model = fitted
    plan = model.plan_
    assert (plan.predict(X[TEST]) == Y[TEST]).mean() > 0.85
    walk, owned, orders = plan.start(), [], []
    while walk.needs:
        orders.append(set(walk.needs))
        walk.supply(gift(plan, X[TEST][0], owned, walk.needs))
        owned += orders[-1]
    if rounds == 1:
        assert any({"draw", "a", "b"} <= order for order in orders)
    assert {"draw", "a", "b"} <= set(owned)


def test_numbers_and_lists():
    costs, few = ms.CostTable.per_feature([1.0, 2.0]), X[:60, [0, 2]]
    number = ms.AutoMiserRegressor(costs, time_limit=None, max_rounds=1).fit(few, X[:60, 0] + X[:60, 2])
    qid = np.repeat(np.arange(6), 10)
    lists = ms.AutoMiserRanker(costs, time_limit=None, max_rounds=1).fit(few, Y[:60], qid, eval_set=(few, Y[:60], qid))
    for model, queries in ((number, None), (lists, qid)):
        for point in model.frontier_.points:
            assert point.model.plan_.predict_cost(few, queries, currency="rounds").max() <= 1


def test_without_a_round_there_is_nothing_to_learn():
    with pytest.raises(ValueError, match="max_rounds"):
        ms.AutoMiserClassifier(COSTS, max_rounds=0).fit(X[TRAIN], Y[TRAIN])

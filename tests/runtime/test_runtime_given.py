"""Features that the caller has already: what yields only those is neither called nor paid; the answer is the same."""

import asyncio

import numpy as np
import pytest

from miserly.costs import CostTable
from miserly.plan import Node, Plan, RawFeatures
from miserly.runtime import OnDemand, extractor
from oracles.extractors import extractors_of, rows_of
from oracles.hand_built import PLANS
from oracles.random_plans import random_plan


def owned_by(plan, given):
    """The slow rule: drop acquisitions until every feature in use that touches one is given and lies wholly inside."""
    used = [plan.costs.features[f] for f in plan.used_features]
    owned = {a for f in used for a in plan.costs.needs[f]}
    while True:
        wrong = {
            a for f in used for a in plan.costs.needs[f] if f not in given or not set(plan.costs.needs[f]) <= owned
        }
        if not owned & wrong:
            return owned
        owned -= wrong


def check(plan, seed, given_share):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, len(plan.costs.features)))
    for x, row in zip(X, rows_of(plan, X)):
        given = {f: float(v) for f, v in zip(plan.costs.features, x) if rng.random() < given_share}
        called = []
        extractors = extractors_of(plan.costs, break_up=lambda name, row, called=called: called.append(name))
        with OnDemand(plan, extractors) as runner:
            whole = runner.predict(row)
            called.clear()
            answer = runner.predict(row, given=given)
            first = list(called)
            assert asyncio.run(runner.apredict(row, given=given)).cost == answer.cost
            assert runner.predict_many([row], given=[given])[0].cost == answer.cost
        np.testing.assert_array_equal(answer.score, whole.score)
        owned = owned_by(plan, given)
        assert not owned & set(first)
        assert not owned & set(answer.acquired)
        if not any(plan.costs.evaluation_prices(len(plan.dictionary))):
            assert set(answer.acquired) == set(whole.acquired) - owned
            assert answer.cost == plan.tables.ledger.price(plan.tables.acquisition_set(answer.acquired))


@pytest.mark.parametrize("name", [name for name in PLANS if not PLANS[name]().by_query])
@pytest.mark.parametrize("share", [0.5, 0.9, 1.0])
def test_hand_built_plans(name, share):
    check(PLANS[name](), 1, share)


@pytest.mark.parametrize("charge", ["learner", "path"])
@pytest.mark.parametrize("seed", range(25))
def test_random_plans(seed, charge):
    check(random_plan(seed, queries=False, charge=charge), seed, 0.8)


def linear(needs, prices):
    costs = CostTable(features=list(needs), needs=needs, prices=prices)
    n = len(needs)
    return Plan(costs, RawFeatures(list(range(n))), (Node(list(range(n)), [1.0] * n),), [0.0])


def test_what_others_take_the_result_of_is_bought_all_the_same():
    """`parse` takes what `fetch` returned, so its price stays, although its own feature is given."""
    plan = linear({"size": ["fetch"], "links": ["fetch", "parse"]}, {"fetch": 5.0, "parse": 1.0})

    @extractor("fetch", yields="size")
    def fetch(row):
        return 3.0

    @extractor("parse", yields="links", needs="fetch")
    def parse(row, size):
        return size + 1.0

    with OnDemand(plan, [fetch, parse]) as runner:
        assert runner.predict(None, given={"size": 3.0}).cost == 6.0
        answer = runner.predict(None, given={"size": 3.0, "links": 9.0})
        assert (answer.cost, answer.value, answer.calls) == (0.0, 12.0, ())


def test_a_budget_is_for_what_is_bought():
    plan = linear({"a": ["x"], "b": ["y"]}, {"x": 5.0, "y": 1.0})
    with OnDemand(plan, extractors_of(plan.costs)) as runner:
        row = {"a": 1.0, "b": 2.0}
        assert runner.predict(row, budget=1.0).stopped == "budget"
        answer = runner.predict(row, budget=1.0, given={"a": 1.0})
        assert (answer.stopped, answer.value, answer.acquired) == ("answered", 3.0, ("y",))


def test_documents_with_given_features():
    plan = linear({"a": ["x"], "b": ["y"]}, {"x": 5.0, "y": 1.0})
    rows = [{"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 4.0}]

    @extractor("x", yields="a")
    def x(pair):
        return pair.document["a"]

    @extractor("y", yields="b")
    def y(pair):
        return pair.document["b"]

    with OnDemand(plan, [x, y]) as runner:
        ranking = runner.rank("q", rows, given=[{"a": 1.0}, {}])
        assert [a.cost for a in ranking.answers] == [1.0, 6.0]
        assert ranking.order == (1, 0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"aa": 1.0}, "knows no feature 'aa'.*Did you mean 'a'"),
        ({"a": "much"}, "is no number.*much"),
        ({"a": 10**400}, "is no number.*too large"),
    ],
)
def test_wrong_features_are_refused(given, words):
    plan = linear({"a": ["x"], "b": ["y"]}, {"x": 5.0, "y": 1.0})
    with OnDemand(plan, extractors_of(plan.costs)) as runner, pytest.raises(ValueError, match=words):
        runner.predict({"a": 1.0, "b": 2.0}, given=given)


def test_given_once_for_each_row():
    plan = linear({"a": ["x"]}, {"x": 5.0})
    with OnDemand(plan, extractors_of(plan.costs)) as runner, pytest.raises(ValueError, match="got 2 for 1 rows"):
        runner.predict_many([{"a": 1.0}], given=[{}, {}])

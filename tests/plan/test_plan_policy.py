"""Policy plans: the definition, the cost battery, any state of knowledge as a start."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miserly.checks import PLAN_CHECKS, check_plan
from miserly.plan import PolicyPlan, load_plan
from miserly.runtime import OnDemand, extractor
from oracles.policy import random_policy_plan, slow_walk

SEEDS = st.integers(0, 2**16)


def rows(seed, n=20, missing=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 7))
    X[rng.random(X.shape) < missing] = np.nan
    return X


def finish(plan, walk, row):
    """Give a walk what it asks for; returns all that was asked for."""
    asked = []
    while not walk.done:
        asked += walk.needs
        walk.supply({f: row[plan.tables.feature_numbers[f]] for f in plan.tables.arriving(walk.owned, walk.asked)})
    return asked


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_battery(seed, n_classes):
    assert len(check_plan(random_policy_plan(seed, n_classes), rows(seed))) == len(PLAN_CHECKS)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("budget", [math.inf, 3.0, 0.0])
def test_the_batch_follows_the_definition(n_classes, budget):
    for seed in range(5):
        plan, X = random_policy_plan(seed, n_classes), rows(seed)
        run = plan.run(X, budget=budget)
        for i, row in enumerate(X):
            score, cost, _ = slow_walk(plan, row, budget)
            assert np.allclose(run.score[i], score, rtol=1e-12, atol=1e-12)
            assert run.cost[i] == cost


@given(SEEDS, st.sampled_from([0, 2, 3]), st.data())
@settings(max_examples=60, deadline=None)
def test_any_state_is_a_start(seed, n_classes, data):
    """Known values are never charged nor asked for alone, unavailable acquisitions never asked; one row is a batch."""
    plan, X = random_policy_plan(seed, n_classes), rows(seed, 3)
    features, budget = plan.costs.features, data.draw(st.sampled_from([None, 0.5, 3.0, 5.0]))
    known = data.draw(st.lists(st.sampled_from(features), unique=True))
    barred = data.draw(st.lists(st.sampled_from(plan.costs.acquisitions), unique=True))
    mask = np.tile([f in known or not plan.costs.needs[f] for f in features], (3, 1))
    run = plan.run(X, budget=budget, known=mask, unavailable=barred)
    for i, row in enumerate(X):
        start = {f: row[j] for j, f in enumerate(features) if mask[i, j]}
        walk = plan.start(budget, given=start, without=barred)
        asked = finish(plan, walk, row)
        assert not set(asked) & set(barred)
        assert len(set(asked)) == len(asked)
        assert walk.cost == plan.costs.price([]) + math.fsum(plan.costs.prices[a] for a in asked)
        assert budget is None or walk.cost <= budget
        assert np.array_equal(walk.best.score, run.score[i])
        assert walk.cost == run.cost[i]
        score, cost, owned = slow_walk(plan, row, math.inf if budget is None else budget, start, barred)
        assert (cost, owned) == (walk.cost, set(asked))
        assert np.allclose(walk.best.score, score, rtol=1e-12, atol=1e-12)


@given(SEEDS, st.sampled_from([0, 2, 3]), st.sets(st.sampled_from(["f0", "f1", "f2", "f4", "f5"]), min_size=1))
@settings(max_examples=30, deadline=None)
def test_unavailable_features_are_never_known_nor_paid_for(seed, n_classes, away):
    """The plan answers as one whose rows lack these features and that never bars what others need."""
    whole, X = random_policy_plan(seed, n_classes, tradeoff=0.0), rows(seed, 4)
    plan = replace(whole, unavailable=tuple(away))
    read = [f for f in plan.costs.features if f not in away]
    wanted = {a for f in read for a in plan.costs.needs[f]}
    run = plan.run(X)
    spoilt = X.copy()
    spoilt[:, [plan.tables.feature_numbers[f] for f in away]] = 77.0
    assert np.array_equal(plan.run(spoilt).score, run.score)
    for i, row in enumerate(X):
        walk = plan.start(given={} if "f0" in away else {"f0": row[0]})
        assert set(finish(plan, walk, row)) == wanted
        assert np.array_equal(walk.best.score, run.score[i])
        assert walk.cost == run.cost[i] == math.fsum(plan.costs.prices[a] for a in wanted)
    assert plan.start(given=dict.fromkeys(plan.costs.features, 0.0)).cost == 0.0


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_what_is_known_needs_no_purchase(seed):
    """Who knows everything buys nothing; who owns an acquisition is not charged for it."""
    plan, row = random_policy_plan(seed, tradeoff=0.0), rows(seed, 1)[0]
    everything = plan.start(given=dict(zip(plan.costs.features, row)))
    assert everything.done
    assert everything.cost == 0.0
    values = {f: row[j] for j, f in enumerate(plan.costs.features) if set(plan.costs.needs[f]) <= {"a", "b"}}
    walk = plan.start(given=values, owned=["a", "b"])
    asked = finish(plan, walk, row)
    assert set(asked) == {"c", "d"}
    assert walk.cost == math.fsum([0.3, 4.1])
    assert np.array_equal(walk.best.score, plan.run(row[None]).score[0])


def test_more_tradeoff_buys_less_in_the_same_order():
    for seed in range(5):
        plan, X = random_policy_plan(seed), rows(seed)
        sets = [plan.at(lam).walk_all(X)[1] for lam in (0.0, 0.02, 0.05, 10.0)]
        assert sets[0].all()
        assert not sets[-1].any()
        for larger, smaller in pairwise(sets):
            assert (larger >= smaller).all()


@pytest.mark.parametrize("n_classes", [0, 3])
def test_a_sweep_is_the_run_at_each_tradeoff(n_classes):
    plan, X = random_policy_plan(6, n_classes), rows(6)
    grid = [10.0, 0.05, 0.03, 0.02, 0.0]
    for tradeoff, run in zip(grid, plan.sweep(X, grid), strict=True):
        alone = plan.at(tradeoff).run(X)
        assert np.array_equal(run.score, alone.score)
        assert np.array_equal(run.cost, alone.cost)


def test_confidence_stops_and_steps_limit():
    plan, X = random_policy_plan(3, tradeoff=0.0), rows(3)
    sure = plan.run(X, confidence=0.6)
    assert (sure.cost <= plan.run(X).cost).all()
    stopped = plan.probabilities(sure.z).max(axis=1) >= 0.6
    assert stopped[sure.cost < plan.run(X).cost].all()
    assert not plan.run(X, steps=0).cost.any()
    stages = list(plan.stages(X))
    assert np.array_equal(stages[-1].score, plan.run(X).score)
    assert all((a.cost <= b.cost).all() for a, b in pairwise(stages))
    with pytest.raises(ValueError, match="predicts numbers"):
        random_policy_plan(0, 0).stopping(0.9)


def test_ranking_is_of_all_that_is_available():
    plan = random_policy_plan(1)
    walk = plan.start(given={"f0": 0.3}, without=["d"])
    assert {a for offer in walk.ranking for a in offer.acquisitions} == {"a", "b", "c"}
    rates = [offer.rate for offer in walk.ranking]
    assert rates == sorted(rates, reverse=True)
    for offer in walk.ranking:
        assert offer.price == pytest.approx(sum(plan.costs.prices[a] for a in offer.acquisitions))
        assert offer.gain >= 0.0
    if walk.needs:
        assert walk.needs == walk.ranking[0].acquisitions
        assert walk.expected_gain == walk.ranking[0].gain


def test_an_acquisition_that_fails_is_not_paid():
    plan, row = random_policy_plan(2, tradeoff=0.0), rows(2, 1)[0]
    walk = plan.start(given={"f0": row[0]})
    first = walk.needs[0]
    walk.fail(first)
    asked = finish(plan, walk, row)
    assert first not in asked
    assert walk.stopped == f"failed:{first}"
    with pytest.raises(KeyError, match="no feature"):
        plan.start(given={"f0": 0.0, "nonsense": 1.0})


def test_file_and_kind(tmp_path):
    plan = random_policy_plan(4).stopping(0.9)
    plan.save(tmp_path / "p.plan")
    again = load_plan(tmp_path / "p.plan")
    assert isinstance(again, PolicyPlan)
    assert again == plan
    assert again != plan.at(0.5)
    with pytest.raises(ValueError, match="budget row by row"):
        plan.truncate(3.0)


def test_runs_on_demand():
    plan, X = random_policy_plan(5), rows(5, 10, missing=0.0)

    @extractor(yields=["f0"])
    def free(row):
        return row[0]

    @extractor(acquisition="a", yields=["f1", "f2"])
    def a(row):
        return row[1], row[2]

    @extractor(acquisition="b", yields=["f3"])
    def b(row):
        return row[3]

    @extractor(acquisition="c", needs=["a"], yields=["f4"])
    def c(row, before):
        return row[4]

    @extractor(acquisition="d", yields=["f5"])
    def d(row):
        return row[5]

    @extractor(needs=["b", "d"], yields=["f6"])
    def e(row, one, other):
        return row[6]

    with OnDemand(plan, [free, a, b, c, d, e]) as runner:
        for budget in (None, 3.0):
            run = plan.run(X, budget=budget)
            for i, row in enumerate(X):
                answer = runner.predict(row, budget=budget)
                assert np.array_equal(answer.score, run.score[i])
                assert answer.cost == run.cost[i]

"""Models one after another against their answers taken one by one."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import miserly as ms
from miserly.baselines import EarlyExitClassifier
from miserly.plan import EXIT, Gate, RawFeatures
from miserly.schema import Schema

COSTS = ms.CostTable.per_feature({"a": 1.0, "b": 5.0, "c": 20.0})
ROWS = np.random.default_rng(0).normal(size=(600, 3))
X, NEW = ROWS[:400], ROWS[400:]
Y = ROWS @ [1.5, 1.0, 1.0]
LABELS = {"two": np.where(Y > 0, "high", "low"), "three": np.digitize(Y, [-1.0, 1.0])}


def cheap_and_dear(labels="two", **settings):
    """A model that buys little, and one that buys more."""
    y = LABELS[labels][:400]
    plans = [
        ms.GreedyMiserClassifier(COSTS, tradeoff=t, n_estimators=30, **settings).fit(X, y).plan_ for t in (5e-3, 1e-5)
    ]
    paid = [plan.predict_cost(NEW).mean() for plan in plans]
    assert 0 < paid[0] < paid[1]
    return plans


def price_of_both(plans):
    """The union of what each buys, acquisition by acquisition."""
    bought = {name for plan in plans for line in plan.purchases() for name in line["buys"]}
    return sum(COSTS.prices[name] for name in bought)


@pytest.mark.parametrize("labels", LABELS)
def test_without_an_exit_the_last_one_answers_and_all_is_paid(labels):
    plans = cheap_and_dear(labels)
    both = ms.cascade(plans)
    assert np.allclose(both.predict_proba(NEW), plans[1].predict_proba(NEW), rtol=0, atol=1e-12)
    assert (both.predict_cost(NEW) == price_of_both(plans)).all()


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("charge", ["learner", "path"])
@pytest.mark.parametrize("p", [0.5, 0.7, 0.9])
def test_who_is_sure_stays_with_the_first(labels, charge, p):
    cheap, dear = cheap_and_dear(labels, charge=charge)
    both = ms.cascade([cheap, dear])
    sure = cheap.predict_proba(NEW).max(axis=1) >= p
    assert 0 < sure.sum() < len(NEW) or p == 0.5
    expected = np.where(sure, cheap.predict(NEW), dear.predict(NEW))
    assert (both.predict(NEW, confidence=p) == expected).all()
    paid = both.predict_cost(NEW, confidence=p)
    assert (paid[sure] == cheap.predict_cost(NEW)[sure]).all()
    assert (paid[~sure] == both.predict_cost(NEW)[~sure]).all()
    assert (paid[~sure] >= dear.predict_cost(NEW)[~sure]).all()


def test_a_budget_ends_between_them():
    cheap, dear = cheap_and_dear()
    both, budget = ms.cascade([cheap, dear]), float(cheap.predict_cost(NEW)[0])
    assert (both.predict(NEW, budget=budget) == cheap.predict(NEW)).all()
    assert (both.truncate(budget).predict(NEW) == cheap.predict(NEW)).all()


@pytest.mark.parametrize("charge", ["learner", "path"])
def test_a_walk_is_the_batch_and_a_file_keeps_it(charge, tmp_path):
    plan = ms.cascade(cheap_and_dear("three", charge=charge)).stopping(0.8)
    plan.save(tmp_path / "both.plan")
    assert ms.load_plan(tmp_path / "both.plan") == plan
    answers, paid = plan.predict(NEW), plan.predict_cost(NEW)
    assert len(np.unique(paid)) > 1
    for row, answer, cost in zip(NEW, answers, paid):
        walk = plan.start()
        while not walk.done:
            walk.supply({name: row[f] for name, f in plan.tables.arriving(walk.owned, walk.asked).items()})
        assert (walk.best.value, walk.cost) == (answer, cost)


def test_early_exits_go_between_models():
    plans, y = cheap_and_dear(), LABELS["two"][:400]
    both = ms.cascade(plans)
    fitted = EarlyExitClassifier(both, threshold=0.8).fit(X, y)
    assert fitted.exits_ == [1]
    assert (fitted.predict(NEW) == both.predict(NEW, confidence=0.8)).all()
    assert (fitted.predict_cost(NEW) == both.predict_cost(NEW, confidence=0.8)).all()
    grown = EarlyExitClassifier(ms.AnytimeMiserClassifier(COSTS, n_estimators=20), threshold=0.8).fit(X, y)
    assert len(grown.exits_) == len(grown.plan_.nodes) - 1 > 0
    assert len(np.unique(grown.predict_cost(NEW))) > 1


def test_numbers_and_models_that_buy_nothing():
    plans = [
        ms.GreedyMiserRegressor(COSTS, tradeoff=t, n_estimators=30).fit(X, Y[:400]).plan_ for t in (1e9, 1e-2, 1e-5)
    ]
    assert not plans[0].nodes
    both = ms.cascade(plans)
    assert len(both.nodes) == 2
    assert np.allclose(both.predict(NEW), plans[2].predict(NEW), rtol=0, atol=1e-12)
    assert (ms.cascade(plans[:1]).predict(NEW) == plans[0].predict(NEW)).all()


def test_categories_are_kept():
    """They were lost, so that a served plan would have taken words for numbers that it does not know."""
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["a"] = pd.Categorical(np.where(frame["a"] > 0, "up", "down"), ["down", "up"])
    models = [ms.GreedyMiserClassifier(COSTS, tradeoff=t).fit(frame, LABELS["two"][:400]) for t in (5e-3, 1e-5)]
    plans = [model.plan_ for model in models]
    fitted = EarlyExitClassifier(ms.cascade(plans), threshold=1.0).fit(frame, LABELS["two"][:400])
    assert fitted.categories_ == {"a": ("down", "up")}
    assert (fitted.predict(frame) == models[1].predict(frame)).all()
    other = replace(plans[1], schema=Schema.of_names("abc", {"a": ["up", "down"]}))
    with pytest.raises(ValueError, match="numbers the categories"):
        ms.cascade([plans[0], other])


def test_what_cannot_stand_in_turn():
    cheap, dear = cheap_and_dear()
    other = replace(dear, charge="path")
    raw = replace(dear, dictionary=RawFeatures(np.arange(3)), nodes=(), roots=(), shares=None)
    gated = replace(dear, nodes=(replace(dear.nodes[0], gate=Gate.above(0.0), failed=EXIT), *dear.nodes[1:]))
    for wrong, message in (
        (other, "another charge"),
        (raw, "not a sum of trees"),
        (gated, "not a sum of trees"),
        (cheap_and_dear("three")[0], "other classes"),
    ):
        with pytest.raises(ValueError, match=f"Plan 1 .*{message}"):
            ms.cascade([cheap, wrong])
    with pytest.raises(ValueError, match="at least one"):
        ms.cascade([])


def test_gates_by_a_model_of_their_own_let_rows_go_on():
    cheap, dear = cheap_and_dear("three")
    gain = ms.GreedyMiserRegressor(COSTS, tradeoff=0.0, n_estimators=30).fit(X, 1.0 - 2 * np.abs(X[:, 0])).plan_
    both = ms.cascade([replace(cheap, nodes=(), roots=()), cheap, dear], go_on=[_always(gain), gain])
    goes = gain.predict(NEW) > 0
    assert 0 < goes.sum() < len(NEW)
    assert (both.predict(NEW) == np.where(goes, dear.predict(NEW), cheap.predict(NEW))).all()
    assert (both.predict_cost(NEW)[~goes] == price_of_both([cheap, gain])).all()
    assert (both.predict_cost(NEW)[goes] == price_of_both([cheap, gain, dear])).all()
    stopped = ms.cascade([replace(cheap, nodes=(), roots=()), dear], go_on=[_always(gain, -1.0)])
    assert (stopped.predict_cost(NEW) == 0).all()


def _always(plan, value=1.0):
    return replace(plan, nodes=(), roots=(), prior=np.array([value]))


def test_wrong_gates_are_refused():
    cheap, dear = cheap_and_dear()
    gain = ms.GreedyMiserRegressor(COSTS, n_estimators=2).fit(X, X[:, 0]).plan_
    other = ms.GreedyMiserRegressor(ms.CostTable.uniform(), n_estimators=2).fit(X, X[:, 0]).plan_
    for gates, message in (([gain, gain], "1 gates"), ([cheap], "predict a number"), ([other], "other features")):
        with pytest.raises(ValueError, match=message):
            ms.cascade([cheap, dear], go_on=gates)
    with pytest.raises(ValueError, match="sum of trees"):
        ms.cascade([cheap, dear], go_on=[ms.cascade([gain, gain], go_on=[gain])])

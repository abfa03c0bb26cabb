"""Advice from any state of knowledge: a prediction, the next purchase, and why."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import miserly as ms
from miserly.plan import Menu, Node, Plan, RawFeatures, cascade
from miserly.schema import Column, Schema
from oracles.random_plans import random_plan, random_rows

SEEDS = st.integers(0, 2**32 - 1)
COSTS = ms.CostTable(
    features=("age", "crp", "wbc", "scan"),
    needs={"age": (), "crp": ("draw", "crp"), "wbc": ("draw", "wbc"), "scan": ("scan",)},
    prices={"draw": 2.0, "crp": 3.0, "wbc": 1.0, "scan": 40.0},
    unit="usd",
)


def patients(n=800):
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.5).astype(int)
    return rng.normal(size=(n, 4)) + np.outer(y, [0.3, 1.5, 0.4, 2.0]), y


X, Y = patients()


def quality(plan, run):
    return -float(np.mean(-np.log(plan.probabilities(run.z)[np.arange(len(Y)), Y])))


@pytest.fixture(autouse=True, scope="module")
def _fits():
    """Fitted before the first test, not while tests are collected."""
    global FITS, PLAN, MENU
    FITS = [ms.GreedyMiserClassifier(COSTS, tradeoff=t, n_estimators=40).fit(X, Y) for t in (1e-5, 1e-3, 3e-2)]
    PLAN = FITS[0].plan_
    free = replace(PLAN, nodes=(), roots=())
    MENU = Menu.measured([free, *(model.plan_ for model in reversed(FITS))], X, quality)


def test_knowing_nothing_is_the_prior_and_everything_is_the_prediction():
    nothing = ms.advise(replace(PLAN, costs=replace(COSTS, needs={**COSTS.needs, "age": ("scan",)})))
    assert nothing.probabilities[1] == pytest.approx(Y.mean(), abs=0.02)
    for x in X[:20]:
        known = dict(zip(COSTS.features, x.tolist()))
        all_known = ms.advise(PLAN, known=known)
        assert (all_known.value, all_known.stop, all_known.next) == (PLAN.predict(x[None])[0], True, None)
        assert all_known.probabilities.tolist() == PLAN.predict_proba(x[None])[0].tolist()
        assert "final" in all_known.why


def test_a_consultation_goes_from_empty_to_stop():
    x, known, paid = dict(zip(COSTS.features, X[3].tolist())), {"age": X[3, 0]}, 0.0
    for _ in range(5):
        advice = ms.advise(PLAN, known, budget=50.0 - paid)
        if advice.stop:
            break
        assert advice.next in advice.together
        assert advice.ranking[0].rate >= advice.ranking[-1].rate
        assert all(c.low <= c.gain <= c.high for c in advice.ranking)
        assert repr(advice.next) in advice.why
        paid += advice.price
        known |= {f: x[f] for f in COSTS.features if set(COSTS.needs[f]) <= {*advice.together, "draw"}}
    assert advice.stop
    assert paid <= 50.0
    assert set(known) == set(x)


def test_what_is_unavailable_or_too_expensive_is_not_advised():
    known = {"age": 0.1}
    assert "scan" in [c.acquisitions[-1] for c in ms.advise(PLAN, known).ranking]
    for unavailable in (["scan"], ["draw"], ["crp", "scan"]):
        advice = ms.advise(PLAN, known, unavailable=unavailable)
        assert not {a for c in advice.ranking for a in c.acquisitions} & set(unavailable)
        assert advice.next not in unavailable
    assert {c.acquisitions[-1] for c in ms.advise(PLAN, known, budget=4.0).ranking} <= {"wbc"}
    poor = ms.advise(PLAN, known, budget=0.5)
    assert poor.stop
    assert "0.5 usd" in poor.why


def test_what_is_owned_is_not_charged_again_and_the_menu_keeps_to_its_plan():
    known = {"age": 0.1, "wbc": 0.4}
    offers = {c.acquisitions: c.price for c in ms.advise(PLAN, known, owned=["draw", "wbc"]).ranking}
    assert offers == {("crp",): 3.0, ("scan",): 40.0}
    again = {frozenset(c.acquisitions): c.price for c in ms.advise(PLAN, known).ranking}
    assert again == {frozenset({"crp"}): 3.0, frozenset({"scan"}): 40.0}, "a known wbc needed the draw"
    assert (
        ms.advise(PLAN, {"age": 0.1, "wbc": None}).ranking
        == ms.advise(PLAN, {"age": 0.1}, owned=["draw", "wbc"]).ranking
    )
    assert ms.advise(MENU, known, budget=57.0, owned=["draw", "wbc"]).plan is MENU.choose(60.0).plan
    lost = ms.advise(PLAN, {"age": 0.1}, owned=["draw", "wbc"])
    assert lost.probabilities.tolist() == ms.advise(PLAN, {"age": 0.1, "wbc": None}).probabilities.tolist()
    with pytest.raises(ValueError, match=r"no acquisition 'drew'.*'draw'"):
        ms.advise(PLAN, {}, owned=["drew"])


def test_what_the_plan_does_not_ask_for_is_not_bought_along():
    """A plan that asks for a first test of a shared draw was advised to order all tests of that draw at once."""
    ask = Plan(COSTS, RawFeatures([1, 2]), (Node([0], [1.0]), Node([1], [9.0])), [0.0], means=[0.0] * 4)
    advice = ms.advise(ask, {"age": 0.0})
    assert set(advice.together) == set(ask.start(given={"age": 0.0}).needs)


def test_what_matters_more_is_worth_more():
    gains = {c.acquisitions[-1]: c.gain for c in ms.advise(PLAN, {"age": 0.0}).ranking}
    assert gains["scan"] > gains["crp"] > 0
    sure = ms.advise(PLAN, {"age": 0.0, "crp": 4.0, "wbc": 1.0})
    unsure = ms.advise(PLAN, {"age": 0.0, "crp": 0.75, "wbc": 0.2})
    assert sure.expected_gain < unsure.expected_gain


def test_a_menu_advises_within_the_budget_and_predicts_with_what_is_known():
    for budget in (None, 0.0, 5.0, 60.0):
        advice = ms.advise(MENU, {"age": 0.3}, budget=budget)
        assert advice.plan is MENU.choose(budget).plan
        assert advice.price <= (math.inf if budget is None else budget)
    known = dict(zip(COSTS.features, X[0].tolist()))
    assert ms.advise(MENU, known).probabilities.shape == (2,)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from(["learner", "path"]))
def test_any_plan_advises_from_any_state(seed, charge):
    plan = random_plan(seed, queries=False, charge=charge)
    assume(not plan.unavailable)
    rows, _ = random_rows(plan, seed, n=3)
    rng = np.random.default_rng(seed)
    for x in rows:
        known = {f: x[i] for i, f in enumerate(plan.costs.features) if rng.random() < 0.5}
        away = [a for a in plan.costs.acquisitions if rng.random() < 0.2]
        budget = None if rng.random() < 0.5 else float(rng.random() * 5)
        advice = ms.advise(plan, known, away, budget)
        assert advice.stop == (advice.next is None)
        assert advice.price <= (math.inf if budget is None else budget)
        assert not set(advice.together) & set(away)
        served = [f for f in plan.costs.features if f not in known]
        assert advice.next is None or any(advice.next in plan.costs.needs[f] for f in served)
        assert advice.why.endswith(".")


def test_words_unknown_names_and_cascades():
    with pytest.raises(ValueError, match=r"no feature 'crpp'.*'crp'"):
        ms.advise(PLAN, {"crpp": 1.0})
    with pytest.raises(ValueError, match="no acquisition or feature 'scann'"):
        ms.advise(PLAN, {}, unavailable=["scann"])
    with pytest.raises(ValueError, match="not a number"):
        ms.advise(PLAN, {"crp": "high"})
    both = cascade([FITS[1].plan_, FITS[0].plan_])
    assert ms.advise(both, {"age": 0.0}).next is not None
    assert ms.advise(PLAN, {"age": None, "crp": None}).probabilities is not None
    raw = Plan(COSTS, RawFeatures([0, 1]), (Node([0, 1], [1.0, 2.0]),), [0.0])
    assert ms.advise(raw, {"age": 1.0}).next == "crp"


def test_what_is_free_is_looked_at_and_its_noise_does_not_stand_before_what_is_worth_its_price():
    """A free column that says nothing was recommended ("Buy 'ward' for 0 EUR … lower the loss by 2.16e-07")."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(800, 3))
    y = (rows[:, 1] + 0.3 * rows[:, 2] + 0.3 * rng.normal(size=800) > 0).astype(int)
    costs = ms.CostTable.per_feature({"ward": 0.0, "crp": 5.0, "age": 0.0}, unit="EUR")
    plan = ms.GreedyMiserClassifier(costs, tradeoff=1e-6, n_estimators=40).fit(rows, y).plan_
    shares = plan.shares
    assert shares is not None
    told = ms.advise(plan)
    assert (told.next, told.price) == ("age", 0.0)
    assert told.why.startswith("Look at 'age', which is free. It is expected to lower the loss by ")
    assert "look at age" in repr(told)
    linear = Plan(costs, RawFeatures([0, 1, 2]), (Node([0, 1, 2], [1e-6, 2.0, 1e-6]),), [0.0], means=[0.0] * 3)
    paid = ms.advise(linear)
    assert (paid.next, paid.price) == ("crp", 5.0)
    assert paid.why.startswith("Buy 'crp' for 5 EUR")
    assert paid.why.endswith("Look at 'ward', 'age' too, which is free.")
    assert paid.ranking[0].acquisitions == ("crp",)
    assert ms.advise(linear, {"crp": 1.0}).next in ("ward", "age"), "the plan asks for them, and nothing else is left"
    assert ms.advise(linear, {"crp": 1.0}).why == "Look at 'ward', which is free."


def test_names_are_guessed_without_case_and_unit():
    costs = ms.CostTable.per_feature({"CRP (mg/l)": 1.0, "Lactate [mmol/l]": 1.0, "age": 0.0})
    plan = Plan(costs, RawFeatures([0, 1, 2]), (Node([0, 1, 2], [1.0, 1.0, 1.0]),), [0.0])
    with pytest.raises(ValueError, match=r"no feature 'crp'. Did you mean 'CRP \(mg/l\)'\?"):
        ms.advise(plan, {"crp": 1.0})
    with pytest.raises(ValueError, match=r"'lactat'. Did you mean 'Lactate \[mmol/l\]'"):
        ms.advise(plan, {"lactat": 1.0})


def test_words_that_are_new_are_named_and_words_without_a_schema_are_refused_with_the_remedy():
    costs = ms.CostTable.per_feature({"ward": 0.0, "age": 0.0})
    plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [1.0, 1.0]),), [0.0], means=[0.0, 0.0])
    schema = Schema((Column("ward", "category", ("ICU", "surgery")), Column("age")))
    known = replace(plan, schema=schema)
    assert ms.advise(known, {"ward": "onkology", "age": 3}).unknown_words == ("ward",)
    assert ms.advise(known, {"ward": "ICU"}).unknown_words == ms.advise(known, {"ward": "n/a"}).unknown_words == ()
    with pytest.raises(ValueError, match=r"'ward' is not a number: 'ICU'.*fit on data.frame\(\)"):
        ms.advise(plan, {"ward": "ICU"})

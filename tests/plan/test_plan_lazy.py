"""Lazy plans: the same classes and orders as when everything is bought, for less, in every way of running them."""

import json
import zipfile
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import miserly as ms
from miserly.checks import check_plan
from miserly.plan import EXIT, Gate, Lazy, LazyPlan, Node, Plan, PlanFileError, RawFeatures, load_plan, stack_trees
from oracles import lazy as oracle

N_FEATURES = 6


def random_tree(rng, depth):
    """A tree over few features, with shares."""
    feature, threshold, left, value, order = [], [], [], [], [0]
    level = [0]
    while len(level) < len(order) or len(feature) < len(order):
        at = len(feature)
        is_leaf = level[at] == depth or (at and rng.random() < 0.2)
        feature.append(0 if is_leaf else int(rng.integers(N_FEATURES)))
        threshold.append(np.inf if is_leaf else float(rng.normal()))
        left.append(at if is_leaf else len(order))
        value.append(float(rng.normal()))
        if not is_leaf:
            order += [0, 0]
            level += [level[at] + 1] * 2
    leaf = np.array(left) == np.arange(len(left))
    missing_right = (rng.random(len(left)) < 0.5) & ~leaf
    tree = {"feature": feature, "threshold": threshold, "left": left, "value": value, "missing_right": missing_right}
    return {name: np.array(column) for name, column in tree.items()}


def random_plan(seed, n_outputs=1, n_trees=8, prices=None, shared=True):
    rng = np.random.default_rng(seed)
    trees = stack_trees([random_tree(rng, 3) for _ in range(n_trees)])
    names = [f"x{f}" for f in range(N_FEATURES)]
    needs = {name: (name,) for name in names}
    needs |= {"x1": ("x1", "draw"), "x2": ("x2", "draw"), "x5": ()} if shared else {}
    used = {a for need in needs.values() for a in need}
    table = {a: float(p) for a, p in zip([*names, "draw"], rng.integers(0, 9, N_FEATURES + 1)) if a in used}
    costs = ms.CostTable(features=names, needs=needs, prices=prices or table)
    weights = rng.normal(size=(n_trees, n_outputs))
    split = n_trees // 2
    nodes = (
        Node(np.arange(split), weights[:split], bias=rng.normal(size=n_outputs), outputs=range(n_outputs), passed=1),
        Node(np.arange(split, n_trees), weights[split:], outputs=range(n_outputs)),
    )
    shares = np.where(trees.is_leaf, 1.0, rng.random(len(trees.left)))
    kind = {1: ("logistic", ["no", "yes"]), 3: ("softmax", [0, 1, 2])}[n_outputs]
    nodes = (replace(nodes[0], combine="replace"), nodes[1])
    link = {"link": kind[0], "classes": np.array(kind[1])}
    return Plan(costs, trees, nodes, np.zeros(n_outputs), charge="path", shares=shares, **link)


def random_rows(seed, n=60):
    rng = np.random.default_rng(seed + 1)
    X = rng.normal(size=(n, N_FEATURES))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def first_rows(score, query, k):
    return [np.flatnonzero(query == q)[np.argsort(-score[query == q], kind="stable")[:k]].tolist() for q in set(query)]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1, 3]), st.booleans())
def test_classes_stay_and_nobody_pays_more(seed, n_outputs, adaptive):
    plan, X = random_plan(seed, n_outputs), random_rows(seed)
    lazy = plan.lazy(adaptive=adaptive)
    np.testing.assert_array_equal(lazy.predict(X), plan.predict(X))
    assert (lazy.predict_cost(X) <= plan.predict_cost(X)).all()
    whole = np.isclose(lazy.predict_cost(X), plan.predict_cost(X))
    assert whole.any() or seed  # some rows may need everything
    p = lazy.predict_proba(X)
    np.testing.assert_array_equal(lazy.classes[p.argmax(axis=1)], plan.predict(X))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1, 3]), st.booleans())
def test_the_kernel_buys_what_the_definition_says(seed, n_outputs, adaptive):
    plan, X = random_plan(seed, n_outputs).lazy(adaptive=adaptive), random_rows(seed, 12)
    run = plan.run(X)
    for i, x in enumerate(X):
        owned, score = oracle.walk(plan, x)
        assert run.cost[i] == sum(plan.costs.prices[a] for a in owned)
        np.testing.assert_allclose(run.score[i], score, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_the_first_rows_of_a_query_keep_their_places(seed, k):
    plan = replace(random_plan(seed), link="identity", classes=None)
    X, query = random_rows(seed, 40), np.arange(40) % 4
    lazy = plan.lazy(k=k)
    assert lazy.by_query
    want = first_rows(plan.predict(X), query, k)
    assert first_rows(lazy.predict(X, qid=query), query, k) == want
    assert (lazy.predict_cost(X, query) <= plan.predict_cost(X)).all()
    everyone = plan.lazy(k=100).predict(X, qid=query)
    assert first_rows(everyone, query, 100) == first_rows(plan.predict(X), query, 100)


def test_equal_scores_stay_in_the_order_of_rows():
    plan = replace(random_plan(3), link="identity", classes=None)
    X = np.repeat(random_rows(3, 5), 2, axis=0)
    assert first_rows(plan.lazy(k=4).predict(X, np.zeros(10)), np.zeros(10), 4) == first_rows(
        plan.predict(X), np.zeros(10), 4
    )


@pytest.mark.parametrize("keep", ["class", "order"])
@pytest.mark.parametrize("evaluation", [0.0, 0.5])
def test_the_cost_battery_holds(keep, evaluation):
    plan = random_plan(7)
    plan = replace(plan, costs=replace(plan.costs, evaluation=evaluation))
    plan = plan.lazy() if keep == "class" else replace(plan, link="identity", classes=None).lazy(k=3)
    assert len(check_plan(plan, random_rows(7, 24), np.arange(24) % 3)) == 6


def test_the_file_is_the_plan_and_a_damaged_rule_is_refused(tmp_path):
    plan = random_plan(5).lazy().stopping(0.9)
    plan.save(tmp_path / "a.plan")
    again = load_plan(tmp_path / "a.plan")
    assert isinstance(again, LazyPlan)
    assert again == plan
    assert again.laziness == Lazy("class", 10, True, 0.9)
    assert again != replace(plan, laziness=Lazy("class", 10, False, 0.9))
    with zipfile.ZipFile(tmp_path / "a.plan") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for change in ({"keep": "all"}, {"k": 0}, {"k": "3"}, {"adaptive": 1}, {"confidence": -1.0}, {"more": 1}):
        header = json.loads(parts["plan.json"])
        header["lazy"] |= change
        with zipfile.ZipFile(tmp_path / "b.plan", "w") as archive:
            for name, part in parts.items():
                archive.writestr(name, json.dumps(header) if name == "plan.json" else part)
        with pytest.raises(PlanFileError):
            load_plan(tmp_path / "b.plan")


def test_a_row_goes_on_from_what_is_known_owned_or_out_of_reach():
    plan, x = random_plan(11).lazy(), random_rows(11, 1)[0]
    values = {name: float(v) for name, v in zip(plan.costs.features, x)}
    alone = plan.start(given={"x5": values["x5"]})
    assert alone.needs
    everything = plan.start(given=values)
    assert everything.done
    assert everything.cost == 0.0
    assert everything.best.value == plan.predict(x[None])[0]
    away = plan.start(given={"x5": values["x5"]}, without=["draw"])
    while not away.done:
        assert "draw" not in away.needs
        away.supply({name: values[name] for name in plan.tables.arriving(away.owned, away.asked)})
    failing = plan.start(given={"x5": values["x5"]})
    first = failing.needs[0]
    failing.fail(first)
    while not failing.done:
        assert first not in failing.needs
        failing.supply({name: values[name] for name in plan.tables.arriving(failing.owned, failing.asked)})
    assert failing.stopped == f"failed:{first}"
    had = plan.start(given={n: values[n] for n in ("x1", "x2", "x5")}, owned=["x1", "x2", "draw"])
    while not had.done:
        had.supply({name: values[name] for name in plan.tables.arriving(had.owned, had.asked)})
    assert not {"x1", "x2", "draw"} & set(had.bought)


def test_confidence_and_budgets_spend_less():
    plan, X = random_plan(2).lazy(), random_rows(2, 300)
    sure = plan.predict_cost(X, confidence=0.8)
    assert sure.mean() < plan.predict_cost(X).mean()
    assert (plan.predict_proba(X, confidence=0.8).max(axis=1) >= 0.5).all()
    for budget in (0.0, 3.0, 9.0):
        run = plan.run(X, budget=budget)
        assert run.cost.max() <= budget
        assert run.out_of_budget.any()
    stages = list(plan.stages(X))
    np.testing.assert_array_equal(stages[-1].score, plan.run(X).score)
    assert all((a.cost <= b.cost).all() for a, b in pairwise(stages))


def test_costs_of_mistakes_move_the_border():
    plan, X = random_plan(4).with_error_costs([[0.0, 4.0], [1.0, 0.0]]), random_rows(4, 300)
    np.testing.assert_array_equal(plan.lazy().predict(X), plan.predict(X))


def test_documents_are_served_on_demand():
    plan = replace(random_plan(7, shared=False), link="identity", classes=None)
    lazy, X = plan.lazy(k=2), random_rows(7, 6)

    def extractor_of(f):
        def get(pair):
            return X[pair.document, f]

        return ms.extractor(f"x{f}", yields=f"x{f}", inline=True)(get)

    with ms.OnDemand(lazy, [extractor_of(f) for f in range(N_FEATURES)]) as service:
        answers = service.rank("query", range(6)).answers
    np.testing.assert_array_equal([answer.value for answer in answers], lazy.predict(X, np.zeros(6)))
    assert sum(answer.cost for answer in answers) == lazy.predict_cost(X, np.zeros(6)).sum()


def test_what_cannot_be_lazy_is_refused():
    plan = random_plan(1)
    number = replace(plan, link="identity", classes=None)
    gated = replace(plan, nodes=(replace(plan.nodes[0], gate=Gate.unless_confident(0.9)), plan.nodes[1]))
    raw = Plan(ms.CostTable.per_feature([1.0]), RawFeatures([0]), (Node([0], [1.0]),), [0.0])
    for call, words in (
        (lambda: number.lazy("class"), "no class to keep"),
        (lambda: gated.lazy(), "without gates"),
        (lambda: raw.lazy(), "over trees"),
        (lambda: random_plan(1, 3).lazy("order"), "one number"),
        (lambda: plan.lazy("all"), "'class' or the 'order'"),
        (lambda: number.lazy(k=0), "1 or more"),
        (lambda: plan.lazy().truncate(3.0), "row by row"),
        (lambda: plan.lazy().contributions(random_rows(1)), "no contributions"),
        (lambda: plan.lazy().start(given={"x5": 0.0}).contributions(), "no contributions"),
        (lambda: number.lazy().stopping(0.9), "predicts numbers"),
        (lambda: random_plan(1, 3).with_error_costs(1.0 - np.eye(3)).lazy(), "two classes"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    assert plan.lazy().nodes[0].passed == EXIT

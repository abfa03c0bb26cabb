"""Early exits: who goes on, what everyone pays, the order in the end; and what they must leave as it was."""

import copy
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge

import miserly as ms
from miserly.baselines import EarlyExitClassifier, EarlyExitRanker
from miserly.checks import check_plan
from miserly.datasets import four_quadrants, yahoo_like
from miserly.plan import EXIT, Gate, Node, Plan, stack_trees
from oracles.executor import assert_run_is, execute
from oracles.hand_built import COSTS, TREES, cascade, forest, rows, shared_softmax, tree

LIST_RULES = ("proximity", "rank", "capacity")
A, B, C = range(3)
PRICES = ms.CostTable.per_feature({"a": 1.0, "b": 10.0, "c": 100.0}, evaluation=0.5)
LEFT_FIRST, LEFT_SECOND, TO_THE_END = 1.5, 12.0, 112.5


def staircase(*values):
    """Values of the feature a at 0, 1, 2, …"""
    spec = float(values[-1])
    for step in range(len(values) - 1, 0, -1):
        spec = (A, step - 0.5, float(values[step - 1]), spec)
    return tree(spec)


def three_rounds(**changes):
    """Scores a after the first round, + 1.5 b after the second, − 4 c after the third."""
    trees = stack_trees([staircase(0, 1, 2, 3), tree((B, 0.5, 0.0, 1.5)), tree((C, 0.5, 0.0, -4.0))])
    nodes = [Node([t], [1.0], passed=t + 1 if t < 2 else EXIT) for t in range(3)]
    return replace(Plan(PRICES, trees, nodes, [0.0]), **changes)


# One query. After each round:  3  2  1  0  2  |  3  3.5  2.5  1.5  2  |  -1  3.5  2.5  1.5  2
DOCUMENTS = np.array([[3, 0, 1], [2, 1, 0], [1, 1, 0], [0, 1, 0], [2, 0, 0]], float)
GRADES = np.zeros(5)


def ranker(rule, threshold, k=1, exits=(1, 2), schedule="tapered", plan=None):
    return EarlyExitRanker(plan or three_rounds(), None, rule, threshold, k, list(exits), schedule)


@pytest.mark.parametrize(
    ("rule", "threshold", "schedule", "scores", "costs", "order"),
    [
        # At most 2 below 3 leaves out the fourth; at most 1 below 3.5 then leaves out the fifth.
        ("proximity", 2.0, "tapered", [-1, 3.5, 2.5, 0, 2], [3, 3, 3, 1, 2], [1, 2, 0, 4, 3]),
        # The distance stays 2, so that the fifth goes on, too.
        ("proximity", 2.0, "constant", [-1, 3.5, 2.5, 0, 2], [3, 3, 3, 1, 3], [1, 2, 4, 0, 3]),
        # The first three (of two equal ones, both), then the first two of these.
        ("rank", 2.0, "tapered", [-1, 3.5, 1, 0, 2], [3, 3, 1, 1, 2], [1, 0, 4, 2, 3]),
        # The first two at each exit: of the two equal ones, the earlier row.
        ("rank", 1.0, "constant", [-1, 3.5, 1, 0, 2], [3, 3, 1, 1, 1], [1, 0, 4, 2, 3]),
        # A heap of two is full with the first rows.
        ("capacity", 1.0, "constant", [-1, 3.5, 1, 0, 2], [3, 3, 1, 1, 1], [1, 0, 4, 2, 3]),
        # Three of five stay, then the better two of them: √0.36 · 5 = 3, 0.36 · 5 ≤ 2.
        ("score", 0.36, "tapered", [-1, 3.5, 1, 0, 2], [3, 3, 1, 1, 2], [1, 0, 4, 2, 3]),
        # Two of five would do, but the second and the fifth are equal; then two.
        ("score", 0.4, "constant", [-1, 3.5, 1, 0, 2], [3, 3, 1, 1, 2], [1, 0, 4, 2, 3]),
    ],
)
def test_each_rule_by_hand(rule, threshold, schedule, scores, costs, order):
    model = ranker(rule, threshold, schedule=schedule).fit(DOCUMENTS, GRADES)
    paid = np.array([0.0, LEFT_FIRST, LEFT_SECOND, TO_THE_END])[costs]
    assert model.exits_ == [1, 2]
    assert model.predict(DOCUMENTS).tolist() == scores
    assert model.predict_cost(DOCUMENTS).tolist() == paid.tolist()
    assert np.argsort(-model.rank_score(DOCUMENTS)).tolist() == order


def test_a_heap_lets_the_best_so_far_go_on():
    model = ranker("capacity", 1.0, schedule="constant").fit(DOCUMENTS, GRADES)
    assert (model.predict_cost(DOCUMENTS[::-1]) == TO_THE_END).all()


@pytest.mark.parametrize("rule", LIST_RULES)
def test_queries_do_not_see_each_other(rule):
    model = ranker(rule, 2.0).fit(DOCUMENTS, GRADES)
    other = DOCUMENTS + np.array([1, 0, 0])
    together = np.stack([DOCUMENTS, other], axis=1).reshape(-1, 3)
    for method in (model.predict, model.rank_score, model.predict_cost):
        mixed = method(together, qid=[1, 0] * 5)
        assert np.array_equal(mixed[::2], method(DOCUMENTS))
        assert np.array_equal(mixed[1::2], method(other))


def test_a_budget_skips_the_purchase():
    """The last trees are evaluated for nothing, with the feature that does not fit missing."""
    model = ranker("proximity", 2.0).fit(DOCUMENTS, GRADES)
    assert model.predict_cost(DOCUMENTS, budget=50.0).tolist() == [12.5, 12.5, 12.5, 1.5, 12.0]
    assert model.predict(DOCUMENTS, budget=50.0).tolist() == [3, 3.5, 2.5, 0, 2]
    assert np.argsort(-model.rank_score(DOCUMENTS, budget=50.0)).tolist() == [1, 0, 2, 4, 3]


def two_classes(values=(-3, -2, -1, 1)):
    trees = stack_trees([staircase(*values), tree((B, 0.5, -2.0, 2.0))])
    nodes = [Node([0], [1.0], passed=1), Node([1], [1.0])]
    return Plan(PRICES, trees, nodes, [0.0], "logistic", np.array(["no", "yes"]))


PATIENTS = np.array([[0, 1, 0], [1, 1, 0], [2, 1, 0], [2, 0, 0], [3, 0, 0], [3, 1, 0]], float)
ILL = np.array(["no", "yes", "yes", "no", "yes", "yes"])


def test_confidence_by_hand():
    """The first row is a no with 0.953 at once, the second one with 0.881."""
    model = EarlyExitClassifier(two_classes(), threshold=0.9, exits=[1]).fit(PATIENTS, ILL)
    assert model.predict_cost(PATIENTS).tolist() == [1.5, 12, 12, 12, 12, 12]
    assert model.decision_function(PATIENTS).tolist() == [-3, 0, 1, -3, -1, 3]
    assert model.predict(PATIENTS).tolist() == ["no", "no", "yes", "no", "no", "yes"]
    assert model.predict_proba(PATIENTS)[0, 0] == pytest.approx(1 / (1 + math.exp(-3)))
    stricter = EarlyExitClassifier(two_classes(), threshold=0.88, exits=[1]).fit(PATIENTS, ILL)
    assert stricter.predict_cost(PATIENTS).tolist() == [1.5, 1.5, 12, 12, 12, 12]


def test_confidence_with_three_classes_by_hand():
    """After the first round the first row has 0.99 of class 7, the others a third of each."""
    trees = stack_trees([staircase(6, 0), tree((B, 0.5, 0.0, 1.0))])
    nodes = [Node([0], np.eye(1, 3), outputs=(0, 1, 2), passed=1), Node([1], [[1.0]], outputs=(2,))]
    plan = Plan(PRICES, trees, nodes, np.zeros(3), "softmax", np.array([7, 8, 9]))
    model = EarlyExitClassifier(plan, threshold=0.9, exits=[1]).fit(PATIENTS, [7, 8, 8, 9, 9, 9])
    assert model.predict_cost(PATIENTS).tolist() == [1.5, 12, 12, 12, 12, 12]
    assert model.predict(PATIENTS).tolist() == [7, 9, 9, 7, 7, 9]


@pytest.mark.parametrize(
    ("threshold", "leave"),
    [
        (1.0, [0]),  # everyone who is ill goes on: bar just below −2
        (0.75, [0, 1]),  # three of four: just below −1
        (0.5, [0, 1, 2, 3]),  # two of four score 1, but who looks ill is not sent away: the bar is 0
        (0.0, [0, 1, 2, 3]),
    ],
)
def test_certain_negatives_leave_by_hand(threshold, leave):
    model = EarlyExitClassifier(two_classes(), rule="score", threshold=threshold, exits=[1]).fit(PATIENTS, ILL)
    assert np.flatnonzero(model.predict_cost(PATIENTS) == LEFT_FIRST).tolist() == leave
    assert (model.predict(PATIENTS)[leave] == "no").all()


def test_weights_count_in_the_bars():
    data = four_quadrants(200, 0)
    inner = ms.GreedyMiserRegressor(data.costs, tradeoff=0, n_estimators=12).fit(data.X, data.y)
    weight = np.random.default_rng(0).integers(0, 4, len(data.y))
    again = np.repeat(np.arange(len(data.y)), weight)
    model = EarlyExitRanker(inner.plan_, rule="score", threshold=0.3, exits=3)
    weighted, repeated = clone(model), clone(model)
    weighted.fit(data.X, data.y, sample_weight=weight)
    assert weighted.plan_ == repeated.fit(data.X[again], data.y[again]).plan_


# ---- any additive plan ----------------------------------------------------------------------------------------


def additive(seed, n_outputs=1):
    """A chain of one to nine rounds over shared and derived acquisitions, some with a bias, some learners twice."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 10))
    nodes = [
        Node(
            rng.choice(len(TREES), m := int(rng.integers(1, 3)), replace=False),
            np.round(rng.normal(size=(m, n_outputs)), 1),
            bias=np.round(rng.normal(size=n_outputs), 1) * (rng.random() < 0.3),
            outputs=tuple(range(n_outputs)),
            passed=k + 1 if k < n - 1 else EXIT,
        )
        for k in range(n)
    ]
    return Plan(COSTS, TREES, nodes, np.round(rng.normal(size=n_outputs), 1))


def classes(plan):
    """The same plan as a classifier."""
    link = "logistic" if plan.n_outputs == 1 else "softmax"
    return replace(plan, link=link, classes=np.arange(max(2, plan.n_outputs)))


def documents(seed):
    rng = np.random.default_rng(seed + 1)
    n = int(rng.integers(2, 25))
    return rows(n, seed, missing=0.1), np.sort(rng.integers(0, 3, n)), rng.integers(0, 2, n)


SEEDS = st.integers(0, 10**6)
THRESHOLDS = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.8, 1.0, 2.0, 5.0])
SCHEDULES = st.sampled_from(["tapered", "constant"])
EXITS = st.sampled_from([None, 1, 2, 3, 20, [1], [1, 2, 4]])


@settings(deadline=None, max_examples=60)
@given(SEEDS, st.sampled_from([*LIST_RULES, "score"]), THRESHOLDS, SCHEDULES, EXITS)
def test_rankers_run_as_the_oracle_says(seed, rule, threshold, schedule, exits):
    plan, (X, qid, y) = additive(seed), documents(seed)
    model = EarlyExitRanker(plan, None, rule, threshold, 2, exits, schedule).fit(X, y, qid)
    assert_run_is(model.plan_, model.plan_.run(X, qid), execute(model.plan_, X, qid))
    assert (model.predict_cost(X, qid=qid) <= plan.predict_cost(X)).all()


@settings(deadline=None, max_examples=60)
@given(SEEDS, st.sampled_from([*LIST_RULES, "score"]), SCHEDULES, EXITS)
def test_wide_open_exits_change_nothing(seed, rule, schedule, exits):
    plan, (X, qid, y) = additive(seed), documents(seed)
    model = EarlyExitRanker(plan, None, rule, math.inf, 1, exits, schedule).fit(X, y, qid)
    assert np.array_equal(model.predict(X, qid=qid), plan.predict(X))
    assert (np.diff(model.rank_score(X, qid=qid)[np.argsort(plan.score(X))]) >= 0).all()
    for charge in ("learner", "path"):
        assert np.array_equal(model.predict_cost(X, charge=charge, qid=qid), plan.predict_cost(X, charge=charge))


@settings(deadline=None, max_examples=40)
@given(SEEDS, st.sampled_from([1, 3]), EXITS)
def test_classifiers_that_are_never_sure_change_nothing(seed, n_outputs, exits):
    plan, (X, _, y) = classes(additive(seed, n_outputs)), documents(seed)
    model = EarlyExitClassifier(plan, threshold=1.0, exits=exits).fit(X, y)
    assert np.array_equal(model.predict_proba(X), plan.predict_proba(X))
    assert np.array_equal(model.predict_cost(X), plan.predict_cost(X))


@settings(deadline=None, max_examples=40)
@given(SEEDS, st.sampled_from([1, 3]), EXITS, st.floats(0, 1), st.floats(0, 1))
def test_asking_for_less_confidence_never_costs_a_row_more(seed, n_outputs, exits, one, other):
    plan, (X, _, y) = classes(additive(seed, n_outputs)), documents(seed)
    less, more = (
        EarlyExitClassifier(plan, threshold=p, exits=exits).fit(X, y).predict_cost(X) for p in sorted((one, other))
    )
    assert (less <= more).all()


@settings(deadline=None, max_examples=60)
@given(SEEDS, st.sampled_from([*LIST_RULES, "score"]), st.integers(1, 8), THRESHOLDS, THRESHOLDS, SCHEDULES)
def test_one_exit_that_is_tighter_never_costs_a_document_more(seed, rule, t, one, other, schedule):
    plan, (X, qid, y) = additive(seed), documents(seed)
    tight, loose = (
        EarlyExitRanker(plan, None, rule, s, 2, [t], schedule).fit(X, y, qid).predict_cost(X, qid=qid)
        for s in sorted((one, other))
    )
    assert (tight <= loose).all()


@settings(deadline=None, max_examples=40)
@given(SEEDS, EXITS, THRESHOLDS, THRESHOLDS, SCHEDULES)
def test_fewer_places_never_cost_a_query_more(seed, exits, one, other, schedule):
    """At each exit fewer documents go on, if not always the same ones, and rounds cost each document the same."""
    plan, (X, qid, y) = additive(seed), documents(seed)
    tight, loose = (
        EarlyExitRanker(plan, None, "rank", s, 2, exits, schedule).fit(X, y, qid).predict_cost(X, qid=qid)
        for s in sorted((one, other))
    )
    for query in np.unique(qid):
        assert tight[qid == query].sum() <= loose[qid == query].sum() * (1 + 1e-12)


def test_a_smaller_distance_may_cost_more_after_several_exits():
    """The looser first exit keeps a late bloomer, which then raises the bar for all others."""
    X = np.array([[3, 0, 0], [2, 0, 0], [2, 0, 0], [1, 4, 0]], float)
    late = stack_trees([staircase(0, 1, 2, 3), tree((B, 0.5, 0.0, 10.0)), tree((C, 0.5, 0.0, -4.0))])
    costs = [
        ranker("proximity", s, schedule="constant", plan=three_rounds(dictionary=late)).fit(X, GRADES[:4])
        .predict_cost(X)
        for s in (1.0, 2.0)
    ]  # fmt: skip
    assert costs[0].tolist() == [TO_THE_END, TO_THE_END, TO_THE_END, LEFT_FIRST]
    assert costs[1].tolist() == [LEFT_SECOND, LEFT_SECOND, LEFT_SECOND, TO_THE_END]


@settings(deadline=None, max_examples=60)
@given(SEEDS, st.sampled_from([*LIST_RULES, "score"]), THRESHOLDS, EXITS)
def test_who_left_later_ranks_higher(seed, rule, threshold, exits):
    plan, (X, qid, y) = additive(seed), documents(seed)
    model = EarlyExitRanker(plan, None, rule, threshold, 2, exits).fit(X, y, qid)
    left, score, shown = (
        model.plan_.run(X, qid).exit[:, 0],
        model.predict(X, qid=qid),
        model.rank_score(X, qid=qid),
    )
    later = left[:, None] > left[None, :]
    better = (left[:, None] == left[None, :]) & (score[:, None] > score[None, :] + 1e-9)
    assert (shown[:, None] > shown[None, :])[later | better].all()


@settings(deadline=None, max_examples=40)
@given(SEEDS, st.floats(0, 1), SCHEDULES, EXITS)
def test_the_promised_share_of_training_rows_is_left(seed, share, schedule, exits):
    plan, (X, _, y) = additive(seed), documents(seed)
    model = EarlyExitRanker(plan, None, "score", share, exits=exits, schedule=schedule).fit(X, y)
    assert (model.plan_.run(X).exit[:, 0] == len(plan.nodes) - 1).mean() >= share - 1e-9
    if y.any():
        finder = EarlyExitClassifier(classes(plan), rule="score", threshold=share, exits=exits).fit(X, y)
        result = finder.plan_.run(X)
        early = result.exit[:, 0] < len(plan.nodes) - 1
        assert early[y == 1].mean() <= 1 - share + 1e-9
        assert (finder.predict(X)[early] == 0).all()


@pytest.mark.parametrize("rule", [*LIST_RULES, "score"])
@pytest.mark.parametrize("charge", ["learner", "path"])
def test_the_plan_battery(rule, charge):
    plan, (X, qid, y) = replace(additive(5), charge=charge), documents(5)
    model = EarlyExitRanker(plan, None, rule, 0.5, 2, exits=4).fit(X, y, qid)
    assert len(model.exits_) > 1
    check_plan(model.plan_, X, qid)


# ---- the inner model ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ranking():
    return yahoo_like(60, 0), yahoo_like(40, 1)


def test_fitted_frozen_and_plan_are_the_same(ranking):
    data, _ = ranking
    inner = ms.GreedyMiserRanker(data.costs, tradeoff=0, n_estimators=30)
    fitted = clone(inner).fit(data.X, data.y, data.qid)
    plans = [
        EarlyExitRanker(estimator, threshold=0.5).fit(data.X, data.y, data.qid).plan_
        for estimator in (inner, FrozenEstimator(fitted), fitted.plan_, copy.deepcopy(fitted.plan_))
    ]
    assert all(plan == plans[0] for plan in plans)
    assert not hasattr(inner, "plan_")
    assert plans[0].dictionary == fitted.plan_.dictionary
    assert [n.gate.kind for n in plans[0].nodes].count("proximity") == 2
    assert plans[0].nodes[9].gate == Gate.near_top(5, 0.5 * (30 - 10) / 29)


def test_what_fit_is_given_goes_on_to_the_inner_model(ranking):
    train, test = ranking
    inner = ms.GreedyMiserRanker(train.costs, n_estimators=60, loss="lambdarank", n_iter_no_change=3)
    watched = {"eval_set": (test.X, test.y, test.qid)}
    model = EarlyExitRanker(inner, threshold=0.5)
    model.fit(train.X, train.y, train.qid, binned=model.prepare(train.X), **watched)
    by_hand = clone(inner).fit(train.X, train.y, train.qid, **watched)
    assert model.estimator_.plan_ == by_hand.plan_
    assert not hasattr(EarlyExitRanker(FrozenEstimator(by_hand)), "prepare")
    with pytest.raises(TypeError, match="unheard"):
        model.fit(train.X, train.y, train.qid, unheard=1)


def test_prices_go_to_an_unfitted_model_and_price_a_fitted_one_again(ranking):
    data, _ = ranking
    expensive = data.costs.scaled(8.0)
    inner = ms.GreedyMiserRanker(data.costs, tradeoff=1e-4, n_estimators=30)
    there = EarlyExitRanker(inner, costs=expensive).fit(data.X, data.y, data.qid)
    by_hand = clone(inner).set_params(costs=expensive).fit(data.X, data.y, data.qid)
    assert there.estimator_.plan_ == by_hand.plan_
    blind = clone(inner).fit(data.X, data.y, data.qid)
    for fitted in (FrozenEstimator(blind), blind.plan_):
        here, before = (
            EarlyExitRanker(fitted, costs=costs).fit(data.X, data.y, data.qid) for costs in (expensive, None)
        )
        assert here.plan_.nodes == before.plan_.nodes
        paid = before.predict_cost(data.X, qid=data.qid)
        assert np.array_equal(here.predict_cost(data.X, qid=data.qid), 8 * paid)
        assert "path" in before.plan_.notes
        assert "path" not in here.plan_.notes


@pytest.mark.parametrize(
    ("exits", "n_rounds", "expected"),
    [
        (None, 35, [10, 20, 30]),
        (None, 30, [10, 20]),
        (None, 8, []),
        (3, 8, [2, 4, 6]),
        (1, 9, [4]),
        (20, 4, [1, 2, 3]),
        ([5, 2, 2, 9, 40], 9, [2, 5]),
        ([], 9, []),
        (3, 1, []),
        (3, 0, []),
    ],
)
def test_where_the_exits_are(exits, n_rounds, expected):
    nodes = [Node([0], [0.1], passed=k + 1 if k + 1 < n_rounds else EXIT) for k in range(n_rounds)]
    plan = Plan(COSTS, TREES, nodes, [0.0], roots=(0,) if nodes else ())
    for rule in ("proximity", "score"):
        model = EarlyExitRanker(plan, rule=rule, exits=exits).fit(rows(6), np.zeros(6))
        assert model.exits_ == expected
        assert len(model.predict(rows(6))) == 6


def test_a_frontier_over_the_threshold():
    train, validation = ((d.X, d.y > 1) for d in (yahoo_like(60, 0), yahoo_like(40, 1)))
    inner = ms.GreedyMiserClassifier(yahoo_like(1, 0).costs, tradeoff=0, n_estimators=40).fit(*train)
    model = EarlyExitClassifier(FrozenEstimator(inner), exits=8)
    front = ms.frontier(model, train, validation)
    costs = [p.validation.cost["mean"] for p in front.points]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < 0.8 * costs[0]


@pytest.mark.parametrize("rule", [*LIST_RULES, "score"])
def test_the_own_grid_of_a_ranker_spans_the_trade_off(ranking, rule):
    train, test = ranking
    inner = ms.GreedyMiserRanker(train.costs, tradeoff=0, n_estimators=40).fit(train.X, train.y, train.qid)
    model = EarlyExitRanker(FrozenEstimator(inner), rule=rule)
    grid = model.suggest_grid(train.y, 4)
    assert len(grid) == 4
    costs = [
        clone(model).set_params(threshold=s).fit(train.X, train.y, train.qid).predict_cost(test.X, qid=test.qid).mean()
        for s in grid
    ]
    assert costs[0] > 0.9 * inner.predict_cost(test.X).mean()
    assert costs[-1] < 0.8 * costs[0]


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (cascade(), "node 0 does more than that"),
        (forest(), "node 0 does more than that"),
        (replace(three_rounds(), roots=(1,)), "starts in its middle"),
        (shared_softmax(), "node 0 does more than that"),
        (two_classes(), "ranked by one number"),
        (additive(3, n_outputs=2), "ranked by one number"),
        (Ridge(), "has no plan_"),
    ],
)
def test_models_that_rankers_refuse(estimator, message):
    n_features = len(estimator.costs.features) if isinstance(estimator, Plan) else 3
    with pytest.raises(ValueError, match=message):
        EarlyExitRanker(estimator).fit(np.zeros((5, n_features)), GRADES)


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (EarlyExitClassifier(three_rounds()), ILL, "answers with numbers"),
        (EarlyExitClassifier(LogisticRegression()), ILL, "has no plan_"),
        (EarlyExitClassifier(two_classes(), rule="score"), np.repeat("no", 6), "no row of"),
        (EarlyExitClassifier(two_classes(), exits=[0, 1]), ILL, "counted from 1"),
        (EarlyExitClassifier(two_classes(), exits=[1.5]), ILL, "counted from 1"),
        (EarlyExitClassifier(two_classes(), threshold=1.1), ILL, "threshold"),
        (EarlyExitClassifier(two_classes(), rule="rank"), ILL, "rule"),
        (EarlyExitClassifier("two classes"), ILL, "estimator"),
    ],
)
def test_mistakes_with_classifiers(model, y, message):
    with pytest.raises(ValueError, match=message):
        model.fit(PATIENTS, y)


def test_the_score_rule_is_for_two_classes():
    plan = classes(additive(7, n_outputs=3))
    with pytest.raises(ValueError, match="confidence"):
        (model := EarlyExitClassifier(plan, rule="score")).fit(rows(9), np.arange(9) % 3)
    assert not hasattr(model, "plan_")


def test_a_plan_hears_nothing_but_weights():
    ranker("score", 0.5).fit(DOCUMENTS, GRADES, sample_weight=np.ones(5))
    with pytest.raises(TypeError, match="eval_set would not be heard"):
        ranker("score", 0.5).fit(DOCUMENTS, GRADES, eval_set=(DOCUMENTS, GRADES))


@pytest.mark.parametrize("rule", [*LIST_RULES, "score"])
def test_sparse_data_are_the_same_data(rule):
    X, y = rows(60, decimals=0), np.arange(60)
    dense, sparse = (ranker(rule, 0.3, exits=[2, 5], plan=additive(5)).fit(data, y) for data in (X, csr_array(X)))
    assert dense.plan_ == sparse.plan_
    qid = np.repeat([0, 1, 2], 20)
    for method in ("predict", "rank_score", "predict_cost"):
        assert np.array_equal(getattr(dense, method)(X, qid=qid), getattr(sparse, method)(csr_array(X), qid=qid))


def test_columns_that_do_not_fit():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="one price per column"):
        ranker("rank", 1.0).fit(DOCUMENTS[:, :2], GRADES)
    frame = pd.DataFrame(DOCUMENTS, columns=["a", "b", "c"])
    assert ranker("rank", 1.0).fit(frame, GRADES).plan_ == ranker("rank", 1.0).fit(DOCUMENTS, GRADES).plan_
    with pytest.raises(ValueError, match="another order"):
        ranker("rank", 1.0).fit(frame[["b", "a", "c"]], GRADES)


def test_exits_that_come_too_late_are_warned_of():
    X, y = np.repeat(DOCUMENTS, 3, axis=0), np.tile(GRADES, 3)
    plan = replace(three_rounds(), costs=replace(PRICES, evaluation=0.0, prices={**PRICES.prices, "b": 0.0, "c": 0.0}))
    for exits, where in (([1, 2], "the first one is after round 1 of 3"), ([], "there is none")):
        with pytest.warns(UserWarning, match=f"at most 0.0% of the cost: {where}.*exits="):
            EarlyExitRanker(plan, exits=exits).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EarlyExitRanker(three_rounds(), exits=[1]).fit(X, y)

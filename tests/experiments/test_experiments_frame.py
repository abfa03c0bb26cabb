"""The frame of the figures: protocols, what is kept, how curves are compared, what is written."""

import csv
import json

import numpy as np
import pytest

import miserly as ms
from miserly.experiments import STUDIES, Bench, Claim, Study, StudyResult, Verdict, claims_table, perform
from miserly.experiments import _measure as measuring
from miserly.experiments._claims import above, factor, verdict_counts
from miserly.experiments._features import remaining, shares_by_price, used_by
from miserly.experiments._parts import DataPart, DataSplit, LearningProblem, binary, graded
from miserly.experiments._sets import QUERIES, yahoo
from miserly.experiments._store import ResultStore
from miserly.frontiers import Frontier, common_range, within
from miserly.metrics import get_metric
from miserly.plan import EXIT, Gate, Node, Plan, RawFeatures
from miserly.report.figures._panels import LinePanel

COSTS = ms.CostTable.per_feature([1.0, 10.0], evaluation=0.0)


def test_each_protocol_repeats_its_own_rows():
    part = DataPart(np.zeros((5, 1)), np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.zeros(5))
    assert graded(part).copies.tolist() == [10, 1, 1, 1, 1]
    assert graded(part).y.tolist() == [0, 1, 2, 3, 4]
    assert binary(part).copies.tolist() == [10, 10, 10, 1, 1]
    assert binary(part).y.tolist() == [0, 0, 0, 1, 1]
    assert binary(part, 2).copies.tolist() == [10, 10, 1, 1, 1]


def test_the_sizes_are_the_papers():
    assert QUERIES["large"][0] == 19944
    assert QUERIES["afr"] == (2000, 2002, 2001)
    problem = yahoo(None, "binary", "small", quick=True)
    assert problem.stand_in == "Yahoo! LTRC"
    assert not problem.is_real
    assert problem.tiers == (5, 20, 50, 150, 200)
    assert problem.metric.name == "precision@5"


def test_small_sets_bound_what_the_papers_had(tmp_path):
    """A number of the paper, unless the rows bear less; a quick look has its own."""
    part = DataPart(np.zeros((2, 2)), np.zeros(2))
    of = ("some", 0, get_metric("accuracy"), COSTS, lambda: DataSplit(part, part, part))
    large, small = LearningProblem(*of), LearningProblem(*of, most_trees=100, most_levels=4)
    full, quick = (Bench(None, tmp_path, quick=q) for q in (False, True))
    assert [full.trees(p, 5000, 80) for p in (large, small)] == [5000, 100]
    assert [full.levels(p, 10, 3) for p in (large, small)] == [10, 4]
    assert full.trees(small, 50, 80) == 50
    assert (quick.trees(small, 5000, 120), quick.levels(small, 10, 5)) == (120, 5)


def test_drawn_data_are_left_out_if_asked(tmp_path):
    """Without measured data nothing is left, with the user's own Yahoo! set that is."""
    assert [g[0].is_real for g in Bench(tmp_path, tmp_path / "a", quick=True).ranking("plain", "small")] == [False]
    assert not Bench(tmp_path, tmp_path / "a", quick=True, real=True).ranking("plain", "small")
    place = tmp_path / "yahoo_ltrc"
    place.mkdir()
    (place / "feature_cost.txt").write_text("5\n200\n")
    (place / "set1.train.txt").write_text("1 qid:1 1:0.5 2:9\n")
    [[own]] = Bench(tmp_path, tmp_path / "a", quick=True, real=True).ranking("plain", "small")
    assert own.is_real


def test_the_users_own_yahoo_set_is_read(tmp_path):
    """Two of three columns are in the set; prices come from the file."""
    place = tmp_path / "yahoo_ltrc"
    place.mkdir()
    (place / "feature_cost.txt").write_text("5\n10000\n200\n")
    for part in ("train", "valid", "test"):
        lines = [f"{q % 5} qid:{q} 1:0.5 2:9 3:0.{q}" for q in range(1, 10)]
        (place / f"set1.{part}.txt").write_text("\n".join(lines) + "\n")
    for size in ("large", "small", "afr"):
        problem = yahoo(tmp_path, "graded", size, quick=False)
        assert problem.costs.price_list == (5.0, 200.0)
        assert not problem.stand_in
        split = problem.split
        assert [p.X.shape[1] for p in split] == [2, 2, 2]
        queries = [set(p.qid.tolist()) for p in split]
        if size == "small":
            assert sum(len(q) for q in queries) == 9
            assert not queries[0] & queries[1]


def a_cascade():
    """Two stages over two raw features: rows above 0 in the first go on to the second."""
    nodes = (
        Node(np.array([0], np.int32), np.ones(1), combine="replace", gate=Gate.above(0.0), passed=1, failed=EXIT),
        Node(np.array([1], np.int32), np.ones(1), combine="replace", tier=1),
    )
    return Plan(COSTS, RawFeatures(np.arange(2)), nodes, np.zeros(1))


def a_problem(copies=None, metric="ndcg@5"):
    X = np.array([[1.0, 5.0], [2.0, 4.0], [-1.0, 9.0], [-2.0, 8.0]])
    part = DataPart(X, np.array([1.0, 2.0, 0.0, 0.0]), np.zeros(4), copies)
    return LearningProblem("tiny", 0, get_metric(metric), COSTS, lambda: DataSplit(part, part, part))


def test_rows_count_as_often_as_they_are_copied():
    copies = np.array([1, 1, 10, 10])
    once, often = (measuring.figures(a_cascade(), a_problem(c)) for c in (None, copies))
    assert once[2] == (11 + 11 + 1 + 1) / 4
    assert often[2] == (11 + 11 + 10 + 10) / 22
    assert remaining(a_cascade(), a_problem(copies).split.test) == [1.0, 2 / 22]


def test_copies_are_documents_where_gates_compare_them():
    """The fifth best of four documents lies far below; of their copies, it is a copy of the third."""
    plan = a_cascade()
    first = plan.nodes[0]
    by_query = Plan(
        COSTS,
        plan.dictionary,
        (Node(first.learners, first.weights, gate=Gate.near_top(5, 0.5), passed=1), plan.nodes[1]),
        np.zeros(1),
    )
    copies = np.array([1, 1, 10, 10])
    problem = a_problem(copies)
    part = problem.split.test
    rows = np.repeat(np.arange(4), copies)
    expected = by_query.predict_cost(part.X[rows], part.qid[rows]).mean()
    assert measuring.figures(by_query, problem)[2] == pytest.approx(expected)
    assert measuring.figures(by_query, problem)[2] != measuring.figures(by_query, a_problem())[2]


def points(*pairs):
    problem = a_problem()
    return measuring.curve("one", problem, [(c, q, c, q) for c, q in pairs])


def test_a_curve_begins_with_what_is_free():
    """Documents as they lie: grades 1, 2, 0, 0."""
    first = points((1.0, 0.9)).points[0]
    assert first.on("test").cost["mean"] == 0.0
    assert first.on("test").quality == pytest.approx((1 + 3 / np.log2(3)) / (3 + 1 / np.log2(3)))
    X = np.zeros((5, 2))
    part = DataPart(X, np.array([1, 1, 1, 0, 2]))
    classes = LearningProblem("classes", 0, get_metric("accuracy"), COSTS, lambda: DataSplit(part, part, part))
    assert measuring.constant(classes) == [0.0, 0.6, 0.0, 0.6]


def test_curves_are_compared_from_where_the_first_begins():
    """Up to 10 one has 0.9 and the other what is free, from there to 100 they have 0.9 and 0.95."""
    cheap, expensive = points((1.0, 0.9)), points((10.0, 0.95), (100.0, 0.94))
    free = cheap.points[0].on("test").quality
    low, high = common_range([cheap, expensive])
    assert (low, high) == (1.0, 100.0)
    assert measuring.area(expensive, low, high) == pytest.approx((free + 0.95) / 2)
    curves = {"a": [cheap], "b": [expensive]}
    claim = above("a", "b", curves, [a_problem()])
    assert f"{0.9 - (free + 0.95) / 2:+.4f} of" in claim.sees
    assert f"{0.9 - free:+.4f} within 3.16" in claim.sees, "at an equal budget"
    assert claim.verdict == "undecided", "one split has no interval"


def test_the_interval_gives_the_verdict():
    """Differences of area 0.05 ± a little, then around zero; budgets of 1 to 1.01 make the area the quality."""
    group = [a_problem()] * 3
    better = {"a": [points((1.0, q)) for q in (0.90, 0.91, 0.92)], "b": [points((1.0, 0.86))] * 3}
    assert above("a", "b", better, group).verdict == "seen"
    assert above("b", "a", better, group).verdict == "contradicted"
    assert above("b", "a", better, group, as_good=True).verdict == "contradicted"
    mixed = {"a": [points((1.0, q)) for q in (0.859, 0.860, 0.861)], "b": [points((1.0, 0.86))] * 3}
    assert above("a", "b", mixed, group).verdict == "undecided"
    assert above("a", "b", mixed, group, as_good=True).verdict == "seen", "within 1 %"
    claims = [above("a", "b", better, group), above("a", "b", mixed, group)]
    assert verdict_counts(claims) == "1 seen, 1 undecided, 0 contradicted"


def test_within_a_budget_validation_chooses_and_test_is_read():
    problem = a_problem()
    front = measuring.curve("one", problem, [(1.0, 0.9, 1.0, 0.5), (5.0, 0.8, 5.0, 0.95)])
    assert within(front, 10.0) == 0.5


def test_a_share_of_the_cost_at_nearly_the_quality():
    front, full = points((1.0, 0.5), (10.0, 0.895), (100.0, 0.9)), (100.0, 0.9, 100.0, 0.9)
    assert measuring.cost_share(front, full, 0.01) == 0.1
    assert measuring.cost_share(front, full, 0.0) == 1.0
    assert measuring.cost_share(points((1.0, 0.5)), full, 0.01) == np.inf

    def verdict(*shares):
        return factor("x", shares, 0.1, [a_problem()], 0.01).verdict

    assert verdict(0.140, 0.141, 0.139) == "seen"
    assert verdict(0.160, 0.161, 0.159) == "contradicted"
    assert verdict(0.10, 0.20, 0.15) == verdict(0.1) == "undecided"
    assert verdict(0.140, 0.141, 0.139, np.inf) == "undecided", "a split that does not come there"
    assert verdict(np.inf, np.inf) == "contradicted"


def test_rounds_are_joined_to_the_same_scores():
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = X[:, 0] + X[:, 1] ** 2
    plan = ms.GreedyMiserRegressor(COSTS, tradeoff=0, n_estimators=23).fit(X, y).plan_
    joined = measuring.in_steps(plan, 10)
    assert len(joined.nodes) == 3
    np.testing.assert_array_equal(measuring.first_rounds(plan, 7).score(X), list(plan.stages(X))[6].score[:, 0])
    assert measuring.first_rounds(plan, 30) is plan
    whole, steps = list(plan.stages(X)), list(joined.stages(X))
    for mine, k in zip(steps, (9, 19, 22)):
        np.testing.assert_array_equal(mine.score, whole[k].score)
        np.testing.assert_array_equal(mine.cost, whole[k].cost)


def test_features_by_price():
    plan = a_cascade()
    assert used_by(plan, [0]) == {0}
    assert shares_by_price(plan, used_by(plan, [0])) == {1.0: 1.0, 10.0: 0.0}
    assert shares_by_price(plan, used_by(plan, [0, 1])) == {1.0: 1.0, 10.0: 1.0}


def test_points_are_kept_and_damaged_ones_made_again(tmp_path):
    store, made = ResultStore(tmp_path), []

    def make():
        made.append(1)
        return {"points": [(1.0, np.float64(2.0))]}

    key = {"what": "x", "value": 0.5}
    assert store.record(key, make) == ResultStore(tmp_path).record(key, make) == {"points": [[1.0, 2.0]]}
    assert len(made) == 1
    [file] = tmp_path.glob("*.json")
    file.write_text(file.read_text()[:-5])
    assert store.record(key, make) == {"points": [[1.0, 2.0]]}
    assert len(made) == 2
    plan = store.plan(key, a_cascade)
    assert store.plan(key, lambda: 1 / 0) == plan
    [file] = tmp_path.glob("*.plan")
    file.write_bytes(file.read_bytes()[:-20])
    assert store.plan(key, a_cascade) == plan


def test_a_study_writes_its_files(tmp_path):
    outcome = StudyResult([{"a": 1}, {"a": 2, "b": 3}], [LinePanel("t", "x", "y", {"l": ([1, 2], [1, 2])})])
    outcome.claims = [
        Claim("tiny", "up", "down", Verdict.CONTRADICTED, True),
        Claim("drawn", "up", "up", Verdict.SEEN, False),
    ]
    outcome.uses(yahoo(None, "plain", "small", quick=True))
    study = Study("one", "A figure", lambda bench: outcome)
    perform(study, Bench(None, tmp_path, quick=True))
    with (tmp_path / "one.csv").open() as file:
        assert [row["a"] for row in csv.DictReader(file)] == ["1", "2"]
    assert (tmp_path / "one.png").stat().st_size > 5000
    text = (tmp_path / "one.txt").read_text()
    assert "paper: up; we: down; verdict: contradicted" in text
    assert "yahoo_like in place of Yahoo! LTRC" in text
    table = claims_table({"one": outcome})
    assert "| one | tiny | up | down | **contradicted** |" in table
    assert "drawn (stand-in)" in table


def test_every_figure_of_the_papers_is_there():
    expected = {"miser-1-left", "miser-1-right", "miser-2", "cronus-2-left", "cronus-2-right", "cronus-3", "cronus-4"}
    expected |= {f"thesis-{n}" for n in ("2.7", "2.8", "2.9", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9", "4.2", "4.3")}
    expected |= {"miser-3", "astc-3", "astc-table-1", "astc-table-2", "combinations", "family", "afr-anytime"}
    assert expected <= set(STUDIES)


def test_a_frontier_is_what_a_curve_is():
    assert isinstance(points((1.0, 0.5)), Frontier)
    assert json.dumps(measuring.best([[1, 0.5, 1, 0.5], [2, 0.5, 2, 0.6]])) == "[1, 0.5, 1, 0.5]"

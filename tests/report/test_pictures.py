"""The frames of the pictures against cases counted by hand or by slow, obvious code; every picture draws."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from sweeps import front_of, mail, search, triage

from miserly.costs import CostTable
from miserly.frontiers import Frontier, Point
from miserly.frontiers._front import Measured
from miserly.metrics import get_metric
from miserly.plan import EXIT, Node, Plan, RawFeatures, RBFKernels
from miserly.report import (
    BoundaryPicture,
    CalibrationPicture,
    FrontierPicture,
    LabelledRows,
    LeavesPicture,
    Observed,
    PlanPicture,
    SpendingPicture,
    StagesPicture,
    TiersPicture,
    plot_frontier,
)
from miserly.report._graph import boxes, levels
from miserly.report._intervals import half_width, parts_left, replicates
from miserly.report._prefixes import prefixes
from miserly.report.figures._style import COLOURS, LINES, MARKERS
from miserly.report.figures._tiers import price_tiers
from oracles import hand_built
from oracles.executor import execute

PLANS = hand_built.PLANS


def observe(name, n=60):
    """A hand-built plan on rows with labels of its kind; queries of six."""
    plan = PLANS[name]()
    X = hand_built.rows(n, seed=1, n_features=len(plan.costs.features))
    if not plan.can_miss:
        X = np.nan_to_num(X)
    rng = np.random.default_rng(0)
    y = rng.normal(size=n) if plan.classes is None else rng.choice(plan.classes, n)
    qid = np.arange(n) // 6 if plan.by_query else None
    return Observed.of(plan, LabelledRows(X, y, qid))


# ---- who comes where --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in PLANS if name != "constant"])
def test_rows_end_where_they_were_seen_last(name):
    seen = observe(name)
    slow = execute(seen.plan, seen.rows.X.tolist(), seen.rows.qid)
    for i, row in enumerate(slow):
        assert [seen.visits[i, k] for k in row.exit] == [True] * len(row.exit)
    came = seen.visits.sum(axis=0)
    for k, node in enumerate(seen.plan.nodes):
        on = [way for way in node.ways if way != EXIT]
        ended = sum(k in row.exit for row in slow)
        assert came[k] == ended + (seen.visits[:, k] & seen.visits[:, on].any(axis=1)).sum()


def test_rows_left_in_a_cascade_counted_by_hand():
    seen = observe("cascade")
    X, y = seen.rows.X, seen.rows.y
    first = 0.4 * X[:, 0] - 1.3 * X[:, 1] + 0.1 > -0.5
    second = first & (0.2 * X[:, 0] + 0.9 * X[:, 6] + 0.3 * X[:, 2] - 0.2 > -0.1)
    frame = StagesPicture(seen).frame()
    assert [r["rows"] for r in frame] == [60, first.sum(), second.sum()]
    assert frame[1]["share"] == first.mean()
    lowest = y < np.quantile(y, 0.25)
    assert [r["lowest quarter"] for r in frame] == [lowest.sum(), (first & lowest).sum(), (second & lowest).sum()]


def test_levels_and_boxes_of_graphs():
    assert levels(PLANS["binary_tree"]()) == [[0], [1, 2], [3, 4, 5, 6]]
    assert levels(PLANS["shared_softmax"]()) == [[0], [1], [2], [3]]
    assert levels(PLANS["forest"]()) == [[0], [1, 2], [3], [4, 5], [6], [7, 8]]
    chain = PLANS["anytime_trees"]()
    found = boxes(chain)
    assert [k for box in found for k in box.nodes] == list(range(12))
    assert all(chain.tables.new_acquisitions(k) == 0 for box in found for k in box.nodes[1:])
    few = boxes(chain, most=3)
    assert len(few) == 3
    assert [k for box in few for k in box.nodes] == list(range(12))
    assert sum(box.acquisitions.bit_count() for box in few) == sum(box.acquisitions.bit_count() for box in found)


def test_the_drawing_of_a_tree():
    seen = observe("binary_tree")
    picture = PlanPicture(seen)
    frame = picture.frame()
    assert not picture.is_funnel
    assert [r["level"] for r in frame] == [0, 1, 1, 2, 2, 2, 2]
    assert [r["rows"] for r in frame] == seen.visits.sum(axis=0).tolist()
    assert sum(r["leave"] for r in frame) == 60
    assert (frame[0]["passed"], frame[0]["failed"]) == (1, 2)
    assert frame[0]["buys"] == ["ask"]
    assert frame[5]["buys"] == ["tt4"]  # the draw and t3 were bought on the way
    assert frame[5]["price"] == 12.41
    assert frame[5]["total"] == pytest.approx(1.0 + 2.1 + 9.31 + 12.41)
    assert [r["place"] for r in frame[3:]] == [0.125, 0.375, 0.625, 0.875]
    assert frame[0]["place"] == 0.5
    assert frame[1]["label"] == pytest.approx(seen.rows.y[seen.visits[:, 1]].mean())


def test_a_plan_draws_itself(tmp_path):
    seen = observe("binary_tree")
    figure = seen.plan.plot(seen.rows.X, seen.rows.y.tolist(), path=tmp_path / "plan.png")
    assert (tmp_path / "plan.png").stat().st_size > 1000
    written = {text.get_text() for ax in figure.axes for text in ax.texts}
    assert written == {text.get_text() for text in PlanPicture(seen).plot().texts}
    assert written


def test_the_drawing_of_a_cascade_tells_the_most_frequent_class():
    seen = observe("confident")
    frame = PlanPicture(seen).frame()
    assert PlanPicture(seen).is_funnel
    for record, here in zip(frame, seen.visits.T):
        labels = seen.rows.y[here].tolist()
        best = max(("ham", "spam"), key=labels.count)
        assert (record["label"], record["purity"]) == (best, labels.count(best) / len(labels))
    assert frame[0]["gate"] == "confidence < 0.7"


def test_what_the_leaves_of_a_tree_have_in_common():
    """Leaf 3 owns {ask, fetch, parse}, leaf 4 {ask, fetch}, leaf 5 {ask, draw, t3, tt4}, leaf 6 {…, tt4, t4u}."""
    frame = {(r["leaf"], r["other"]): r["similarity"] for r in LeavesPicture(PLANS["binary_tree"]()).frame()}
    assert len(frame) == 16
    assert frame[3, 3] == 1.0
    assert frame[3, 4] == frame[4, 3] == 2 / 3
    assert frame[4, 5] == 1 / 5
    assert frame[5, 6] == 4 / 5
    assert LeavesPicture(PLANS["constant"]()).frame() == []


# ---- prices -----------------------------------------------------------------------------------------------------


def test_price_tiers():
    costs = CostTable.per_feature({"a": 1, "b": 1, "c": 5, "d": 0})
    assert [(t.label, t.members.bit_count()) for t in price_tiers(costs)] == [("0", 1), ("1", 2), ("5", 1)]
    many = CostTable.per_feature({f"x{i}": i * 1.5 for i in range(100)})
    tiers = price_tiers(many, most=4)
    assert [t.members.bit_count() for t in tiers] == [25, 25, 25, 25]
    assert sum(t.members for t in tiers) == (1 << 100) - 1
    assert tiers[0].label == "0 to 36"


def test_the_share_of_each_tier_by_stage():
    """The cascade's stages look at {ask}, {ask, fetch, draw, t3}, {ask, draw, tt4, t4u, fetch, parse}."""
    frame = TiersPicture.of_stages(PLANS["cascade"]()).frame()
    share = {(r["stage"], r["tier"]): r["share"] for r in frame}
    assert share["1", "1"] == share["2", "1"] == share["3", "1"] == 1.0
    assert share["1", "9.31"] == 0.0
    assert share["2", "9.31"] == 0.5  # t3 of t3 and t4u
    assert (share["2", "12.41"], share["3", "12.41"]) == (0.0, 1.0)
    assert (share["2", "0.1"], share["3", "0.1"]) == (0.0, 1.0)


def test_the_share_of_each_tier_by_model():
    front = triage()[0].front
    frame = TiersPicture.of_models(front).frame()
    assert len(frame) == len(front.pareto()) * 6
    assert [r["bought"] for r in frame[:6]] == [0, 0, 1, 0, 0, 0]
    assert all(r["share"] == 1.0 for r in frame[-6:])


# ---- spending and calibration -----------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["label", "outcome"])
@pytest.mark.parametrize("name", ["cascade", "confident", "rank", "wide"])
def test_spending_counts_every_row_once(name, by):
    seen = observe(name)
    picture = SpendingPicture(seen, by)
    frame = picture.frame()
    cost = seen.plan.predict_cost(seen.rows.X, seen.rows.qid)
    assert sum(r["rows"] for r in frame) == 60
    assert all(r["rows"] == sum(r[g] for g in picture.groups) for r in frame)
    for r in frame:
        if r["low"] == r["high"]:
            assert r["rows"] == (cost == r["low"]).sum()
    for total in picture.totals():
        mine = cost[picture.groups[total["group"]]]
        assert (total["rows"], total["mean"], total["max"]) == (len(mine), mine.mean(), mine.max())
    assert sum(t["share"] for t in picture.totals()) == pytest.approx(1.0)


def test_outcomes():
    seen = observe("confident")
    right = seen.plan.predict(seen.rows.X) == seen.rows.y
    assert {name: rows.sum() for name, rows in seen.outcome_groups.items()} == {
        "right answers": right.sum(),
        "wrong answers": (~right).sum(),
    }
    ranked = observe("rank")
    score, shown = (
        ranked.plan.rank_score(ranked.rows.X, ranked.rows.qid),
        ranked.outcome_groups["first 5 of their list"],
    )
    for q in range(10):
        mine = np.flatnonzero(ranked.rows.qid == q)
        best = sorted(mine, key=lambda i: (-score[i], i))[:5]
        assert set(mine[shown[mine]]) == set(best)


def test_calibration_in_bins_counted_one_by_one():
    seen = observe("confident", n=200)
    p = seen.plan.predict_proba(seen.rows.X)[:, 1]
    expected = []
    for k in range(10):
        here = [i for i in range(200) if (k / 10 <= p[i] < (k + 1) / 10) or (k == 9 and p[i] == 1)]
        if here:
            share = sum(seen.rows.y[i] == "spam" for i in here) / len(here)
            expected.append((pytest.approx(np.mean(p[here])), pytest.approx(share), len(here)))
    frame = CalibrationPicture({"all": seen}).frame()
    assert [(r["predicted"], r["seen"], r["rows"]) for r in frame] == expected
    assert CalibrationPicture({"all": seen}).axes_names == ("predicted probability of spam", "share of spam")


def test_calibration_of_numbers_is_by_tenths_of_the_rows():
    seen = observe("anytime", n=100)
    order = np.argsort(seen.plan.predict(seen.rows.X), kind="stable")
    frame = CalibrationPicture({"": seen}).frame()
    assert [r["rows"] for r in frame] == [10] * 10
    assert frame[0]["seen"] == pytest.approx(seen.rows.y[order[:10]].mean())


def test_calibration_within_budgets():
    plan, rows = PLANS["confident"](), observe("confident").rows
    seen = {str(b): Observed.of(plan, rows, budget=b) for b in (0.0, 5.0, 50.0)}
    frame = CalibrationPicture(seen).frame()
    free = [r for r in frame if r["budget"] == "0.0"]
    assert [(r["predicted"], r["rows"]) for r in free] == [(0.5, 60)]


# ---- frontiers --------------------------------------------------------------------------------------------------


def test_the_frontiers_frame():
    runs = triage()
    picture = FrontierPicture([run.front for run in runs], runs[0].chosen, runs[0].front.points[-1], rows=runs[0].rows)
    frame = picture.frame()
    models = [r for r in frame if r["kind"] == "model"]
    for run in runs:
        mine = [r for r in models if r["method"] == run.front.name]
        assert [r["cost"] for r in mine] == [p.validation.cost["mean"] for p in run.front.points]
        assert sum(r["front"] for r in mine) == len(run.front.pareto())
    assert [r["budget"] for r in models if r["chosen"]] == [runs[0].chosen.params["budget"]]
    assert sum(r["blind"] for r in models) == 1
    assert all((r["low"] is not None) == r["front"] for r in models)
    assert all(r["low"] < r["quality"] < r["high"] for r in models if r["front"])
    assert {r["method"] for r in frame if r["kind"] == "prefix"} == {"Anytime", "Trees"}


def test_prefixes_are_the_first_stages():
    plan = hand_built.anytime_trees(0.0)
    rows = observe("anytime_trees").rows
    metric = get_metric("mse")
    line = prefixes(plan, metric, rows)
    assert len(line) > 3
    cuts = [replace(plan, nodes=(*plan.nodes[:k], replace(plan.nodes[k], passed=-1))) for k in range(len(plan.nodes))]
    first = {(cut.predict_cost(rows.X).mean(), metric(rows.y, cut.predict(rows.X))) for cut in cuts}
    assert first.issuperset(line)
    assert len(prefixes(plan, metric, rows, most=3)) == 3
    assert prefixes(PLANS["cascade"](), metric, rows) == []


def test_the_jackknife_of_a_mean_is_its_standard_error():
    """With one row to a group, the jackknife of a mean is s/√n, times Student's quantile (2.093 for 19 degrees)."""
    plan = Plan(CostTable.per_feature({"x": 1.0}), RawFeatures([0]), (Node([0], [1.0]),), [0.0])
    X, y = np.random.default_rng(3).normal(size=(2, 20))
    seen = Observed.of(plan, LabelledRows(X[:, None], y))
    got = half_width(replicates(seen, get_metric("mse"), parts_left(seen.rows)))
    errors = (X - y) ** 2
    assert got == pytest.approx(2.093024 * errors.std(ddof=1) / np.sqrt(20), rel=1e-6)


def test_the_jackknife_keeps_queries_together():
    rows = search()[0].rows
    parts = parts_left(rows)
    assert len(parts) == 20
    assert all(set(rows.qid[part]).isdisjoint(np.setdiff1d(rows.qid, rows.qid[part])) for part in parts)
    assert all(len(part) == 38 * 10 for part in parts)
    assert np.isnan(half_width(np.array([1.0])))


def test_a_frontier_of_models_without_plans_is_drawn(tmp_path):
    measured = [Measured.of(q, np.full(4, c)) for c, q in ((0.0, 0.1), (2.0, 0.4), (30.0, 0.5))]
    front = Frontier(tuple(Point({"x": 1}, "m", m, None, 0.0) for m in measured), get_metric("accuracy"), "ms", "it")
    figure = plot_frontier([front], tmp_path / "it.png", chosen=front.points[1])
    assert isinstance(figure, Figure)
    assert (tmp_path / "it.png").stat().st_size > 5000


# ---- two features -----------------------------------------------------------------------------------------------


def test_the_boundary_of_two_features():
    costs = CostTable.per_feature({"a": 1.0, "b": 1.0, "c": 1.0})
    kernels = RBFKernels([2, 0], [[0.0, 1.0], [2.0, -1.0]], 0.5)
    node = Node([0, 1], [1.5, -0.5], -0.2)
    plan = Plan(costs, kernels, (node,), [0.0], "logistic", np.array([-1, 1]))
    X = np.random.default_rng(0).normal(size=(50, 3))
    picture = BoundaryPicture(plan, LabelledRows(X, np.where(X[:, 0] > 0, 1, -1)))
    assert picture.frame() == [{"a": 1.0, "c": 0.0, "weight": 1.5}, {"a": -1.0, "c": 2.0, "weight": 0.5}]
    x, y, answers = picture.grid
    for i, j in ((0, 0), (80, 12), (159, 159), (40, 100)):
        here = plan.predict(np.array([[x[j], 0.0, y[i]]]))[0]
        assert answers[i, j] == (here == 1)
    with pytest.raises(ValueError, match="plans of two features, this one uses 8"):
        BoundaryPicture(hand_built.anytime(), LabelledRows(X, X[:, 0]))


# ---- all of them ------------------------------------------------------------------------------------------------


def pictures():
    runs, seen = triage(), {name: observe(name) for name in ("cascade", "binary_tree", "confident", "anytime", "rank")}
    yield FrontierPicture([run.front for run in runs], runs[0].chosen, rows=runs[0].rows)
    yield TiersPicture.of_models(mail()[0].front)
    yield TiersPicture.of_stages(seen["cascade"].plan)
    yield StagesPicture(seen["confident"])
    yield from (PlanPicture(one) for one in seen.values())
    yield LeavesPicture(seen["binary_tree"].plan)
    yield SpendingPicture(seen["confident"], "outcome")
    yield SpendingPicture(seen["rank"])
    yield CalibrationPicture(
        {"a": seen["confident"], "b": Observed.of(seen["confident"].plan, seen["confident"].rows, 5)}
    )
    kernels = RBFKernels([0, 1], [[0.0, 1.0], [2.0, -1.0]], 0.5)
    plan = Plan(CostTable.per_feature({"a": 1, "b": 1}), kernels, (Node([0, 1], [1.0, -1.0]),), [0.0])
    yield BoundaryPicture(plan, LabelledRows(seen["cascade"].rows.X[:, :2], seen["cascade"].rows.y))


def test_every_picture_draws(tmp_path):
    for picture in pictures():
        ax = Figure().subplots()
        assert picture.plot(ax=ax) is ax
        assert ax.has_data() or ax.texts
        ax.get_figure().draw_without_rendering()
        assert picture.frame()
        assert all(isinstance(key, str) for record in picture.frame() for key in record)
    picture.save(tmp_path / "it.svg")
    assert (tmp_path / "it.svg").read_text().startswith("<?xml")


def test_series_differ_without_their_colours():
    assert len({(MARKERS[i], str(LINES[i])) for i in range(len(COLOURS))}) == len(COLOURS)
    fronts = [run.front for run in triage()]
    ax = FrontierPicture(fronts).plot()
    lines = [line for line in ax.get_lines() if line.get_label() in {f.name for f in fronts}]
    assert len({line.get_marker() for line in lines}) == len({line.get_linestyle() for line in lines}) == 3


def test_front_of_measures_as_a_sweep_does():
    """The runs of these tests are what `frontier()` would have made of their plans."""
    run = mail()[0]
    point = run.front.points[2]
    proba = point.model.plan_.predict_proba(run.rows.X)
    assert point.validation.quality == get_metric("logloss")(run.rows.y, proba, classes=np.array(["ham", "spam"]))
    assert front_of([({}, point.model.plan_)], run.rows, "accuracy", "").points[0].validation.quality > 0.5

"""A run on disk and back, rows on their way, and the data of the page."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from sweeps import front_of, mail, search, triage

import miserly as ms
from miserly.costs import CostTable
from miserly.plan import Node, Plan, RawFeatures, load_plan
from miserly.report import LabelledRows, Observed, SavedRun, load_run, save_run, write_report
from miserly.report.page._content import Content
from miserly.report.page._details import details
from miserly.report.page._purchases import moved, owned_by, purchases
from miserly.report.page._walks import choose_rows, walks
from oracles import hand_built
from oracles.driver import drive, drive_list


def validation(run):
    return (run.rows.X, run.rows.y) if run.rows.qid is None else (run.rows.X, run.rows.y, run.rows.qid)


@pytest.mark.parametrize("make", [triage, mail, search])
def test_a_run_comes_back_as_it_was(make, tmp_path):
    for number, run in enumerate(make()):
        folder = tmp_path / str(number)
        save_run(run.front, validation(run), folder, run.chosen)
        back = load_run(folder)
        assert back.front.records() == run.front.records()
        assert (back.front.name, back.front.unit, back.front.complete) == (run.front.name, "CAD", True)
        assert back.front.metric.name == run.front.metric.name
        assert [p.model.plan_ for p in back.front.points] == [p.model.plan_ for p in run.front.points]
        np.testing.assert_array_equal(back.rows.y, run.rows.y)
        used = sorted({f for p in run.front.points for f in p.model.plan_.used_features})
        np.testing.assert_array_equal(back.rows.X[:, used], run.rows.X[:, used])
        chosen = None if run.chosen is None else run.chosen.params
        assert (None if back.chosen is None else back.chosen.params) == chosen


def test_runs_that_cannot_be_read(tmp_path):
    with pytest.raises(ValueError, match=r"no run\.json.*miserly frontier"):
        load_run(tmp_path)
    run = mail()[0]
    folder = tmp_path / "run"
    save_run(run.front, validation(run), folder)
    content = json.loads((folder / "run.json").read_text())
    for broken in ("{", json.dumps({**content, "format": "other"}), json.dumps({**content, "metric": "luck"})):
        (folder / "run.json").write_text(broken)
        with pytest.raises(ValueError, match="cannot be read"):
            load_run(folder)
    (folder / "run.json").write_text(json.dumps(content))
    (folder / "plans/003.plan").unlink()
    with pytest.raises(ValueError, match="cannot be read"):
        load_run(folder)


def test_a_page_is_refused_where_plans_and_figures_are_not_of_one_sweep(tmp_path):
    run = mail()[0]
    folder = tmp_path / "run"
    save_run(run.front, validation(run), folder)
    place = next(i for i, point in enumerate(run.front.points) if point is run.chosen)
    shutil.copy(folder / f"plans/{(place + 1) % 7:03d}.plan", folder / f"plans/{place:03d}.plan")
    with pytest.raises(ValueError, match="not of one sweep"):
        write_report([load_run(folder)], tmp_path / "page.html")


def test_runs_on_other_rows_or_prices_are_not_put_on_one_page():
    one, other = mail()[0], triage()[0]
    with pytest.raises(ValueError, match="another metric: logloss, mse"):
        Content([one, other], "")
    fewer = LabelledRows(one.rows.X[:100], one.rows.y[:100])
    with pytest.raises(ValueError, match="other rows"):
        Content([one, replace(one, rows=fewer)], "")
    expensive = replace(hand_built.confident(), costs=hand_built.COSTS.scaled(2.0))
    with pytest.raises(ValueError, match="price 'ask' differently: 1, 2"):
        Content([one, SavedRun(front_of([({}, expensive)], one.rows, "logloss", "Expensive"), one.rows)], "")
    with pytest.raises(ValueError, match="at least one model"):
        Content([], "")


@pytest.mark.parametrize("name", [name for name in hand_built.PLANS if name != "wide"])
@pytest.mark.parametrize("charge", ["learner", "path"])
def test_walks_are_what_a_driver_of_ones_own_would_see(name, charge):
    plan = replace(hand_built.PLANS[name](), charge=charge)
    rows = LabelledRows(
        hand_built.rows(30, seed=2), np.zeros(30), np.repeat(np.arange(5), 6) if plan.by_query else None
    )
    seen = Observed.of(plan, rows)
    numbers = np.arange(30)
    found = walks(plan, rows, numbers)
    ends = [w for q in range(5) for w in drive_list(plan, rows.X[6 * q : 6 * q + 6])] if plan.by_query else None
    for i, steps in enumerate(found):
        end = drive(plan, rows.X[i]) if ends is None else ends[i]
        assert [name for step in steps for name in step.buys] == end.bought
        assert steps[0].buys == ()
        assert steps[-1].cost == end.cost == seen.cost[i]
        answer = seen.answers[i]
        assert steps[-1].answer == (str(answer) if plan.classes is not None else pytest.approx(np.ravel(answer)[0]))
        assert [s.cost for s in steps] == sorted(s.cost for s in steps)


def test_walked_rows_go_from_the_cheapest_to_the_most_expensive():
    run = mail()[0]
    seen = [Observed.of(p.model.plan_, run.rows) for p in run.front.points]
    numbers = choose_rows(seen)
    widest = max(seen, key=lambda one: one.cost.std() / one.cost.mean())
    assert len(numbers) == len(set(numbers.tolist())) == 100
    assert {widest.cost[numbers].min(), widest.cost[numbers].max()} == {widest.cost.min(), widest.cost.max()}
    ranked = search()[0]
    numbers = choose_rows([Observed.of(p.model.plan_, ranked.rows) for p in ranked.front.points])
    assert len(numbers) == 100
    assert all(np.isin(np.flatnonzero(ranked.rows.qid == q), numbers).all() for q in ranked.rows.qid[numbers])


@pytest.mark.parametrize("name", hand_built.PLANS)
def test_details_of_every_kind_of_plan_are_plain_data(name):
    plan = hand_built.PLANS[name]()
    rng = np.random.default_rng(0)
    X = hand_built.rows(24, seed=1, n_features=len(plan.costs.features))
    y = rng.normal(size=24) if plan.classes is None else rng.choice(plan.classes, 24)
    rows = LabelledRows(X, y, np.arange(24) // 6 if plan.by_query else None)
    metric = front_of([({}, plan)], rows, "mse" if plan.classes is None else "accuracy", "").metric
    numbers = {a: i for i, a in enumerate(plan.costs.acquisitions)}
    found = details(Observed.of(plan, rows), metric, numbers, np.arange(24), {})
    json.dumps(found, allow_nan=False)
    assert sum(bar["rows"] for bar in found["spending"][0]["bars"]) == 24
    assert len(found["walks"]["rows"]) == 24


def test_the_figures_of_the_page_are_those_of_the_plans():
    runs = triage()
    content = Content(runs, "A page")
    main = content.main()
    rows = runs[0].rows
    assert len(main["paths"]) == 4
    for stop, found in zip(content.stops, main["stops"]):
        cost = stop.plan.predict_cost(rows.X)
        assert found["cost"]["mean"] == cost.mean()
        assert found["quality"] == float(np.mean((stop.plan.predict(rows.X) - rows.y) ** 2))
        names = {main["acquisitions"][a]["name"] for a in found["bought"]}
        assert names == {a for f in stop.plan.used_features for a in stop.plan.costs.needs[stop.plan.costs.features[f]]}
    assert main["stops"][main["chosen"]]["params"] == "budget=1.4"
    assert main["stops"][main["blind"]]["times"] == 1.0
    assert main["blindName"] == "most expensive model"
    best = [main["stops"][s] for s in main["paths"][0]["stops"]]
    assert [s["cost"]["mean"] for s in best] == sorted(s["cost"]["mean"] for s in best)
    assert [s["quality"] for s in best] == sorted((s["quality"] for s in best), reverse=True)
    blind, first = main["stops"][main["blind"]], best[0]
    assert first["lost"] == first["quality"] - blind["quality"] > 0
    assert first["times"] == blind["cost"]["mean"] / first["cost"]["mean"]


@pytest.mark.parametrize("charge", ["learner", "path"])
@pytest.mark.parametrize("name", [name for name in hand_built.PLANS if name != "wide"])
def test_what_rows_buy_is_what_their_walks_buy(name, charge):
    """Counted without walking: the shares are those of drivers that walk each row, and they add up to the mean cost."""
    plan = replace(hand_built.PLANS[name](), charge=charge)
    X = hand_built.rows(60, seed=1)
    qid = np.repeat(np.arange(6), 10)
    rows = LabelledRows(X, np.zeros(60), qid if plan.by_query else None)
    seen = Observed.of(plan, rows)
    owned, steps = owned_by(seen), walks(plan, rows, np.arange(60))
    bought = [{name for step in mine for name in step.buys} for mine in steps]
    names = plan.costs.acquisitions
    assert [{names[a] for a in np.flatnonzero(line)} for line in owned] == bought
    known = Observed(plan.with_background(X), rows, seen.run)
    parts, score = moved(known, steps, np.arange(60)), seen.run.score
    if plan.link == "softmax":  # each against the mean of the others
        score = score - (score.sum(axis=1, keepdims=True) - score) / (score.shape[1] - 1)
    assert [sum(line) for _, line in parts["rows"]] == pytest.approx(
        [score[i, k] for i, (k, _) in enumerate(parts["rows"])], rel=0.02, abs=0.02
    )
    lines = purchases(seen, steps)
    assert {line["name"]: line["share"] for line in lines} == {
        name: pytest.approx(np.mean([name in b for b in bought])) for name in set().union(*bought)
    }
    if not plan.costs.evaluation:
        assert sum(line["spent"] for line in lines) == pytest.approx(seen.cost.mean())


def test_a_policys_purchases_are_counted_over_all_rows():
    X = hand_built.rows(300, seed=2)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    costs = ms.CostTable.per_feature({f"f{i}": 1.0 + i for i in range(X.shape[1])})
    plan = ms.ActiveClassifier(costs, random_state=0).fit(X, y).plan_.at(1e-4)
    rows = LabelledRows(X[:50], y[:50])
    seen, mine = Observed.of(plan, rows), walks(plan, rows, np.arange(50))
    names = plan.costs.acquisitions
    bought = [{name for step in way for name in step.buys} for way in mine]
    assert [{names[a] for a in np.flatnonzero(line)} for line in owned_by(seen)] == bought
    assert sum(line["spent"] for line in purchases(seen, mine)) == pytest.approx(seen.cost.mean())
    assert any(bought)
    assert "may buy" in plan.describe()


def test_the_tradeoff_of_zero_is_the_cost_blind_model():
    run = mail()[0]
    points = tuple(replace(p, params={"tradeoff": float(i)}) for i, p in enumerate(run.front.points))
    content = Content([replace(run, front=replace(run.front, points=points), chosen=None)], "")
    assert content.blind is points[0]
    assert content.main()["blindName"] == "cost-blind model"


def test_names_cannot_break_out_of_the_page(tmp_path):
    evil = "</script><script>alert(1)</script>"
    costs = CostTable.per_feature({evil: 1.0, "<b>": 2.0})
    plan = Plan(costs, RawFeatures([0, 1]), (Node([0, 1], [1.0, 2.0]),), [0.0])
    rows = LabelledRows(np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) * 1.0)
    page = tmp_path / "page.html"
    write_report([SavedRun(front_of([({}, plan)], rows, "mse", evil), rows)], page, title=evil)
    text = page.read_text()
    assert evil not in text
    assert text.count("<script") == text.count("</script>") == 3


def test_the_page_asks_for_nothing(tmp_path):
    page = tmp_path / "page.html"
    seen = []
    write_report(triage(n=60), page, progress=lambda done, of: seen.append((done, of)))
    text = page.read_text()
    addresses = set(re.findall(r"https?://[^\s'\"\\)<]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(script|img|iframe)[^>]+src=|@import|url\((?!#)", text)
    assert seen[-1][0] == seen[-1][1] == len(seen) - 1


def test_plans_of_a_run_are_files_of_their_own(tmp_path):
    run = search()[0]
    save_run(run.front, validation(run), tmp_path / "run")
    plan = load_plan(tmp_path / "run/plans/002.plan")
    assert plan == run.front.points[2].model.plan_

"""Protocols: exact for one tree, faithful for others, in the user's words, and on one page."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binomtest

import miserly as ms
from miserly.baselines import PathTreeClassifier, PathTreeRegressor
from miserly.cli.main import cli
from miserly.datasets import write_csv
from miserly.report import LabelledRows, export_text, protocol
from miserly.report._intervals import wilson
from miserly.schema import Column, Schema

COSTS = ms.CostTable(
    ["age", "sex", "crp", "white", "scan"],
    {"age": [], "sex": [], "crp": ["draw", "crp_test"], "white": ["draw", "white_test"], "scan": ["scan"]},
    {"draw": 5.0, "crp_test": 8.0, "white_test": 4.0, "scan": 120.0},
    unit="CAD",
)


def patients(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).round(3)
    X[:, 1] = rng.integers(0, 2, n)
    ill = np.where(np.abs(X[:, 2]) > 0.5, X[:, 2] > 0, X[:, 4] > 0)
    return X, np.where(ill, "ill", "well")


@pytest.fixture(scope="module")
def train():
    return patients(1500, 0)


@pytest.fixture(scope="module")
def rows():
    return LabelledRows(*patients(800, 1))


def follow(found, plan, x):
    """One row by the words of the protocol alone: its prediction and what it paid."""
    step, paid = found.steps[0], 0.0
    while True:
        paid += step.price
        if not step.question:
            return step.prediction, paid
        name, threshold = step.question.replace(" = 0", " ≤ 0").split(" ≤ ")
        value = x[plan.costs.features.index(name)]
        yes = step.missing == "yes" if np.isnan(value) else value <= float(threshold)
        step = found.steps[step.yes if yes else step.no]


def test_one_tree_is_its_own_protocol(train, rows):
    plan = PathTreeClassifier(COSTS, tradeoff=1e-4, max_leaf_nodes=9).fit(*train).plan_
    found = protocol(plan, rows)
    assert found.exact
    assert found.fidelity == 1.0
    assert found.n_questions <= 8
    answers, cost = plan.predict(rows.X), plan.predict_cost(rows.X)
    for i in range(200):
        said, paid = follow(found, plan, rows.X[i])
        assert said == answers[i]
        assert paid <= cost[i] + 1e-9, "questions that change nothing are left out"
    missing = np.full(5, np.nan)
    assert follow(found, plan, missing)[0] == plan.predict(missing[None])[0]


def test_other_plans_are_imitated_on_rows_that_the_tree_has_not_seen(train, rows):
    plan = ms.GreedyMiserClassifier(COSTS, tradeoff=1e-4, charge="path", n_estimators=30).fit(*train).plan_
    found = protocol(plan, rows)
    assert not found.exact
    assert 1 <= found.n_questions <= 12
    assert found.fidelity > 0.9
    followed = np.array([follow(found, plan, x)[0] for x in rows.X])
    assert np.mean(followed == plan.predict(rows.X)) >= found.fidelity - 0.03
    assert found.cost <= 1.15 * plan.predict_cost(rows.X).mean()
    assert found.plan_cost == plan.predict_cost(rows.X).mean()


def test_shares_prices_and_rates_are_counted(train, rows):
    plan = PathTreeClassifier(COSTS, tradeoff=1e-4, max_leaf_nodes=9).fit(*train).plan_
    found = protocol(plan, rows)
    ends = [s for s in found.steps if not s.question]
    assert sum(s.rows for s in ends) == len(rows)
    assert found.cost == pytest.approx(np.mean([follow(found, plan, x)[1] for x in rows.X]))
    [rate] = found.rates
    predicted, truth = plan.predict(rows.X) == "well", rows.y == "well"
    assert rate.label == "well"
    assert rate.sensitivity[0] == np.mean(predicted[truth])
    assert rate.specificity[0] == np.mean(~predicted[~truth])
    assert rate.positive[0] == np.mean(truth[predicted])
    assert rate.negative[0] == np.mean(~truth[~predicted])


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (3, 10), (10, 10), (480, 500)])
def test_intervals_are_wilsons(hits, n):
    expected = binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson(hits, n) == pytest.approx((hits / n, expected.low, expected.high), abs=1e-6)


def test_questions_are_in_the_users_words(train, rows):
    plan = PathTreeClassifier(COSTS, tradeoff=0.0, max_leaf_nodes=2).fit(train[0], train[0][:, 1] > 0).plan_
    known = LabelledRows(rows.X, rows.X[:, 1] > 0)
    assert protocol(plan, known).steps[0].question == "sex = 0"
    named = replace(plan, notes={"categories": {"sex": ["female", "male"]}})
    assert protocol(named, known).steps[0].question == "sex is female"


def test_numbers_and_constants(train, rows):
    X, _ = train
    y = X[:, 2] + 0.2 * X[:, 4]
    plan = PathTreeRegressor(COSTS, tradeoff=1e-5, max_leaf_nodes=5).fit(X, y).plan_
    found = protocol(plan, LabelledRows(rows.X, rows.X[:, 2]))
    assert found.exact
    assert found.rates == ()
    assert "mean label" in found.text()
    boosted = ms.GreedyMiserRegressor(COSTS, tradeoff=1e-5, n_estimators=20).fit(X, y).plan_
    imitated = protocol(boosted, LabelledRows(rows.X, rows.X[:, 2]))
    assert "variance" in imitated.headline()
    nothing = ms.GreedyMiserRegressor(COSTS, tradeoff=1e9, n_estimators=3).fit(X[:, :], y).plan_
    assert protocol(nothing, LabelledRows(rows.X, rows.X[:, 2])).n_questions <= 12


def test_it_fits_one_page_as_text_markdown_and_command(train, rows, tmp_path):
    plan = ms.GreedyMiserClassifier(COSTS, tradeoff=1e-4, charge="path", n_estimators=30).fit(*train).plan_
    found = protocol(plan, rows)
    assert len(found.text().splitlines()) <= 45
    assert max(map(len, found.text().splitlines())) <= 190
    assert "| class | sensitivity |" in found.markdown()
    assert found._repr_html_().startswith("<svg")
    assert len(repr(found)) < 300
    plan.save(tmp_path / "a.plan")
    write_csv(tmp_path / "rows.csv", [*COSTS.features, "outcome"], [*rows.X.T, rows.y])
    words = ["explain", str(tmp_path / "a.plan"), "--rows", str(tmp_path / "rows.csv"), "--label", "outcome"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert done.output.rstrip("\n") == replace(found, outcome="outcome").text()
    assert CliRunner().invoke(cli, words[:-2]).exit_code == 2


def test_a_tree_is_written_as_it_predicts(train, rows):
    """The text alone predicts what the tree does, missing values too."""
    plan = PathTreeRegressor(COSTS, tradeoff=0.0, max_leaf_nodes=6).fit(train[0], train[0][:, 2]).plan_
    lines = export_text(plan).splitlines()

    def follow_text(x):
        depth, i = 0, 0
        while True:
            line = lines[i].replace("│", " ")
            text = line.split("─ ", 1)[1]
            if text.startswith("value"):
                return float(text.split()[1])
            missing = text.endswith(" or missing")
            name, sign, threshold = text.removesuffix(" or missing").split()
            value = x[COSTS.features.index(name)]
            yes = missing if np.isnan(value) else (value <= float(threshold)) == (sign == "≤")
            if yes:
                depth, i = depth + 1, i + 1
            else:
                i = next(k for k in range(i + 1, len(lines)) if lines[k].index("─") == lines[i].index("─"))

    X = rows.X[:100].copy()
    X[::7, 2] = np.nan
    expected = [float(f"{v:.4g}") for v in plan.predict(X)]
    assert [follow_text(x) for x in X] == pytest.approx(expected, rel=1e-3)
    with pytest.raises(ValueError, match="there is no tree 9"):
        export_text(plan, 9)


def of_outcome(plan, label="died"):
    columns = tuple(Column(name, unit="mg/l" if name == "crp" else "") for name in COSTS.features)
    return replace(plan, schema=Schema(columns, label=label))


def test_the_outcome_is_named_and_branches_are_not_classes(train, rows, tmp_path):
    """It said "predict yes" and "go on as for yes", where yes was a class and an answer, and was titled "Protocol"."""
    said = np.where(train[1] == "ill", "yes", "no")
    plan = of_outcome(PathTreeClassifier(COSTS, tradeoff=1e-4, max_leaf_nodes=9).fit(train[0], said).plan_)
    found = protocol(plan, LabelledRows(rows.X, np.where(rows.y == "ill", "yes", "no")))
    assert "predict died = yes" in found.text()
    assert "died = yes  " in found.text()
    assert found.markdown().startswith("# Protocol: died\n")
    page = found.html()
    assert "<title>Protocol: died</title>" in page
    assert ">predict died = no<" in page
    assert "yes:" not in page
    assert "yes, or missing" not in page
    sides = {s.question: s.otherwise for s in found.steps if s.question}
    for step, sentence in zip((s for s in found.steps if s.question), found.missing_results()):
        side = step.question if step.missing == "yes" else sides[step.question]
        assert sentence == f"{step.feature}: without a result go on as for {side}."
    found.save(tmp_path / "a.html", title="Deaths on the ward")
    assert "<h1>Deaths on the ward</h1>" in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert protocol(plan, rows, outcome="death").title == "Protocol: death"


def test_leaves_show_the_share_of_the_outcome_whatever_they_predict(train, rows):
    """Leaves said how often they are right, which reads badly where a rare outcome is never predicted."""
    plan = PathTreeClassifier(COSTS, tradeoff=1e-4, max_leaf_nodes=9).fit(*train).plan_
    found = protocol(plan, rows)
    ends = [s for s in found.steps if s.prediction and s.rows]
    assert sum(s.risk[0] * s.rows for s in ends) == pytest.approx(np.sum(rows.y == "well"))
    assert all(s.risk[0] == pytest.approx(s.right[0] if s.prediction == "well" else 1 - s.right[0]) for s in ends)
    assert f"% of rows ({ends[0].rows}), " in found.text()
    assert "well in " in found.text()
    assert "right " not in found.text()


def test_what_is_free_is_looked_at_first_and_not_ordered(rows):
    """It said "order age (0 CAD)", after the blood test."""
    costs = ms.CostTable.per_feature({"age": 0.0, "crp": 13.0}, unit="CAD")
    X = rows.X[:, [0, 2]]
    y = (X[:, 1] > 0) & (X[:, 0] > 0)
    plan = PathTreeClassifier(costs, tradeoff=0.0, max_leaf_nodes=3).fit(X, y).plan_
    found = protocol(plan, LabelledRows(X, y))
    assert "order age" not in found.text() + found.html()
    assert "look at age" in found.text()
    assert "look at age" in found.html()
    assert found.headline().endswith("Look first at what is free: age.")
    assert "order crp (13 CAD)" in found.text()

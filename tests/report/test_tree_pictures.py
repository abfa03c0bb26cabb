"""Trees as pictures: what is drawn is what the plan does, in the user's words; protocols as files."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

import miserly as ms
from miserly.baselines import PathTreeClassifier, PathTreeRegressor
from miserly.cli.main import cli
from miserly.datasets import triage_like, write_csv
from miserly.report import FrugalPicture, LabelledRows, Observed, TreePicture, export_text, plot_tree, protocol
from miserly.schema import Column, Schema

COSTS = ms.CostTable.per_feature({"age": 1.0, "sex": 1.0, "seen": 2.0, "pain": 3.0}, unit="CAD")
SCHEMA = Schema(
    (
        Column("age", unit="years"),
        Column("sex", "boolean"),
        Column("seen", "date", format="%d.%m.%Y"),
        Column("pain", "category", ("none", "mild", "strong")),
    )
)


def patients(n=600, seed=0):
    rng = np.random.default_rng(seed)
    days = rng.choice([19_000, 19_358, 19_359, 19_700], n)
    X = np.column_stack([rng.integers(20, 90, n), rng.integers(0, 2, n), days, rng.integers(0, 3, n)]).astype(float)
    ill = (X[:, 3] == 2) | ((X[:, 0] > 60) & (X[:, 2] > 19_358))
    return X, np.where(ill, "ill", "well")


def tree_plan(**more):
    return replace(PathTreeClassifier(COSTS, tradeoff=0.0, **more).fit(*patients()).plan_, schema=SCHEMA)


def test_questions_have_units_names_and_dates():
    text = export_text(tree_plan())
    assert "pain is none or mild" in text
    assert "pain is strong" in text
    assert re.search(r"age ≤ 60.5 years", text)
    assert "seen up to 01.01.2023" in text  # day 19358: the last one on the left
    assert "seen after 01.01.2023" in text
    words = [record["text"] for record in TreePicture(tree_plan()).frame()]
    assert "pain is none or mild?" in words
    assert "seen up to 01.01.2023?" in words
    assert any(s.question == "pain is none or mild" for s in protocol(tree_plan(), LabelledRows(*patients())).steps)
    boolean = PathTreeClassifier(COSTS, tradeoff=0.0).fit(patients()[0], patients()[0][:, 1] > 0).plan_
    assert "sex is no" in export_text(replace(boolean, schema=SCHEMA))


def test_a_drawn_tree_counts_the_rows_that_go_through_it(tmp_path):
    plan = tree_plan()
    X, y = patients(seed=1)
    X[::9, 0] = np.nan
    records = TreePicture(plan, rows=LabelledRows(X, y)).frame()
    leaves = [r for r in records if r["feature"] is None]
    assert sum(r["rows"] for r in leaves) == len(X)
    assert records[0]["counts"] == {"ill": int((y == "ill").sum()), "well": int((y == "well").sum())}
    said = plan.predict(X)
    for label in ("ill", "well"):
        assert sum(r["rows"] for r in leaves if r["text"] == f"predict {label}") == (said == label).sum()
    for record in records:
        if record["yes"] is not None:
            assert record["rows"] == records[record["yes"]]["rows"] + records[record["no"]]["rows"]
    plot_tree(plan, X=X, y=y, path=tmp_path / "tree.svg")
    drawn = (tmp_path / "tree.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<?xml")
    numbers = PathTreeRegressor(COSTS, tradeoff=0.0, max_leaf_nodes=4).fit(X[:, :], patients(seed=1)[0][:, 3]).plan_
    assert any(r["text"].startswith("value") for r in TreePicture(numbers).frame())
    with pytest.raises(ValueError, match="there is no tree 9"):
        TreePicture(plan, 9)


def test_a_frugal_picture_counts_exits_as_the_plan_predicts(tmp_path):
    train, new = triage_like(1200, seed=0), triage_like(500, seed=1)
    model = ms.FastFrugalTreeClassifier(train.costs).fit(train.X, np.where(train.y == "well", "well", "ill"))
    rows = LabelledRows(new.X, np.where(new.y == "well", "well", "ill"))
    seen = Observed.of(model.plan_, rows)
    picture = FrugalPicture(seen)
    records = picture.frame()
    assert [r["cue"] for r in records] == [model.plan_.costs.features[level.feature] for level in model.levels_]
    exits = [e for r in records for e in r["exits"]]
    assert sum(e["right"] + e["wrong"] for e in exits) == len(rows)
    assert sum(e["right"] for e in exits) == (seen.answers == rows.y).sum()
    for label in ("ill", "well"):
        here = sum(e["right"] + e["wrong"] for e in exits if e["predicts"] == label)
        assert here == (seen.answers == label).sum()
    rates = {r["rate"]: r for r in picture.rates()}
    assert rates["accuracy"]["share"] == np.mean(seen.answers == rows.y)
    assert rates["sensitivity"]["share"] == np.mean(seen.answers[rows.y == "well"] == "well")
    assert all(r["low"] <= r["share"] <= r["high"] for r in rates.values())
    picture.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000
    X, _ = patients()
    both = np.where((X[:, 0] > 55) == (X[:, 1] > 0), "ill", "well")
    branching = Observed.of(PathTreeClassifier(COSTS, tradeoff=0.0).fit(X, both).plan_, LabelledRows(X, both))
    with pytest.raises(ValueError, match="not a fast-and-frugal tree"):
        FrugalPicture(branching)


def test_a_protocol_is_a_drawing_a_page_and_a_file(tmp_path):
    rows = LabelledRows(*patients(seed=2))
    plan = tree_plan()
    found = protocol(plan, rows)
    drawing = ElementTree.fromstring(found.svg())
    words = " ".join(text for node in drawing.iter() for text in node.itertext())
    for step in found.steps:
        assert (step.question or f"predict {step.prediction}") in words
        assert f"({step.rows:,})" in words
    html = found.html("Chest pain & more")
    assert "<h1>Chest pain &amp; more</h1>" in html
    assert "<script" not in html
    assert html.count("<li>") == found.n_questions, "what to do without a result, for each question"
    assert "@page" in html
    for suffix in ("svg", "html", "md", "txt"):
        found.save(tmp_path / f"a.{suffix}")
        assert (tmp_path / f"a.{suffix}").stat().st_size > 100
    with pytest.raises(ValueError, match="Change the suffix"):
        found.save(tmp_path / "a.docx")
    plan.save(tmp_path / "a.plan")
    named = {**dict(zip(COSTS.features, rows.X.T)), "outcome": rows.y}
    named["sex"] = np.where(rows.X[:, 1] > 0, "yes", "no")
    named["seen"] = [SCHEMA.word("seen", d)[8:] + SCHEMA.word("seen", d)[4:8].replace("-", ".") for d in rows.X[:, 2]]
    named["seen"] = [day + SCHEMA.word("seen", d)[:4] for day, d in zip(named["seen"], rows.X[:, 2])]
    named["pain"] = [SCHEMA.word("pain", p) for p in rows.X[:, 3]]
    write_csv(tmp_path / "rows.csv", list(named), list(named.values()))
    words = ["explain", str(tmp_path / "a.plan"), "--rows", str(tmp_path / "rows.csv"), "--label", "outcome"]
    done = CliRunner().invoke(cli, [*words, "--out", str(tmp_path / "b.svg")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "b.svg").read_text(encoding="utf-8") == replace(found, outcome="outcome").svg()
    assert CliRunner().invoke(cli, [*words, "--out", str(tmp_path / "b.doc")]).exit_code == 2
    assert CliRunner().invoke(cli, [*words[:2], "--out", str(tmp_path / "b.svg")]).exit_code == 2


def test_menus_and_budgets_have_protocols():
    rows, plan = LabelledRows(*patients(seed=2)), tree_plan()
    cheap = tree_plan(max_leaf_nodes=2)
    menu = ms.Menu([cheap, plan], [np.inf], [[0.7], [0.9]], [[3.0], [7.0]])
    assert protocol(menu, rows) == protocol(plan, rows)
    capped = protocol(plan, rows, budget=3.0)
    assert not capped.exact
    assert capped.plan_cost == plan.predict_cost(rows.X, budget=3.0).mean()
    assert protocol(plan, rows, budget=1000.0).exact

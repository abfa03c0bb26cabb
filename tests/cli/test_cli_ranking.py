"""From the file of a ranker to predictions: the query column is known, or asked for, and never guessed."""

import csv

import lightgbm
import numpy as np
import pytest
from command import miserly

import miserly as ms

PRICES = """
unit = "ms"

[columns]
"a" = { price = 0, group = "page" }
"b" = { price = 0, group = "page", unit = "words" }
"c" = 5

[groups]
page = 1
"""
TABLE = """
[table]
label = "grade"
id = "url"
qid = "query"
drop = ["day"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A LightGBM ranker, its prices with and without [table], and rows of queries."""
    path = tmp_path_factory.mktemp("ranker")
    rng = np.random.default_rng(0)
    X, grade = rng.normal(size=(60, 3)).round(3), rng.integers(0, 3, 60)
    data = lightgbm.Dataset(X, grade, group=[10] * 6, feature_name=["a", "b", "c"])
    how = {"objective": "lambdarank", "min_data_in_leaf": 3, "num_leaves": 4, "verbose": -1, "num_threads": 1}
    lightgbm.train(how, data, 4).save_model(path / "ranker.txt")
    (path / "costs.toml").write_text(PRICES + TABLE)
    (path / "bare.toml").write_text(PRICES)
    with (path / "rows.csv").open("w", newline="") as file:
        lines = [(f"q{i // 10}", g, f"u{i}", "monday", *x) for i, (g, x) in enumerate(zip(grade, X.tolist()))]
        csv.writer(file).writerows([("query", "grade", "url", "day", "a", "b", "c"), *lines])
    miserly("import", "ranker.txt", "--costs", "bare.toml", "--lazy", "order", "--top", 2, "-o", "bare.plan", cwd=path)
    return path


def test_an_imported_plan_knows_the_columns_of_the_price_file(folder):
    said = miserly("import", "ranker.txt", "--costs", "costs.toml", "--lazy", "order", "-o", "a.plan", cwd=folder)
    assert "--qid" not in said
    schema = ms.load_plan(folder / "a.plan").schema
    assert (schema.label, schema.id, schema.qid, schema.drop) == ("grade", "url", "query", ("day",))
    assert schema["b"].unit == "words"
    table = ms.read_table(folder / "rows.csv", label="grade", id="url", qid="query", drop=["day"])
    miserly("predict", "a.plan", "rows.csv", "-o", "out.csv", cwd=folder)
    with (folder / "out.csv").open() as file:
        lines = list(csv.DictReader(file))
    plan = ms.load_plan(folder / "a.plan")
    assert [line["url"] for line in lines] == [f"u{i}" for i in range(60)]
    assert [float(line["cost"]) for line in lines] == plan.predict_cost(table.X, table.qid).tolist()


def test_the_query_column_is_asked_for(folder):
    error = miserly("predict", "bare.plan", "rows.csv", cwd=folder, code=1)
    assert "compares the documents of a query" in error
    assert "Give --qid COLUMN. It has: query, grade" in error
    assert "--qid COLUMN" in miserly("predict", "bare.plan", "rows.csv", "--json", cwd=folder, code=1)
    lost = miserly("predict", "bare.plan", "rows.csv", "--qid", "quer", cwd=folder, code=1)
    assert "There is no column 'quer'" in lost
    assert "Did you mean 'query'?" in lost
    assert miserly("predict", "bare.plan", "rows.csv", "--qid", "query", cwd=folder).count("\n") == 61
    said = miserly("import", "ranker.txt", "--costs", "bare.toml", "--lazy", "order", "-o", "b.plan", cwd=folder)
    assert "miserly predict b.plan ROWS --qid COLUMN" in said


def test_a_plan_of_single_rows_needs_no_query_column(folder):
    miserly("import", "ranker.txt", "--costs", "costs.toml", "-o", "whole.plan", cwd=folder)
    text = (folder / "rows.csv").read_text()
    (folder / "few.csv").write_text("\n".join(line.split(",", 3)[3] for line in text.splitlines()[:5]))
    assert miserly("predict", "whole.plan", "few.csv", cwd=folder).count("\n") == 5


def test_parts_of_a_group_that_cost_nothing_are_no_purchases(folder):
    assert ms.CostTable.from_file(folder / "costs.toml").prices == {"page": 1, "c": 5}
    lazy = ms.load_plan(folder / "bare.plan")
    assert "lazy (buys until the order of the first 2 documents of a query is certain)" in lazy.summary()
    assert "answers a score that ranks the documents" in lazy.summary()
    assert "imported: 1 node over 4 trees" in lazy.summary()


def test_an_import_without_all_prices_speaks_of_the_model(folder):
    (folder / "few.csv").write_text("feature,cost\na,1\n")
    error = miserly("import", "ranker.txt", "--costs", "few.csv", cwd=folder, code=1)
    assert "the model has 3: missing 'b', 'c'" in error


def test_what_cannot_be_combined_says_what_to_do(folder):
    whole = ms.import_plan(folder / "ranker.txt", ms.CostTable.from_file(folder / "bare.toml"))
    X = np.random.default_rng(0).normal(size=(20, 3))
    quick = ms.put_in_front(whole, whole, X, keep=2)
    with pytest.raises(ValueError, match="put_in_front, early exits"):
        quick.lazy(keep="order")
    with pytest.raises(ValueError, match=r"The plan is lazy.* Give the plan that it was made of"):
        ms.put_in_front(whole, whole.lazy(), X)
    for plan in (whole, quick, whole.lazy()):
        with pytest.raises(ValueError, match=r"EarlyExitRanker\(plan\) or plan\.lazy\(keep='order'\)"):
            plan.stopping(0.9)


def test_rows_without_queries_are_warned_of(folder):
    plan = ms.load_plan(folder / "bare.plan")
    X = np.random.default_rng(0).normal(size=(20, 3))
    for ask in (plan.predict, plan.predict_cost, plan.rank_score):
        with pytest.warns(UserWarning, match="all 20 rows count as one query. Give qid") as found:
            ask(X)
        assert found[0].filename == __file__
        ask(X[:1])  # one document is one query
        ask(X, np.arange(20) // 10)

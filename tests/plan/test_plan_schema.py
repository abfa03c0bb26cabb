"""A plan's schema: rows in the user's own words, in any order of columns, through every door; old files load."""

import json
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from miserly.costs import CostTable
from miserly.estimators import GreedyMiserClassifier
from miserly.plan import PlanFileError, load_plan
from miserly.runtime import OnDemand, extractor
from miserly.schema import CellRules, Column, Schema

SCHEMA = Schema(
    (
        Column("age", unit="years"),
        Column("sex", "category", ("female", "male")),
        Column("smoker", "boolean"),
        Column("admitted", "date", format="%d.%m.%Y"),
    ),
    CellRules(decimal=","),
    id="patient",
    label="died",
)


@pytest.fixture(scope="module")
def plan():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(60, 9, 300), rng.integers(0, 2, (300, 2)), rng.integers(18000, 20000, 300)])
    y = np.where(X[:, 0] + 9 * X[:, 1] + 5 * X[:, 2] > 65, "yes", "no")
    costs = CostTable.per_feature({"age": 1, "sex": 1, "smoker": 2, "admitted": 1})
    model = GreedyMiserClassifier(costs, n_estimators=20, min_samples_leaf=5).fit(X, y)
    return replace(model.plan_, schema=SCHEMA)


ROWS = [
    {"smoker": "ja", "age": "61,5", "sex": "male", "admitted": "03.02.2024", "patient": "A1"},
    {"smoker": False, "age": 40, "sex": "female", "admitted": None, "patient": "A2"},
    {"smoker": None, "age": "n/a", "sex": "other", "admitted": "29.02.2024", "patient": "A3"},
]
MATRIX = np.array([[61.5, 1, 1, 19756], [40, 0, 0, np.nan], [np.nan, np.nan, np.nan, 19782]])


def test_rows_in_the_users_words_are_numbers(plan):
    np.testing.assert_array_equal(SCHEMA.matrix(ROWS), MATRIX)
    expected = plan.predict_proba(MATRIX)
    np.testing.assert_array_equal(plan.predict_proba(ROWS), expected)
    text = {"age": ["61,5", "40", None], "sex": ["male", "female", "other"], "extra": ["a", "b", "c"]}
    text |= {"admitted": ["03.02.2024", None, "29.02.2024"], "smoker": ["yes", "no", None]}
    for frame in (pd.DataFrame(text), pl.DataFrame(text), pa.table(text)):
        np.testing.assert_array_equal(plan.predict_proba(frame), expected)
    typed = pd.DataFrame({"smoker": pd.array([True, False, None], "boolean"), "age": [61.5, 40, np.nan]})
    typed["sex"] = pd.Categorical(["male", "female", None])
    typed["admitted"] = pd.to_datetime(["2024-02-03", None, "2024-02-29"])
    np.testing.assert_array_equal(plan.predict_proba(typed), expected)


def test_on_demand_reads_the_same_words(plan):
    class Source:
        def __init__(self, row):
            self.row = row

    extractors = [extractor(name, yields=[name])(lambda source, name=name: source.row[name]) for name in SCHEMA.names]
    runner = OnDemand(plan, extractors)
    values = [runner.predict(Source(row)).value for row in ROWS]
    assert values == plan.predict(MATRIX).tolist()


def test_a_value_of_another_kind_is_refused_by_row_and_column(plan):
    with pytest.raises(ValueError, match=r"Row 1 \(from 0\), column 'age': 'old' is not a number. Write a number with"):
        plan.predict([ROWS[0], ROWS[1] | {"age": "old"}])
    with pytest.raises(ValueError, match=r"X lacks the features 'sex' \(did you mean 'Sex'"):
        plan.predict(pd.DataFrame(ROWS).rename(columns={"sex": "Sex"}))


def test_the_file_keeps_it_and_old_files_load(plan, tmp_path):
    plan.save(tmp_path / "a.plan")
    assert load_plan(tmp_path / "a.plan").schema == SCHEMA
    header = json.loads(zipfile.ZipFile(tmp_path / "a.plan").read("plan.json"))
    del header["schema"]
    header["notes"]["categories"] = {"sex": ["female", "male"]}
    _rewrite(tmp_path / "a.plan", tmp_path / "old.plan", header)
    old = load_plan(tmp_path / "old.plan")
    assert old.schema.categories == {"sex": ("female", "male")}
    header["schema"] = {"columns": "all"}
    _rewrite(tmp_path / "a.plan", tmp_path / "bad.plan", header)
    with pytest.raises(PlanFileError):
        load_plan(tmp_path / "bad.plan")


def _rewrite(source, target, header):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            new.writestr(name, json.dumps(header) if name == "plan.json" else old.read(name))


def test_schemas_must_fit_the_prices(plan):
    with pytest.raises(ValueError, match="other columns than its cost table"):
        replace(plan, schema=SCHEMA.restrict(["sex", "age", "smoker", "admitted"]))


def test_words_of_numbers():
    assert [SCHEMA.word(n, v) for n, v in zip(SCHEMA.names, MATRIX[0])] == [61.5, "male", True, "2024-02-03"]
    assert SCHEMA.word("sex", np.nan) is None
    assert Schema.from_dict(json.loads(json.dumps(SCHEMA.to_dict()))) == SCHEMA

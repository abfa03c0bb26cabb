"""Prices from CSV, TOML and frames of every kind; mistakes in them cost an error, never money in silence."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from miserly.costs import CostTable

LINES = [
    ("age", 1.0, None, None),
    ("t3", 9.31, "blood", 2.1),
    ("tt4", 12.41, "blood", None),
    ("note, long", 0.0, "", None),
]
COLUMNS = ["feature", "cost", "group", "group_cost"]
FRAMES = {
    "pandas": lambda lines: pd.DataFrame(lines, columns=COLUMNS),
    "polars": lambda lines: pl.DataFrame(lines, schema=COLUMNS, orient="row"),
    "pyarrow": lambda lines: pa.table({c: list(v) for c, v in zip(COLUMNS, zip(*lines))}),
}
frames = pytest.mark.parametrize("kind", FRAMES)


def csv(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "c.csv"
    path.write_text(text, encoding=encoding)
    return path


def assert_expected(table):
    assert table.features == ("age", "t3", "tt4", "note, long")
    assert table.needs["age"] == ("age",)
    assert set(table.needs["t3"]) == {"blood", "t3"}
    assert table.prices == {"age": 1.0, "t3": 9.31, "tt4": 12.41, "note, long": 0.0, "blood": 2.1}
    assert table.price(["t3", "tt4"]) == 9.31 + 12.41 + 2.1


def test_a_csv_file_with_groups(tmp_path):
    text = 'feature,cost,group,group_cost\nage,1,,\nt3,9.31,blood,2.1\n tt4 , 12.41, blood,\n"note, long",0,,\n'
    assert_expected(CostTable.from_csv(csv(tmp_path, text), unit="CAD"))
    assert_expected(CostTable.from_file(csv(tmp_path, text, "utf-8-sig")))
    assert_expected(CostTable.from_csv(str(csv(tmp_path, text.replace("\n", "\r\n")))))


def test_a_csv_file_without_groups(tmp_path):
    table = CostTable.from_csv(csv(tmp_path, "cost,feature\n3,b\n1e-3,a\n"), evaluation=0.5, unit="ms")
    assert (table.features, table.evaluation, table.unit) == (("b", "a"), 0.5, "ms")
    assert table.price(["a", "b"]) == 3.001


@frames
def test_frames_with_groups(kind):
    assert_expected(CostTable.from_frame(FRAMES[kind](LINES)))


@frames
def test_frames_that_repeat_the_price_of_the_group(kind):
    lines = [("a", 1.0, "g", 5.0), ("b", 2.0, "g", 5.0)]
    assert CostTable.from_frame(FRAMES[kind](lines)).price(["a", "b"]) == 8.0


def test_a_toml_file(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(
        'unit = "CAD"\nevaluation = 0.25\n[acquisitions]\ndraw = 2.1\nt3 = 9\n'
        '[features]\n"a b" = ["draw", "t3"]\nc = "draw"\nfree = []\n'
    )
    for table in (CostTable.from_toml(path), CostTable.from_file(path)):
        assert table.features == ("a b", "c", "free")
        assert dict(table.needs) == {"a b": ("draw", "t3"), "c": ("draw",), "free": ()}
        assert (table.prices["t3"], table.unit, table.evaluation) == (9.0, "CAD", 0.25)
        assert table.price(["free"]) == 0.0


def test_dicts_arrays_and_lists():
    assert CostTable.per_feature({"age": 1, "mri": 800}).price(["mri"]) == 800
    assert CostTable.per_feature([1, 2]).price(["x1"]) == 2


def test_a_series_of_prices_keeps_its_names():
    table = CostTable.per_feature(pd.Series({"mri": 800.0, "age": 1.0}))
    assert table.bind(["age", "mri"]).price(["age"]) == 1.0


BAD_CSV = {
    "no header": ("age,1\nsex,2\n", r"feature,cost.*age"),
    "an unknown column": ("feature,cost,unit\nage,1,ms\n", "unit"),
    "no price": ("feature,cost\nage,\n", r"line 2.*'age'.*Write its price"),
    "a short line": ("feature,cost\nage\n", r"line 2.*'age'"),
    "words": ("feature,cost\nage,cheap\n", r"line 2.*'age'.*'cheap'"),
    "a decimal comma": ("feature,cost\nage,1,50\n", "line 2"),
    "negative": ("feature,cost\nage,-1\n", "'age'"),
    "not a number": ("feature,cost\nage,nan\n", "'age'"),
    "twice": ("feature,cost\nage,1\nage,2\n", r"line 3.*'age' stands twice"),
    "no name": ("feature,cost\n,5\n", "line 2"),
    "a group with two prices": ("feature,cost,group,group_cost\na,1,g,2\nb,1,g,3\n", r"line 3.*'g' costs 3.*2"),
    "a group without a price": ("feature,cost,group,group_cost\na,1,g,\n", r"'g' has no group_cost"),
    "a group without its column": ("feature,cost,group\na,1,g\n", r"'g' has no group_cost"),
    "a price without its group": ("feature,cost,group,group_cost\na,1,,5\n", "line 2"),
    "a group called as a feature": ("feature,cost,group,group_cost\na,1,b,2\nb,1,,\n", "'b' is a group and a feature"),
    "an empty file": ("", "feature,cost"),
}


@pytest.mark.parametrize("what", BAD_CSV)
def test_a_wrong_csv_file_names_the_place(what, tmp_path):
    text, message = BAD_CSV[what]
    with pytest.raises(ValueError, match=message):
        CostTable.from_csv(csv(tmp_path, text))


@pytest.mark.parametrize("what", ["no price", "negative", "group"])
@frames
def test_a_wrong_frame_names_the_feature(kind, what):
    lines = {
        "no price": [("age", None, None, None), ("sex", 1.0, None, None)],
        "negative": [("age", -1.0, None, None)],
        "group": [("age", 1.0, "g", 2.0), ("sex", 1.0, "g", 3.0)],
    }[what]
    with pytest.raises(ValueError, match=r"'age'|'g'"):
        CostTable.from_frame(FRAMES[kind](lines))


BAD_TOML = {
    "not TOML": ("[acquisitions\n", "not TOML"),
    "no features": ("[acquisitions]\na = 1\n", r"\[features\]"),
    "no acquisitions": ("[features]\na = []\n", r"\[acquisitions\]"),
    "an unknown entry": ("currency = 1\n[acquisitions]\n[features]\n", "currency"),
    "an unknown acquisition": ("[acquisitions]\na = 1\n[features]\nx = ['b']\n", "'x' needs 'b'"),
    "a negative price": ("[acquisitions]\na = -1\n[features]\nx = ['a']\n", "'a'"),
    "a price of words": ("[acquisitions]\na = 'much'\n[features]\nx = ['a']\n", "'a'"),
    "a price where needs stand": ("[acquisitions]\na = 1\n[features]\nx = 5\n", "'x'"),
}


@pytest.mark.parametrize("what", BAD_TOML)
def test_a_wrong_toml_file_says_what_is_wrong(what, tmp_path):
    text, message = BAD_TOML[what]
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        CostTable.from_toml(path)


def test_what_comes_with_its_group_is_no_purchase(tmp_path):
    (tmp_path / "costs.csv").write_text(
        "feature,cost,group,group_cost\ntsh,0,blood,2\nt3,0,blood,\nt4,5,blood,\nage,0,,\n"
    )
    costs = CostTable.from_file(tmp_path / "costs.csv")
    assert costs.prices == {"blood": 2, "t4": 5, "age": 0}
    assert costs.needs == {"tsh": ("blood",), "t3": ("blood",), "t4": ("blood", "t4"), "age": ("age",)}
    (tmp_path / "costs.toml").write_text(
        '[columns]\ntsh = { price = 0, group = "blood" }\nt3 = { price = 0, group = "blood" }\n'
        't4 = { price = 5, group = "blood" }\nage = 0\n[groups]\nblood = 2\n'
    )
    assert CostTable.from_file(tmp_path / "costs.toml") == costs

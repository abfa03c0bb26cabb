"""Measured prices: of each extractor, as a table, as a price file, against another."""

import time
from dataclasses import replace

import pytest
from click.testing import CliRunner

from miserly.cli.main import cli
from miserly.costs import CostTable
from miserly.runtime import extractor, profile


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@extractor("parse", yields=["words"])
def parse(row):
    spin(0.001)
    return {"words": 1.0}


@extractor("urls", yields=["links"], needs=parse)
def urls(row, parsed):
    spin(0.004)
    return 2.0


@extractor("wait", yields=["answer"])
async def wait(row):
    time.sleep(0.003)
    return 2.0


@extractor("batch", yields=["size"], many=True)
def batch(rows):
    return [len(rows)] * len(rows)


def test_cpu_and_wall_are_told_apart():
    measured = profile([urls, parse, wait, batch], range(20))
    cpu, wall = measured.seconds("cpu", "median"), measured.seconds("wall", "median")
    assert 0.0009 < cpu["parse"] < 0.01  # a crowded machine is slower, but not ten times
    assert 0.0039 < cpu["urls"] < 0.04
    assert cpu["wait"] < 0.0029 < wall["wait"]
    assert cpu["batch"] < 0.0009
    assert "urls" in measured.table()


def test_the_table_says_what_each_feature_needs():
    costs = CostTable.from_profile(profile([urls, parse], range(5)), statistic="median")
    assert dict(costs.needs) == {"words": ("parse",), "links": ("parse", "urls")}
    assert costs.unit == "ms"
    assert 2.0 < costs.prices["urls"] / costs.prices["parse"] < 8.0


def test_a_price_that_is_wrong_by_more_than_a_factor_of_two_is_named():
    measured = profile([urls, parse, wait], range(5))
    real = CostTable.from_profile(measured, clock="wall")
    assert measured.compare(real, "wall") == []
    assert measured.compare(real.scaled(1000.0), "wall", relative=True) == [], "another unit"
    slower = measured.compare(real.scaled(0.1), "wall")
    assert len(slower) == len(real.prices), "a slowdown of everything is seen"
    assert "10 times" in slower[0]
    (other,) = measured.compare(replace(real, unit="usd"), "wall")
    assert "in 'usd', times were measured" in other
    wrong = CostTable(real.features, real.needs, {**real.prices, "urls": real.prices["urls"] / 3}, unit="ms")
    (warning,) = measured.compare(wrong, "wall")
    assert "'urls'" in warning
    assert "3 times" in warning


def test_an_extractor_that_raises_is_named():
    @extractor("bad", yields="x")
    def bad(row):
        raise OSError("no disk")

    with pytest.raises(OSError, match="no disk") as caught:
        profile([bad], [1])
    assert "extractor 'bad'" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="at least one"):
        profile([parse], [])


FILE = """
import miserly

@miserly.extractor("length", yields=["length"])
def length(row):
    return len(row)

@miserly.extractor("sum", yields=["sum"], needs=[length])
def total(row, n):
    return sum(range(5000 * n))

def rows():
    for i in range(1000):
        yield "x" * 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE)
    (tmp_path / "rows.jsonl").write_text('{"a": 1, "b": 2}\n' * 30)
    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n" * 30)
    (tmp_path / "files").mkdir()
    for i in range(12):
        (tmp_path / "files" / f"{i}.txt").write_bytes(b"abc")
    return tmp_path


@pytest.mark.parametrize(("rows", "n"), [("mine.py:rows", 10), ("rows.jsonl", 10), ("rows.csv", 10), ("files", 6)])
def test_the_command(folder, rows, n):
    result = CliRunner().invoke(cli, ["profile", "mine.py", rows, "-n", str(n), "-o", "costs.toml"])
    assert result.exit_code == 0, result.output
    assert f"{n} rows" in result.output
    costs = CostTable.from_toml("costs.toml")
    assert dict(costs.needs) == {"length": ("length",), "sum": ("length", "sum")}
    costs = CostTable(costs.features, costs.needs, {**costs.prices, "sum": 1e6, "length": 1.0}, unit="ms")
    costs.to_toml("wrong.toml")
    result = CliRunner().invoke(cli, ["profile", "mine.py", rows, "-n", str(n), "--against", "wrong.toml"])
    assert "Warning" in result.output


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["absent.py", "rows.csv"], "no file 'absent.py'"),
        (["mine.py", "absent.csv"], "no file or folder 'absent.csv'"),
        (["json", "rows.csv"], "declares no extractors"),
    ],
)
def test_mistakes_on_the_command_line(folder, arguments, match):
    result = CliRunner().invoke(cli, ["profile", *arguments])
    assert match in str(result.exception)

"""`miserly reproduce`: names, mistakes, and what it writes."""

from click.testing import CliRunner

from miserly import experiments
from miserly.cli.main import cli
from miserly.experiments import Claim, Study, StudyResult, Verdict


def called(*args):
    return CliRunner().invoke(cli, ["reproduce", *args])


def test_figures_are_named():
    listed = called("--list").output
    assert listed == called().output
    assert "miser-1-right" in listed
    assert "Thesis, figure 3.6" in listed
    assert len(listed.splitlines()) == len(experiments.STUDIES)


def test_a_wrong_name_lists_the_right_ones():
    done = called("miser-9")
    assert done.exit_code == 2
    assert "no figure 'miser-9'" in done.output
    assert "cronus-2-left" in done.output


def test_no_stand_in_without_measured_data(monkeypatch, tmp_path):
    monkeypatch.delenv("MISERLY_DATA", raising=False)
    done = called("miser-1-left", "--real", "--out", str(tmp_path))
    assert done.exit_code == 2
    assert "--real wants mq2008 or yahoo_ltrc" in done.output


def test_one_and_all(monkeypatch, tmp_path):
    def study(name, holds, is_real):
        claim = Claim("some data", "up", "up" if holds else "down", Verdict.of_fact(holds), is_real)
        return Study(name, f"Figure {name}", lambda bench: StudyResult([{"a": 1}], claims=[claim]))

    some = {"one": study("one", True, True), "two": study("two", False, True), "three": study("three", True, False)}
    monkeypatch.setattr(experiments, "STUDIES", some)
    done = called("one", "--out", str(tmp_path / "a"), "--quick")
    assert done.exit_code == 0, done.output
    assert "1 claims on real or synthetic data of the papers: 1 seen" in done.output
    done = called("--all", "--out", str(tmp_path / "b"))
    assert "2 claims on real or synthetic data of the papers: 1 seen, 0 undecided, 1 contradicted" in done.output
    assert "1 on stand-ins: 1 seen" in done.output
    table = (tmp_path / "b" / "claims.md").read_text()
    assert "| two | some data | up | down | **contradicted** |" in table
    assert {p.name for p in (tmp_path / "b").glob("*.csv")} == {"one.csv", "two.csv", "three.csv"}

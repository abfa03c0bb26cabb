"""Comparisons: areas and differences as counted by hand on the same folds, any estimator, all formats."""

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

import miserly as ms
from miserly.baselines import PathTreeClassifier
from miserly.cli.main import cli
from miserly.datasets import triage_like, write_csv
from miserly.frontiers import within
from miserly.metrics import get_metric


class Plain(ClassifierMixin, BaseEstimator):
    """An estimator that knows nothing of plans: it reads some columns and says what they cost."""

    def __init__(self, columns=(0,), price=1.0):
        self.columns, self.price = columns, price

    def fit(self, X, y):
        self.model_ = LogisticRegression().fit(np.nan_to_num(X[:, self.columns]), y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(np.nan_to_num(X[:, self.columns]))

    def predict_cost(self, X):
        return np.full(len(X), self.price)


DATA = triage_like(500, seed=0)
Y = np.where(DATA.y == "well", "well", "ill")


@pytest.fixture(scope="module")
def found():
    methods = {
        "path": PathTreeClassifier(DATA.costs),
        "frugal": ms.FastFrugalTreeClassifier(DATA.costs),
        "plain": Plain((5, 6), 20.0),
    }
    return ms.compare(methods, (DATA.X, Y), cv=4, budgets=[5.0, 40.0])


def test_a_model_without_a_plan_is_measured_on_each_test_fold(found):
    fronts = found.curves["plain"]
    assert found.n_folds == 4
    for front in fronts:
        [point] = front.points
        assert point.test.cost["mean"] == 20.0
        assert within(front, 5.0) == front.baseline.test.quality, "within less than its price there is the constant"
        assert within(front, 40.0) == point.test.quality
    ill = np.mean(Y == "ill")
    assert np.mean([within(front, 5.0) for front in fronts]) == pytest.approx(max(ill, 1 - ill), abs=0.01)


def test_intervals_are_paired_over_the_folds(found):
    one, other = found.areas("path"), found.areas("plain")
    mean, half, verdict = found.difference("path", "plain")
    gaps = one - other
    expected = stats.t.ppf(0.975, 3) * np.sqrt(np.var(gaps, ddof=1) * (1 / 4 + 1 / 3))
    assert (mean, half) == pytest.approx((gaps.mean(), expected))
    assert verdict == ("better" if mean - half > 0 else "worse" if mean + half < 0 else "undecided")
    opposite = found.difference("plain", "path")
    assert opposite[:2] == pytest.approx((-mean, half))
    assert {verdict, opposite[2]} in ({"better", "worse"}, {"undecided"})
    at, _, _ = found.difference("path", "plain", budget=40.0)
    by_hand = [within(a, 40.0) - within(b, 40.0) for a, b in zip(found.curves["path"], found.curves["plain"])]
    assert at == pytest.approx(np.mean(by_hand))


def test_records_are_ordered_and_refer_to_the_best(found):
    records = found.records()
    assert [r["area"] for r in records] == sorted((r["area"] for r in records), reverse=True)
    assert records[0]["method"] == found.reference
    assert records[0]["verdict"] == "reference"
    for record in records:
        assert record["area"] == pytest.approx(found.areas(record["method"]).mean())
        assert record["within 40"] == pytest.approx(np.mean([within(f, 40.0) for f in found.curves[record["method"]]]))


def test_lower_is_better_where_it_is():
    X = np.random.default_rng(0).normal(size=(160, 2))
    costs = ms.CostTable.per_feature([1.0, 5.0])
    good, bad = (ms.GreedyMiserRegressor(costs, n_estimators=n) for n in (12, 1))
    found = ms.compare([bad, good], (X, X[:, 0]), cv=3)
    assert found.reference == "GreedyMiserRegressor 1"
    assert found.difference("GreedyMiserRegressor 1", "GreedyMiserRegressor 0")[0] > 0
    assert found.records()[1]["difference"] < 0


def test_rankers_keep_queries_whole_and_three_sets_have_no_interval():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(240, 3)), np.repeat(np.arange(24), 10)
    grade = np.clip(np.round(X[:, 0] + 1), 0, 2).astype(int)
    model = ms.GreedyMiserRanker(ms.CostTable.per_feature([1.0, 2.0, 3.0]), n_estimators=5)
    found = ms.compare({"ranker": model}, (X, grade, qid), cv=3)
    assert found.metric.name == "ndcg@5"
    assert found.areas("ranker").mean() > 0.7
    parts = [(X[a : a + 80], X[a : a + 80, 0]) for a in (0, 80, 160)]
    single = ms.compare(
        {"one": ms.GreedyMiserRegressor(model.costs, n_estimators=5)}, parts, cv=None, metric=get_metric("mse")
    )
    assert single.n_folds == 1
    assert np.isnan(single.records()[0]["area_half"])


def test_all_formats_say_the_same(found, tmp_path):
    heads, lines = found.markdown().splitlines()[0], found.markdown().splitlines()[2:5]
    assert heads.startswith("| method | area (accuracy) |")
    for line, record in zip(lines, found.records()):
        assert f"{record['area']:.4f} ± {record['area_half']:.4f}" in line
    assert found.latex().count(r"\\") == 4
    assert r"\toprule" in found.latex()
    assert list(found.frame()["method"]) == [r["method"] for r in found.records()]
    assert len(found.text().splitlines()) <= 20
    assert len(repr(found)) < 200
    assert "<script" not in found._repr_html_()
    for suffix in ("html", "md", "tex", "txt", "csv", "svg", "png"):
        found.save(tmp_path / f"a.{suffix}")
        assert (tmp_path / f"a.{suffix}").stat().st_size > 100
    assert "<svg" in (tmp_path / "a.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="Change the suffix"):
        found.save(tmp_path / "a.doc")


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="has no predict_cost"):
        ms.compare({"a": LogisticRegression()}, (DATA.X, Y))
    with pytest.raises(ValueError, match="2 or more"):
        ms.compare({"a": Plain()}, (DATA.X, Y), cv=1)
    with pytest.raises(ValueError, match="The reference is one of a"):
        ms.compare({"a": Plain()}, (DATA.X, Y), cv=2, reference="b")


def test_the_command_compares_by_cross_validation(tmp_path):
    names = list(DATA.costs.features)
    write_csv(tmp_path / "a.csv", [*names, "ill"], [*np.nan_to_num(DATA.X[:300]).T, Y[:300]])
    lines = ["feature,cost", *(f"{f},{DATA.costs.price([f])}" for f in names)]
    (tmp_path / "c.csv").write_text("\n".join(lines), encoding="utf-8")
    words = ["compare", str(tmp_path / "a.csv"), "--costs", str(tmp_path / "c.csv"), "--label", "ill", "--cv", "3"]
    words += ["--method", "path-tree", "--method", "fast-frugal", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert "path-tree" in done.output
    assert "±" in done.output
    for name in ("comparison.html", "comparison.md", "comparison.tex"):
        assert (tmp_path / "out" / name).exists()

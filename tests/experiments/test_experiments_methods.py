"""What figures compare: how curves are swept, and a figure from end to end on a few queries."""

import csv
import gzip

import numpy as np
import pytest

import miserly as ms
from miserly.experiments import PUBLISHED, STUDIES, Bench, perform
from miserly.experiments import _methods as methods
from miserly.experiments import _sets as sets
from miserly.experiments._parts import DataPart, DataSplit, LearningProblem
from miserly.experiments.papers import ablation, cronus, effort
from miserly.metrics import get_metric
from miserly.plan import Node, Plan, RawFeatures

PRICES = 2.0 ** np.arange(8)
COSTS = ms.CostTable.per_feature(PRICES)


def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    y = (X[:, 0] + X[:, 7] > 0).astype(float)
    part = DataPart(X, y, np.repeat(np.arange(6), 10), np.where(y > 0, 1, 10))
    return LearningProblem(
        "tiny", 0, get_metric("precision@5"), COSTS, lambda: DataSplit(part, part, part), "something"
    )


def test_a_sweep_looks_where_the_cost_changes(tmp_path, monkeypatch):
    """Everything is bought below 0.02, one feature up to 0.1, then nothing: the sweep closes in on both places, until
    its plans are near each other; those that buy nothing do not count."""
    asked = []

    def make(tradeoff):
        asked.append(tradeoff)
        n = 8 if tradeoff < 0.02 else 1 if tradeoff < 0.1 else 0
        node = Node(np.arange(n, dtype=np.int32), np.full(n, 1.0 + tradeoff))
        return Plan(COSTS, RawFeatures(np.arange(8)), (node,) if n else (), np.zeros(1), roots=(0,) if n else ())

    monkeypatch.setattr(Bench, "n_swept", 12)
    bench = Bench(None, tmp_path, quick=False)
    plans = methods.swept(bench, problem(), make, 1e-4, 1.0)
    assert len(plans) == len(asked)
    bought = [len(plan.nodes[0].learners) if plan.nodes else 0 for plan in plans]
    assert bought == sorted((8 if t < 0.02 else 1 if t < 0.1 else 0 for t in asked), reverse=True)
    for edge in (0.02, 0.1):
        assert min(t for t in asked if t >= edge) / max(t for t in asked if t < edge) < methods.FINE**2
    assert methods.swept(Bench(None, tmp_path, quick=False), problem(), make, 1e-4, 1.0) == plans
    monkeypatch.setattr(Bench, "n_swept", 3)
    few = methods.swept(Bench(None, tmp_path, quick=False), problem(), make, 1e-4, 1.0)
    assert sum(bool(plan.nodes) for plan in few) == 3


def test_a_sweep_goes_on_beyond_the_ends_of_its_grid(tmp_path):
    """Upwards until nothing is bought, downwards until that buys no more; three times at most."""

    def make(tradeoff):
        n = 8 if tradeoff < 2e-4 else 4 if tradeoff < 3.0 else 0
        node = Node(np.arange(n, dtype=np.int32), np.full(n, 1.0 + tradeoff))
        return Plan(COSTS, RawFeatures(np.arange(8)), (node,) if n else (), np.zeros(1), roots=(0,) if n else ())

    plans = methods.swept(Bench(None, tmp_path, quick=True), problem(), make, 1e-4, 1e-2)
    assert {len(plan.nodes[0].learners) if plan.nodes else 0 for plan in plans} == {8, 4, 0}
    asked = []

    def unchanging(tradeoff):
        asked.append(tradeoff)
        return make(1e-3)

    methods.swept(Bench(None, tmp_path, quick=True), problem(), unchanging, 1e-4, 1e-2)
    assert max(asked) == pytest.approx(1e-2 * methods.WIDER**methods.WIDENINGS)
    assert min(asked) == pytest.approx(1e-4 ** (1 - methods.STARTS[0]) * 1e-2 ** methods.STARTS[0])


def test_astc_is_swept_over_its_depth(tmp_path):
    points = methods.astc(Bench(None, tmp_path, quick=True), problem(), 3)
    assert len(points) == 3 * len(methods.astc(Bench(None, tmp_path, quick=True), problem(), 1))


def test_flat_prices_and_a_rare_class_are_groups_of_their_own(tmp_path):
    folder = tmp_path / "covertype"
    folder.mkdir()
    rng = np.random.default_rng(0)
    lines = [",".join(map(str, [*rng.integers(0, 9, 54), rng.choice([1, 2, 4])])) for _ in range(60)]
    with gzip.open(folder / "covtype.csv.gz", "wt") as file:
        file.write("\n".join(["header", *lines]))
    first, second = sets.covertype_rare(tmp_path, 2, quick=True)
    assert first.key != second.key
    assert set(first.split.train.y) == {0.0, 1.0}
    assert not sets.covertype_rare(tmp_path / "nowhere", 2, quick=True)


def test_training_takes_time(tmp_path, monkeypatch):
    """The claims are asked; on sixty rows they say nothing."""
    monkeypatch.setattr(Bench, "ranking", lambda self, *_: [[problem()]])
    monkeypatch.setattr(Bench, "n_lambdas", 2)
    monkeypatch.setattr(effort, "QUICK_TREES", 10)
    monkeypatch.setattr(cronus, "QUICK_TREES", 10)
    spent = effort.training_time(Bench(None, tmp_path, quick=True))
    assert [claim.says.split()[1] for claim in spent.claims] == ["miser", "trains", "miser"]
    assert all(row["cpu"] > 0 for row in spent.rows)


@pytest.mark.slow
def test_settings_are_asked_for_each_value_but_the_one_in_use(tmp_path, monkeypatch):
    monkeypatch.setattr(effort, "mq2008", lambda *_: [problem()])
    monkeypatch.setattr(effort, "QUICK_TREES", 10)
    monkeypatch.setattr(effort, "STAGES", (2, methods.CRONUS_STAGES))
    assert len(effort.settings(Bench(None, tmp_path, quick=True)).claims) == 3


def test_the_papers_tradeoffs_are_per_row_on_the_papers_data_only():
    own = problem()
    others = methods.tradeoffs(own, (1.0, 4.0), 3)
    assert len(others) == 3
    here = LearningProblem("own", 0, own.metric, own.costs, own.read)
    n = own.split.train.copies.sum()
    assert methods.tradeoffs(here, (1.0, 4.0), 3) == [1.0 / n, 4.0 / n]


def test_rows_and_queries_are_given_to_fits_that_take_them(tmp_path):
    part = problem().split.train
    assert set(methods.fit_arguments(ms.GreedyMiserRanker, part)) == {"qid", "sample_weight"}
    assert set(methods.fit_arguments(ms.CSTCClassifier, part)) == {"sample_weight"}
    assert not methods.fit_arguments(ms.CSTCClassifier, part._replace(copies=None))


def test_draws_are_averaged(tmp_path):
    points, spread = methods.adaboost_rs(Bench(None, tmp_path, quick=True), problem(), 4)
    assert len(points) == len(spread) == 4
    assert all(len(point) == 4 for point in points)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["miser-1-right", "cronus-2-right", "thesis-3.6", "thesis-3.8", "thesis-2.8", "astc-3"]
)
def test_a_figure_on_a_few_queries(name, monkeypatch, tmp_path):
    monkeypatch.setattr(sets, "QUICK_QUERIES", (40, 20, 20))
    monkeypatch.setattr("miserly.experiments._study.data_folder", lambda given: None)
    outcome = perform(STUDIES[name], Bench(None, tmp_path, quick=True))
    assert outcome.claims
    assert all(
        np.isfinite(float(row["test"])) for row in csv.DictReader((tmp_path / f"{name}.csv").open()) if "test" in row
    )
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    assert "yahoo_like in place of Yahoo! LTRC" in (tmp_path / f"{name}.txt").read_text()


def test_departures_are_parameters_of_the_estimators():
    for stem, values in PUBLISHED.items():
        for kind in (f"{stem}Classifier", f"{stem}Regressor"):
            if hasattr(ms, kind):
                getattr(ms, kind)().set_params(**values)._validate_params()


def test_a_bench_takes_departures_back(tmp_path):
    """In the model and in the key, so that kept points are not mixed."""
    bench, own = Bench(None, tmp_path, quick=True), problem()
    published = bench.reverting(PUBLISHED)
    assert published.prepared(ms.CSTCRegressor()).get_params()["swaps"] is False
    assert bench.prepared(ms.CSTCRegressor()).get_params()["swaps"] is True
    assert published.prepared(ms.AFRClassifier()).get_params() == ms.AFRClassifier().get_params()
    assert bench.record("points", own, lambda: 1) == 1
    assert published.record("points", own, lambda: 2) == 2
    assert bench.record("points", own, lambda: 3) == 1


def test_an_ablation_has_a_row_for_each_departure(tmp_path, monkeypatch):
    group = [problem()]
    monkeypatch.setattr(ablation, "thyroid", lambda *_: group)
    monkeypatch.setattr(ablation, "mq2008", lambda *_: [])
    monkeypatch.setattr(ablation, "METHODS", {"ASTC": ablation.METHODS["ASTC"]})
    found = ablation.ablation(Bench(None, tmp_path, quick=True))
    methods_seen = {row["method"] for row in found.rows}
    assert methods_seen == {"ASTC", "ASTC, as published", *(f"ASTC, {k}={v}" for k, v in PUBLISHED["ASTC"].items())}
    assert len(found.claims) == len(methods_seen) - 1

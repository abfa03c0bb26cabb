"""A sweep that is kept in a folder: what is finished is not fitted again, and never taken for another sweep's."""

import json
import logging

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from odd import Odd

import miserly as ms
from miserly.datasets import four_quadrants
from miserly.frontiers import _fingerprint as fingerprint
from miserly.frontiers._job import Job

GRID = {"tradeoff": [0, 1e-3, 10.0]}
DATA = four_quadrants(300, 0)
LABELS = np.array(["low", "middle", "high"], object)[np.digitize(DATA.y, np.quantile(DATA.y, [0.3, 0.6]))]
TRAIN, VALIDATION = slice(0, 200), slice(200, 300)


def model(**params):
    return ms.GreedyMiserRegressor(DATA.costs, **{"n_estimators": 5, **params})


def sweep(store, estimator=None, X=DATA.X, y=DATA.y, grid=GRID, **options):
    parts = ((X[TRAIN], y[TRAIN]), (X[VALIDATION], y[VALIDATION]))
    return ms.frontier(estimator or model(), *parts, grid=grid, store=store, **options)


@pytest.fixture
def fits(monkeypatch):
    """The points that are fitted, not loaded."""
    made = []
    point = Job.point
    monkeypatch.setattr(Job, "point", lambda job, params: made.append(params) or point(job, params))
    return made


def same(one, two, timed=True):
    for a, b in zip(one.points, two.points, strict=True):
        assert (a.params, a.validation, a.test) == (b.params, b.validation, b.test)
        assert a.seconds == b.seconds or not timed
        assert a.model.plan_ == b.model.plan_
        assert json.dumps(a.model.plan_.notes) == json.dumps(b.model.plan_.notes)


def test_what_is_finished_is_loaded(tmp_path, fits):
    told = []
    first = sweep(tmp_path / "new" / "store")
    again = sweep(tmp_path / "new" / "store", progress=lambda done, of, point: told.append((done, of, point)))
    assert len(fits) == 3
    assert again.complete
    assert [(done, of) for done, of, _ in told] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert [p for _, _, p in told[1:]] == list(again.points)
    same(first, again)
    assert len(list((tmp_path / "new/store").iterdir())) == 7


def test_a_finer_grid_and_other_n_jobs_use_what_is_there(tmp_path, fits):
    sweep(tmp_path)
    front = sweep(tmp_path, model(n_jobs=1), grid={"tradeoff": [0, 1e-4, 1e-3, 10.0]})
    assert [p["tradeoff"] for p in fits] == [0, 1e-3, 10.0, 1e-4]
    assert [p.params["tradeoff"] for p in front.points] == [0, 1e-4, 1e-3, 10.0]


def test_an_interrupted_sweep_goes_on(tmp_path, fits):
    def stop_after_two(done, of, point):
        if done == 2:
            raise KeyboardInterrupt

    assert not sweep(tmp_path, progress=stop_after_two).complete
    assert sweep(tmp_path).complete
    assert [p["tradeoff"] for p in fits] == [0, 1e-3, 10.0]


def test_a_refined_sweep_goes_on(tmp_path, fits):
    def stop_after_four(done, of, point):
        if done == 4:
            raise KeyboardInterrupt

    undisturbed = sweep(None, refine=2)
    assert (len(fits), len(undisturbed.points)) == (5, 5)
    half = sweep(tmp_path, refine=2, progress=stop_after_four)
    assert (len(half.points), half.complete) == (4, False)
    same(sweep(tmp_path, refine=2), undisturbed, timed=False)
    assert len(fits) == 5 + 4 + 1


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("labels", [LABELS, LABELS.astype(str), DATA.y > 0], ids=["object", "str", "bool"])
def test_a_restored_classifier_is_the_fitted_one(tmp_path, framed, labels):
    X = pd.DataFrame(DATA.X, columns=DATA.costs.features) if framed else DATA.X
    estimator = ms.GreedyMiserClassifier(DATA.costs, n_estimators=5)
    one, two = (sweep(tmp_path, estimator, X, labels, metric="logloss") for _ in range(2))
    same(one, two)
    for a, b in zip((p.model for p in one.points), (p.model for p in two.points)):
        assert a is not b
        assert type(a) is type(b)
        assert a.get_params() == b.get_params()
        for method in ("predict", "predict_proba", "decision_function", "predict_cost"):
            x, y = getattr(a, method)(X), getattr(b, method)(X)
            assert x.dtype == y.dtype
            assert np.array_equal(x, y)
        assert np.array_equal(a.predict(X, budget=20), b.predict(X, budget=20))
        assert a.score(X, labels) == b.score(X, labels)
        assert (a.n_features_in_, a.n_iter_, a.train_loss_) == (b.n_features_in_, b.n_iter_, b.train_loss_)
        assert a.classes_.dtype == b.classes_.dtype
        assert a.classes_.tolist() == b.classes_.tolist()
        assert hasattr(b, "feature_names_in_") == framed
        if framed:
            assert b.feature_names_in_.dtype == object
            with pytest.raises(ValueError, match="feature names"):
                b.predict(X[X.columns[::-1]])


def test_categories_and_sparse_data_are_kept_too(tmp_path, fits):
    frame = pd.DataFrame(DATA.X, columns=DATA.costs.features)
    frame["sign_x"] = pd.Categorical(np.where(frame["sign_x"] > 0, "plus", "minus"), ["plus", "minus"])
    for name, X, n_jobs in (("frame", frame, 2), ("sparse", scipy.sparse.csr_matrix(DATA.X * (DATA.X > 0)), 1)):
        one, two = sweep(tmp_path / name, X=X, n_jobs=n_jobs), sweep(tmp_path / name, X=X)
        same(one, two)
        for a, b in zip(one.points, two.points):
            assert np.array_equal(a.model.predict(X), b.model.predict(X))
        same(one, sweep(None, X=X), timed=False)
    assert b.model.categories_ == {}
    frame["sign_x"] = frame["sign_x"].cat.reorder_categories(["minus", "plus"])
    with pytest.raises(ValueError, match="X of train is DataFrame"):
        sweep(tmp_path / "frame", X=frame)


class Secretive(ms.GreedyMiserRegressor):
    """Keeps something that its plan does not say."""

    def fit(self, X, y, **given):
        self._secret = object()
        return super().fit(X, y, **given)

    def predict(self, X, budget=None):
        return super().predict(X, budget) if self._secret else None


def test_a_model_that_is_more_than_its_plan_is_refused(tmp_path):
    with pytest.raises(ValueError, match="a Secretive made from these answers otherwise"):
        sweep(tmp_path, Secretive(DATA.costs, n_estimators=3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimator": model(n_estimators=6)}, r"n_estimators=5 there, 6 here\."),
        (
            {"estimator": model(max_depth=None, learning_rate=0.2)},
            r"learning_rate=0\.1 there, 0\.2 here; max_depth=3 th",
        ),
        (
            {"estimator": ms.GreedyMiserRanker(DATA.costs, n_estimators=5)},
            "the estimator is .*Regressor there, .*Ranker",
        ),
        (
            {"estimator": ms.GreedyMiserRegressor(DATA.costs.scaled(2), n_estimators=5)},
            "costs=CostTable #.* there, Cost",
        ),
        ({"X": DATA.X.astype(np.float32)}, r"X of train is float64 200 × 6 #.* there, float32 200 × 6 #"),
        ({"X": pd.DataFrame(DATA.X, columns=DATA.costs.features)}, "X of train is .* DataFrame of 6 columns #"),
        ({"y": np.append(DATA.y[:-1], 7.0)}, r"another sweep: y of validation is .* here\."),
        ({"metric": "auc"}, r"the metric is mse \(.*\) there, auc"),
        ({"grid": {"max_depth": [2]}}, "the swept parameter is tradeoff there, max_depth here"),
        ({"test": (DATA.X, DATA.y)}, "X of test is none there, float64 300 × 6"),
    ],
)
def test_another_sweep_is_refused(tmp_path, fits, change, message):
    sweep(tmp_path)
    with pytest.raises(ValueError, match=message) as caught:
        sweep(tmp_path, **change)
    assert "Use another folder, or delete this one." in str(caught.value)
    assert len(fits) == 3
    assert len(sweep(tmp_path).points) == len(fits)


def test_another_version_is_refused(tmp_path, monkeypatch):
    sweep(tmp_path)
    monkeypatch.setattr(fingerprint, "__version__", "99")
    with pytest.raises(ValueError, match=r"version of Miserly is [0-9.]+ there, 99 here"):
        sweep(tmp_path)


def test_how_the_data_lie_in_memory_does_not_matter(tmp_path, fits):
    sweep(tmp_path)
    sweep(tmp_path, X=np.asfortranarray(DATA.X), y=list(DATA.y))
    assert len(fits) == 3


def test_damaged_points_are_fitted_again(tmp_path, fits, caplog):
    first = sweep(tmp_path)
    one, two, three = sorted(tmp_path.glob("point-*.json"))
    one.write_text(one.read_text()[:100])
    record = json.loads(two.read_text())
    record["point"]["validation"]["quality"] += 1
    two.write_text(json.dumps(record))
    plan = three.with_suffix(".plan")
    plan.write_bytes(plan.read_bytes()[:-50])
    with caplog.at_level(logging.WARNING):
        again = sweep(tmp_path)
    assert len(fits) == 6
    assert caplog.text.count("cannot be read and is fitted again") == 3
    for a, b in zip(first.points, again.points):
        assert a.validation == b.validation
        assert a.model.plan_ == b.model.plan_
    plan.unlink()
    sweep(tmp_path)
    assert len(fits) == 7


def test_what_a_killed_sweep_left_half_written_is_removed(tmp_path):
    sweep(tmp_path)
    (tmp_path / ".work-abc").mkdir()
    (tmp_path / ".work-abc" / "shared").write_bytes(b"data")
    (tmp_path / ".point-abc.json.123").write_text("{")
    sweep(tmp_path, n_jobs=2, grid={"tradeoff": [0, 1, 2]})
    assert {p.suffix for p in tmp_path.iterdir()} == {".json", ".plan"}
    assert len(list(tmp_path.iterdir())) == 11


def test_a_folder_that_is_no_store_keeps_all_that_it_has(tmp_path):
    """Whatever was called like a sweep's unfinished work was deleted before the folder was refused."""
    (tmp_path / ".work-of-my-life").mkdir()
    (tmp_path / ".work-of-my-life" / "novel.txt").write_text("It was a dark and stormy night;")
    (tmp_path / "letters.txt").write_text("Dear mother,")
    with pytest.raises(ValueError, match="neither empty nor the store of a sweep"):
        sweep(tmp_path)
    assert {p.name for p in tmp_path.rglob("*")} >= {".work-of-my-life", "novel.txt", "letters.txt"}


def test_folders_that_are_no_store(tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "mother.txt").write_text("Dear mother,")
    with pytest.raises(ValueError, match="neither empty nor the store of a sweep"):
        sweep(tmp_path / "letters")
    with pytest.raises(ValueError, match=r"is a file\. Name a folder"):
        sweep(tmp_path / "letters" / "mother.txt")
    (tmp_path / "broken").mkdir()
    for text in ("{", "[]", '{"format": "other"}'):
        (tmp_path / "broken" / "sweep.json").write_text(text)
        with pytest.raises(ValueError, match=r"sweep\.json' is damaged.*delete"):
            sweep(tmp_path / "broken")


def test_two_sweeps_do_not_share_a_store_at_once(tmp_path):
    def again(done, of, point):
        with pytest.raises(ValueError, match="Another sweep is at work"):
            sweep(tmp_path)

    assert sweep(tmp_path, progress=again).complete


def test_a_model_without_a_plan_cannot_be_kept(tmp_path):
    with pytest.raises(ValueError, match=r"a fitted Odd has none \(no plan_\)\. Sweep it without a store"):
        sweep(tmp_path, Odd(), grid={"level": [1, 2]})
    assert len(sweep(None, Odd(), grid={"level": [1, 2]}).points) == 2


def test_a_parameter_that_cannot_be_recognised(tmp_path):
    with pytest.raises(ValueError, match=r"accident=<function .* cannot be: .*Define it in a module"):
        sweep(tmp_path / "none", Odd(accident=lambda: 0), grid={"level": [1]})

"""Data on a cluster or in bins: a sample decides, models learn from all rows."""

import numpy as np
import pytest

import miserly as ms
from miserly.auto import _large

COSTS = ms.CostTable.per_feature([1.0, 4.0, 20.0])


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + X[:, 1] + 2 * X[:, 2] + rng.normal(size=n) > 0).astype(int)
    return X, y


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(_large, "MOST_HERE", 300)


def in_bins(folder, X, y):
    path = folder / "a.csv"
    names = [f"f{j}" for j in range(X.shape[1])]
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header=",".join([*names, "y"]), comments="")
    return ms.BinnedDataset.from_csv(path, label="y")


def test_bins_on_disk_give_a_frontier_whose_models_have_seen_all_rows(few, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(_large._SetClassifier, "_learn", spy(_large._SetClassifier._learn, seen))
    X, y = rows(900)
    data = in_bins(tmp_path, X, y)
    costs = ms.CostTable.per_feature(dict(zip(data.features, (1.0, 4.0, 20.0))))
    model = ms.AutoMiserClassifier(costs, time_limit=None).fit(data, data.y)
    assert seen
    assert set(seen) == {900}
    X_new, y_new = rows(500, seed=1)
    assert model.score(X_new, y_new) > 0.75
    assert model.predict_cost(X_new, budget=5).max() <= 5
    assert model.frontier_.choose(budget=0).predict_cost(X_new).max() == 0


def spy(learn, seen):
    def spied(self, X, y, *rest, **more):
        seen.append(len(y))
        return learn(self, X, y, *rest, **more)

    return spied


def test_a_value_between_two_cuts_stands_for_each_bin(tmp_path):
    data = in_bins(tmp_path, *rows(400)).data
    for f in range(data.n_features):
        middles = _large._middles(data, f)[: data.n_bins[f]]
        assert (np.searchsorted(data.cuts[f], middles) == np.arange(data.n_bins[f])).all()


def test_a_time_that_is_over_keeps_models_of_the_sample(few, tmp_path, caplog):
    X, y = rows(900)
    data = in_bins(tmp_path, X, y)
    costs = ms.CostTable.per_feature(dict.fromkeys(data.features, 1.0))
    model = ms.AutoMiserClassifier(costs, time_limit=1e-6).fit(data, data.y)
    assert model.score(X, y) > 0.7


def test_rows_on_a_cluster_are_learned_there(few):
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    X, y = rows(900)
    quiet = {"processes": False, "dashboard_address": None, "threads_per_worker": 1}
    with distributed.Client(n_workers=1, **quiet):
        there = da.from_array(X, chunks=(300, 3)), da.from_array(y, chunks=300)
        model = ms.AutoMiserClassifier(COSTS, time_limit=None).fit(*there)
    assert model.score(*rows(500, seed=1)) > 0.75
    assert model.n_features_in_ == 3


def test_a_sample_on_a_cluster_has_rows_of_every_class():
    distributed = pytest.importorskip("miserly.distributed._partition")
    y = np.r_[np.zeros(500), np.ones(2)]
    part = distributed.Partition(np.zeros((502, 1)), y, None, None)
    drawn = distributed.drawn(part, 0.01, (0, 0), False)
    assert set(drawn.y) == {0, 1}
    assert len(drawn.y) < 60
    lists = distributed.Partition(np.arange(40.0)[:, None], np.zeros(40), np.repeat(np.arange(10), 4), None)
    _, sizes = np.unique(distributed.drawn(lists, 0.5, (0, 0), True).qid, return_counts=True)
    assert (sizes == 4).all()

"""Compressed SVMs: the thesis's circle, LibSVM's own answers, sizes and prices, cascades, memory."""

import logging
from itertools import pairwise

import numpy as np
import pytest
from libsvm.svmutil import svm_load_model, svm_predict, svm_save_model, svm_train
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from miserly.costs import CostTable
from miserly.datasets import circle
from miserly.estimators import CompressedSVC
from miserly.estimators.cvm import _cvm as cvm
from miserly.estimators.cvm import _kernel_machine as kernel_machine
from miserly.plan import load_plan
from miserly.solvers._kernel_functions import RBF

QUICK = {"n_starts": 1, "max_iter": 30}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    keep = y < 4
    X, y = X[keep] / 16.0, y[keep]
    return X[:400], y[:400], X[400:], y[400:]


def ring(seed, n=600):
    data = circle(n, seed)
    return data.X, data.y


def near(X, distance=0.5):
    """Points of a grid that have a datum within a distance: far from all data nothing is to be compared."""
    ticks = np.linspace(X.min() - 1, X.max() + 1, 81)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    away = ((grid[:, None] - X[None]) ** 2).sum(axis=2).min(axis=1)
    return grid[away < distance**2]


def agreement(seed, C, **settings):
    """How often 8 vectors say what the full machine says, near the data; and how many vectors that has."""
    X, y = ring(seed)
    model = CompressedSVC(C=C, gamma=0.5, n_vectors=8, **settings).fit(X, y)
    svc = SVC(C=C, gamma=0.5).fit(X, y)
    points = near(X)
    assert model.predict_cost(points[:1]) == [8.0]
    return float(np.mean(model.predict(points) == svc.predict(points))), len(svc.support_)


def test_the_circle_with_eight_vectors():
    same, n_vectors = agreement(0, 0.15, n_starts=2, max_iter=120)
    assert same >= 0.98
    assert 200 <= n_vectors <= 260


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.15, 10.0])
def test_the_circle_with_eight_vectors_twenty_times(C):
    same = [agreement(seed, C)[0] for seed in range(100, 120)]
    assert np.median(same) >= 0.98
    assert min(same) >= 0.96


def test_picking_alone_is_worse_than_moving_and_refitting_never_rises():
    X, y = ring(3)
    still = CompressedSVC(C=1.0, gamma=0.5, n_vectors=8, max_iter=0).fit(X, y)
    moved = CompressedSVC(C=1.0, gamma=0.5, n_vectors=8, **QUICK).fit(X, y)
    assert (np.diff(moved.losses_) <= 0).all()
    assert moved.losses_[-1] < 0.5 * still.losses_[-1]
    assert {tuple(v) for v in still.plan_.dictionary.vectors[:, np.argsort(still._order)]} <= {tuple(x) for x in X}


def test_all_vectors_are_the_svm_itself(digits):
    X, y, X_new, _ = digits
    for labels in (y, np.array(["n", "e", "s", "w"])[y], y % 2):
        for parameters in ({"gamma": 0.05}, {"kernel": "poly", "gamma": 0.1, "coef0": 1.0, "degree": 2}):
            svc = SVC(C=10.0, decision_function_shape="ovo", **parameters).fit(X, labels)
            model = CompressedSVC.from_sklearn(svc, ratio=1.0)
            np.testing.assert_array_equal(model.predict(X_new), svc.predict(X_new))
            np.testing.assert_allclose(model.plan_.score(X_new), svc.decision_function(X_new), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_libsvm_reads_what_is_written(digits, tmp_path, kernel, n_classes):
    X, y, X_new, _ = digits
    y = y % n_classes
    given = {"gamma": 0.05} if kernel == "rbf" else {"gamma": 0.1, "coef0": 1.0, "degree": 2}
    model = CompressedSVC(C=10.0, kernel=kernel, n_vectors=12, **given, **QUICK).fit(X, y)
    path = tmp_path / "small.model"
    model.to_libsvm(path)
    labels, _, values = svm_predict([], X_new, svm_load_model(str(path)), "-q")
    np.testing.assert_array_equal(np.array(labels, int), model.predict(X_new))
    scores = model.plan_.score(X_new).reshape(len(X_new), -1) * (-1.0 if n_classes == 2 else 1.0)
    np.testing.assert_allclose(values, scores, atol=1e-6)


def test_a_chi_squared_kernel(digits, tmp_path):
    """The full machine is scikit-learn's of the same matrix; vectors stay where the kernel is defined."""
    X, y, X_new, y_new = digits
    whole = CompressedSVC(C=10.0, kernel="chi2", ratio=1.0).fit(X, y)
    kernel = whole.full_.kernel
    svc = SVC(C=10.0, kernel="precomputed").fit(kernel.matrix(X, X), y)
    np.testing.assert_array_equal(whole.predict(X_new), svc.predict(kernel.matrix(X_new, X)))
    small = CompressedSVC(C=10.0, kernel="chi2", n_vectors=12, **QUICK).fit(X, y)
    assert small.plan_.dictionary.vectors.min() >= 0
    assert np.mean(small.predict(X_new) == y_new) >= np.mean(svc.predict(kernel.matrix(X_new, X)) == y_new) - 0.03
    assert (small.losses_[-1]) < 0.5 * small.losses_[0]
    small.plan_.save(tmp_path / "small.plan")
    np.testing.assert_array_equal(load_plan(tmp_path / "small.plan").score(X_new), small.plan_.score(X_new))
    with pytest.raises(ValueError, match="LibSVM has no chi-squared"):
        small.to_libsvm(tmp_path / "small.model")
    with pytest.raises(ValueError, match="0 or more"):
        CompressedSVC(kernel="chi2").fit(X - 0.1, y)
    with pytest.raises(ValueError, match="raise max_memory"):
        CompressedSVC(kernel="chi2", max_memory=1e5).fit(X, y)


@pytest.mark.parametrize("labels", [(3, 1), (7, 2, 5, -4)])
def test_what_libsvm_writes_is_read(digits, tmp_path, labels):
    """LibSVM keeps labels in the order in which it met them."""
    X, y, X_new, _ = digits
    y = np.array(labels)[y % len(labels)]
    theirs = svm_train(y, X, "-q -c 10 -g 0.05")
    path = str(tmp_path / "full.model")
    svm_save_model(path, theirs)
    expected, _, _ = svm_predict([], X_new, theirs, "-q")
    model = CompressedSVC.from_libsvm(path, n_features=64, ratio=1.0)
    assert set(model.classes_) == set(labels)
    np.testing.assert_array_equal(model.predict(X_new), np.array(expected, int))
    small = CompressedSVC.from_libsvm(path, n_features=64, n_vectors=15, **QUICK)
    assert np.mean(small.predict(X_new) == expected) >= 0.95
    again = CompressedSVC.from_libsvm(_rewritten(small, tmp_path), n_features=64, ratio=1.0)
    np.testing.assert_allclose(again.plan_.score(X_new), small.plan_.score(X_new), atol=1e-9)


def _rewritten(model, folder):
    path = folder / "again.model"
    model.to_libsvm(path)
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "no line 'SV'"),
        ("svm_type epsilon_svr\nkernel_type rbf\nSV\n", "Only c_svc"),
        ("svm_type c_svc\nkernel_type rbf\ngamma 1\nlabel 1 2\nnr_sv 1 1\nrho 0\nSV\n1 1:2\n", "not as many"),
        ("svm_type c_svc\nkernel_type rbf\ngamma x\nlabel 1 2\nnr_sv 1 1\nrho 0\nSV\n", "damaged"),
    ],
)
def test_files_that_are_no_models(tmp_path, text, message):
    path = tmp_path / "x.model"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        CompressedSVC.from_libsvm(path)


def test_sparse_rows_are_the_same_rows(digits):
    X, y, X_new, y_new = digits
    settings = {"C": 10.0, "gamma": 0.05, "n_vectors": 10, **QUICK}
    dense = CompressedSVC(**settings).fit(X, y)
    sparse = CompressedSVC(**settings).fit(csr_matrix(X), y)
    np.testing.assert_allclose(sparse.plan_.score(X_new), dense.plan_.score(X_new), atol=0.05)
    np.testing.assert_array_equal(sparse.predict(csr_matrix(X_new)), sparse.predict(X_new))
    assert dense.score(X_new, y_new) >= 0.95


def test_the_path_goes_on_where_it_was(digits):
    X, y, X_new, y_new = digits
    model = CompressedSVC(C=10.0, gamma=0.05, n_vectors=5, **QUICK).fit(X, y)
    points = model.path(X_new, y_new, [4, 8, 16])
    assert [point.n_vectors for point in points] == [4, 8, 16]
    assert all(a.distance > b.distance for a, b in pairwise(points))
    assert points[-1].agreement >= 0.98
    assert points[-1].accuracy == np.mean(points[-1].plan.predict(X_new) == y_new)
    assert [p.distance for p in model.path(X_new, y_new, [4, 8, 16])] == [p.distance for p in points]
    with pytest.raises(ValueError, match="sizes are 1 to"):
        model.path(X_new, y_new, [10**6])


def test_a_cascade_spends_less_on_easy_rows(digits, tmp_path):
    X, y, X_new, y_new = digits
    settings = {"C": 10.0, "gamma": 0.05, "n_vectors": 27, **QUICK}
    model = CompressedSVC(**settings, n_stages=3, confidence=0.9).fit(X, y)
    assert [len(node.learners) for node in model.plan_.nodes] == [3, 9, 27]
    cost = model.predict_cost(X_new)
    assert set(cost) <= {3.0, 9.0, 27.0}
    assert cost.mean() < 20
    assert model.score(X_new, y_new) >= CompressedSVC(**settings).fit(X, y).score(X_new, y_new) - 0.02
    model.plan_.save(tmp_path / "c.plan")
    assert load_plan(tmp_path / "c.plan") == model.plan_


def test_probabilities_are_calibrated(digits):
    X, y, X_new, y_new = digits
    for labels, new in ((y, y_new), (y % 2, y_new % 2)):
        model = CompressedSVC(C=10.0, gamma=0.05, n_vectors=6, **QUICK).fit(X, labels)
        p = model.predict_proba(X_new)
        right = model.predict(X_new) == new
        assert abs(p.max(axis=1).mean() - right.mean()) < 0.1
        svc = SVC(C=10.0, gamma=0.05).fit(X, labels)
        raw = CompressedSVC.from_sklearn(svc, n_vectors=6, **QUICK)
        before = -np.mean(np.log(raw.predict_proba(X_new)[np.arange(len(new)), new]))
        after = -np.mean(np.log(raw.calibrate(X, labels).predict_proba(X_new)[np.arange(len(new)), new]))
        assert after < before


def test_tuning_finds_what_is_best_on_a_held_out_fifth():
    X, y = ring(1, 120)
    model = CompressedSVC(tune=True, n_vectors=8, **QUICK).fit(X, y)
    best = max(line["accuracy"] for line in model.tuning_)
    assert {"C": model.C_, "gamma": model.gamma_, "accuracy": best} in model.tuning_
    assert len(model.tuning_) == 20
    assert model.score(X, y) > 0.85


def test_a_budget_pays_for_features_and_vectors():
    X, y = ring(2, 120)
    costs = CostTable.per_feature([2.0, 3.0], evaluation=0.5)
    model = CompressedSVC(gamma=0.5, costs=costs, budget=8.2, **QUICK).fit(X, y)
    assert model.n_vectors_ == 6
    np.testing.assert_array_equal(model.predict_cost(X), np.full(len(X), 8.0))
    assert set(model.predict_cost(X, budget=7.9)) <= {5.0, 6.0}  # one of the two features fits
    np.testing.assert_array_equal(model.predict_cost(X, budget=2.9), np.zeros(len(X)))
    for wrong, message in (
        ({"budget": 5.2, "costs": costs}, "pays for no vector"),
        ({"budget": 5.2}, "needs prices"),
        ({"budget": 9.0, "costs": costs, "ratio": 0.5}, "said 2 times"),
    ):
        with pytest.raises(ValueError, match=message):
            CompressedSVC(**wrong).fit(X, y)


def test_no_matrix_is_larger_than_allowed(monkeypatch):
    """Nothing of support vectors × support vectors is ever held whole where it would not fit."""
    sizes, matrix = [], RBF.matrix

    def watched(self, X, Z):
        sizes.append(X.shape[0] * Z.shape[0])
        return matrix(self, X, Z)

    monkeypatch.setattr(RBF, "matrix", watched)
    monkeypatch.setattr(kernel_machine, "BLOCK_CELLS", 4000)
    X, y = ring(4)
    svc = SVC(C=0.15, gamma=0.5).fit(X, y)
    CompressedSVC.from_sklearn(svc, n_vectors=8, max_memory=32_000.0, **QUICK)
    assert max(sizes) <= 4000 < len(svc.support_) ** 2


def test_memory_bounds_what_is_matched_and_that_is_said(caplog):
    X, y = ring(4)
    whole = CompressedSVC(C=0.15, gamma=0.5, n_vectors=8, **QUICK).fit(X, y)
    assert whole.n_targets_ == len(X)
    with caplog.at_level(logging.WARNING, "miserly"):
        part = CompressedSVC(C=0.15, gamma=0.5, n_vectors=8, max_memory=20_000.0, **QUICK).fit(X, y)
    assert part.n_targets_ < len(part.full_)
    assert part.plan_.notes["matched on"] == part.n_targets_
    assert f"matched on {part.n_targets_} of {len(X)}" in caplog.text
    assert np.mean(part.predict(X) == whole.predict(X)) > 0.9


def scattered(seed, n=1500):
    """Mostly one class, far from the other: few rows are support vectors, and most of the space has none."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * np.array([1.0, 2.0, 3.0, 1.0])
    return X, (np.sin(X[:, 0] * 2) + 0.4 * X[:, 1] > 1.4).astype(int)


def test_the_small_machine_is_matched_at_all_rows():
    """Matched at the support vectors alone it was free everywhere else."""
    away, at_vectors = [], []
    for seed in range(3):
        X, y = scattered(seed)
        svc = SVC(C=10.0, gamma=0.5).fit(X, y)
        model = CompressedSVC.from_sklearn(svc, X, n_vectors=6, n_starts=2, max_iter=60)
        alone = CompressedSVC.from_sklearn(svc, n_vectors=6, n_starts=2, max_iter=60)
        others = np.setdiff1d(np.arange(len(X)), svc.support_)
        expected = svc.predict(X[others])
        away.append(np.mean(model.predict(X[others]) == expected))
        at_vectors.append(np.mean(alone.predict(X[others]) == expected))
        assert model.agreement_ == pytest.approx(np.mean(model.predict(X) == svc.predict(X)), abs=1e-12)
        assert alone.agreement_ is None
    assert np.mean(away) > np.mean(at_vectors) + 0.004
    fitted = CompressedSVC(C=10.0, gamma=0.5, n_vectors=6, **QUICK).fit(X, y)
    assert fitted.n_targets_ == len(X)
    assert fitted.agreement_ > 0.9


def test_a_weighted_sample_stands_for_many_rows(monkeypatch):
    monkeypatch.setattr(cvm, "FEWEST_POINTS", 300)
    monkeypatch.setattr(cvm, "POINTS_PER_VECTOR", 0)
    X, y = scattered(0)
    model = CompressedSVC(C=10.0, gamma=0.5, n_vectors=6, **QUICK).fit(X, y)
    points = model._compression.points
    assert points.support.sum() == len(model.full_)
    assert len(points.weights) == len(model.full_) + 300
    assert points.weights.sum() == pytest.approx(len(X))

"""The protocols on scenes: who is dealt where, SVMs against scikit-learn's own, what is paid, what is claimed."""

import numpy as np
import pytest
from sklearn.svm import SVC

from miserly.experiments import Bench, perform
from miserly.experiments.papers import scenes
from miserly.experiments.papers.scenes import MISER, SVM, Described

PRICES = dict.fromkeys([f"d{k}" for k in range(8)], 2.0)


@pytest.fixture(scope="module")
def data():
    return scenes.drawn(n_scenes=4, n_each=60, seed=1)


def test_every_image_is_dealt_once(data):
    parts = scenes.deal(data, 0, 10, 20, 5)
    assert [len(part) for part in parts] == [40, 80, 20, 100]
    assert sorted(np.concatenate(parts).tolist()) == list(range(240))
    for part, n in zip(parts, (10, 20, 5, 25)):
        assert np.unique(data.y[part], return_counts=True)[1].tolist() == [n] * 4
    assert not np.array_equal(parts[0], scenes.deal(data, 1, 10, 20, 5)[0])


def test_images_of_the_words_are_always_trained_on(data):
    learnt_from = np.array([3, 7, 70, 130, 200])
    for seed in range(5):
        first = scenes.deal(data._replace(learnt_from=learnt_from), seed, 10, 20, 5)[0]
        assert set(learnt_from) <= set(first)


def test_machines_are_support_vector_machines(data):
    rows, new = np.arange(0, 240, 3), np.arange(1, 240, 7)
    machines = scenes.machines_of(data, "d5", rows)
    columns = data.columns("d5")
    X = data.X[np.ix_(rows, columns)].astype(np.float64)
    distances = [np.sum((a - b) ** 2) for a in X for b in X]
    assert machines.scale == pytest.approx(np.mean(distances), rel=1e-5)
    said = machines(data.X[np.ix_(new, columns)])
    for k, scene in enumerate(np.unique(data.y)):
        peer = SVC(C=scenes.C, gamma=1 / machines.scale).fit(X, data.y[rows] == scene)
        np.testing.assert_allclose(said[:, k], peer.decision_function(data.X[np.ix_(new, columns)]), atol=5e-3)


def test_the_averaged_kernel_of_one_descriptor_is_its_kernel(data):
    columns = data.columns("d7")
    features = [f"d7_{i}" for i in range(10)]
    one = Described(data.X[:, columns], data.y, data.descriptor[columns], data.learnt_from, None, False)
    one = one._replace(costs=data.costs.restrict(features))
    sizes = 10, 20, 5
    cost, _, _, quality = scenes.averaged_kernel(one, 0, {"d7": 3.0}, sizes)
    assert cost == pytest.approx(1e-3 * (data.costs.price(features) + 3.0))
    *train, _, test = scenes.deal(one, 0, *sizes)
    rows = np.concatenate(train)
    gamma = 1 / scenes.over(one.X[rows], 4).scale
    tried = []
    for penalty in scenes.PENALTIES:
        machines = [SVC(C=penalty, gamma=gamma).fit(one.X[rows], one.y[rows] == s) for s in np.unique(one.y)]
        said = np.argmax([m.decision_function(one.X[test]) for m in machines], axis=0)
        tried.append(np.mean(np.unique(one.y)[said] == one.y[test]))
    assert min(abs(quality - t) for t in tried) < 0.02


def test_a_descriptor_is_paid_once_for_all_its_svms(data):
    problem = scenes.svm_problem(data, 0, PRICES, (10, 20, 5))
    costs = problem.costs
    assert costs.unit == "CPU seconds"
    assert len(costs.features) == 8 * 4
    first, second, neighbour = "d4: scene 0", "d4: scene 3", "d5: scene 0"
    alone = data.costs.price(["d4_0"]) + 2.0
    assert costs.price([first]) == pytest.approx(1e-3 * alone)
    assert costs.price([first, second]) == costs.price([first])
    both = data.costs.price(["d4_0", "d5_0"]) + 4.0
    assert costs.price([first, neighbour]) == pytest.approx(1e-3 * both)
    assert both < alone + data.costs.price(["d5_0"]) + 2.0


def test_features_come_from_images_that_the_svms_have_not_seen(data):
    """In the miser's own images SVMs are right less often than in those that they were trained on."""
    sizes = 10, 20, 5
    problem = scenes.svm_problem(data, 0, PRICES, sizes)
    names = np.unique(data.y)
    weak = [i for i, f in enumerate(problem.costs.features) if f.startswith("d0:")]
    said = problem.split.train.X[:, weak].argmax(axis=1)
    new = np.mean(names[said] == problem.split.train.y)
    rows = scenes.deal(data, 0, *sizes)[0]
    machines = scenes.machines_of(data, "d0", rows)
    seen = np.mean(names[machines(data.X[np.ix_(rows, data.columns("d0"))]).argmax(axis=1)] == data.y[rows])
    assert new < seen - 0.1


def test_out_of_fold_no_svm_speaks_of_what_it_was_trained_on(data):
    sizes = 10, 20, 5
    problem = scenes.out_of_fold_problem(data, 0, PRICES, sizes)
    train = problem.split.train
    names, weak = np.unique(data.y), [i for i, f in enumerate(problem.costs.features) if f.startswith("d0:")]
    new = np.mean(names[train.X[:, weak].argmax(axis=1)] == train.y)
    rows = np.concatenate(scenes.deal(data, 0, *sizes)[:2])
    seen = scenes.machines_of(data, "d0", rows)
    assert new < np.mean(names[seen(data.X[np.ix_(rows, data.columns("d0"))]).argmax(axis=1)] == data.y[rows]) - 0.1
    test = scenes.deal(data, 0, *sizes)[-1]
    expected = seen(data.X[np.ix_(test, data.columns("d0"))])
    np.testing.assert_allclose(problem.split.test.X[:, weak], expected, rtol=1e-6)


def test_half_of_the_cost(data):
    group = [scenes.svm_problem(data, 0, PRICES, (10, 20, 5))]
    svm = [(10.0, 0.8, 10.0, 0.8)]
    cheap = [(1.0, 0.5, 1.0, 0.5), (4.9, 0.795, 4.9, 0.79), (9.0, 0.82, 9.0, 0.81)]
    seen = scenes.half_the_cost({SVM: svm, MISER: cheap}, group)
    assert seen.verdict == "seen"
    assert "at 0.49 of its cost" in seen.sees
    expensive = scenes.half_the_cost({SVM: svm, MISER: [cheap[0], cheap[2]]}, group)
    assert expensive.verdict == "contradicted"
    assert "at 0.90 of its cost" in expensive.sees
    assert scenes.half_the_cost({SVM: svm, MISER: cheap[:1]}, group).verdict == "contradicted"


def test_the_mean_of_splits_is_taken_setting_by_setting():
    splits = [[(1, 2, 3, 4), (3, 4, 5, 6)], [(3, 4, 5, 6)]]
    assert scenes.mean_of_splits(splits) == [(2, 3, 4, 5), (3, 4, 5, 6)]


def test_measured_prices_of_kernels_grow_with_their_images(data):
    wide = Described(
        np.ones((4000, 500), np.float32),
        np.repeat(["a", "b"], 2000),
        np.repeat(["d"], 500),
        np.empty(0, int),
        None,
        True,
    )
    few, many = (scenes.kernel_prices(wide, n)["d"] for n in (100, 4000))
    assert 0 < few < many


def test_the_users_own_descriptors_are_read(tmp_path, data):
    place = tmp_path / "scene15"
    place.mkdir()
    np.savez(place / "descriptors.npz", X=data.X, y=data.y, descriptor=data.descriptor, learnt_from=[1, 2])
    data.costs.to_toml(place / "costs.toml")
    read = scenes.described(tmp_path)
    assert read.is_real
    assert read.costs.prices == data.costs.prices
    assert read.needs("d4") == ("pass 0", "d4")
    assert read.learnt_from.tolist() == [1, 2]
    assert not scenes.described(None).is_real


@pytest.mark.parametrize("study", scenes.STUDIES, ids=lambda study: study.name)
def test_the_figures(tmp_path, monkeypatch, study):
    small = {"QUICK_ROUNDS": 12, "QUICK_RAW_ROUNDS": 6, "QUICK_TRADEOFFS": 3}
    for name, value in small.items():
        monkeypatch.setattr(scenes, name, value)
    four = scenes.drawn(n_scenes=4, n_each=140)
    monkeypatch.setattr(scenes, "drawn", lambda: four)
    outcome = perform(study, Bench(None, tmp_path, quick=True))
    assert outcome.stand_ins == {"drawn in place of Scene-15"}
    assert len(outcome.claims) == (8 if study.name == "miser-3" else 4)
    assert (tmp_path / f"{study.name}.png").stat().st_size > 5000
    methods = {row["method"] for row in outcome.rows}
    assert ({MISER, SVM} if study.name == "miser-3" else {MISER, "AFR", "linear SVM"}) <= methods
    full = max(row["test_cost"] for row in outcome.rows if row["method"] in (SVM, "linear SVM"))
    assert all(0 <= row["test_cost"] <= full + 1e-9 for row in outcome.rows)

"""Soft labels: between the labels as they are and the probabilities of the best model."""

import numpy as np
import pytest

from miserly.auto._labels import AS_MANY, SoftLabels, soft_auc
from miserly.auto._task import Rows, Task
from miserly.costs import CostTable
from miserly.metrics import auc, get_metric

RNG = np.random.default_rng(0)
N = 400
TRUTH = RNG.dirichlet([2.0, 1.0, 1.0], N)
Y = np.array([RNG.choice(3, p=p) for p in TRUTH]).astype(float)


def task_of(metric, y=Y, n_classes=3, **more):
    classes = np.arange(n_classes) if n_classes else None
    rows = Rows(np.zeros((len(y), 1)), y)
    kind = "classes" if n_classes else "numbers"
    return Task(kind, rows, None, classes, CostTable.per_feature([1.0]), get_metric(metric), 0, **more)


@pytest.mark.parametrize("metric", ["accuracy", "logloss"])
def test_the_best_model_keeps_the_figure_of_its_own_mistakes(metric):
    task = task_of(metric)
    labels = SoftLabels(task, Y, TRUTH)
    assert labels.quality(TRUTH) == pytest.approx(task.quality(task.train, TRUTH), abs=1e-12)


def test_shares_are_the_label_and_the_probabilities_mixed():
    shares = SoftLabels(task_of("accuracy"), Y, TRUTH).expected
    believed = AS_MANY / (AS_MANY + N)
    for row in range(N):
        for k in range(3):
            assert shares[row, k] == pytest.approx(believed * TRUTH[row, k] + (1 - believed) * (Y[row] == k))


def test_differences_between_candidates_vary_less_than_with_labels_as_they_are():
    rough = 0.6 * TRUTH + 0.4 * TRUTH[:, [1, 0, 2]]  # wrong for some rows
    task = task_of("accuracy")
    soft, plain = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        y = (rng.random(N)[:, None] > np.cumsum(TRUTH, axis=1)).sum(axis=1).astype(float)
        labels, rows = SoftLabels(task, y, TRUTH), Rows(np.zeros((N, 1)), y)
        soft.append(labels.quality(TRUTH) - labels.quality(rough))
        plain.append(task.quality(rows, TRUTH) - task.quality(rows, rough))
    assert np.std(soft) < 0.5 * np.std(plain)
    assert np.mean(soft) == pytest.approx(np.mean(plain), abs=0.01)


def test_on_many_rows_labels_count_as_they_are():
    y = np.zeros(200 * AS_MANY)
    shares = SoftLabels(task_of("accuracy", y), y, np.full((len(y), 3), 1 / 3)).expected
    assert shares[0, 0] > 0.99


def test_soft_auc_of_certain_labels_is_the_metric():
    y, score = (RNG.random(300) > 0.7).astype(float), RNG.integers(0, 20, 300).astype(float)
    assert soft_auc(y, score) == pytest.approx(auc(y, score), abs=1e-12)


def test_soft_auc_counts_pairs():
    shares, score = RNG.random(25), RNG.integers(0, 6, 25)
    won = total = 0.0
    for p, s in zip(shares, score):
        for q, t in zip(shares, score):
            total += p * (1 - q)
            won += p * (1 - q) * (1.0 if s > t else 0.5 if s == t else 0.0)
    assert soft_auc(shares, score.astype(float)) == pytest.approx(won / total, abs=1e-12)


def test_mistakes_are_expected_costs():
    matrix = np.array([[0.0, 9.0, 1.0], [2.0, 0.0, 1.0], [5.0, 5.0, 0.0]])
    labels = SoftLabels(task_of("accuracy", error_costs=matrix), Y, TRUTH)
    loss = labels.row_loss(TRUTH, "mistakes")
    for row in (0, 7, 99):
        predicted = int(np.argmin(TRUTH[row] @ matrix))
        assert loss[row] == pytest.approx(labels.expected[row] @ matrix[:, predicted])


def test_numbers_are_between_the_label_and_the_prediction():
    y, teacher = RNG.normal(size=50), RNG.normal(size=(50, 1))
    expected = SoftLabels(task_of("mse", y, 0), y, teacher).expected
    assert ((expected - y) * (expected - teacher[:, 0]) <= 0).all()


def test_other_metrics_see_labels_as_they_are():
    assert SoftLabels(task_of("precision@5", Y, 0), Y, TRUTH[:, :1]).quality(TRUTH[:, :1]) is None

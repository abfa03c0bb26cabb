"""LambdaMART's gradients against a plain loop and against finite differences with the weights held fixed."""

import numpy as np
import pytest

from miserly.boosting import LambdaRankLoss
from miserly.metrics import ndcg

QID = np.repeat([3, 1, 7], [6, 1, 9])


def problem(seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 5, len(QID)).astype(float), rng.normal(size=len(QID)).round(seed % 3)


def weights(y, score):
    """|ΔNDCG| of swapping each pair of one query, at the present places."""
    change = np.zeros((len(y), len(y)))
    for q in np.unique(QID):
        rows = np.flatnonzero(q == QID)
        place = {r: p for p, r in enumerate(sorted(rows, key=lambda r: (-score[r], r)))}
        ideal = sum((2**g - 1) / np.log2(p + 2) for p, g in enumerate(sorted(y[rows], reverse=True)))
        for i in rows:
            for j in rows:
                if y[i] > y[j]:
                    step = 1 / np.log2(place[i] + 2) - 1 / np.log2(place[j] + 2)
                    change[i, j] = (2 ** y[i] - 2 ** y[j]) * abs(step) / ideal
    return change


@pytest.mark.parametrize("seed", range(6))
def test_gradients_are_those_of_the_weighted_pairs(seed):
    y, score = problem(seed)
    change = weights(y, score)

    def objective(s):
        return (change * np.log1p(np.exp(s[None, :] - s[:, None]))).sum()

    gradient, hessian = LambdaRankLoss(QID).gradients(y, score[None])
    for i in range(len(y)):
        step = np.zeros(len(y))
        step[i] = 1e-4
        up, down, here = objective(score + step), objective(score - step), objective(score)
        assert -gradient[0, i] == pytest.approx((up - down) / 2e-4, abs=1e-7)
        assert hessian[0, i] == pytest.approx((up + down - 2 * here) / 1e-8, abs=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_the_value_is_one_less_ndcg(seed):
    y, score = problem(seed)
    assert LambdaRankLoss(QID).value(y, score[None]) == pytest.approx(1 - ndcg(y, score, qid=QID), abs=1e-12)


def test_queries_without_relevant_rows_pull_nothing():
    gradient, _ = LambdaRankLoss(QID).gradients(np.zeros(len(QID)), np.random.default_rng(0).normal(size=(1, len(QID))))
    assert not gradient.any()

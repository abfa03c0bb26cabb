"""LambdaMART as a loss: its gradients are defined, its value is what they stand for, 1 − NDCG."""

from __future__ import annotations

import numpy as np

from miserly.boosting._losses import SummedLoss, Weight
from miserly.kernels import ranking as kernels


class LambdaRankLoss(SummedLoss):
    """Pairs of one query weighted by their effect on NDCG; rows of a query lie together."""

    def __init__(self, qid: np.ndarray) -> None:
        changes = np.flatnonzero(qid[1:] != qid[:-1]) + 1
        self._start = np.concatenate([[0], changes, [len(qid)]]).astype(np.int64)
        self._sizes = np.diff(self._start)

    def on(self, qid: np.ndarray | None) -> LambdaRankLoss:
        assert qid is not None
        return LambdaRankLoss(qid)

    def averaged(self, y: np.ndarray) -> list[np.ndarray]:
        return []

    def constant_of(self, means: list[float], n_rows: int) -> np.ndarray:
        return np.zeros(1)

    def gradients(self, y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient, hessian = np.empty_like(score), np.empty_like(score)
        gain = np.exp2(y) - 1.0
        ideal = self._dcg(gain, gain)
        inverse = np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0)
        kernels.lambda_gradients(gain, score[0], self._start, inverse, gradient[0], hessian[0])
        return gradient, hessian

    def terms(self, y: np.ndarray, score: np.ndarray, weight: Weight = None) -> tuple[np.ndarray, Weight]:
        """The loss of each query; it weighs as its rows do in the mean, or nothing if none of them is relevant."""
        gain = np.exp2(y) - 1.0
        ideal, dcg = self._dcg(gain, gain), self._dcg(gain, score[0])
        by_query = np.ones(len(ideal)) if weight is None else np.add.reduceat(weight, self._start[:-1]) / self._sizes
        by_query = np.where(ideal > 0, by_query, 0.0)
        return 1.0 - np.divide(dcg, ideal, out=np.ones_like(dcg), where=ideal > 0), by_query

    def _dcg(self, gain: np.ndarray, score: np.ndarray) -> np.ndarray:
        query = np.repeat(np.arange(len(self._start) - 1), self._sizes)
        order = np.lexsort((-score, query))
        place = np.arange(len(score)) - self._start[query]
        return np.bincount(query, gain[order] / np.log2(place + 2.0), minlength=len(self._start) - 1)

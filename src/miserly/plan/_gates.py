"""Who goes on: gates over many rows at once."""

from __future__ import annotations

import heapq
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from miserly.plan._node import Gate


def passes(
    gate: Gate, score: NDArray[np.float64], confidence: NDArray[np.float64] | None, query: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Which rows pass, given what the gate looks at; `query` numbers the query of each row.

    A score that is not a number is beyond no threshold and below every other in its query.
    """
    if gate.kind == "open":
        return np.ones(len(score), bool)
    if gate.kind == "threshold":
        return score > gate.value if gate.direction > 0 else score < gate.value
    if gate.kind == "confidence":
        assert confidence is not None
        return confidence < gate.value
    score = np.where(np.isnan(score), -np.inf, score)
    if gate.kind == "capacity":
        return _among_seen(score, query, gate.k)
    order = np.lexsort((-score, query))
    first = np.flatnonzero(np.r_[True, np.diff(query[order]) != 0]) if len(order) else np.zeros(0, np.intp)
    size = np.diff(np.r_[first, len(order)])
    if gate.kind == "rank":
        rank = np.arange(len(order)) - np.repeat(first, size)
        passed = np.empty(len(score), bool)
        passed[order] = rank < gate.k
        return passed
    kth = score[order[first + np.minimum(gate.k, size) - 1]]
    bar = np.where(size < gate.k, -np.inf, kth - gate.value)
    passed = np.empty(len(score), bool)
    passed[order] = score[order] >= np.repeat(bar, size)
    return passed


def _among_seen(score: NDArray[np.float64], query: NDArray[np.intp], k: int) -> NDArray[np.bool_]:
    heaps: dict[int, list[float]] = defaultdict(list)
    passed = np.ones(len(score), bool)
    for i, (value, group) in enumerate(zip(score.tolist(), query.tolist())):
        heap = heaps[group]
        if len(heap) < k:
            heapq.heappush(heap, value)
        elif value > heap[0]:
            heapq.heapreplace(heap, value)
        else:
            passed[i] = False
    return passed

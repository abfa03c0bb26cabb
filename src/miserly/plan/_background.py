"""What a plan assumes of values that a row does not buy: what the training rows say about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from miserly._typing import Array, Bools, Floats
from miserly.kernels import gaps as kernels
from miserly.plan._dictionary import Trees
from miserly.plan._node import Node

MOST_ROWS = 4096  # shares within a hundredth or two are good enough, and a pass over so many rows takes little time


def shares_of(trees: Trees, X: Array) -> Floats:
    """The share of the rows at each split that goes left, for all places of the table; 0 or 1, as missing values go,
    where no row comes."""
    rows = np.ascontiguousarray(X[:: max(1, -(-len(X) // MOST_ROWS))])
    visits = np.zeros(len(trees.left), np.int64)
    kernels.count_visits(rows, trees.table, visits)
    goes = np.where(trees.missing_right, 0.0, 1.0)
    right = np.where(trees.is_leaf, trees.left, trees.left + 1)
    below = visits[trees.left] + visits[right]  # of all parents, where a pair has several
    shares: Floats = np.where(below > 0, visits[trees.left] / np.maximum(below, 1), goes)
    shares[trees.is_leaf] = 1.0
    return shares


def means_of(X: Array) -> Floats:
    """The mean of each column without its missing values; 0 where there is none."""
    known = np.isfinite(X)
    total = np.where(known, X, 0.0).sum(axis=0, dtype=np.float64)
    return np.asarray(total / np.maximum(known.sum(axis=0), 1), np.float64)


def gaps_of(trees: Any, shares: Floats | None, nodes: Sequence[Node], prior: Floats) -> tuple[Bools, Floats]:
    """For the kernels: at each place, whether most rows go right, and the mean value of the rows there. Without shares
    rows go as missing values do, and nothing is corrected.

    Trees that are added to the prior, as boosted ones are, count for nothing where their root is not known: their mean
    is that of log-odds, say, which is surer than the prior. So a row that knows nothing has the prior as its answer.
    """
    if shares is None:
        return trees.missing_right, np.zeros(len(trees.left))
    mean = trees.value.copy()
    for place in np.flatnonzero(~trees.is_leaf)[::-1].tolist():  # children come after their parent
        left = int(trees.left[place])
        mean[place] = shares[place] * mean[left] + (1.0 - shares[place]) * mean[left + 1]
    for node in nodes:
        constant = node.bias + (prior[list(node.outputs)] if node.combine == "add" else 0.0)
        if np.array_equal(constant, prior[list(node.outputs)]) and node.activation == "identity":
            roots = trees.start[node.learners]
            mean[roots] = np.where(trees.is_leaf[roots], mean[roots], 0.0)
    return shares < 0.5, mean


def background(dictionary: Any, X: Array) -> dict[str, Any]:
    """The fields of a plan that the training rows give."""
    if isinstance(dictionary, Trees):
        return {"shares": shares_of(dictionary, X)}
    return {"means": means_of(X)}

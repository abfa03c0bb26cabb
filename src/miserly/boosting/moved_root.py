"""The root of the next tree, from the nodes of the last one.

Under squared loss all rows of a leaf lose the same from their gradients, its value. So the next root's sums by bin are
the last one's less, for every leaf, its value times how many of its rows are in the bin. Most of that was counted when
the tree grew: a split node is its two children. Of two leaves only the smaller one is counted now, instead of all rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from miserly.boosting.backend import Backend
from miserly.boosting.nodes import Split
from miserly.kernels import histograms as kernels

WORTH_IT = 0.75


@dataclass(frozen=True)
class Known:
    """What was counted of a node: the line of every feature (−1: none), and the histograms (feature × bin)."""

    place: np.ndarray
    histograms: np.ndarray


@dataclass(frozen=True)
class MovedRoot:
    """Histograms of some features as the next root has them."""

    features: np.ndarray
    histograms: np.ndarray


def moved_root(backend: Backend, splits: Sequence[Split], nodes: Mapping[int, Known]) -> MovedRoot | None:
    """The next root's histograms of the features that are known in all nodes it takes; None if counting is quicker."""
    moves = backend.moves()
    if not moves or any(split.node not in nodes for split in splits):
        return None
    small = {
        split.left: _smaller(backend, split.left) for split in splits if not {split.left, split.left + 1} & set(nodes)
    }
    taken: Counter[int] = Counter()
    for split in splits:
        one = small[split.left] if split.left in small else split.left + (split.left not in nodes)
        other = 2 * split.left + 1 - one
        taken[split.node] += moves.get(other, 0)
        taken[one] += moves.get(one, 0) - moves.get(other, 0)
    of_small = {node: taken.pop(node) for node in small.values()}
    n_cells = kernels.N_BINS * len(taken) + sum(backend.sums(node).n_rows for node in of_small)
    if n_cells > WORTH_IT * backend.n_rows:
        return None
    is_known = np.all([nodes[node].place >= 0 for node in {0, *taken}], axis=0)
    features = np.flatnonzero(is_known).astype(np.int32)
    histograms = nodes[0].histograms[nodes[0].place[features]]
    if of_small:
        histograms -= backend.moved(of_small, features)
    for node, by in taken.items():
        kernels.move(histograms, nodes[node].histograms, nodes[node].place[features], by)
    return MovedRoot(features, histograms)


def _smaller(backend: Backend, left: int) -> int:
    return min((left, left + 1), key=lambda node: backend.sums(node).n_rows)

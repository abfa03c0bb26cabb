"""The root of the next tree, from the nodes of the last one.

Under squared loss all rows of a leaf lose the same from their gradients, its value. So the next root's sums by bin are
the last one's less, for every leaf, its value times how many of its rows are in the bin. Most of that was counted when
the tree grew: below a node that was counted, the largest leaf is the node less the other leaves, so only these are
counted now, instead of all rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from miserly.boosting._backend import BackendOfRows
from miserly.boosting._nodes import TreeSplit
from miserly.kernels import histograms as kernels

WORTH_IT = 0.75  # of the time of counting: an update touches memory less regularly


@dataclass(frozen=True)
class Known:
    """What was counted of a node: the line of every feature (−1: none), and the histograms (feature × bin)."""

    place: np.ndarray
    histograms: np.ndarray


@dataclass(frozen=True)
class UpdatedRoot:
    """Histograms of some features as the next root has them."""

    features: np.ndarray
    histograms: np.ndarray


def update_root(
    backend: BackendOfRows, splits: Sequence[TreeSplit], nodes: Mapping[int, Known], wanted: np.ndarray
) -> UpdatedRoot | None:
    """The next root's histograms of those wanted features that the last root knows; None if counting is quicker."""
    shifts = backend.leaf_shifts()
    if not shifts or 0 not in nodes:
        return None
    shared = wanted & (nodes[0].place >= 0)
    features = np.flatnonzero(shared).astype(np.int32)
    known = {n: node for n, node in nodes.items() if (node.place[features] >= 0).all()}
    taken, counted = _shares(shifts, splits, known, backend)
    n_cells = kernels.N_BINS * len(taken) + sum(backend.sums(leaf).n_rows for leaf in counted)
    saved = _n_tiles(wanted) - _n_tiles(wanted & ~shared)
    if n_cells * _n_tiles(shared) >= WORTH_IT * backend.n_rows * saved:
        return None
    histograms = nodes[0].histograms[nodes[0].place[features]]
    if counted:
        histograms -= backend.shifted(counted, features)
    for n, by in taken.items():
        kernels.shift(histograms, known[n].histograms, known[n].place[features], by)
    return UpdatedRoot(features, histograms)


def _shares(
    shifts: Mapping[int, int], splits: Sequence[TreeSplit], known: Mapping[int, Known], backend: BackendOfRows
) -> tuple[Counter[int], dict[int, int]]:
    """How many quanta the rows of each known node lose, and those of each leaf that has to be counted."""
    children = {split.node: (split.left, split.left + 1) for split in splits}
    taken = Counter({leaf: by for leaf, by in shifts.items() if leaf in known})
    counted: dict[int, int] = {}
    for top in known.keys() & children.keys():
        leaves, below, open_ = [], [], [*children[top]]
        while open_:
            node = open_.pop()
            if node in known:
                below.append(node)
            elif node in children:
                open_ += children[node]
            else:
                leaves.append(node)
        if leaves:
            largest = max(leaves, key=lambda leaf: backend.sums(leaf).n_rows)
            taken[top] += shifts[largest]
            for node in below:
                taken[node] -= shifts[largest]
            counted |= {leaf: shifts[leaf] - shifts[largest] for leaf in leaves if leaf != largest}
    return taken, counted


def _n_tiles(features: np.ndarray) -> int:
    """How many tiles hold some of these features: each is read whole."""
    return len(np.unique(np.flatnonzero(features) // kernels.LANES))

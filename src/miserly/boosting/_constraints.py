"""Monotone and interaction constraints: which cuts, features and leaf values a tree may have.

A split on a constrained feature must not have its children's mean gradients in the wrong order. Leaf values are then
kept within bounds: below such a split, all values on the one side stay on their side of the mean of the two children's
values, as in scikit-learn. So every tree is monotone, and so is their sum, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from miserly.boosting._nodes import TreeSplit
from miserly.kernels.histograms import COUNT_BITS, COUNT_MASK, MISSING


@dataclass(frozen=True)
class Constraints:
    """What trees must respect.

    Parameters
    ----------
    signs : tuple of int
        For each feature 1 (scores never fall as it rises), -1 (never rise) or 0. Empty: no feature is constrained.
    groups : tuple of frozenset of int
        Features that may meet on a path from the root to a leaf. Empty: all may.
    """

    signs: tuple[int, ...] = ()
    groups: tuple[frozenset[int], ...] = ()

    def sign(self, feature: int) -> int:
        """How a feature is constrained."""
        return self.signs[feature] if self.signs else 0

    def allowed_below(self, path: frozenset[int], n_features: int) -> np.ndarray:
        """The features that may be used below splits on some features."""
        if not self.groups or not path:
            return np.ones(n_features, bool)
        allowed = np.zeros(n_features, bool)
        for group in self.groups:
            if path <= group:
                allowed[sorted(group)] = True
        return allowed


def best_monotone_cut(
    lanes: np.ndarray, n_bins: int, totals: Sequence[int], min_rows: int, scale: float, sign: int
) -> tuple[float, int, bool]:
    """Best raw gain of one feature in one node among cuts whose children are in order, where it cuts, and whether
    missing values go right (the larger side, where the node has none)."""
    weighted = len(lanes) > 1
    n, g = int(totals[0]) & COUNT_MASK, float(int(totals[0]) >> COUNT_BITS)
    weight = float(totals[-1]) if weighted else float(n)
    absent = int(lanes[0, MISSING] & COUNT_MASK)
    best, cut, right = -1.0, -1, False
    for missing_right in (False, True) if absent else (False,):
        last = n_bins if missing_right else n_bins - 1
        left = np.cumsum(lanes[:, :last], axis=1)
        if not missing_right:
            left = left + lanes[:, MISSING : MISSING + 1]
        rows = left[0] & COUNT_MASK
        below = (left[-1] if weighted else rows).astype(np.float64)
        contrast = weight * (left[0] >> COUNT_BITS).astype(np.float64) - below * g
        start = 0 if missing_right else absent
        fits = (rows >= max(min_rows, start + 1)) & (rows <= n - min_rows) & (sign * contrast <= 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(fits, contrast * contrast / (below * (weight - below) + 1e-300), -1.0)
        if len(gain) and gain.max() > best:
            cut, right = int(gain.argmax()), missing_right
            best = float(gain[cut])
            n_left = int(rows[cut])
    if cut < 0:
        return -math.inf, -1, False
    return best * scale / weight, cut, right if absent else 2 * n_left < n


def bounded_values(
    splits: Sequence[TreeSplit],
    sums: Mapping[int, tuple[float, float]],
    rate: float,
    l2: float,
    constraints: Constraints,
) -> dict[int, float]:
    """The Newton steps of a tree's leaves, kept within the bounds that splits on constrained features set.

    `sums` has the gradient and the hessian of each leaf; those of inner nodes are added up from below.
    """
    of_node = dict(sums)
    for split in reversed(splits):
        (g, h), (more_g, more_h) = of_node[split.left], of_node[split.left + 1]
        of_node[split.node] = (g + more_g, h + more_h)
    step = {node: rate * g / (h + l2) if h > 0 else 0.0 for node, (g, h) in of_node.items()}
    bounds = {0: (-math.inf, math.inf)}
    for split in splits:
        low, high = bounds[split.node]
        first, second = (min(max(step[child], low), high) for child in (split.left, split.left + 1))
        middle, sign = first / 2 + second / 2, constraints.sign(split.feature)
        lower, upper = (low, middle), (middle, high)
        bounds[split.left] = (low, high) if not sign else lower if sign > 0 else upper
        bounds[split.left + 1] = (low, high) if not sign else upper if sign > 0 else lower
    return {leaf: min(max(step[leaf], bounds[leaf][0]), bounds[leaf][1]) for leaf in sums}

"""Columns brought to mean 0 and mean square 1, and coefficients brought back to the user's units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from miserly._typing import Floats

FIRST_ROWS = 256
NOISE = 64 * np.finfo(np.float64).eps  # of its mean: a column that varies by less is lost in the rounding of products


@dataclass(frozen=True)
class Standard:
    """`Z` holds the columns `order` of the data, standardised; constant columns are left out.

    The order depends on the values in the columns, not on where they stand: whatever is computed from `Z` is the same
    to the bit if the user's columns are permuted.
    """

    Z: Floats
    order: NDArray[np.intp]
    mean: Floats
    scale: Floats

    def raw(self, beta: Floats, constant: Floats) -> tuple[Floats, Floats]:
        """Weights (column of `Z` × output) and constants for the data as they were."""
        weights = beta / self.scale[:, None]
        return weights, constant - self.mean @ weights


def standardise(X: NDArray[np.floating], share: Floats) -> Standard:
    """Standardise under row weights `share`, which add up to one."""
    order = _order_by_content(X)
    Z = np.asfortranarray(X[:, order], dtype=np.float64)
    Z = Z.copy(order="F") if np.may_share_memory(Z, X) else Z
    mean = share @ Z
    Z -= mean
    high, low = Z.max(axis=0, initial=-np.inf), Z.min(axis=0, initial=np.inf)
    largest = np.maximum(high, -low)
    varies = high - low > NOISE * np.abs(mean)
    if not varies.all():
        Z, mean, largest, order = np.asfortranarray(Z[:, varies]), mean[varies], largest[varies], order[varies]
    Z /= largest
    Z -= (rest := share @ Z)
    mean += rest * largest
    std = np.sqrt(np.einsum("ij,ij,i->j", Z, Z, share))
    seen = std > 0
    if not seen.all():
        Z, order, mean, largest, std = (
            np.asfortranarray(Z[:, seen]),
            *(a[seen] for a in (order, mean, largest, std)),
        )
    Z /= std
    return Standard(Z, order, mean, std * largest)


def _order_by_content(X: NDArray[np.floating]) -> NDArray[np.intp]:
    """Columns sorted by their values in the first rows; where these tie, by all their values."""
    head = X[:FIRST_ROWS]
    order = np.lexsort(head[::-1])
    if X.shape[1] > 1 and len(X) > FIRST_ROWS and (head[:, order[1:]] == head[:, order[:-1]]).all(axis=0).any():
        order = np.array(sorted(range(X.shape[1]), key=lambda j: X[:, j].tobytes()), np.intp)
    return order

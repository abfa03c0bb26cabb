"""Scores of several classes read as probabilities by linear discriminant analysis.

Least squares of each class against the rest hides a class that lies between others. The same scores, taken as Gaussian
clouds of one shape around the classes' means, do not: with all features this *is* linear discriminant analysis (Hastie,
Tibshirani and Buja 1994). What comes out is linear again, so it can be folded into the weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from miserly._typing import Floats

ROUNDING = 1e-13


def discriminant(scores: Floats, member: NDArray[np.bool_], weights: Floats) -> tuple[Floats, Floats]:
    """(matrix, offset) such that softmax(scores @ matrix + offset) are the probabilities of the classes.

    `member` (row × class) says where a row belongs. One row's worth of the whole cloud is added to the shape, so that
    classes without any spread stay finite; every class has one row's worth of prior. Directions in which scores differ
    by no more than their rounding say nothing.
    """
    total, counts = float(weights.sum()), weights @ member
    share = member * weights[:, None]
    means = (share.T @ scores) / np.maximum(counts, 1e-300)[:, None]
    middle = weights @ scores / total
    own = scores - member @ means
    cloud = (scores - middle).T @ ((scores - middle) * weights[:, None]) / total
    shape = (own.T @ (own * weights[:, None]) + cloud) / (total + 1.0)
    size, vectors = linalg.eigh(shape, check_finite=False)
    kept = size > 1e-10 * np.trace(cloud) + (ROUNDING * np.abs(scores).max(initial=0.0)) ** 2
    inverse = (vectors[:, kept] / size[kept]) @ vectors[:, kept].T
    matrix = inverse @ (means - middle).T
    offset = np.log((counts + 1.0) / (total + len(counts))) - 0.5 * np.einsum("ij,ji->i", means + middle, matrix)
    return matrix, offset

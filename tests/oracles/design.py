"""The design matrix written out: every learner's output for every row, around its mean, in units of a deviation."""

import math

import numpy as np


def leaf_value(trees, t, x):
    """Walk one row down one tree."""
    at = trees.start[t]
    while trees.left[at] != at:
        v = x[trees.feature[at]]
        right = bool(trees.missing_right[at]) if math.isnan(v) else v > trees.threshold[at]
        at = trees.left[at] + right
    return trees.value[at]


def outputs(trees, X):
    """Rows × trees."""
    return np.array([[leaf_value(trees, t, x) for t in range(len(trees))] for x in X]).reshape(len(X), len(trees))


def standardised(raw, weight=None, common=False):
    """(H, centre, scale) with weighted means and deviations; constant columns are zero, their scale one.

    The scale is each column's own, or one for all: the largest.
    """
    weight = np.ones(len(raw)) if weight is None else np.asarray(weight, float)
    H, centre, scale = np.zeros(raw.shape), np.zeros(raw.shape[1]), np.ones(raw.shape[1])
    for j in range(raw.shape[1]):
        column = raw[:, j].astype(np.float64)
        if np.ptp(column) == 0:
            centre[j] = column[0]
            continue
        centre[j] = math.fsum(weight * column) / math.fsum(weight)
        scale[j] = math.sqrt(math.fsum(weight * (column - centre[j]) ** 2) / math.fsum(weight))
        H[:, j] = column - centre[j]
    varies = H.any(axis=0)
    if common and varies.any():
        scale[varies] = scale[varies].max()
    return H / scale, centre, scale

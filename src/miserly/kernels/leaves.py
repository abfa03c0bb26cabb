"""Trees as leaf numbers, one byte per row and tree: making them, and the sums that linear solvers need from them.

The table of trees is that of `kernels.trees`. Sums run in a fixed order, so they do not depend on the threads.
"""

import numpy as np
from numba import prange

from miserly.kernels.compiling import compiled
from miserly.kernels.trees import BLOCK, block_leaves

WIDE_BLOCK = 1024  # rows whose scores stay in the first cache while trees are added


@compiled(parallel=True)
def leaf_codes(X, trees, used, number, codes):
    """The number of each row's leaf in each tree, tree × row; `number` holds it by place in the table."""
    start, depth, _, slot, threshold, left, missing_right, _ = trees
    n = X.shape[0]
    for block in prange((n + BLOCK - 1) // BLOCK):
        first = block * BLOCK
        size = min(BLOCK, n - first)
        columns = np.zeros((used.size, BLOCK))
        any_missing = False
        for i in range(size):
            for j in range(used.size):
                v = X[first + i, used[j]]
                any_missing |= v != v
                columns[j, i] = v
        at = np.empty(BLOCK, np.int32)
        for t in range(start.size):
            block_leaves(columns, start[t], depth[t], slot, threshold, left, missing_right, any_missing, at)
            for i in range(size):
                codes[t, first + i] = number[at[i]]


@compiled(parallel=True)
def add_leaf_values(codes, learners, value, weight, out):
    """Add weighted leaf values of some trees to each row, tree by tree in the given order."""
    n = codes.shape[1]
    for block in prange((n + WIDE_BLOCK - 1) // WIDE_BLOCK):
        first = block * WIDE_BLOCK
        last = min(first + WIDE_BLOCK, n)
        for e in range(learners.size):
            t = learners[e]
            for k in range(out.shape[1]):
                if weight[e, k] != 0.0:
                    for i in range(first, last):
                        out[i, k] += weight[e, k] * value[t, codes[t, i]]


@compiled(parallel=True)
def sum_by_leaf(codes, values, out):
    """Sum some values over the rows of each leaf, tree × leaf × column, in the order of the rows."""
    for t in prange(codes.shape[0]):
        for i in range(codes.shape[1]):
            leaf = codes[t, i]
            for k in range(values.shape[1]):
                out[t, leaf, k] += values[i, k]

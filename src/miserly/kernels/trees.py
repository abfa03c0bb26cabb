"""Evaluating trees: batches in blocks of rows, one row for a request, and what a row buys on its paths.

All trees lie in one table of nodes. `left` is the place of the left child, the right one is next to it; a leaf points
to itself and its threshold is infinite, so every row may take `depth` steps without a test for leaves. Missing values
go left unless `missing_right`. `slot` numbers the features that any tree uses, so that a block of rows is turned into
columns of just those. Scores are added tree by tree in the given order, in a batch as for one row: the same bits.
"""

import numpy as np
from numba import get_num_threads, prange

from miserly.kernels.compiling import call, compiled, inner

BLOCK = 64  # rows: eight vectors of eight, and a block of 100 columns stays in the first cache
WORTH_THREADS = 1 << 18  # rows × trees: about a millisecond, fifty times what starting threads takes
PLACE = np.uint32  # what indexes without a sign is not asked whether it counts from the end: a third of a row's time


@compiled(inline="always")
def _right(v, threshold, missing_right):
    """Whether a value goes right."""
    return (v > threshold) | (missing_right & (v != v))


@compiled(inline="always")
def _leaf(x, start, depth, feature, threshold, left, missing_right):
    """Place of the leaf that a row falls in."""
    at = PLACE(start)
    for _ in range(depth):
        v = x[PLACE(feature[at])]
        at = PLACE(left[at] + _right(v, threshold[at], missing_right[at]))
    return at


@inner
def _three_levels(columns, start, slot, threshold, left, missing_right, any_missing, at):
    """Where a block of rows is after three steps from a tree's root: all seven questions are asked of every row, which
    is done on vectors, and the answers choose. What lies beside a leaf is asked too and never chosen. `any_missing` is
    a constant where it is called, so that blocks without missing values do not ask for them."""
    last = left.size - 1
    a1 = left[start]
    a2 = min(a1 + 1, last)
    a3 = left[a1]
    a4 = min(a3 + 1, last)
    a5 = left[a2]
    a6 = min(a5 + 1, last)
    x0, x1, x2, x3 = columns[slot[start]], columns[slot[a1]], columns[slot[a2]], columns[slot[a3]]
    x4, x5, x6 = columns[slot[a4]], columns[slot[a5]], columns[slot[a6]]
    t0, t1, t2, t3 = threshold[start], threshold[a1], threshold[a2], threshold[a3]
    t4, t5, t6 = threshold[a4], threshold[a5], threshold[a6]
    m0, m1, m2 = any_missing & missing_right[start], any_missing & missing_right[a1], any_missing & missing_right[a2]
    m3, m4 = any_missing & missing_right[a3], any_missing & missing_right[a4]
    m5, m6 = any_missing & missing_right[a5], any_missing & missing_right[a6]
    b3, b4, b5, b6 = left[a3], left[a4], left[a5], left[a6]
    for i in range(BLOCK):
        d3 = b3 + np.int32(_right(x3[i], t3, m3))
        d4 = b4 + np.int32(_right(x4[i], t4, m4))
        d5 = b5 + np.int32(_right(x5[i], t5, m5))
        d6 = b6 + np.int32(_right(x6[i], t6, m6))
        low = d4 if _right(x1[i], t1, m1) else d3
        high = d6 if _right(x2[i], t2, m2) else d5
        at[i] = high if _right(x0[i], t0, m0) else low


@inner
def block_leaves(columns, start, depth, slot, threshold, left, missing_right, any_missing, at):
    """Places of the leaves that a block of rows falls in, level by level."""
    if depth == 0:
        for i in range(BLOCK):
            at[i] = start
    elif any_missing:
        _three_levels(columns, start, slot, threshold, left, missing_right, True, at)
        for _ in range(depth - 3):
            for i in range(BLOCK):
                a = PLACE(at[i])
                at[i] = left[a] + _right(columns[PLACE(slot[a]), i], threshold[a], missing_right[a])
    else:
        _three_levels(columns, start, slot, threshold, left, missing_right, False, at)
        for _ in range(depth - 3):
            for i in range(BLOCK):
                a = PLACE(at[i])
                at[i] = left[a] + (columns[PLACE(slot[a]), i] > threshold[a])


@inner
def _add_block(first, X, rows, trees, used, learners, pointer, output, weight, keep, values, known, scores):
    """Add the weighted values of some trees to the scores of the block of rows that begins at `first`."""
    start, depth, _, slot, threshold, left, missing_right, value = trees
    size = min(BLOCK, rows.size - first)
    columns = np.zeros((used.size, BLOCK))
    any_missing = size < 0  # false, and not a constant, for which all would be compiled once more
    for i in range(size):
        r = rows[first + i]
        for j in range(used.size):
            v = X[r, used[j]]
            any_missing |= v != v
            columns[j, i] = v
    sums = np.zeros((scores.shape[1], BLOCK))
    for i in range(size):
        for k in range(scores.shape[1]):
            sums[k, i] = scores[rows[first + i], k]
    at = np.empty(BLOCK, np.int32)
    h = np.empty(BLOCK)
    for e in range(learners.size):
        t = learners[e]
        place = keep[t]
        fresh = True
        if place >= 0:
            fresh = False
            for i in range(size):
                fresh |= not known[rows[first + i], place]
        if fresh:
            block_leaves(columns, start[t], depth[t], slot, threshold, left, missing_right, any_missing, at)
            for i in range(BLOCK):
                h[i] = value[at[i]]
        else:
            for i in range(size):
                h[i] = values[rows[first + i], place]
        if fresh and place >= 0:
            for i in range(size):
                values[rows[first + i], place] = h[i]
                known[rows[first + i], place] = True
        for j in range(pointer[e], pointer[e + 1]):
            total = sums[output[j]]
            for i in range(BLOCK):
                total[i] += weight[j] * h[i]
    for i in range(size):
        for k in range(scores.shape[1]):
            scores[rows[first + i], k] = sums[k, i]


@compiled
def _add_trees_alone(X, rows, trees, used, learners, pointer, output, weight, keep, values, known, scores):
    for first in range(0, rows.size, BLOCK):
        _add_block(first, X, rows, trees, used, learners, pointer, output, weight, keep, values, known, scores)


@compiled(parallel=True)
def _add_trees_on_threads(X, rows, trees, used, learners, pointer, output, weight, keep, values, known, scores):
    for block in prange((rows.size + BLOCK - 1) // BLOCK):
        first = block * BLOCK
        _add_block(first, X, rows, trees, used, learners, pointer, output, weight, keep, values, known, scores)


def add_trees(X, rows, trees, used, learners, *how):
    """Add the weighted values of some trees to the scores of some rows; small batches stay on the caller's thread.

    Learners with a place in `keep` serve several nodes: their value is computed once per row and kept in `values`.
    """
    few = rows.size * learners.size < WORTH_THREADS or get_num_threads() == 1
    call(_add_trees_alone if few else _add_trees_on_threads, X, rows, trees, used, learners, *how)


@compiled
def add_tree(X, feature, threshold, left, missing_right, value, scores):
    """Add the values of one tree, given by its own table, to one score of each row: for trees just grown."""
    for i in range(X.shape[0]):
        at = PLACE(0)
        while left[at] != at:
            at = PLACE(left[at] + _right(X[i, PLACE(feature[at])], threshold[at], missing_right[at]))
        scores[i] += value[at]


@compiled
def add_trees_to_row(x, trees, learners, pointer, output, weight, keep, values, known, score):
    """The same for one row, on the caller's thread."""
    start, depth, feature, _, threshold, left, missing_right, value = trees
    for e in range(learners.size):
        t = PLACE(learners[e])
        place = keep[t]
        if place >= 0 and known[place]:
            h = values[place]
        else:
            h = value[_leaf(x, start[t], depth[t], feature, threshold, left, missing_right)]
            if place >= 0:
                values[place] = h
                known[place] = True
        for j in range(pointer[e], pointer[e + 1]):
            score[PLACE(output[j])] += weight[j] * h


@compiled
def add_columns(X, rows, columns, pointer, output, weight, scores):
    """Add weighted raw features to the scores of some rows: as quick as memory is read, on one thread."""
    for i in range(rows.size):
        r = rows[i]
        for e in range(columns.size):
            for j in range(pointer[e], pointer[e + 1]):
                scores[r, output[j]] += weight[j] * X[r, columns[e]]


@compiled
def add_columns_to_row(x, columns, pointer, output, weight, score):
    """The same for one row, on the caller's thread."""
    for e in range(columns.size):
        for j in range(pointer[e], pointer[e + 1]):
            score[output[j]] += weight[j] * x[columns[e]]


@inner
def _buy_path(x, trees, learners, needs, bought):
    start, _, feature, _, threshold, left, missing_right, _ = trees
    for e in range(learners.size):
        at = PLACE(start[learners[e]])
        while left[at] != at:
            f = PLACE(feature[at])
            for w in range(needs.shape[1]):
                bought[w] |= needs[f, w]
            v = x[f]
            at = PLACE(left[at] + _right(v, threshold[at], missing_right[at]))


@compiled
def _buy_paths_alone(X, rows, trees, learners, needs, bought):
    for i in range(rows.size):
        _buy_path(X[rows[i]], trees, learners, needs, bought[i])


@compiled(parallel=True)
def _buy_paths_on_threads(X, rows, trees, learners, needs, bought):
    for i in prange(rows.size):
        _buy_path(X[rows[i]], trees, learners, needs, bought[i])


def buy_paths(X, rows, trees, learners, needs, bought):
    """Mark what each row must own to walk its own paths through some trees; `needs` are bit words per feature."""
    few = rows.size * learners.size < WORTH_THREADS or get_num_threads() == 1
    call(_buy_paths_alone if few else _buy_paths_on_threads, X, rows, trees, learners, needs, bought)

"""Trees for rows that do not know all values: those of features that they did not buy.

At a split whose feature a row does not know, the row goes where most training rows went (`major_right`), and its value
is corrected by what that changes in the mean: `mean[split] − mean[child]`, where `mean` is the mean value of the
training rows at each place of the table. So what is not known changes nothing in the mean, and what is known below the
split still counts. A value that is known to be missing takes the tree's own way for missing values.

`seen` says which features are known (rows × features, or one line for all rows); `gaps` are `major_right` and `mean`.
See `kernels.trees` for the table of trees.
"""

import numpy as np
from numba import prange

from miserly.kernels.compiling import compiled
from miserly.kernels.trees import PLACE, _right


@compiled
def _value(x, seen, start, trees, gaps):
    """The value of one tree for one row."""
    _, _, feature, _, threshold, left, missing_right, value = trees
    major_right, mean = gaps
    at, correction = PLACE(start), 0.0
    while left[at] != at:
        f = PLACE(feature[at])
        if seen[f]:
            at = PLACE(left[at] + _right(x[f], threshold[at], missing_right[at]))
        else:
            child = PLACE(left[at] + major_right[at])
            correction += mean[at] - mean[child]
            at = child
    return value[at] + correction


@compiled
def add_trees_to_row(x, seen, trees, gaps, learners, pointer, output, weight, keep, values, known, score):
    """Add the weighted values of some trees to the score of one row; as in `kernels.trees`."""
    start = trees[0]
    for e in range(learners.size):
        place = keep[learners[e]]
        if place >= 0 and known[place]:
            h = values[place]
        else:
            h = _value(x, seen, start[learners[e]], trees, gaps)
            if place >= 0:
                values[place] = h
                known[place] = True
        for j in range(pointer[e], pointer[e + 1]):
            score[output[j]] += weight[j] * h


@compiled(parallel=True)
def add_trees(X, seen, rows, trees, gaps, learners, pointer, output, weight, keep, values, known, scores):
    """The same for many rows."""
    same_for_all, one_line = seen.shape[0] == 1, values.shape[0] == 1
    for i in prange(rows.size):
        r = rows[i]
        mine = seen[0 if same_for_all else r]
        line = 0 if one_line else r
        add_trees_to_row(
            X[r], mine, trees, gaps, learners, pointer, output, weight, keep, values[line], known[line], scores[r]
        )


@compiled
def walk_row_until_purchase(x, seen, trees, gaps, learners, needs, owned, ready, entry, place):
    """Walk one row through some trees until a split needs what the row does not own.

    `ready` marks features that are not to be bought: their values are known, or will never be. `entry` (which learner)
    and `place` (which split, -1 for the root) say where the row stands, so that the walk goes on from there after the
    purchase. Returns both as they are then, and the feature that the split wants, or -1 at the end.
    """
    start, _, feature, _, threshold, left, missing_right, _ = trees
    major_right = gaps[0]
    while entry < learners.size:
        at = PLACE(start[learners[entry]] if place < 0 else place)
        while left[at] != at:
            f = PLACE(feature[at])
            if not ready[f]:
                for w in range(needs.shape[1]):
                    if needs[f, w] & ~owned[w]:
                        return entry, np.int64(at), np.int64(f)
            if seen[f]:
                at = PLACE(left[at] + _right(x[f], threshold[at], missing_right[at]))
            else:
                at = PLACE(left[at] + major_right[at])
        entry += 1
        place = -1
    return entry, place, -1


@compiled
def walk_until_purchase(X, seen, rows, trees, gaps, learners, needs, owned, ready, entry, place, wants):
    """The same for many rows, except those whose `wants` is -1 already; `entry`, `place`, `wants` are set in place.

    `owned` and `ready` have a line for each of `rows`.
    """
    for i in range(rows.size):
        if wants[i] != -1:
            entry[i], place[i], wants[i] = walk_row_until_purchase(
                X[rows[i]], seen[rows[i]], trees, gaps, learners, needs, owned[i], ready[i], entry[i], place[i]
            )


@compiled
def buy_paths(X, seen, rows, trees, gaps, learners, needs, bought):
    """Mark what each row must own to walk its own paths through some trees, where all rows know the same features."""
    start, _, feature, _, threshold, left, missing_right, _ = trees
    major_right = gaps[0]
    for i in range(rows.size):
        for e in range(learners.size):
            at = PLACE(start[learners[e]])
            while left[at] != at:
                f = PLACE(feature[at])
                for w in range(needs.shape[1]):
                    bought[i, w] |= needs[f, w]
                if seen[f]:
                    at = PLACE(left[at] + _right(X[rows[i], f], threshold[at], missing_right[at]))
                else:
                    at = PLACE(left[at] + major_right[at])


@compiled
def count_visits(X, trees, visits):
    """Count the rows that come to each place of the table."""
    start, _, feature, _, threshold, left, missing_right, _ = trees
    for r in range(X.shape[0]):
        for t in range(start.size):
            at = PLACE(start[t])
            visits[at] += 1
            while left[at] != at:
                at = PLACE(left[at] + _right(X[r, PLACE(feature[at])], threshold[at], missing_right[at]))
                visits[at] += 1


@compiled
def spread_of_unknowns(x, seen, trees, gaps, shares, learners, pointer, output, weight, variance, deviation):
    """How far the score of a row may move by each feature that it does not know (features × outputs).

    At each unknown split on the row's way a tree's value has a variance: that of its two sides' means. `variance` adds
    these up as if trees were independent, `deviation` adds their square roots as if they all moved together.
    """
    start, _, feature, _, threshold, left, missing_right, _ = trees
    major_right, mean = gaps
    for e in range(learners.size):
        at = PLACE(start[learners[e]])
        while left[at] != at:
            f = PLACE(feature[at])
            if seen[f]:
                at = PLACE(left[at] + _right(x[f], threshold[at], missing_right[at]))
                continue
            child = PLACE(left[at])
            apart = np.sqrt(shares[at] * (1.0 - shares[at])) * abs(mean[child + PLACE(1)] - mean[child])
            for j in range(pointer[e], pointer[e + 1]):
                d = abs(weight[j]) * apart
                variance[f, output[j]] += d * d
                deviation[f, output[j]] += d
            at = PLACE(child + major_right[at])

"""Small regression trees on coarse bins, grown best first: the rules by which rows stop or go on."""

import numpy as np

from miserly.kernels.compiling import compiled


@compiled
def grow_gate(codes, n_bins, target, weight, rows, most_leaves, least_rows, shrink):
    """A tree for the target of some rows of `codes` (rows × columns, bins below `n_bins`), each as many as its weight.

    Returns for each node the column (-1 in a leaf), the last bin that goes left, the left child (the right one is the
    next), and the value: the mean of its rows, moved towards the parent's as if `shrink` rows more had that value.
    """
    n_columns = codes.shape[1]
    most = max(1, 2 * most_leaves - 1)
    column, cut, left = np.full(most, -1, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    value, gain = np.zeros(most), np.zeros(most)
    first, last = np.zeros(most, np.int64), np.zeros(most, np.int64)
    best_column, best_cut = np.zeros(most, np.int64), np.zeros(most, np.int64)
    members, moved = rows.copy(), np.empty_like(rows)
    counts, sums = np.zeros((n_columns, n_bins)), np.zeros((n_columns, n_bins))
    total, n = _sums(target, weight, rows)
    value[0] = total / n if rows.size else 0.0
    last[0] = rows.size
    gain[0], best_column[0], best_cut[0] = _best_split(codes, target, weight, members, least_rows, counts, sums)
    n_nodes = 1
    while n_nodes + 1 < most:
        at = -1
        for k in range(n_nodes):
            if column[k] < 0 and gain[k] > 0 and (at < 0 or gain[k] > gain[at]):
                at = k
        if at < 0:
            break
        column[at], cut[at], left[at] = best_column[at], best_cut[at], n_nodes
        middle = _divide(codes[:, column[at]], cut[at], members[first[at] : last[at]], moved) + first[at]
        for begin, end in ((first[at], middle), (middle, last[at])):
            k = n_nodes
            first[k], last[k] = begin, end
            part = members[begin:end]
            total, n = _sums(target, weight, part)
            value[k] = (total + shrink * value[at]) / (n + shrink)
            gain[k], best_column[k], best_cut[k] = _best_split(codes, target, weight, part, least_rows, counts, sums)
            n_nodes += 1
    return column[:n_nodes], cut[:n_nodes], left[:n_nodes], value[:n_nodes]


@compiled
def _divide(codes, cut, members, moved):
    """Put the rows that go left before the others, in their order; returns how many they are."""
    n_left = n_right = 0
    for i in members:
        if codes[i] <= cut:
            members[n_left] = i
            n_left += 1
        else:
            moved[n_right] = i
            n_right += 1
    members[n_left:] = moved[:n_right]
    return n_left


@compiled
def _sums(target, weight, rows):
    """The weighted sum of the target of some rows, and the sum of their weights."""
    total = n = 0.0
    for i in rows:
        total += weight[i] * target[i]
        n += weight[i]
    return total, n


@compiled
def _best_split(codes, target, weight, members, least_rows, counts, sums):
    """The gain, the column and the cut of the split that explains most; a gain of 0 where there is none."""
    n_columns, n_bins = counts.shape
    _, n = _sums(target, weight, members)
    if n < 2 * least_rows:
        return 0.0, -1, 0
    mean = 0.0
    for i in members:
        mean += weight[i] * target[i] / n
    counts[:], sums[:] = 0.0, 0.0
    for i in members:
        centred = weight[i] * (target[i] - mean)
        for j in range(n_columns):
            counts[j, codes[i, j]] += weight[i]
            sums[j, codes[i, j]] += centred
    best, column, cut = 1e-12 * n, -1, 0
    for j in range(n_columns):
        n_left, sum_left = 0.0, 0.0
        for b in range(n_bins - 1):
            n_left += counts[j, b]
            sum_left += sums[j, b]
            n_right = n - n_left
            if n_left >= least_rows and n_right >= least_rows:
                found = sum_left * sum_left * (1.0 / n_left + 1.0 / n_right)
                if found > best:
                    best, column, cut = found, j, b
    return (best if column >= 0 else 0.0), column, cut


@compiled
def gate_values(codes, column, cut, left, value, out):
    """Write the tree's value for each row."""
    for i in range(codes.shape[0]):
        at = 0
        while column[at] >= 0:
            at = left[at] + (1 if codes[i, column[at]] > cut[at] else 0)
        out[i] = value[at]

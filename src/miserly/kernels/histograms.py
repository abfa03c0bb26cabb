"""Counting, split search and partition: the loops of the tree grower.

A row's quantised gradient and a count share one int64 (`gradient << 24 | 1`), so a histogram update is one integer
add and sums do not depend on the order of adding. Bin 255 holds missing values. Row ids are unsigned 32-bit: signed
ones cost a wrap-around test on every access.
"""

import numpy as np
from numba import njit, prange

COUNT_BITS = 24
COUNT_MASK = (1 << COUNT_BITS) - 1
N_BINS = 256
MISSING = 255


@njit(cache=True, nogil=True)
def pack(gradient, scale, packed):
    """Quantise gradients to integers, each packed with a count of one."""
    for i in range(gradient.size):
        packed[i] = (np.int64(np.rint(gradient[i] * scale)) << COUNT_BITS) + 1


@njit(cache=True, nogil=True, parallel=True)
def count_all(bins, packed, features, out):
    """Histograms of the root: every row, in order, four features per pass."""
    n_features = features.size
    n_rows = packed.size
    out[:] = 0
    for block in prange((n_features + 3) // 4):
        j = block * 4
        if j + 4 <= n_features:
            b0, b1, b2, b3 = bins[features[j]], bins[features[j + 1]], bins[features[j + 2]], bins[features[j + 3]]
            h0, h1, h2, h3 = out[j], out[j + 1], out[j + 2], out[j + 3]
            for i in range(n_rows):
                g = packed[i]
                h0[b0[i]] += g
                h1[b1[i]] += g
                h2[b2[i]] += g
                h3[b3[i]] += g
        else:
            for k in range(j, n_features):
                b = bins[features[k]]
                h = out[k]
                for i in range(n_rows):
                    h[b[i]] += packed[i]


@njit(cache=True, nogil=True, parallel=True)
def count_rows(bins, rows, packed, features, out):
    """Histograms of one node: its rows and their gradients (in the order of the rows), four features per pass."""
    n_features = features.size
    n_rows = rows.size
    out[:] = 0
    for block in prange((n_features + 3) // 4):
        j = block * 4
        if j + 4 <= n_features:
            b0, b1, b2, b3 = bins[features[j]], bins[features[j + 1]], bins[features[j + 2]], bins[features[j + 3]]
            h0, h1, h2, h3 = out[j], out[j + 1], out[j + 2], out[j + 3]
            for i in range(n_rows):
                r = rows[i]
                g = packed[i]
                h0[b0[r]] += g
                h1[b1[r]] += g
                h2[b2[r]] += g
                h3[b3[r]] += g
        else:
            for k in range(j, n_features):
                b = bins[features[k]]
                h = out[k]
                for i in range(n_rows):
                    h[b[rows[i]]] += packed[i]


@njit(cache=True, nogil=True, parallel=True)
def subtract(parent, of_parent, child, of_child, out):
    """Histograms of the other child: line by line the parent's less the counted child's."""
    for k in prange(of_parent.size):
        p = parent[of_parent[k]]
        c = child[of_child[k]]
        for b in range(N_BINS):
            out[k, b] = p[b] - c[b]


@njit(cache=True, nogil=True, inline="always")
def _scan(histogram, start, last, total, min_rows):
    """Best cut of one histogram, given what already lies on the left: n times its gain, and its bin (-1: none).

    With n = n_L + n_R, G_L²/n_L + G_R²/n_R − G²/n = (n·G_L − n_L·G)² / (n·n_L·n_R); the bracket is exact in int64.
    """
    n = total & COUNT_MASK
    g = total >> COUNT_BITS
    best = -1.0
    best_bin = -1
    left = start
    for b in range(last):
        cell = histogram[b]
        if cell == 0:
            continue
        left += cell
        n_left = left & COUNT_MASK
        n_right = n - n_left
        if n_left < min_rows:
            continue
        if n_right < min_rows:
            break
        spread = float(n * (left >> COUNT_BITS) - n_left * g)
        gain = spread * spread / (float(n_left) * float(n_right))
        if gain > best:
            best = gain
            best_bin = b
    return best, best_bin


@njit(cache=True, nogil=True, parallel=True)
def best_splits(histograms, features, n_bins, total, min_rows, scale, gains, cuts, missing_right):
    """Best raw gain of each feature in one node, where it cuts, and on which side missing values go.

    Where a node has no missing values they are sent to the larger side; ties take the lower bin, missing left.
    """
    n = total & COUNT_MASK
    for k in prange(features.size):
        f = features[k]
        h = histograms[k]
        absent = h[MISSING]
        if absent == 0:
            best, cut = _scan(h, np.int64(0), n_bins[f] - 1, total, min_rows)
            right = False
            if cut >= 0:
                left = np.int64(0)
                for b in range(cut + 1):
                    left += h[b]
                right = 2 * (left & COUNT_MASK) < n
        else:
            best, cut = _scan(h, absent, n_bins[f] - 1, total, min_rows)
            best_right, cut_right = _scan(h, np.int64(0), n_bins[f], total, min_rows)
            right = best_right > best
            if right:
                best, cut = best_right, cut_right
        gains[f] = best * scale / n if cut >= 0 else -np.inf
        cuts[f] = cut
        missing_right[f] = right


@njit(cache=True, nogil=True)
def partition(column, rows, packed, cut, missing_right, spare_rows, spare_packed):
    """Reorder a node's rows (and gradients) in place, left child first, each side in its old order.

    Returns the packed sum and the sum of squared quantised gradients of the left child, and its number of rows.
    """
    n_left = 0
    n_right = 0
    total = np.int64(0)
    squares = np.int64(0)
    for i in range(rows.size):
        r = rows[i]
        g = packed[i]
        b = column[r]
        go_right = missing_right if b == MISSING else b > cut
        if go_right:
            spare_rows[n_right] = r
            spare_packed[n_right] = g
            n_right += 1
        else:
            rows[n_left] = r
            packed[n_left] = g
            n_left += 1
            total += g
            q = g >> COUNT_BITS
            squares += q * q
    for i in range(n_right):
        rows[n_left + i] = spare_rows[i]
        packed[n_left + i] = spare_packed[i]
    return n_left, total, squares


@njit(cache=True, nogil=True)
def sum_packed(packed):
    """Packed sum and sum of squared quantised gradients of all rows."""
    total = np.int64(0)
    squares = np.int64(0)
    for i in range(packed.size):
        total += packed[i]
        q = packed[i] >> COUNT_BITS
        squares += q * q
    return total, squares


@njit(cache=True, nogil=True)
def fixed_sum(values, rows, scale):
    """Sum of some rows' values as integers (fixed point): the same for any order of the rows."""
    total = np.int64(0)
    for i in range(rows.size):
        total += np.int64(np.rint(values[rows[i]] * scale))
    return total


@njit(cache=True, nogil=True)
def add_at(scores, rows, value):
    """Add a leaf's value to the scores of its rows."""
    for i in range(rows.size):
        scores[rows[i]] += value

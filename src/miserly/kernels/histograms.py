"""Counting, split search and partition: the loops of the tree grower.

A row's quantised gradient and a count share one int64 (`gradient << 24 | 1`), so a histogram update is one integer
add and sums do not depend on the order of adding. The bins of eight features lie together in one 64-bit word per row
(a tile): one load serves eight updates, and a node with few rows touches few cache lines. Bin 255 holds missing
values. Row ids are unsigned 32-bit: signed ones cost a wrap-around test on every access.
"""

import numpy as np
from llvmlite import ir
from numba import prange, types
from numba.core import cgutils
from numba.extending import intrinsic

from miserly.kernels.compiling import compiled, inner

COUNT_BITS = 24  # rows up to 16.7 million; the other 40 bits hold the sum of gradients
COUNT_MASK = (1 << COUNT_BITS) - 1
N_BINS = 256  # the values of a byte
MISSING = 255  # the last byte
LANES = 8  # bytes of a word
BYTE = np.uint64(255)
FEW_LANES = 3  # up to this many features of a tile are counted one by one: three passes cost less than a whole tile
AHEAD = 40  # rows: at 0.4 ns per update and eight updates a row, as long as memory takes to answer
DENSE = 3  # every third row or more: the processor guesses what is read next
TINY = 1e-300  # no division by zero where a side is empty
NEAR_HALF = 1e-6  # of a quantum: closer to a half, rounding errors would decide
MOST_WHOLE = 2.0**40  # whole numbers of this size leave bits for a remainder


@intrinsic
def prefetch(typing_context, array, index):
    """Ask for a cache line that will be read soon: a sparse set of rows is too irregular for the processor to guess."""

    def generate(context, builder, signature, arguments):
        kind, kind_of_index = signature.args
        data = context.make_array(kind)(context, builder, arguments[0])
        place = context.cast(builder, arguments[1], kind_of_index, types.intp)
        pointer = cgutils.get_item_pointer(context, builder, kind, data, [place], wraparound=False)
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        )
        to_read, keep_close, is_data = number(0), number(3), number(1)
        builder.call(function, [builder.bitcast(pointer, byte), to_read, keep_close, is_data])
        return context.get_dummy_value()

    return types.void(array, index), generate


@inner
def pack(gradient, scale, packed):
    """Quantise gradients to integers, each packed with a count of one."""
    for i in range(gradient.size):
        packed[i] = (np.int64(np.rint(gradient[i] * scale)) << COUNT_BITS) + 1


@inner
def pack_difference(y, score, scale, packed):
    """The same for the gradient y − score, as the difference of two whole numbers: a score that rises by k quanta takes
    k from it. Returns whether that is so for every row: none may lie where rounding errors decide."""
    exact = True
    for i in range(y.size):
        s = score[i] * scale
        whole = np.rint(s)
        packed[i] = (np.int64(np.rint(y[i] * scale) - whole) << COUNT_BITS) + 1
        exact &= abs(s - whole) < 0.5 - NEAR_HALF and abs(s) < MOST_WHOLE
    return exact


@compiled(inline="always")
def add_row(h, word, g):
    """Add a row's packed gradient to the bins of its eight features."""
    h[0, word & BYTE] += g
    h[1, (word >> np.uint64(8)) & BYTE] += g
    h[2, (word >> np.uint64(16)) & BYTE] += g
    h[3, (word >> np.uint64(24)) & BYTE] += g
    h[4, (word >> np.uint64(32)) & BYTE] += g
    h[5, (word >> np.uint64(40)) & BYTE] += g
    h[6, (word >> np.uint64(48)) & BYTE] += g
    h[7, word >> np.uint64(56)] += g


@compiled
def _tiles(features):
    """Where each tile's features begin in a sorted list of features, and the list's end."""
    first = np.empty(features.size + 1, np.int64)
    n_tiles = 0
    for k in range(features.size):
        if k == 0 or features[k] // LANES != features[k - 1] // LANES:
            first[n_tiles] = k
            n_tiles += 1
    first[n_tiles] = features.size
    return first[: n_tiles + 1]


@compiled(parallel=True)
def count_all(words, packed, features, out):
    """Histograms of the root for a sorted list of features: every row, in order, a tile per pass."""
    first = _tiles(features)
    for tile in prange(first.size - 1):
        column = words[features[first[tile]] // LANES]
        n_lanes = first[tile + 1] - first[tile]
        if n_lanes <= FEW_LANES:
            for k in range(first[tile], first[tile + 1]):
                shift = np.uint64(8 * (features[k] % LANES))
                h1 = out[k]
                h1[:] = 0
                for i in range(packed.size):
                    h1[(column[i] >> shift) & BYTE] += packed[i]
        else:
            h = np.zeros((LANES, N_BINS), np.int64)
            for i in range(packed.size):
                add_row(h, column[i], packed[i])
            for k in range(first[tile], first[tile + 1]):
                out[k] = h[features[k] % LANES]


@compiled(parallel=True)
def count_rows(words, rows, packed, features, out):
    """Histograms of one node: its rows and their gradients (in the order of the rows), a tile per pass."""
    first = _tiles(features)
    n = rows.size
    for tile in prange(first.size - 1):
        column = words[features[first[tile]] // LANES]
        n_lanes = first[tile + 1] - first[tile]
        if n_lanes <= FEW_LANES:
            for k in range(first[tile], first[tile + 1]):
                shift = np.uint64(8 * (features[k] % LANES))
                h1 = out[k]
                h1[:] = 0
                for i in range(n):
                    h1[(column[rows[i]] >> shift) & BYTE] += packed[i]
        else:
            h = np.zeros((LANES, N_BINS), np.int64)
            if DENSE * n >= column.size:
                for i in range(n):
                    add_row(h, column[rows[i]], packed[i])
            else:
                for i in range(n - AHEAD):
                    prefetch(column, rows[i + AHEAD])  # type: ignore[call-arg]
                    add_row(h, column[rows[i]], packed[i])
                for i in range(max(0, n - AHEAD), n):
                    add_row(h, column[rows[i]], packed[i])
            for k in range(first[tile], first[tile + 1]):
                out[k] = h[features[k] % LANES]


@compiled(parallel=True)
def subtract(parent, of_parent, child, of_child, out):
    """Histograms of the other child: line by line the parent's less the counted child's."""
    for k in prange(of_parent.size):
        p = parent[of_parent[k]]
        c = child[of_child[k]]
        for b in range(N_BINS):
            out[k, b] = p[b] - c[b]


@compiled(parallel=True)
def shift(histograms, counted, of_counted, by):
    """Take `by` quanta from the gradient of every row that other histograms count (line by line, some of the rows)."""
    step = np.int64(by) << COUNT_BITS
    for k in prange(of_counted.size):
        shifted = histograms[k]
        c = counted[of_counted[k]]
        for b in range(N_BINS):
            shifted[b] -= (c[b] & COUNT_MASK) * step


@compiled(inline="always")
def _scan(histogram, start, last, total, min_rows, sums, gain):
    """Best cut of one histogram, given what already lies on the left: n times its gain, and its bin (-1: none).

    With n = n_L + n_R, G_L²/n_L + G_R²/n_R − G²/n = (n·G_L − n_L·G)² / (n·n_L·n_R); the bracket is exact in int64.
    Short loops over the bins, so that all but the sums is done on vectors: gains are not negative, so that they are in
    the order of their bits, and the greatest of integers needs no care for NaN.
    """
    n = total & COUNT_MASK
    g = total >> COUNT_BITS
    left = start
    for b in range(last):
        left += histogram[b]
        sums[b] = left
    for b in range(last):
        n_left = sums[b] & COUNT_MASK
        contrast, rows = float(n * (sums[b] >> COUNT_BITS) - n_left * g), float(n_left)
        gain[b] = contrast * contrast / (rows * (float(n) - rows) + TINY)
    least, most = max(min_rows, (start & COUNT_MASK) + 1), n - min_rows
    first = 0
    while first < last and (sums[first] & COUNT_MASK) < least:
        first += 1
    while last > first and (sums[last - 1] & COUNT_MASK) > most:
        last -= 1
    if first == last:
        return -1.0, -1
    bits, best = gain.view(np.int64), np.int64(-1)
    for b in range(first, last):
        best = max(best, bits[b])
    while bits[first] != best:
        first += 1
    return gain[first], first


@inner
def search_histogram(h, n_bins, total, min_rows, scale, work):
    """Best raw gain of one feature in one node, where it cuts, and whether missing values go right.

    Where a node has no missing values they are sent to the larger side; ties take the lower bin, missing left.
    """
    n = total & COUNT_MASK
    absent = h[MISSING]
    best, cut, right = -1.0, -1, False
    sums = work[0].view(np.int64)
    for side in range(1 if absent == 0 else 2):
        start, last = (absent, n_bins - 1) if side == 0 else (np.int64(0), n_bins)
        best_here, cut_here = _scan(h, start, last, total, min_rows, sums, work[1])
        if best_here > best:
            best, cut, right = best_here, cut_here, side == 1
    if absent == 0 and cut >= 0:
        right = 2 * (sums[cut] & COUNT_MASK) < n
    gain = best * scale / n if cut >= 0 else -np.inf
    return gain, cut, right


@compiled(parallel=True)
def best_splits(histograms, features, n_bins, total, min_rows, scale, gains, cuts, missing_right):
    """Best raw gain of each feature in one node, where it cuts, and on which side missing values go.

    Where a node has no missing values they are sent to the larger side; ties take the lower bin, missing left.
    """
    for k in prange(features.size):
        f = features[k]
        work = np.empty((2, N_BINS))
        gains[f], cuts[f], missing_right[f] = search_histogram(histograms[k], n_bins[f], total, min_rows, scale, work)


@compiled(inline="always")
def _scan_lanes(lanes, n_gradients, start, last, totals, total_weight, min_rows, gain):
    """The same for several gradients, and weights other than one in the last lane: W times the summed gain."""
    n = totals[0] & COUNT_MASK
    weighted = lanes.shape[0] > n_gradients
    of_weights = n_gradients if weighted else 0
    gain[:last] = 0.0
    for lane in range(n_gradients):
        shift = COUNT_BITS if lane == 0 else 0
        g = float(totals[lane] >> shift)
        left, weight = start[lane], start[of_weights]
        for b in range(last):
            left += lanes[lane, b]
            weight += lanes[of_weights, b]
            w = float(weight) if weighted else float(weight & COUNT_MASK)
            contrast = total_weight * float(left >> shift) - w * g
            gain[b] += contrast * contrast / (w * (total_weight - w) + TINY)
    best = -1.0
    best_bin = -1
    left = start[0]
    for b in range(last):
        left += lanes[0, b]
        n_left = left & COUNT_MASK
        if gain[b] > best and n_left >= max(min_rows, (start[0] & COUNT_MASK) + 1) and n_left <= n - min_rows:
            best = gain[b]
            best_bin = b
    return best, best_bin


@compiled(parallel=True)
def best_splits_of_lanes(
    histograms, n_gradients, features, n_bins, totals, min_rows, scale, gains, cuts, missing_right
):
    """`best_splits` where a row has several gradients (lane × feature × bin, one lane each, the first with the counts),
    or a weight (one more lane, the last)."""
    n_lanes = histograms.shape[0]
    n = totals[0] & COUNT_MASK
    total_weight = float(totals[-1]) if n_lanes > n_gradients else float(n)
    for k in prange(features.size):
        f = features[k]
        h = histograms[:, k]
        gain = np.empty(N_BINS)
        absent = h[:, MISSING].copy()
        none = np.zeros(n_lanes, np.int64)
        if absent[0] == 0:
            best, cut = _scan_lanes(h, n_gradients, none, n_bins[f] - 1, totals, total_weight, min_rows, gain)
            left = np.int64(0)
            for b in range(cut + 1):
                left += h[0, b]
            right = 2 * (left & COUNT_MASK) < n and cut >= 0
        else:
            best, cut = _scan_lanes(h, n_gradients, absent, n_bins[f] - 1, totals, total_weight, min_rows, gain)
            best_right, cut_right = _scan_lanes(h, n_gradients, none, n_bins[f], totals, total_weight, min_rows, gain)
            right = best_right > best
            if right:
                best, cut = best_right, cut_right
        gains[f] = best * scale / total_weight if cut >= 0 else -np.inf
        cuts[f] = cut
        missing_right[f] = right


@compiled
def best_net(gains, prices, least, bound):
    """The best gain less price of the features that gain more than `least` and cost less than `bound`, and which."""
    best = -np.inf
    feature = 0
    for f in range(gains.size):
        if gains[f] > least and prices[f] < bound and gains[f] - prices[f] > best:
            best = gains[f] - prices[f]
            feature = f
    return best, feature


@inner
def partition(column, lane, rows, packed, cut, missing_right, spare_rows, spare_packed):
    """Reorder a node's rows (and gradients) in place, left child first, each side in its old order.

    Every row is written to both sides and only one side moves on: no branch to mispredict. Returns the left child's
    number of rows, packed sum, and sum of squared quantised gradients.
    """
    n_left = np.uint64(0)
    n_right = np.uint64(0)
    total = np.int64(0)
    squares = np.int64(0)
    shift = np.uint64(8 * lane)
    for i in range(rows.size):
        r = rows[i]
        g = packed[i]
        b = np.int64((column[r] >> shift) & BYTE)
        right = np.int64(missing_right) if b == MISSING else np.int64(b > cut)
        left = 1 - right
        rows[n_left] = r
        packed[n_left] = g
        spare_rows[n_right] = r
        spare_packed[n_right] = g
        n_left += np.uint64(left)
        n_right += np.uint64(right)
        total += g * left
        q = (g >> COUNT_BITS) * left
        squares += q * q
    for i in range(n_right):
        rows[n_left + i] = spare_rows[i]
        packed[n_left + i] = spare_packed[i]
    return np.int64(n_left), total, squares


@inner
def sum_packed(packed):
    """Packed sum and sum of squared quantised gradients of all rows."""
    total = np.int64(0)
    squares = np.int64(0)
    for i in range(packed.size):
        total += packed[i]
        q = packed[i] >> COUNT_BITS
        squares += q * q
    return total, squares


@compiled
def sum_lanes(lanes, n_gradients, rows, sums):
    """Sum of each lane over some rows, and the sum of squared gradients, each divided by the row's weight.

    The first lane is packed; rows of weight zero, and rows left out (packed zero), have no gradient.
    """
    sums[:] = 0
    squares = 0.0
    for i in range(rows.size):
        r = rows[i]
        square = 0.0
        for lane in range(lanes.shape[0]):
            v = lanes[lane, r]
            sums[lane] += v
            if lane < n_gradients:
                q = float(v >> COUNT_BITS if lane == 0 else v)
                square += q * q
        if square > 0.0:
            squares += square / lanes[-1, r] if n_gradients < lanes.shape[0] else square
    return squares


@compiled
def fixed_sum(values, rows, scale):
    """Sum of some rows' values as integers (fixed point): the same for any order of the rows."""
    total = np.int64(0)
    for i in range(rows.size):
        total += np.int64(np.rint(values[rows[i]] * scale))
    return total


@compiled
def add_at(scores, rows, value):
    """Add a leaf's value to the scores of its rows."""
    for i in range(rows.size):
        scores[rows[i]] += value


# ---- the same loops as calls from Python, for trees that are grown split by split ------------------------------------


@compiled
def pack_gradients(gradient, scale, packed):
    """`pack` from Python."""
    pack(gradient, scale, packed)


@compiled
def pack_differences(y, score, scale, packed):
    """`pack_difference` from Python."""
    return pack_difference(y, score, scale, packed)


@compiled
def partition_rows(column, lane, rows, packed, cut, missing_right, spare_rows, spare_packed):
    """`partition` from Python."""
    return partition(column, lane, rows, packed, cut, missing_right, spare_rows, spare_packed)


@compiled
def sum_all_packed(packed):
    """`sum_packed` from Python."""
    return sum_packed(packed)

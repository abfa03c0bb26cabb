"""The two ends of a tree: gradients to integers, and leaves to values that are added to scores."""

import math

import numpy as np

from miserly.kernels.compiling import inner
from miserly.kernels.histograms import COUNT_BITS, COUNT_MASK, pack, pack_difference

SMALL = 1 << 38  # a whole number up to this, times 2²⁴ rows, fits an int64
MOST_GRADIENT_BITS = 23  # of a quantised gradient; more do not change trees
SUM_BITS = 38  # of a sum of gradients: 64 less the count lane, a sign, and one to spare
SMALLEST = 2.0**-950  # smaller gradients count as none: the scale of any larger one is a finite float
MOST_FIXED_BITS = 62  # of a fixed-point sum over all rows: an int64 less its sign, and one to spare
FEWEST_QUANTA = 256  # in the median of a tree's values, if they are rounded to quanta: changes one in 500 at most


@inner
def squared_error(total, squares):
    """The squared error of a node's gradients around their mean, in quanta; no split of the node can gain more.

    With G = n·q + r the gradients less q have a small sum r, so that nothing large is subtracted.
    """
    n = total & COUNT_MASK
    if n == 0:
        return 0.0
    g = total >> COUNT_BITS
    q = g // n
    r = g - n * q
    about_q = squares - q * (g + r)
    if about_q < SMALL:
        return float(about_q * n - r * r) / float(n)
    return float(about_q) - float(r * r) / float(n)


@inner
def gradient_scale(largest, row_bits, steady):
    """How many quanta a gradient of one is. Where only leaves move gradients it stays the same until the largest has
    fallen to a quarter: a power of four."""
    bits = min(MOST_GRADIENT_BITS, SUM_BITS - row_bits)
    if largest < SMALLEST:
        return 1.0
    if steady:
        mantissa, exponent = math.frexp(largest)
        above = exponent - 1 if mantissa == 0.5 else exponent
        return math.ldexp(1.0, bits - 2 * -(-above // 2))
    return float((1 << bits) - 1) / largest


@inner
def fixed_point_scale(largest, row_bits):
    """The power of two that turns values into integers whose sum over all rows still fits 62 bits."""
    if largest < SMALLEST:
        return 1.0
    return math.ldexp(1.0, MOST_FIXED_BITS - row_bits - math.frexp(largest)[1])


@inner
def largest(values):
    most = 0.0
    for i in range(values.size):
        most = max(most, abs(values[i]))
    return most


@inner
def begin_tree(y, scores, gradient, absent, steady, row_bits, rows, packed):
    """Quantise the gradients of one output and put the rows in their order; returns the scale, and whether a rise of a
    score takes just as much from its gradient."""
    scale = gradient_scale(largest(gradient), row_bits, steady)
    exact = True
    if steady:
        exact = pack_difference(y, scores, scale, packed)
    else:
        pack(gradient, scale, packed)
    for i in range(absent.size):
        if absent[i]:
            packed[i] = 0
    for i in range(rows.size):
        rows[i] = i
    return scale, exact


@inner
def write_table(splits, thresholds, feature, threshold, left, missing_right, value):
    """A tree as plans keep it: leaves point to themselves behind an infinite threshold."""
    for node in range(2 * splits.size + 1):
        feature[node] = 0
        threshold[node] = np.inf
        left[node] = node
        missing_right[node] = False
        value[node] = 0.0
    for split in splits:
        feature[split.node] = split.feature
        threshold[split.node] = thresholds[split.feature, split.cut]
        left[split.node] = split.left
        missing_right[split.node] = split.missing_right


@inner
def leaf_steps(left, nodes, rows, packed, gradient, hessian, row_bits, rate, l2, value):
    """One Newton step for each leaf, from fixed-point sums over its counted rows."""
    scale_g, scale_h = fixed_point_scale(largest(gradient), row_bits), fixed_point_scale(largest(hessian), row_bits)
    for number in range(left.size):
        if left[number] != number:
            continue
        sum_g = sum_h = np.int64(0)
        for i in range(nodes[number].first, nodes[number].last):
            if packed[i] != 0:
                sum_g += np.int64(np.rint(gradient[rows[i]] * scale_g))
                sum_h += np.int64(np.rint(hessian[rows[i]] * scale_h))
        g, h = sum_g / scale_g, sum_h / scale_h
        value[number] = rate * g / (h + l2) if h > 0.0 else 0.0


@inner
def round_to_quanta(left, scale, value, quanta):
    """Round leaf values to whole numbers of quanta, if half of them have so many that they hardly change by it."""
    n_leaves = 0
    for number in range(left.size):
        if left[number] == number:
            q = abs(value[number] * scale)
            at = n_leaves
            while at > 0 and quanta[at - 1] > q:
                quanta[at] = quanta[at - 1]
                at -= 1
            quanta[at] = q
            n_leaves += 1
    middle = n_leaves // 2
    median = quanta[middle] if n_leaves % 2 else (quanta[middle - 1] + quanta[middle]) / 2
    if median < FEWEST_QUANTA:
        return False
    for number in range(left.size):
        if left[number] == number:
            value[number] = np.rint(value[number] * scale) / scale
    return True


@inner
def add_leaves(left, nodes, rows, value, scores):
    for number in range(left.size):
        if left[number] == number:
            for i in range(nodes[number].first, nodes[number].last):
                scores[rows[i]] += value[number]

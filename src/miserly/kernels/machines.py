"""Evaluating kernel functions between rows and vectors: the learners of a compressed SVM.

Every evaluation is the same sequence of scalar operations, feature after feature, whether it is made for one row or in
a block of 64 (where 64 rows share the vector's registers): so one row and a batch give the same bits, which a matrix
product from a library would not. For the same reason the exponential is our own: plain arithmetic, which the compiler
may run for several rows at once without changing a bit.
"""

import numpy as np
from numba import prange

from miserly.kernels.compiling import compiled

BLOCK = 64  # rows whose kernel values are made together: a product of matrices, not of vectors
RBF, POLYNOMIAL, CHI2 = 0, 1, 2
LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
SHIFT = 6755399441055744.0  # 1.5 · 2⁵²: adding it rounds to a whole number, which then stands in the lowest bits
LEAST = -708.0  # below this the exponential is 0 here


@compiled
def _exponentials(z, out, bits):
    """e^z of each entry for z ≤ 0; `bits` are those of `out`, as integers."""
    for i in range(z.size):
        x = LEAST if z[i] < LEAST else z[i]
        shifted = x * LOG2_E + SHIFT
        whole = shifted - SHIFT
        r = (x - whole * LN2_HIGH) - whole * LN2_LOW
        p = 1.0 / 6227020800.0
        p = p * r + 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        p = p * r + 1.0
        z[i] = 0.0 if z[i] < LEAST else p
        out[i] = shifted
    for i in range(z.size):
        bits[i] = (bits[i] + 1023) << 52
    for i in range(z.size):
        out[i] = z[i] * out[i]


@compiled
def _finish(function, numbers, sums, out, bits):
    """From squared distances or products to values of the kernel."""
    if function != POLYNOMIAL:
        for i in range(sums.size):
            sums[i] = -numbers[0] * sums[i]
        _exponentials(sums, out, bits)
        return
    for i in range(sums.size):
        sums[i] = numbers[0] * sums[i] + numbers[1]
        out[i] = 1.0
    for _ in range(int(numbers[2])):
        for i in range(sums.size):
            out[i] *= sums[i]


@compiled
def _chi2(x, v):
    """(x − v)² / (x + v), 0 where both are zero; a value below zero counts as zero."""
    x = 0.0 if x < 0.0 else x
    total = x + v
    return 0.0 if total == 0.0 else (x - v) * (x - v) / total


@compiled
def _block_sums(lanes, vectors, four, function, sums):
    """Squared distances (or products) between four vectors and a block of rows, which lie in columns."""
    sums[:] = 0.0
    if function == CHI2:
        for f in range(lanes.shape[0]):
            for q in range(4):
                for i in range(BLOCK):
                    sums[q, i] += _chi2(lanes[f, i], vectors[four[q], f])
        return
    for f in range(lanes.shape[0]):
        v0, v1, v2, v3 = vectors[four[0], f], vectors[four[1], f], vectors[four[2], f], vectors[four[3], f]
        if function == RBF:
            for i in range(BLOCK):
                x = lanes[f, i]
                sums[0, i] += (x - v0) * (x - v0)
                sums[1, i] += (x - v1) * (x - v1)
                sums[2, i] += (x - v2) * (x - v2)
                sums[3, i] += (x - v3) * (x - v3)
        else:
            for i in range(BLOCK):
                x = lanes[f, i]
                sums[0, i] += x * v0
                sums[1, i] += x * v1
                sums[2, i] += x * v2
                sums[3, i] += x * v3


@compiled
def _alike(pointer, output, e, n_learners):
    """Whether four learners follow that are added to the same outputs."""
    size = pointer[e + 1] - pointer[e]
    for q in range(1, 4):
        if e + q >= n_learners or pointer[e + q + 1] - pointer[e + q] != size:
            return False
        for j in range(size):
            if output[pointer[e + q] + j] != output[pointer[e] + j]:
                return False
    return True


@compiled
def _add_four(pointer, output, weight, e, h, totals):
    """Add four learners to their outputs, one after the other, with each total fetched once."""
    for j in range(pointer[e + 1] - pointer[e]):
        k = output[pointer[e] + j]
        w0, w1 = weight[pointer[e] + j], weight[pointer[e + 1] + j]
        w2, w3 = weight[pointer[e + 2] + j], weight[pointer[e + 3] + j]
        for i in range(BLOCK):
            total = totals[k, i] + w0 * h[0, i]
            total += w1 * h[1, i]
            total += w2 * h[2, i]
            totals[k, i] = total + w3 * h[3, i]


@compiled(parallel=True)
def add_machines(X, rows, machine, learners, pointer, output, weight, keep, values, known, scores):
    """Add weighted kernel values to the scores of some rows.

    Learners with a place in `keep` serve several nodes: their value is computed once per row and kept in `values`.
    """
    columns, vectors, function, numbers = machine
    n = rows.size
    for block in prange((n + BLOCK - 1) // BLOCK):
        first = block * BLOCK
        size = min(BLOCK, n - first)
        lanes = np.zeros((columns.size, BLOCK))
        for i in range(size):
            r = rows[first + i]
            for f in range(columns.size):
                lanes[f, i] = X[r, columns[f]]
        totals = np.zeros((scores.shape[1], BLOCK))
        for k in range(scores.shape[1]):
            for i in range(size):
                totals[k, i] = scores[rows[first + i], k]
        four = np.empty(4, np.int64)
        sums, h = np.empty((4, BLOCK)), np.empty((4, BLOCK))
        flat_sums, flat_h, bits = sums.ravel(), h.ravel(), h.ravel().view(np.int64)
        for e in range(0, learners.size, 4):
            fresh = False
            for q in range(4):
                four[q] = learners[min(e + q, learners.size - 1)]
                place = keep[four[q]]
                fresh |= place < 0
                if place >= 0:
                    for i in range(size):
                        fresh |= not known[rows[first + i], place]
            if fresh:
                _block_sums(lanes, vectors, four, function, sums)
                _finish(function, numbers, flat_sums, flat_h, bits)
            for q in range(min(4, learners.size - e)):
                place = keep[four[q]]
                if place >= 0:
                    for i in range(size):
                        if fresh:
                            values[rows[first + i], place] = h[q, i]
                            known[rows[first + i], place] = True
                        else:
                            h[q, i] = values[rows[first + i], place]
            if _alike(pointer, output, e, learners.size):
                _add_four(pointer, output, weight, e, h, totals)
                continue
            for q in range(min(4, learners.size - e)):
                for j in range(pointer[e + q], pointer[e + q + 1]):
                    k, w = output[j], weight[j]
                    for i in range(BLOCK):
                        totals[k, i] += w * h[q, i]
        for k in range(scores.shape[1]):
            for i in range(size):
                scores[rows[first + i], k] = totals[k, i]


@compiled
def add_machines_to_row(x, machine, learners, pointer, output, weight, keep, values, known, score):
    """The same for one row, on the caller's thread; eight vectors at a time, so that their sums need not wait."""
    columns, vectors, function, numbers = machine
    picked = np.empty(columns.size)
    for f in range(columns.size):
        picked[f] = x[columns[f]]
    group = np.empty(8, np.int64)
    sums, h = np.empty(8), np.empty(8)
    bits = h.view(np.int64)
    for first in range(0, learners.size, 8):
        size = min(8, learners.size - first)
        fresh = False
        for i in range(8):
            group[i] = learners[first + min(i, size - 1)]
            fresh |= keep[group[i]] < 0 or not known[keep[group[i]]]
        if fresh:
            sums[:] = 0.0
            if function == RBF:
                for f in range(columns.size):
                    for i in range(8):
                        away = picked[f] - vectors[group[i], f]
                        sums[i] += away * away
            elif function == CHI2:
                for f in range(columns.size):
                    for i in range(8):
                        sums[i] += _chi2(picked[f], vectors[group[i], f])
            else:
                for f in range(columns.size):
                    for i in range(8):
                        sums[i] += picked[f] * vectors[group[i], f]
            _finish(function, numbers, sums, h, bits)
        for i in range(size):
            place = keep[group[i]]
            if place >= 0 and known[place]:
                h[i] = values[place]
            elif place >= 0:
                values[place] = h[i]
                known[place] = True
            for j in range(pointer[first + i], pointer[first + i + 1]):
                score[output[j]] += weight[j] * h[i]

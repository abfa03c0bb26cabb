"""From a column of numbers to bins: where to cut, and which bin a value falls in."""

import numpy as np

from miserly.kernels.compiling import compiled

MISSING = 255
U = np.uint64


@compiled
def _run_end(values, i):
    """Where the run of values equal to the i-th ends."""
    j = i + 1
    while j < values.size and values[j] == values[i]:
        j += 1
    return j


@compiled
def _more_than(values, n_distinct):
    """Whether there are more distinct values than this."""
    i = 0
    while i < values.size and n_distinct >= 0:
        i = _run_end(values, i)
        n_distinct -= 1
    return n_distinct < 0


@compiled
def _has_run(values, length):
    """Whether a value stands so many times."""
    found = False
    for i in range(values.size - length + 1):
        found |= values[i] == values[i + length - 1]
    return found


@compiled
def _bins_left(values, max_bins, heavy):
    """Bins left for light values once each heavy value has its own and light ones before it are cut off; light rows."""
    n_left = max_bins
    light = 0
    inside = False
    i = 0
    while i < values.size:
        j = _run_end(values, i)
        if j - i >= heavy:
            n_left -= 2 if inside else 1
            inside = False
        else:
            light += j - i
            inside = True
        i = j
    return n_left, light


@compiled
def find_cuts(values, max_bins, cuts):
    """Cut a sorted column into at most `max_bins` bins at its quantiles; returns how many cuts were made.

    A value goes left of a cut if it is not above it. Cuts lie half-way between distinct values; few distinct values
    get a bin each; a value heavier than the mean bin gets its own, as long as there are bins enough.
    """
    n = values.size
    heavy, n_left, light = 1, max_bins, n
    if _more_than(values, max_bins):
        heavy = -(-n // max_bins)
        if _has_run(values, heavy):
            n_left, light = _bins_left(values, max_bins, heavy)
        if n_left < 1:
            heavy, n_left, light = n + 1, max_bins, n
    some_heavy = heavy == 1 or light < n

    n_cuts = 0
    seen = 0
    passed = 0
    i = 0
    while i < n:
        if not some_heavy:
            i = seen = max(i, -(-(passed + 1) * n // n_left) - 1)
        j = _run_end(values, i)
        if j == n or n_cuts == max_bins - 1:
            break
        is_heavy = j - i >= heavy
        if not is_heavy:
            seen += j - i
        full = seen * n_left >= (passed + 1) * light
        if is_heavy or full or _run_end(values, j) - j >= heavy:
            middle = values[i] + (values[j] - values[i]) / 2
            cuts[n_cuts] = middle if middle < values[j] else values[i]
            n_cuts += 1
            passed = seen * n_left // light if light else 0
        i = j
    return n_cuts


@compiled
def encode(values, cuts, bins):
    """Bin of each value: the number of cuts below it, by a branchless search over cuts padded with infinity.

    An unsigned place needs no look whether it counts from the end.
    """
    for i in range(values.size):
        x = values[i]
        at = U(128) if cuts[127] < x else U(0)
        at += U(64) if cuts[at + U(63)] < x else U(0)
        at += U(32) if cuts[at + U(31)] < x else U(0)
        at += U(16) if cuts[at + U(15)] < x else U(0)
        at += U(8) if cuts[at + U(7)] < x else U(0)
        at += U(4) if cuts[at + U(3)] < x else U(0)
        at += U(2) if cuts[at + U(1)] < x else U(0)
        at += U(1) if cuts[at] < x else U(0)
        bins[i] = MISSING if x != x else at

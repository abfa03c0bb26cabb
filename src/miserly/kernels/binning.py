"""From a column of numbers to bins: where to cut, and which bin a value falls in."""

from numba import njit

MISSING = 255


@njit(cache=True, nogil=True)
def find_cuts(values, max_bins, cuts):
    """Cut a sorted column into at most `max_bins` bins of about equal weight; returns how many cuts were made.

    A value goes left of a cut if it is not above it. Cuts lie half-way between distinct values; few distinct values
    get a bin each; a value heavier than the mean bin gets its own.
    """
    n = values.size
    n_distinct = 1 if n else 0
    for i in range(1, n):
        n_distinct += values[i] != values[i - 1]
    room = max_bins
    light = n
    heavy = n + 1
    if n_distinct > max_bins:
        heavy = -(-n // max_bins)
        i = 0
        while i < n:
            j = i + 1
            while j < n and values[j] == values[i]:
                j += 1
            if j - i >= heavy:
                room -= 1
                light -= j - i
            i = j
    target = light / max(room, 1)
    if n_distinct <= max_bins:
        target = 0.0

    n_cuts = 0
    inside = 0
    i = 0
    while i < n and n_cuts < max_bins - 1:
        j = i + 1
        while j < n and values[j] == values[i]:
            j += 1
        if j == n:
            break
        inside += j - i
        following = j + 1
        while following < n and values[following] == values[j] and following - j < heavy:
            following += 1
        is_heavy = j - i >= heavy
        before_heavy = following - j >= heavy and inside >= target / 2
        if is_heavy or before_heavy or inside >= target:
            middle = values[i] + (values[j] - values[i]) / 2
            cuts[n_cuts] = middle if middle < values[j] else values[i]
            n_cuts += 1
            inside = 0
        i = j
    return n_cuts


@njit(cache=True, nogil=True)
def encode(values, cuts, bins):
    """Bin of each value: the number of cuts below it, by a branchless search over cuts padded with infinity."""
    for i in range(values.size):
        x = values[i]
        at = 0
        at += 128 if cuts[at + 127] < x else 0
        at += 64 if cuts[at + 63] < x else 0
        at += 32 if cuts[at + 31] < x else 0
        at += 16 if cuts[at + 15] < x else 0
        at += 8 if cuts[at + 7] < x else 0
        at += 4 if cuts[at + 3] < x else 0
        at += 2 if cuts[at + 1] < x else 0
        at += 1 if cuts[at] < x else 0
        bins[i] = MISSING if x != x else at

"""Fast-and-frugal trees by hand: rows are walked one by one, sensitivity and specificity are counted."""

from __future__ import annotations

from itertools import pairwise, permutations, product

import numpy as np


def walk(levels, x, missing_positive=False):
    """What a tree says of one row, and the features that it looks at."""
    asked = []
    for feature, threshold, above, leaves in levels:
        asked.append(feature)
        if np.isnan(x[feature]):
            if leaves == "both":
                return missing_positive, asked
            continue
        says = bool(x[feature] > threshold) == above
        if leaves == "both" or says == (leaves == "positive"):
            return says, asked
    raise AssertionError("the last level has both exits")


def wacc(said, y, w):
    """w · sensitivity + (1 − w) · specificity."""
    said, y = np.asarray(said), np.asarray(y)
    return w * np.mean(said[y]) + (1 - w) * np.mean(~said[~y])


def objective(levels, X, y, costs, tradeoff, w):
    """wacc less λ times what rows pay for the features that they look at."""
    best = -np.inf
    for missing_positive in (False, True):
        ways = [walk(levels, x, missing_positive) for x in X]
        paid = [costs.price_of({a for f in asked for a in costs.needs[costs.features[f]]}) for _, asked in ways]
        best = max(best, wacc([said for said, _ in ways], y, w) - tradeoff * float(np.mean(paid)))
    return best


def best_cue(x, y, w, fewest):
    """The threshold and side of the best single cue, with its wacc; missing rows are said to be negative."""
    found = []
    values = np.unique(x[~np.isnan(x)])
    for low, high in pairwise(values):
        if min(np.sum(x <= low), np.sum(x >= high)) < fewest:
            continue
        for above in (True, False):
            said = (x > low) if above else (x <= low)
            found.append((wacc(said & ~np.isnan(x), y, w), (low + high) / 2, above))
    return min(found, key=lambda cue: (-round(cue[0], 10), not cue[2], cue[1])) if found else None


def ifan(X, y, costs, tradeoff, w, max_levels, fewest):
    """The objective of the best tree: cues ranked by wacc less price, all exits, all numbers of levels."""
    cues = []
    for f in range(X.shape[1]):
        cue = best_cue(X[:, f], y, w, fewest)
        if cue is not None:
            price = costs.price_of(set(costs.needs[costs.features[f]]))
            cues.append((cue[0] - tradeoff * price, f, cue[1], cue[2]))
    cues = sorted(cues, key=lambda cue: (-round(cue[0], 10), cue[1]))[:max_levels]
    return _best_of([cues[:n] for n in range(1, len(cues) + 1)], X, y, costs, tradeoff, w)


def every_order(X, y, costs, tradeoff, w, max_levels, fewest):
    """The objective of the best tree over all orders of all cues, each with its best threshold over all rows."""
    cues = [(0.0, f, *cue[1:]) for f in range(X.shape[1]) if (cue := best_cue(X[:, f], y, w, fewest)) is not None]
    orders = [order for n in range(1, max_levels + 1) for order in permutations(cues, n)]
    return _best_of(orders, X, y, costs, tradeoff, w)


def _best_of(orders, X, y, costs, tradeoff, w):
    found = [max(w, 1 - w)]
    for order in orders:
        for exits in product(("positive", "negative"), repeat=len(order) - 1):
            levels = [(f, t, above, way) for (_, f, t, above), way in zip(order, (*exits, "both"))]
            found.append(objective(levels, X, y, costs, tradeoff, w))
    return max(found)

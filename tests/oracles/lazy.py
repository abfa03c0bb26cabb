"""A slow twin of lazy plans, written from their definition: bounds by recursion, one purchase after the other."""

from __future__ import annotations

import math

import numpy as np


def bounds(plan, x, known, place):
    """The least, largest and mean value of a tree from a place on."""
    trees = plan.dictionary
    if trees.is_leaf[place]:
        return (trees.value[place],) * 3
    left = int(trees.left[place])
    f = int(trees.feature[place])
    if f in known:
        v = x[f]
        right = v > trees.threshold[place] or (v != v and trees.missing_right[place])
        return bounds(plan, x, known, left + int(right))
    a, b = bounds(plan, x, known, left), bounds(plan, x, known, left + 1)
    share = 0.5 if plan.shares is None else plan.shares[place]
    return min(a[0], b[0]), max(a[1], b[1]), share * a[2] + (1 - share) * b[2]


def totals(plan, x, known):
    """For each output the least, the largest and the mean score, and the bounds of the trees."""
    node = plan.nodes[0]
    of_tree = [bounds(plan, x, known, int(plan.dictionary.start[t])) for t in node.learners]
    out = np.tile(node.bias, (3, 1)).astype(float)
    for (low, high, mean), weights in zip(of_tree, node.weights):
        for k, w in enumerate(weights):
            out[:, k] += [min(w * low, w * high), max(w * low, w * high), w * mean]
    return out, of_tree


def is_certain(plan, sums):
    """Whether every score between the bounds gives the same class."""
    node = plan.nodes[0]
    scale = np.ones(plan.n_outputs) if node.scale is None else node.scale
    low, high, mean = sums * scale
    if plan.n_outputs == 1:
        return low[0] > 1e-12 or high[0] < -1e-12
    top = int(np.argmax(mean))
    return all(low[top] > high[k] + 1e-12 for k in range(plan.n_outputs) if k != top)


def wanted(plan, x, known, place):
    """The first feature on a row's way that is not known."""
    trees = plan.dictionary
    while not trees.is_leaf[place]:
        f = int(trees.feature[place])
        if f not in known:
            return f
        v = x[f]
        place = int(trees.left[place]) + int(v > trees.threshold[place] or (v != v and trees.missing_right[place]))
    return None


def walk(plan, x):
    """What a row buys (the set of acquisitions) and its mean score at the end."""
    costs, owned = plan.costs, set()
    while True:
        known = {f for f, name in enumerate(costs.features) if set(costs.needs[name]) <= owned}
        sums, of_tree = totals(plan, x, known)
        if is_certain(plan, sums):
            return owned, sums[2]
        contending = _contending(plan, sums)
        worth = {}
        for t, (low, high, _), weights in zip(plan.nodes[0].learners, of_tree, plan.nodes[0].weights):
            width = sum(abs(w) * (high - low) for k, w in enumerate(weights) if k in contending)
            f = wanted(plan, x, known, int(plan.dictionary.start[t])) if width > 0 else None
            if f is not None:
                group = frozenset(costs.needs[costs.features[f]])
                worth[group] = worth.get(group, 0.0) + width
                if not plan.laziness.adaptive:
                    break
        if not worth:
            return owned, sums[2]

        prices = {group: sum(costs.prices[a] for a in group - owned) for group in worth}
        rates = {group: worth[group] / price if price else math.inf for group, price in prices.items()}
        owned |= max(rates, key=rates.get)


def _contending(plan, sums):
    if plan.n_outputs == 1:
        return {0}
    top = int(np.argmax(sums[2]))
    return {k for k in range(plan.n_outputs) if k == top or sums[1, k] + 1e-12 >= sums[0, top]}

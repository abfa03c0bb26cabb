"""Random policy plans, and a slow walk through one that follows the definition and knows no kernel."""

import math

import numpy as np

from miserly.costs import CostTable
from miserly.plan import Node, Policy, PolicyPlan, stack_trees


def shared_table():
    """Seven features: one free, two of one acquisition, one that needs two."""
    needs = {"f0": (), "f1": ("a",), "f2": ("a",), "f3": ("b",), "f4": ("a", "c"), "f5": ("d",), "f6": ("b", "d")}
    return CostTable(tuple(needs), needs, {"a": 1.0, "b": 2.5, "c": 0.3, "d": 4.1})


def random_tree(rng, n_features, low, high, depth=2):
    """A full tree whose missing values go either way."""
    n_inner = (1 << depth) - 1
    n = 2 * n_inner + 1
    places = np.arange(n)
    inner = places < n_inner
    return {
        "feature": np.where(inner, rng.integers(n_features, size=n), 0).astype(np.int32),
        "threshold": np.where(inner, rng.normal(size=n), np.inf),
        "left": np.where(inner, 2 * places + 1, places).astype(np.int32),
        "missing_right": inner & (rng.random(n) < 0.5),
        "value": np.where(inner, 0.0, rng.uniform(low, high, size=n)),
    }


def random_policy_plan(seed, n_classes=2, tradeoff=0.02, costs=None):
    """A policy over `shared_table`; `n_classes` 0 is for numbers."""
    rng = np.random.default_rng(seed)
    costs = shared_table() if costs is None else costs
    n_features = len(costs.features)
    n_outputs = 1 if n_classes in (0, 2) else n_classes
    link = "identity" if not n_classes else "logistic" if n_classes == 2 else "softmax"
    trees = [random_tree(rng, n_features, -1.0, 1.0) for _ in range(4 * n_outputs + n_features)]
    for f, tree in enumerate(trees[:n_features]):
        tree["feature"][0] = f  # all features are used
    dictionary = stack_trees(trees)
    weights = np.zeros((len(trees), n_outputs))
    weights[np.arange(len(trees)), np.arange(len(trees)) % n_outputs] = 1.0
    n_candidates = len({m for m in costs.feature_masks if m})
    lines = rng.integers(0, 3, size=3 * n_candidates)
    width = n_features + n_outputs + (link != "identity")
    values = [random_tree(rng, width, -0.05, 0.15) for _ in range(lines.sum())]
    policy = Policy(
        stack_trees(values),
        np.concatenate([[0], np.cumsum(lines)]),
        rng.uniform(0.0, 0.05, size=3 * n_candidates),
        rng.random(n_candidates) < 0.5,
        rng.integers(0, 3, size=n_features + 1),
        rng.uniform(0.5, 2.0, size=(3, n_outputs)),
        rng.normal(size=(3, n_outputs)),
        rng.random(n_features) < 0.5,
        tradeoff,
        radius=rng.uniform(0.0, 4.0, size=3),
    )
    node = Node(np.arange(len(trees)), weights, bias=rng.normal(size=n_outputs), outputs=tuple(range(n_outputs)))
    classes = np.arange(n_classes) if n_classes else None
    return PolicyPlan(costs, dictionary, (node,), rng.normal(size=n_outputs), link, classes, policy=policy)


def slow_walk(plan, row, budget=math.inf, known=(), unavailable=()):
    """Calibrated score, cost and purchases of one row."""
    policy, costs = plan.policy, plan.costs
    known, owned = set(known), set()
    while True:
        known |= {f for f in costs.features if owned.issuperset(costs.needs[f])}
        x = np.full(len(costs.features), np.nan)
        for j, f in enumerate(costs.features):
            if f in known:
                x[j] = -np.inf if np.isnan(row[j]) and policy.misses[j] else row[j]
        score = plan.prior + plan.nodes[0].bias
        for t in range(len(plan.dictionary)):
            score = score + plan.nodes[0].weights[t] * leaf(plan.dictionary, t, x)
        level = policy.level[len(known)]
        prior = plan.prior + plan.nodes[0].bias
        distance = np.abs(score - prior).max()
        if distance < policy.radius[level]:
            score = prior + (score - prior) * (distance / policy.radius[level]) ** 2
        z = score * policy.scale[level] + policy.offset[level]
        extended, most = x, math.inf
        if plan.classes is not None:
            p = plan.probabilities(z[None])[0]
            most = -sum(q * math.log(q) for q in p if q > 0)
            extended = np.concatenate([x, p[1:] if len(z) == 1 else p, [most]])
        else:
            extended = np.concatenate([x, z])
        best, best_rate = None, -1.0
        sets = sorted({costs.feature_masks[j] for j in range(len(row))} - {0})
        for c, mask in enumerate(sets):
            wanted = {a for i, a in enumerate(costs.acquisitions) if mask >> i & 1}
            new = [f for j, f in enumerate(costs.features) if costs.feature_masks[j] == mask and f not in known]
            if not new or (wanted - owned) & set(unavailable):
                continue
            total = math.fsum(costs.prices[a] for a in owned | wanted)
            price = sum(costs.prices[a] for a in costs.acquisitions if a in wanted - owned)
            rate = rate_of(policy, c, len(sets), extended, most, price)
            if total <= budget and rate >= policy.tradeoff and rate > best_rate:
                best, best_rate = wanted, rate
        if best is None:
            return z, math.fsum(costs.prices[a] for a in owned), owned
        owned |= best


def rate_of(policy, c, n, x, most, price):
    """The drop of loss per price, of one purchase or of two."""
    if not price > 0:
        return math.inf
    gain, both, second = (line(policy, k * n + c, x) for k in range(3))
    rate = min(most, max(0.0, gain)) / price
    return max(rate, min(most, max(0.0, both)) / (price + max(0.0, second))) if policy.ahead[c] else rate


def line(policy, number, x):
    return policy.bias[number] + sum(
        leaf(policy.values, t, x) for t in range(policy.first[number], policy.first[number + 1])
    )


def leaf(trees, t, x):
    """A tree's value for a row."""
    at = trees.start[t]
    while trees.left[at] != at:
        v = x[trees.feature[at]]
        right = trees.missing_right[at] if np.isnan(v) else v > trees.threshold[at]
        at = trees.left[at] + int(right)
    return trees.value[at]

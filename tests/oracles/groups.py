"""Sets with a known best cost: cheap signs say which one expensive column holds the target."""

import numpy as np

from miserly.costs import CostTable

SPACING = 10.0


def groups(n, n_groups, seed=0, shared=0.0):
    """`n_groups` (a power of two) of rows: log2 signs at 1, a reading for each group at 10.

    With a price for `shared`, all readings need one more acquisition. The best tree buys all signs and one reading.
    """
    rng = np.random.default_rng(seed)
    n_signs = int(np.log2(n_groups))
    signs = rng.integers(0, 2, size=(n, n_signs))
    group = signs @ (1 << np.arange(n_signs)[::-1])
    means = (np.arange(n_groups) - (n_groups - 1) / 2) * SPACING
    y = means[group] + rng.normal(size=n)
    readings = rng.normal(size=(n, n_groups)) + means
    readings[np.arange(n), group] = y
    names = [*(f"sign_{i}" for i in range(n_signs)), *(f"reading_{g}" for g in range(n_groups))]
    needs = {name: (name, "draw") if shared and name.startswith("reading") else (name,) for name in names}
    prices = {name: 1.0 if name.startswith("sign") else 10.0 for name in names} | ({"draw": shared} if shared else {})
    costs = CostTable(features=tuple(names), needs=needs, prices=prices)
    return np.hstack([2.0 * signs - 1.0, readings]), y, costs


def noisy_groups(n, n_groups, seed=0, noise=0.3, n_junk=4):
    """The same with noise on the signs, and cheap columns that say nothing."""
    X, y, costs = groups(n, n_groups, seed)
    rng = np.random.default_rng(seed + 1)
    n_signs = int(np.log2(n_groups))
    X[:, :n_signs] += noise * rng.normal(size=(n, n_signs))
    names = (*costs.features, *(f"junk_{j}" for j in range(n_junk)))
    priced = {name: 10.0 if name.startswith("reading") else 1.0 for name in names}
    return np.hstack([X, rng.normal(size=(n, n_junk))]), y, CostTable.per_feature(priced)


def best_cost(n_groups, shared=0.0):
    return np.log2(n_groups) + 10.0 + shared

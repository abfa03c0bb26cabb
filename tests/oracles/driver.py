"""Drivers of the walks, as an extractor service would be: they give what was asked for, and nothing else."""

from __future__ import annotations

import numpy as np


def gift(plan, x, owned, needs):
    """The features that these acquisitions make available to a row that owns others already."""
    after = set(owned) | set(needs)
    return {
        f: float(x[i])
        for i, f in enumerate(plan.costs.features)
        if set(plan.costs.needs[f]) <= after and not set(plan.costs.needs[f]) <= set(owned)
    }


def drive(plan, x, budget=None, lost=(), given=None):
    """One row from start to end; each acquisition is asked for once. Those `lost` cannot be had: with a budget this is
    told at once (else it could stop before a price that nobody would have to pay), without one when it is asked."""
    walk, owned = plan.start(budget, given, without=sorted(lost) if budget is not None else ()), set()
    while not walk.done:
        needs = set(walk.needs)
        assert needs
        assert not needs & owned, "an acquisition was asked for twice"
        if needs & set(lost):
            walk.fail(min(needs & set(lost)))
            continue
        values = gift(plan, x, owned, needs)
        owned |= needs
        walk.supply(values)
    assert set(walk.bought) == owned
    return walk


def drive_list(plan, X, budget=None, order=None):
    """The documents of one query; `order` (a random generator) chooses who is served next."""
    walks, owned = plan.start_list(len(X), budget), [set() for _ in X]
    while not walks.done:
        asking = walks.needs
        assert asking
        row = min(asking) if order is None else int(order.choice(sorted(asking)))
        needs = set(asking[row])
        assert not needs & owned[row]
        values = gift(plan, X[row], owned[row], needs)
        owned[row] |= needs
        walks.supply(row, values)
    return walks.walks


def assert_walk_is(walk, result, i):
    """A finished walk says what the batch says of row i."""
    best = walk.best
    np.testing.assert_array_equal(best.score, result.score[i])
    assert walk.cost == result.cost[i]
    assert walk.exit == result.exit[i].tolist()
    assert best.tier == result.tier[i]
    assert walk.stopped == ("budget" if result.out_of_budget[i] else "answered")
    plan, z = walk.plan, result.z[i : i + 1]
    np.testing.assert_array_equal(best.value, plan.read(z)[0])
    if plan.classes is not None:
        np.testing.assert_array_equal(best.probabilities, plan.probabilities(z)[0])

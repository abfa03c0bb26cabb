"""The next root from the last tree's nodes: the sums that counting all rows would give, and the same trees."""

import numpy as np
import pytest

from miserly.boosting import (
    Grower,
    LocalBackend,
    LogLoss,
    ModelPricing,
    RowPricing,
    Settings,
    SquaredLoss,
    TreeLimits,
    bin_data,
    boost,
)
from miserly.costs import CostTable

N_ROWS, N_FEATURES, N_TREES = 8000, 7, 25
COSTS = CostTable.per_feature({f"x{f}": 1.0 + f for f in range(N_FEATURES)})
FEATURES = np.arange(N_FEATURES, dtype=np.int32)


class Watched(LocalBackend):
    """Counts the features of roots that are counted, and how often a root is only updated."""

    n_counted = n_updated = 0

    def __init__(self, *given):
        super().__init__(*given)
        self.compiled = False

    def histograms(self, node, features):
        self.n_counted += len(features) if node == 0 else 0
        return super().histograms(node, features)

    def shifted(self, shifts, features):
        self.n_updated += 1
        return super().shifted(shifts, features)


class Recounting(Watched):
    """Never says how gradients change."""

    def leaf_shifts(self):
        return {}


def sample(seed=0):
    """Few values, many values, missing ones; the target depends on some of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    X[:, 6] = rng.integers(0, 3, N_ROWS)
    y = X[:, 0] ** 2 + np.where(X[:, 1] > 0, X[:, 6], X[:, 2]) + rng.normal(size=N_ROWS)
    X[rng.random(X.shape) < 0.1] = np.nan
    return bin_data(X, max_bins=63), y


def plain(result):
    return [{k: v.tolist() for k, v in t.items()} for this in result.rounds for t in this.tables]


@pytest.mark.parametrize("seed", range(3))
def test_an_updated_root_is_the_one_that_would_be_counted(seed):
    data, y = sample(seed)
    backend = LocalBackend(data, y, SquaredLoss())
    backend.start()
    grower = Grower(backend, ModelPricing(COSTS, 1e-3), TreeLimits(3))
    n_updated = 0
    for number in range(N_TREES):
        backend.gradients(number)
        updated = grower._updated_root() if number else None
        backend.begin()
        if updated is not None:
            counted = backend.histograms(0, FEATURES)[0]
            np.testing.assert_array_equal(updated.histograms, counted[updated.features])
            n_updated += 1
        tree = grower.grow()
        values = backend.round_to_quanta([0.1 * g / h for g, h in backend.leaf_sums(tree.leaves)[:, 0]])
        for leaf, value in zip(tree.leaves, values):
            backend.add(leaf, [value])
    assert n_updated > N_TREES / 2


@pytest.mark.parametrize(
    ("limits", "tradeoff", "by_path", "factor"),
    [
        (TreeLimits(3), 0.0, False, 1.0),
        (TreeLimits(3), 0.02, False, 1.0),
        (TreeLimits(3), 1e-3, True, 1.0),
        (TreeLimits(None, 8, 5), 1e-3, False, 1.0),
        (TreeLimits(1), 0.0, False, 1.0),
        (TreeLimits(2), 0.0, False, 1e100),
        (TreeLimits(2), 0.0, False, 1e-100),
    ],
)
def test_trees_are_the_same_if_every_root_is_counted(limits, tradeoff, by_path, factor):
    data, y = sample()
    found = []
    for kind in (Watched, Recounting):
        backend = kind(data, y * factor, SquaredLoss())
        pricing = RowPricing(COSTS, tradeoff, backend) if by_path else ModelPricing(COSTS, tradeoff)
        found.append((plain(boost(backend, pricing, Settings(N_TREES, 0.3, limits), 1)), backend))
    (trees, backend), (expected, other) = found
    assert trees == expected
    assert len(trees) == N_TREES
    assert other.n_updated == 0
    assert backend.n_updated > 0
    assert backend.n_counted < 0.7 * other.n_counted


@pytest.mark.parametrize("why", ["weights", "another loss", "rows drawn", "few rows"])
def test_otherwise_every_root_is_counted(why):
    """Where leaves are not all that moves gradients, and where it saves nothing."""
    data, y = sample()
    loss, weight, subsample = SquaredLoss(), None, 1.0
    if why == "weights":
        weight = np.where(y > 0, 2.0, 1.0)
    elif why == "another loss":
        y, loss = (y > 0).astype(float), LogLoss()
    elif why == "rows drawn":
        subsample = 0.5
    else:
        data, y = bin_data(np.random.default_rng(0).normal(size=(2000, N_FEATURES))), y[:2000]
    backend = Watched(data, y, loss, weight, subsample)
    boost(backend, ModelPricing(COSTS, 0.0), Settings(8), 1)
    assert backend.n_updated == 0
    assert backend.n_counted == 8 * N_FEATURES


def test_leaves_are_the_means_of_their_rows_but_for_a_hundredth_of_a_percent():
    """Leaves whose values are whole numbers of quanta: the rounding cannot be seen."""
    data, y = sample()
    backend = LocalBackend(data, y, SquaredLoss())
    backend.start()
    backend.gradients()
    tree = Grower(backend, ModelPricing(COSTS, 0.0), TreeLimits(3)).grow()
    means = np.array([g / h for g, h in backend.leaf_sums(tree.leaves)[:, 0]])
    rounded = np.array(backend.round_to_quanta(means))
    assert (rounded != means).any()
    np.testing.assert_allclose(rounded, means, rtol=1e-4)


def test_leaves_of_few_quanta_stay_as_they_are():
    """One target of ten million makes quanta larger than what is left to learn: nothing is rounded to them."""
    data, y = sample()
    backend = LocalBackend(data, np.where(np.arange(N_ROWS) == 5, 1e7, y), SquaredLoss())
    backend.start()
    backend.gradients()
    Grower(backend, ModelPricing(COSTS, 0.0), TreeLimits(3)).grow()
    values = [0.3, -0.1, 0.02, 1e5]
    assert backend.round_to_quanta(values) == values

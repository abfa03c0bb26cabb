"""Without prices the trees are LightGBM's: both get the residuals of our ensemble, round after round."""

import lightgbm
import numpy as np
import pytest

from miserly.boosting import LocalBackend, ModelPricing, Settings, SquaredLoss, TreeLimits, bin_data, boost
from miserly.costs import CostTable
from oracles.grower import Rows, goes_left, raw_gain

MARGIN = 1e-4  # LightGBM's gradients are single precision
N_ROUNDS = 6


def lightgbm_tree(X, residual, limits):
    """One tree on the residuals, as nested dicts."""
    depth = -1 if limits.max_depth is None else limits.max_depth
    parameters = {
        "objective": "regression",
        "boost_from_average": False,
        "learning_rate": 1.0,
        "num_leaves": limits.max_leaf_nodes or 2**depth,
        "max_depth": depth,
        "min_data_in_leaf": limits.min_samples_leaf,
        "min_sum_hessian_in_leaf": 0.0,
        "lambda_l2": 0.0,
        "max_bin": 255,
        "min_data_in_bin": 1,
        "feature_pre_filter": False,
        "num_threads": 1,
        "verbose": -1,
    }
    booster = lightgbm.train(parameters, lightgbm.Dataset(X, residual), num_boost_round=1)
    return booster.dump_model()["tree_info"][0]["tree_structure"]


class Follower:
    """Walks our tree and LightGBM's together from the root, as long as they make the same splits."""

    def __init__(self, X, data, residual, tree, table):
        self.X, self.residual, self.table = X, residual, table
        gradient, ones = np.rint(residual * 2**40).astype(np.int64)[None, :], np.ones(len(X), int)
        self.rows = Rows(gradient, 2.0**-40, data.bins, data.n_bins, ones, ones > 0)
        self.splits = {split.node: split for split in tree.splits}
        self.least = min(split.gain for split in tree.splits)
        self.equal = self.close = 0

    def walk(self, node, other, inside):
        ours = self.splits.get(node)
        if ours is None and "split_feature" not in other:
            assert self.table["value"][node] == pytest.approx(other["leaf_value"], rel=1e-5, abs=1e-6)
            assert self.table["value"][node] == pytest.approx(self.residual[inside].mean(), rel=1e-9, abs=1e-12)
            self.equal += 1
        elif ours is None or "split_feature" not in other:  # the other's last split was in another leaf
            left = self.theirs(other, inside) if ours is None else goes_left(self.rows, inside, *where(ours))
            assert raw_gain(self.rows, inside, left) == pytest.approx(self.least, rel=MARGIN)
            self.close += 1
        else:
            self.both(ours, other, inside)

    def both(self, ours, other, inside):
        left, theirs = goes_left(self.rows, inside, *where(ours)), self.theirs(other, inside)
        if ours.feature == other["split_feature"] and (left == theirs).all():
            assert 2 * len(self.residual) * ours.gain == pytest.approx(other["split_gain"], rel=1e-3)
            self.equal += 1
            self.walk(ours.left, other["left_child"], inside[left])
            self.walk(ours.left + 1, other["right_child"], inside[~left])
        else:
            gains = [raw_gain(self.rows, inside, side) for side in (left, theirs)]
            assert gains[0] == pytest.approx(gains[1], rel=MARGIN), (ours, other["split_feature"], other["threshold"])
            self.close += 1

    def theirs(self, other, inside):
        values = self.X[inside, other["split_feature"]]
        return np.where(np.isnan(values), other["default_left"], values <= other["threshold"])


def where(split):
    return split.feature, split.cut, split.missing_right


@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize("limits", [TreeLimits(3, None, 20), TreeLimits(None, 12, 1), TreeLimits(4, 9, 30)])
def test_without_prices_the_trees_are_lightgbms(limits, missing):
    rng = np.random.default_rng(8)
    X = np.array([rng.integers(0, k, 2500) for k in (2, 5, 20, 60, 150, 150, 150, 150)], float).T
    y = np.sin(X[:, 3] / 9) + X[:, 0] * X[:, 4] / 100 + (X[:, 1] > 2) + rng.normal(size=len(X)) / 2
    X[rng.random(X.shape) < missing] = np.nan
    data = bin_data(X)
    present = ~np.isnan(X)
    assert (data.bins.T[present] == X[present]).all()
    backend = LocalBackend(data, y, SquaredLoss())
    residual, rounds = [y - np.mean(y)], []

    def keep(this, *_):
        rounds.append((this, residual[0]))
        residual[0] = y - backend.rows.scores[0]
        return False

    pricing = ModelPricing(CostTable.per_feature(np.ones(8)), 0.0)
    boost(backend, pricing, Settings(N_ROUNDS, 1.0, limits), 1, keep)
    equal = close = 0
    for this, gradient in rounds:
        follower = Follower(X, data, gradient, this.trees[0], this.tables[0])
        follower.walk(0, lightgbm_tree(X, gradient, limits), np.arange(len(X)))
        equal, close = equal + follower.equal, close + follower.close
    assert len(rounds) == N_ROUNDS
    assert (equal, close) == (sum(2 * len(this.trees[0].splits) + 1 for this, _ in rounds), 0)

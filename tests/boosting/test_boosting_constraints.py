"""Monotone and interaction constraints: every row, both charges, the cuts by enumeration, the forms of scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import miserly as ms
from miserly.boosting._constraints import best_monotone_cut
from miserly.kernels.histograms import COUNT_BITS, N_BINS

COSTS = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])


def rows(seed, n=400):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(1)
    X[rng.random((n, 4)) < 0.05] = np.nan
    y = np.nan_to_num(X[:, 0] - X[:, 1] + 0.8 * np.sin(3 * X[:, 0]) + X[:, 2] * X[:, 3])
    return X, y + rng.normal(size=n)


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from(["learner", "path"]), st.booleans(), st.booleans())
def test_scores_are_monotone_for_every_row(seed, charge, binary, weighted):
    X, y = rows(seed)
    kind = ms.GreedyMiserClassifier if binary else ms.GreedyMiserRegressor
    model = kind(COSTS, 1e-3, n_estimators=12, charge=charge, min_samples_leaf=3, monotonic_cst=[1, -1, 0, 1])
    weight = np.random.default_rng(seed).random(len(y)) + 0.1 if weighted else None
    model.fit(X, y > 0 if binary else y, sample_weight=weight)
    for feature, sign in ((0, 1), (1, -1), (3, 1)):
        grid = np.repeat(X[:40, None], 30, axis=1)
        grid[:, :, feature] = np.linspace(-4, 4, 30)
        score = model.plan_.score(grid.reshape(-1, 4)).reshape(40, 30)
        assert (sign * np.diff(score, axis=1) >= 0).all()


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.sampled_from([1, -1]), st.booleans())
def test_the_cut_is_the_best_in_order_by_enumeration(seed, sign, missing):
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, 6, 40)
    if missing:
        bins[rng.random(40) < 0.2] = 255
    g = rng.integers(-50, 50, 40)
    lanes = np.zeros((1, N_BINS), np.int64)
    np.add.at(lanes[0], bins, (g << COUNT_BITS) + 1)
    found = best_monotone_cut(lanes, 6, [int(lanes.sum())], 3, 1.0, sign)
    best = -np.inf
    for right in (False, True):
        for cut in range(6 if right and (bins == 255).any() else 5):
            left = np.where(bins == 255, not right, bins <= cut)
            if not 3 <= left.sum() <= 37 or not (left & (bins != 255)).any():
                continue
            a, b = g[left].mean(), g[~left].mean()
            if sign * (b - a) >= 0:
                gain = left.sum() * a**2 + (~left).sum() * b**2 - 40 * g.mean() ** 2
                best = max(best, gain)
    assert found[0] == pytest.approx(best)


def paths(model):
    trees = model.plan_.dictionary
    for first in trees.start[:-1]:
        todo = [(int(first), frozenset())]
        while todo:
            at, path = todo.pop()
            if trees.left[at] == at:
                yield path
                continue
            below = path | {int(trees.feature[at])}
            todo += [(int(trees.left[at]), below), (int(trees.left[at]) + 1, below)]


@pytest.mark.parametrize("charge", ["learner", "path"])
def test_features_meet_only_within_their_groups(charge):
    X, y = rows(0)
    free = ms.GreedyMiserRegressor(COSTS, 0.0, n_estimators=20, charge=charge, min_samples_leaf=3).fit(X, y)
    assert any(len(path) > 2 for path in paths(free))
    model = ms.GreedyMiserRegressor(
        COSTS, 0.0, n_estimators=20, charge=charge, min_samples_leaf=3, interaction_cst=[[0, 1]]
    ).fit(X, y)
    found = set(paths(model))
    assert all(path <= {0, 1} or path <= {2, 3} for path in found)
    assert any(len(path) == 2 for path in found)


def test_shorthands():
    X, y = rows(0)
    for word, most in (("no_interactions", 1), ("pairwise", 2)):
        model = ms.GreedyMiserRegressor(COSTS, 0.0, n_estimators=10, interaction_cst=word).fit(X, y)
        assert max(len(path) for path in paths(model)) <= most


def test_constraints_that_say_nothing_change_nothing():
    X, y = rows(0)
    free = ms.GreedyMiserRegressor(COSTS, n_estimators=10).fit(X, y)
    same = ms.GreedyMiserRegressor(COSTS, n_estimators=10, monotonic_cst=[0] * 4).fit(X, y)
    all_in_one = ms.GreedyMiserRegressor(COSTS, n_estimators=10, interaction_cst=[[0, 1, 2, 3]]).fit(X, y)
    assert free.plan_ == same.plan_ == all_in_one.plan_


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"monotonic_cst": [1, 0]}, "for each of the 4 features"),
        ({"monotonic_cst": [2, 0, 0, 0]}, "-1, 0 or 1"),
        ({"monotonic_cst": {"age": 1}}, "no feature"),
        ({"interaction_cst": [[0, 9]]}, "from 0 to 3"),
        ({"interaction_cst": "all"}, "no_interactions"),
    ],
)
def test_bad_constraints_are_refused(how, words):
    X, y = rows(0)
    with pytest.raises(ValueError, match=words):
        ms.GreedyMiserRegressor(COSTS, n_estimators=2, **how).fit(X, y)


def test_more_than_two_classes_are_refused():
    X, y = rows(0)
    with pytest.raises(ValueError, match="one score per row"):
        ms.GreedyMiserClassifier(COSTS, n_estimators=2, monotonic_cst=[1, 0, 0, 0]).fit(X, np.digitize(y, [-1, 1]))

"""Active models: states, values and calibration against their definitions; look-ahead; one training for all λ."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import miserly as ms
from miserly.estimators.active._calibration import calibrate
from miserly.estimators.active._states import StateTable
from oracles.policy import shared_table


def exclusive_or(n, seed, n_noise=4):
    """Two signs whose product is the class: no single one of them says anything."""
    X = np.random.default_rng(seed).normal(size=(n, 2 + n_noise))
    return X, (X[:, 0] > 0) ^ (X[:, 1] > 0)


@pytest.fixture(scope="module")
def look_ahead():
    X, y = exclusive_or(1500, 0)
    return ms.ActiveClassifier(ms.CostTable.uniform(), tradeoff=0.1).fit(X, y)


def test_look_ahead_finds_a_pair_that_has_a_value_only_together(look_ahead):
    X, y = exclusive_or(1000, 1)
    assert look_ahead.score(X, y) > 0.97
    assert look_ahead.predict_cost(X).mean() < 2.3
    walk = look_ahead.plan_.start()
    assert set(walk.ranking[0].acquisitions + walk.ranking[1].acquisitions) == {"x0", "x1"}
    assert walk.ranking[0].gain < 0.1 < walk.ranking[0].rate


def test_without_look_ahead_nothing_pays():
    X, y = exclusive_or(500, 0)
    model = ms.ActiveClassifier(ms.CostTable.uniform(), tradeoff=0.1, lookahead=False).fit(X, y)
    assert model.predict_cost(X).max() == 0.0


def context_and_blocks(n, seed):
    """The majority of three signs, in the block that the context names.

    The least mean cost of a certain answer is 3.5: the context, two signs, and the third for the half of rows where the
    two differ. Without adapting to the row it is 4."""
    rng = np.random.default_rng(seed)
    context, signs = rng.integers(3, size=n), rng.choice([-1.0, 1.0], size=(n, 3, 3))
    return np.column_stack([context, signs.reshape(n, 9)]), signs[np.arange(n), context].sum(axis=1) > 0


def test_look_ahead_buys_a_context_that_has_no_value_alone():
    X, y = context_and_blocks(1500, 0)
    model = ms.ActiveClassifier(ms.CostTable.uniform(), tradeoff=0.08, n_estimators=200).fit(X, y)
    X, y = context_and_blocks(1000, 1)
    assert model.plan_.start().needs == ("x0",)
    assert model.score(X, y) > 0.99
    assert 3.4 < model.predict_cost(X).mean() < 3.95


def test_one_training_gives_the_frontier(look_ahead):
    X, y = exclusive_or(400, 2)
    costs = [look_ahead.within(lam).predict_cost(X).mean() for lam in (0.0, 0.05, 0.1, 0.6)]
    assert costs[0] == 6.0
    assert costs[-1] == 0.0
    assert all(a >= b for a, b in pairwise(costs))
    assert look_ahead.within(0.1).plan_ == look_ahead.plan_
    grid = look_ahead.suggest_grid(y, 4)
    small = ms.ActiveClassifier(look_ahead.costs, n_estimators=10, n_rounds=1)
    front = ms.frontier(small, (X[:200], y[:200]), (X[200:], y[200:]), grid={"tradeoff": grid})
    again = small.fit(X[:200], y[:200])
    assert [point.model.plan_ for point in front.points] == [again.within(lam).plan_ for lam in grid]


def test_the_number_of_threads_does_not_matter():
    X, y = exclusive_or(200, 3)
    models = [ms.ActiveClassifier(ms.CostTable.uniform(), n_estimators=10, n_jobs=n).fit(X, y) for n in (1, 2)]
    assert models[0].plan_ == models[1].plan_


def test_a_value_that_is_missing_when_bought_is_not_one_that_was_not_bought():
    """Whether a test gave no result says the class here; not having done the test says nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    y = rng.random(800) < 0.5
    X[y, 0] = np.nan
    model = ms.ActiveClassifier(ms.CostTable.uniform(), tradeoff=0.05, n_estimators=60).fit(X, y)
    assert model.score(X, y) == 1.0
    assert abs(model.plan_.start().best.probabilities[1] - 0.5) < 0.1
    assert model.plan_.start(given={"x0": np.nan}).best.probabilities[1] > 0.9


def test_regression_buys_where_the_error_falls():
    """Two cheap signs say which expensive column holds the target."""
    data = ms.datasets.four_quadrants(2500, 0)
    X, y = data.X, data.y
    model = ms.ActiveRegressor(data.costs, tradeoff=0.2).fit(X[:2000], y[:2000])
    error = np.mean((model.predict(X[2000:]) - y[2000:]) ** 2)
    assert error < 0.05 * np.var(y)
    assert model.predict_cost(X[2000:]).mean() < 16.0


def test_prices_decide_between_equal_features():
    rng = np.random.default_rng(0)
    signal = rng.normal(size=800)
    X = np.column_stack([signal + 0.1 * rng.normal(size=800) for _ in range(2)])
    costs = ms.CostTable.per_feature([5.0, 1.0])
    model = ms.ActiveClassifier(costs, tradeoff=0.05, n_estimators=60).fit(X, signal > 0)
    assert model.plan_.start().needs == ("x1",)


# ---- parts ------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**16), st.booleans())
@settings(max_examples=20, deadline=None)
def test_states_know_what_their_acquisitions_give(seed, missing):
    rng, costs = np.random.default_rng(seed), shared_table()
    X = rng.normal(size=(12, 7))
    if missing:
        X[rng.random(X.shape) < 0.3] = np.nan
    table = StateTable(X, costs, 255)
    states = table.random(np.arange(12), rng)
    for i, (owned, known) in enumerate(zip(states.owned, states.known)):
        names = {a for a, has in zip(costs.acquisitions, owned) if has}
        given_ = [names.issuperset(costs.needs[f]) for f in costs.features]
        assert known[0]
        assert (known >= given_).all()
        assert i % 4 == 0 or (known == given_).all()
    values = table.values(states)
    assert np.array_equal(np.isnan(values), ~states.known)
    assert np.array_equal(values[states.known], np.where(np.isnan(X), -np.inf, X)[states.known])
    mask = costs.feature_masks[6]
    after = table.bought(states, mask)
    assert after.known[:, 6].all()
    assert (after.known >= states.known).all()
    assert np.array_equal(after.known, states.known | table.known(after.owned))
    bins, plain = table.bins(states, values[:, :2]), table.binned
    for f in range(7):
        assert np.array_equal(bins.lane(f), np.where(states.known[:, f], plain.lane(f), 255))
    assert bins.n_features == 9


def test_calibration_is_by_how_much_is_known():
    """Scores that are twice too large where two features are known, and right elsewhere."""
    rng = np.random.default_rng(0)
    n_known = np.repeat([1, 2, 3], 3000)
    odds = rng.normal(size=9000)
    y = (rng.random(9000) < 1 / (1 + np.exp(-odds))).astype(float)
    scores = np.where(n_known == 2, 2.0, 1.0)[:, None] * odds[:, None]
    prior = np.zeros_like(scores)
    found = calibrate("logistic", scores, prior, y, n_known, 3)
    assert np.abs(found.apply(scores, prior, n_known)[:, 0] - odds).max() < 0.6
    assert found.scale[found.level[2], 0] == pytest.approx(0.5, abs=0.06)
    assert found.scale[found.level[1], 0] == pytest.approx(1.0, abs=0.12)
    several = np.column_stack([scores, -scores, 0 * scores])
    three = calibrate("softmax", several, 0 * several, rng.integers(3, size=9000), n_known, 3)
    assert (three.scale < 0.2).all()
    numbers = calibrate("identity", scores, prior, odds, n_known, 3)
    assert np.allclose(numbers.apply(scores, prior, n_known)[:, 0], odds)


@pytest.mark.parametrize(("share", "noise"), [(0.3, 1.0), (0.04, 0.5)])
def test_small_scores_are_noise_where_others_that_know_as_much_are_certain(share, noise):
    """No factor suits both kinds of states; moved towards the prior, what is noise is read as knowing nothing."""
    rng = np.random.default_rng(0)
    certain = rng.random(4000) < share
    y = (rng.random(4000) < 0.5).astype(float)
    scores = np.where(certain, 3.0 * (2 * y - 1), 0.0) + noise * rng.normal(size=4000)
    prior = np.zeros((4000, 1))
    found = calibrate("logistic", scores[:, None], prior, y, np.ones(4000, int), 1)
    p = 1 / (1 + np.exp(-found.apply(scores[:, None], prior, np.ones(4000, int))[:, 0]))
    assert found.radius[found.level[1]] > 0
    sure = np.maximum(p, 1 - p)
    right = (p > 0.5) == y
    for low, high in ((0.5, 0.6), (0.6, 0.9), (0.9, 1.01)):
        here = (sure >= low) & (sure < high)
        assert noise < 1.0 or abs(right[here].mean() - sure[here].mean()) < 0.06
    assert sure[certain].mean() > 0.88
    nothing = calibrate("logistic", rng.normal(size=(4000, 1)), prior, y, np.ones(4000, int), 1)
    assert nothing.radius.max() == 0.0

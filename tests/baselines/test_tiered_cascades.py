"""Cascades with pre-assigned prices as a user meets them: by hand, and what a stage may buy."""

import numpy as np
import pytest

import miserly as ms
from miserly.baselines import AndOrCascadeClassifier, SoftCascadeClassifier, StagewiseClassifier

KINDS = (AndOrCascadeClassifier, SoftCascadeClassifier)
COSTS = ms.CostTable.per_feature([1.0, 5.0, 20.0, 20.0, 100.0])


def rare(n=1500, seed=0):
    """A tenth is positive: the cheap columns tell much, the expensive one more."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = X[:, 0] + X[:, 2] + 2 * X[:, 4] + 0.3 * rng.normal(size=n) > 3.1
    return X, y.astype(int)


def test_a_soft_cascade_by_hand():
    """One column of ±1, three quarters of each sign of its class, no penalty: σ(±log 3), and Platt keeps their order.

    The plan multiplies: with two tiers of one price there is one stage, whose product is its factor.
    """
    X = np.repeat([[1.0], [-1.0]], 4, axis=0)
    y = np.array([1, 1, 1, 0, 1, 0, 0, 0])
    model = SoftCascadeClassifier(ms.CostTable.uniform(3.0), cost_weight=0.0, alpha=0.0, tol=1e-15).fit(X, y)
    np.testing.assert_allclose(model.plan_.score([[1.0], [-1.0]]), [0.75, 0.25], atol=1e-6)
    np.testing.assert_allclose(model.decision_function([[1.0], [-1.0]]), [np.log(2), -np.log(2)], atol=1e-5)
    assert model.predict_cost(X).tolist() == [3.0] * 8
    assert model.n_stages_ == 1


def test_an_and_or_cascade_by_hand():
    """Two points at ±1, one stage: ½ · ½(1 − w)² twice + α|w| is least at w = 1 − α; Platt's log-odds are ± log 2."""
    model = AndOrCascadeClassifier(ms.CostTable.uniform(), cost_weight=0.0, alpha=0.25, tol=1e-15)
    model.fit([[-1.0], [1.0]], ["n", "y"])
    np.testing.assert_allclose(model.decision_function([[-1.0], [0.0], [1.0]]), [-np.log(2), 0, np.log(2)], atol=1e-6)
    assert not model.set_params(alpha=1.1).fit([[-1.0], [1.0]], ["n", "y"]).plan_.nodes


def features_of(plan, k):
    return {int(f) for t in plan.nodes[k].learners for f in plan.dictionary.features_of(int(t))}


@pytest.mark.parametrize(
    ("kind", "cost_weight", "trees", "allowed"),
    [
        (AndOrCascadeClassifier, 0.1, False, ({0, 1}, {0, 1, 2, 3}, {0, 1, 2, 3, 4})),
        (AndOrCascadeClassifier, 0.15, True, ({0, 1}, {0, 1, 2, 3, 4})),  # the second of three lets everyone pass
        (SoftCascadeClassifier, 1.0, False, ({0, 1}, {0, 1, 2, 3}, {0, 1, 2, 3, 4})),
        (SoftCascadeClassifier, 1.0, True, ({0, 1}, {0, 1, 2, 3}, {0, 1, 2, 3, 4})),
    ],
)
def test_a_stage_uses_what_its_tier_allows(kind, cost_weight, trees, allowed):
    X, y = rare()
    dictionary = StagewiseClassifier(n_estimators=60, max_depth=1, max_features=0.4, random_state=0) if trees else None
    model = kind(COSTS, cost_weight, tiers=(5, 20, 50, 100), class_weight="balanced", dictionary=dictionary).fit(X, y)
    assert model.n_stages_ == 3  # nothing costs between 20 and 50
    plan = model.plan_
    assert len(plan.nodes) == len(allowed)
    assert all(features_of(plan, k) <= those for k, those in enumerate(allowed))
    last = len(allowed) - 1
    assert 4 in features_of(plan, last)
    costs, tier = model.predict_cost(X), plan.run(X).tier
    assert costs[tier == 0].max() <= 6.0
    assert 0.05 < (tier == last).mean() < 0.95
    assert costs.mean() < costs.max() - 5
    by_order = np.argsort(-model.rank_score(X))
    assert (np.diff(tier[by_order]) <= 0).all()
    assert y[by_order[:100]].mean() > 3 * y.mean()


@pytest.mark.parametrize("kind", KINDS)
def test_more_weight_of_the_cost_costs_less(kind):
    X, y = rare()
    model = kind(COSTS, tiers=(5, 20, 100), class_weight="balanced")
    costs = [model.set_params(cost_weight=w).fit(X, y).predict_cost(X).mean() for w in (0.0, 0.03, 0.3, 3.0)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < 0.5 * costs[0]


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_price_the_last_stage_does_it_all(kind):
    """What the paper of Cronus says of both: the losses do not know the order of the stages."""
    X, y = rare()
    model = kind(COSTS, 0.0, tiers=(5, 20, 100), class_weight="balanced").fit(X, y)
    assert len(features_of(model.plan_, len(model.plan_.nodes) - 1)) == 5
    assert (model.predict_cost(X) == 146.0).all()


def test_no_row_is_rejected_that_would_have_been_above_the_threshold():
    X, y = rare()
    model = SoftCascadeClassifier(COSTS, 1.0, tiers=(5, 20, 100), class_weight="balanced").fit(X, y)
    rejecting = model.plan_.score(X)
    model.set_params(threshold=0.0).fit(X, y)
    product = model.plan_.score(X)
    assert (model.predict_cost(X) == model.predict_cost(X)[0]).all()
    np.testing.assert_array_equal(rejecting > 0.5, product > 0.5)
    assert (rejecting >= product - 1e-15).all()
    assert (rejecting > product).any()


def test_the_minimum_is_another_cascade():
    X, y = rare()
    product, least = (
        AndOrCascadeClassifier(COSTS, tiers=(5, 20, 100), negatives=n).fit(X, y) for n in ("noisy_or", "minimum")
    )
    assert not np.array_equal(product.predict_proba(X), least.predict_proba(X))
    assert least.score(X, y) > 0.9


def test_without_tiers_as_many_features_are_new_in_each():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10))
    y = X.sum(axis=1) > 2
    model = AndOrCascadeClassifier(ms.CostTable.per_feature(np.arange(10) + 1.0)).fit(X, y)
    assert model.n_stages_ == 5
    tiers = model._tiers(model._pose(X, y, None).learners)
    assert tiers.limits.tolist() == [2, 4, 6, 8, 10]
    assert tiers.allowed.sum(axis=0).tolist() == [2, 4, 6, 8, 10]


@pytest.mark.parametrize("kind", KINDS)
def test_mistakes_name_the_remedy(kind):
    X, y = rare(100)
    with pytest.raises(ValueError, match=r"No learner costs at most 0.5.*cheapest costs 1"):
        kind(COSTS, tiers=(0.5,)).fit(X, y)
    with pytest.raises(ValueError, match="Only binary classification"):
        kind(COSTS).fit(X, np.arange(100) % 3)

"""CSTC as an estimator: the papers' synthetic set, classes, trees as learners, pruning, paths, fine-tuning."""

import copy

import numpy as np
import pytest

from miserly.baselines import CostWeightedL1Classifier, CostWeightedL1Regressor
from miserly.costs import CostTable
from miserly.datasets import four_quadrants, yahoo_like
from miserly.estimators import GreedyMiserRegressor
from miserly.estimators.cstc import _search as search
from miserly.estimators.cstc._answers import TRUSTS, fine_tuned
from miserly.estimators.cstc._cstc import CSTCClassifier, CSTCRegressor
from miserly.estimators.cstc._soft_graph import SoftGraph
from miserly.frontiers import frontier
from miserly.metrics import ndcg
from miserly.solvers import GateGraph
from oracles.design import outputs, standardised
from oracles.quadrants import choose

UNIFORM = CostTable.uniform()


def test_four_quadrants():
    """Default settings, a sweep of the suggested tradeoffs, chosen on validation data within 12.5."""
    error, cost, model = choose(CSTCRegressor(), seed=100)
    assert error < 1e-3
    assert cost == 12.0
    assert model.n_nodes_ == 7


@pytest.mark.slow
def test_four_quadrants_on_twenty_seeds():
    passed = 0
    for seed in range(100, 120):
        error, cost, _ = choose(CSTCRegressor(), seed)
        passed += error < 0.05 and cost <= 12.5
    assert passed >= 18


def quadrants(n=1000, seed=0):
    data = four_quadrants(2 * n, seed)
    return data.X[:n], data.y[:n], data.X[n:], data.y[n:], data.costs


def error(model, X, y):
    return float(np.mean((model.predict(X) - y) ** 2))


def test_the_tree_buys_each_quadrants_own_column():
    X, y, X_test, y_test, costs = quadrants()
    model = CSTCRegressor(costs, tradeoff=0.07).fit(X, y)
    run = model.plan_.run(X_test)
    assert len(np.unique(run.exit)) == 4
    for leaf in np.unique(run.exit):
        expensive = {costs.features[i] for i in model.plan_.nodes[leaf].learners} - {"sign_x", "sign_z"}
        assert len(expensive) == 1
    blind = CostWeightedL1Regressor(costs, tradeoff=0.0).fit(X, y)
    assert error(model, X_test, y_test) < 1e-3 * error(blind, X_test, y_test)
    assert model.predict_cost(X_test).mean() < 0.3 * blind.predict_cost(X_test).mean()


def test_fine_tuning_takes_the_shrinkage_out():
    X, y, X_test, y_test, costs = quadrants()
    tuned = CSTCRegressor(costs, tradeoff=0.07).fit(X, y)
    shrunken = CSTCRegressor(costs, tradeoff=0.07, fine_tune=False).fit(X, y)
    assert np.array_equal(tuned.predict_cost(X_test), shrunken.predict_cost(X_test))
    assert error(tuned, X_test, y_test) < 1e-3 < 0.1 < error(shrunken, X_test, y_test)


def test_a_path_is_what_separate_fits_give():
    X, y, X_test, _, costs = quadrants(600)
    values = [0.03, 0.07, 0.3, 3.0]
    for model, value in zip(CSTCRegressor(costs).path(X, y, values[::-1]), values):
        alone = CSTCRegressor(costs, tradeoff=value).fit(X, y)
        assert model.tradeoff == value
        np.testing.assert_allclose(model.predict(X_test), alone.predict(X_test), atol=0.05)
        assert model.predict_cost(X_test).mean() == pytest.approx(alone.predict_cost(X_test).mean(), abs=0.3)


def test_a_large_tradeoff_buys_nothing_and_costs_fall_with_it():
    X, y, *_, costs = quadrants(600)
    models = CSTCRegressor(costs).path(X, y)
    cost = [m.predict_cost(X).mean() for m in models]
    assert cost[0] == 12.0  # however cheap: nothing else helps
    assert cost[-1] <= 1.0
    assert max(np.diff(cost)) < 3.0
    nothing = CSTCRegressor(costs, tradeoff=100.0).fit(X, y)
    assert not nothing.plan_.nodes
    assert nothing.predict(X[:1])[0] == pytest.approx(y.mean())


def test_scale_of_y_and_of_columns_does_not_matter():
    """λ is per unit of loss: with y times c it is c times as large for the same tree."""
    X, y, X_test, _, costs = quadrants(600)
    one = CSTCRegressor(costs, tradeoff=0.07).fit(X, y)
    other = CSTCRegressor(costs, tradeoff=0.07 * 64).fit(X * 8 + 3, 64 * y)
    np.testing.assert_allclose(64 * one.predict(X_test), other.predict(X_test * 8 + 3), rtol=1e-5, atol=1e-3)
    assert np.array_equal(one.predict_cost(X_test), other.predict_cost(X_test * 8 + 3))


def many_classes(n=1200, seed=0):
    """Which of two columns tells the class depends on a third."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = np.where(X[:, 0] > 0, np.digitize(X[:, 1], [-0.6, 0.6]), np.digitize(X[:, 2], [-0.6, 0.6]))
    X[:, 0] = np.sign(X[:, 0])
    return X, np.array(["low", "middle", "top"])[y]


def test_several_classes_are_one_tree_with_a_routing_direction():
    X, y = many_classes()
    X_test, y_test = many_classes(seed=1)
    model = CSTCClassifier(UNIFORM, tradeoff=1e-3, max_depth=4).fit(X, y)
    flat = CostWeightedL1Classifier(UNIFORM, tradeoff=1e-3).fit(X, y)
    assert len(model.plan_.roots) == 1
    assert model.plan_.nodes[0].routing is not None
    assert model.plan_.nodes[0].weights.shape[1] == 3
    assert model.score(X_test, y_test) > flat.score(X_test, y_test) + 0.1
    proba = model.predict_proba(X_test)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert np.mean(proba.max(axis=1)) == pytest.approx(model.score(X_test, y_test), abs=0.12)


@pytest.mark.parametrize("validated", [False, True])
def test_logistic_nodes(validated):
    """As good as squares; the objective never rises, and probabilities are good."""
    X, y = many_classes()
    X_test, y_test = many_classes(seed=1)
    eval_set = many_classes(400, seed=2) if validated else None
    model = CSTCClassifier(UNIFORM, tradeoff=1e-3, loss="logistic").fit(X, y, eval_set=eval_set)
    assert model.score(X_test, y_test) > 0.95
    assert all(max(np.diff(values), default=0.0) <= 1e-12 for values in model.objective_)
    of_label = model.predict_proba(X_test)[np.arange(len(y_test)), np.searchsorted(model.classes_, y_test)]
    assert -np.log(of_label).mean() < 0.2


def test_two_classes_have_calibrated_probabilities():
    X, y = many_classes(2000)
    model = CSTCClassifier(UNIFORM, tradeoff=1e-3).fit(X, y == "top")
    p = model.predict_proba(X)[:, 1]
    assert p.mean() == pytest.approx(np.mean(y == "top"), abs=0.02)
    assert model.decision_function(X).shape == (2000,)
    assert np.array_equal(model.predict(X), p > 0.5)


def test_trees_as_learners_share_what_they_buy():
    data = yahoo_like(60, seed=0)
    X, y = data.X[:1000], data.y[:1000]
    trees = GreedyMiserRegressor(data.costs, tradeoff=0.0, n_estimators=40).fit(X, y)
    model = CSTCRegressor(data.costs, tradeoff=3e-4, dictionary=trees).fit(X, y)
    assert model.plan_.dictionary == trees.plan_.dictionary
    assert 0 < model.predict_cost(X).mean() < 0.9 * trees.predict_cost(X).mean()
    unfitted = GreedyMiserRegressor(data.costs, tradeoff=0.0, n_estimators=40)
    again = CSTCRegressor(data.costs, tradeoff=3e-4, dictionary=unfitted).fit(X, y)
    assert again.plan_ == model.plan_


def test_missing_values_need_trees():
    X, y = many_classes(300)
    X[::7, 1] = np.nan
    y = X[:, 2]
    with pytest.raises(ValueError, match="NaN"):
        CSTCRegressor(UNIFORM).fit(X, y)
    model = CSTCRegressor(UNIFORM, dictionary=GreedyMiserRegressor(UNIFORM, n_estimators=10, tradeoff=0.0)).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


def test_pruning_takes_away_what_validation_data_do_not_want():
    """Pure noise around a line: one node is all there is to find."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    y = X[:, 0] + rng.normal(size=1000)
    grown = CSTCRegressor(UNIFORM, tradeoff=1e-3, max_depth=4).fit(X[:400], y[:400])
    pruned = CSTCRegressor(UNIFORM, tradeoff=1e-3, max_depth=4).fit(X[:400], y[:400], eval_set=(X[400:], y[400:]))
    assert pruned.n_nodes_ < grown.n_nodes_
    assert error(pruned, X[400:], y[400:]) < error(grown, X[400:], y[400:])
    X, y, X_test, y_test, costs = quadrants()
    kept = CSTCRegressor(costs, tradeoff=0.07, max_depth=5).fit(X, y, eval_set=(X_test, y_test))
    assert 7 <= kept.n_nodes_ < 31
    assert error(kept, X_test, y_test) < 1e-3


def test_pruning_by_a_metric_of_queries():
    data = yahoo_like(60, seed=0)
    train, rest = data.qid < 30, data.qid >= 30
    X, y, qid = data.X[rest], data.y[rest], data.qid[rest]
    model = CSTCRegressor(data.costs, tradeoff=3e-3, max_depth=4, metric="ndcg@5", max_iter=1)
    grown = model.fit(data.X[train], data.y[train])
    before, n_nodes = ndcg(y, grown.rank_score(X), qid=qid, k=5), grown.n_nodes_
    pruned = model.fit(data.X[train], data.y[train], eval_set=(X, y, qid))
    assert pruned.n_nodes_ < n_nodes
    assert ndcg(y, pruned.rank_score(X), qid=qid, k=5) > before
    with pytest.raises(ValueError, match="compares the rows of a query"):
        model.fit(data.X[train], data.y[train], eval_set=(X, y))


def test_pruning_classes():
    X, y = many_classes()
    for metric in (None, "logloss"):
        model = CSTCClassifier(UNIFORM, tradeoff=1e-3, max_depth=5, metric=metric)
        assert model.fit(X[:600], y[:600], eval_set=(X[600:], y[600:])).n_nodes_ < 31
        assert model.score(X[600:], y[600:]) > 0.7


def test_a_frontier_sweeps_the_tradeoff():
    X, y, X_test, y_test, costs = quadrants(400)
    front = frontier(CSTCRegressor(costs, max_iter=1), (X, y), (X_test, y_test), grid={"tradeoff": [0.02, 0.07, 1.0]})
    chosen = front.choose(budget=12.5)
    assert chosen.tradeoff == 0.07
    assert CSTCRegressor.cost_axis == "tradeoff"


def test_the_objective_is_kept_and_never_rises():
    """With gates of one steepness; steeper ones make another objective."""
    X, y, *_, costs = quadrants(500)
    model = CSTCRegressor(costs, tradeoff=0.05).fit(X, y)
    assert [len(CSTCRegressor(costs, 0.05, swaps=swaps).fit(X, y).objective_) for swaps in (False, True)] == [3, 4]
    assert model.n_iter_ == sum(len(values) - 1 for values in model.objective_) > 0
    assert all(max(np.diff(values)) <= 0 for values in model.objective_)
    assert CSTCRegressor(costs, tradeoff=0.05, max_iter=0).fit(X, y).n_iter_ == 0


def test_steepness_may_be_given():
    X, y, X_test, y_test, costs = quadrants()
    model = CSTCRegressor(costs, tradeoff=0.07, steepness=1.0).fit(X, y)
    assert error(model, X_test, y_test) < 1e-2


def test_deep_trees_are_swept_node_by_node(monkeypatch):
    monkeypatch.setattr("miserly.estimators.cstc._soft_graph.MANY_NODES", 0)
    X, y, X_test, y_test, costs = quadrants()
    model = CSTCRegressor(costs, tradeoff=0.07, max_iter=2).fit(X, y)
    assert error(model, X_test, y_test) < 1e-3
    assert all(max(np.diff(values)) <= 0 for values in model.objective_)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_depth": 11}, "max_depth"),
        ({"rho": -1.0}, "rho"),
        ({"steepness": 0.0}, "steepness"),
        ({"costs": None}, "needs the price of each feature"),
    ],
)
def test_bad_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        CSTCRegressor(**{"costs": UNIFORM, **wrong}).fit(np.eye(5), np.arange(5.0))


def boosted(n=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=n)
    costs = CostTable.per_feature(1.0 + np.arange(8))
    return X, y, costs, GreedyMiserRegressor(costs, 0.0, n_estimators=40, max_depth=2).fit(X, y).plan_


def test_over_trees_a_large_tradeoff_buys_nothing():
    """Trees that need the same features held each other up: the model bought them all for weights of 1e-12."""
    X, y, costs, trees = boosted()
    model = CSTCRegressor(costs, tradeoff=100.0, dictionary=trees).fit(X, y)
    assert model.plan_.tables.most_expensive == 0
    assert model.predict(X) == pytest.approx(np.full(300, y.mean()))


@pytest.mark.parametrize("trust", ["model", "little", "rows"])
def test_weights_of_trees(trust, monkeypatch):
    """One node, against the matrix written out."""
    X, y, costs, trees = boosted()
    monkeypatch.setattr(search, "fine_tuned", lambda soft, posed, _: fine_tuned(soft, posed, trust))
    model = CSTCRegressor(costs, tradeoff=1e-4, max_depth=1, dictionary=trees).fit(X, y)
    H, *_ = standardised(outputs(trees.dictionary, X), common=True)
    Z, target = H[:, model.plan_.nodes[0].learners], y - y.mean()

    def stretched(beta):
        return beta * (Z @ beta @ target) / (Z @ beta @ (Z @ beta))

    start = stretched(np.ones(Z.shape[1])) if trust == "model" else np.zeros(Z.shape[1])
    shrinkage = 1.0 if trust == "rows" else len(y)
    step = np.linalg.solve(Z.T @ Z + shrinkage * np.eye(Z.shape[1]), Z.T @ (target - Z @ start))
    np.testing.assert_allclose(model.predict(X), y.mean() + Z @ stretched(start + step), rtol=1e-6)


def test_other_rows_tell_how_far_trees_are_to_be_trusted():
    """Noise alone: what boosting found is worth nothing. A signal without noise that boosting has only begun to fit:
    least squares are best."""
    rng = np.random.default_rng(0)
    X, costs = rng.normal(size=(900, 6)), CostTable.uniform()
    for y, best in ((X[:, 0] * X[:, 1] + X[:, 2], "rows"), (rng.normal(size=900) + 0.1 * X[:, 0], "little")):
        trees = GreedyMiserRegressor(costs, 0.0, n_estimators=30, max_depth=4).fit(X[:300], y[:300])
        model = CSTCRegressor(costs, tradeoff=0.0, max_depth=1, dictionary=trees)
        errors = {}
        for trust in TRUSTS:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(search, "TRUSTS", (trust,))
                model.fit(X[:300], y[:300], eval_set=(X[300:600], y[300:600]))
            errors[trust] = error(model, X[600:], y[600:])
        model.fit(X[:300], y[:300], eval_set=(X[300:600], y[300:600]))
        assert min(errors, key=errors.get) == best
        assert error(model, X[600:], y[600:]) == errors[best]


def test_over_trees_more_trees_than_the_data_bear_do_no_harm():
    """Least squares would fit the noise that two hundred trees have fitted once already."""
    X, y, costs, _ = boosted(600)
    trees = GreedyMiserRegressor(costs, 0.0, n_estimators=200, max_depth=4, min_samples_leaf=5).fit(X[:300], y[:300])
    model = CSTCRegressor(costs, tradeoff=0.0, max_depth=3, dictionary=trees).fit(X[:300], y[:300])
    assert error(model, X[300:], y[300:]) < 1.05 * error(trees, X[300:], y[300:])


def test_a_node_begins_with_what_the_one_above_says():
    """A child that has only a handful of rows, or adds nothing, answers about as its parent does."""
    X, y, costs, trees = boosted()
    plan = CSTCRegressor(costs, tradeoff=1e-3, max_depth=3, dictionary=trees, min_samples_leaf=5).fit(X, y).plan_
    for node in plan.nodes:
        for way in node.ways:
            assert way < 0 or set(node.learners) <= set(plan.nodes[way].learners)


def shifting_tables(n=1500, seed=0):
    """Three classes of very different size, told by products of columns: rows that leave early look good."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    y = np.where(X[:, 0] * X[:, 1] > 1.2, 2, np.where(X[:, 2] + np.abs(X[:, 3]) > 2.2, 1, 0))
    return X, y, CostTable.per_feature(1.0 + np.arange(8) % 3)


@pytest.mark.parametrize("seed", range(3))
def test_validation_rows_do_not_destroy_the_tree(seed):
    """Pruning before the descent moved rows to the exits: one node was left, far worse than the unpruned tree."""
    X, y, costs = shifting_tables(seed=seed)
    train, valid = slice(0, 900), slice(900, None)
    settings = {"tradeoff": 1e-4, "max_depth": 4}
    kept = CSTCClassifier(costs, **settings).fit(X[train], y[train], eval_set=(X[valid], y[valid]))
    others = [
        CSTCClassifier(costs, **settings).fit(X[train], y[train]),
        CSTCClassifier(costs, max_iter=0, **settings).fit(X[train], y[train]),
        CSTCClassifier(costs, tradeoff=1e-4, max_depth=1).fit(X[train], y[train]),
        CSTCClassifier(costs, max_iter=0, **settings).fit(X[train], y[train], eval_set=(X[valid], y[valid])),
    ]
    best = kept.score(X[valid], y[valid])
    assert all(best >= other.score(X[valid], y[valid]) for other in others)
    assert best > others[2].score(X[valid], y[valid]) + 0.01


def test_without_validation_rows_the_best_hard_objective_is_kept():
    """The descent lowers the objective of soft gates; the tree that it started from may be better with hard ones."""
    X, y, _, _, costs = quadrants()
    price = 0.05
    for depth in (3, 4):
        start = CSTCRegressor(costs, tradeoff=price, max_depth=depth, max_iter=0).fit(X, y)
        model = CSTCRegressor(costs, tradeoff=price, max_depth=depth).fit(X, y)
        before, after = (0.5 * error(m, X, y) + price * m.predict_cost(X).mean() for m in (start, model))
        assert after <= before + 1e-12


def test_an_exit_counts_its_loss_for_the_levels_that_it_skips():
    """The objective of a tree does not fall because a node without use has been taken away."""
    X, y, *_, costs = quadrants(400)
    posed = CSTCRegressor(costs, tradeoff=0.05)._pose(X, y, None)
    soft = SoftGraph.initialise(CSTCRegressor(costs, tradeoff=0.05)._task(posed), GateGraph.tree(2))
    for side in (1, 2):
        soft.nodes[side] = copy.deepcopy(soft.nodes[0])
        soft.refresh(side)
    alone = soft.keep(np.array([True, False, False]))
    loss = [float(s.task.omega @ s.traversal.loss_from(0, s.loss, False)) for s in (soft, alone)]
    assert loss[0] == pytest.approx(loss[1], rel=1e-12)

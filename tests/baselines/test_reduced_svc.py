"""The reduced SVM against its objective, minimised the slow way."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics.pairwise import rbf_kernel

from miserly.baselines import ReducedSVC
from miserly.baselines._reduced_svc import _Search
from miserly.datasets import circle
from miserly.solvers._kernel_functions import RBF


def data(seed=0, n=120):
    drawn = circle(n, seed)
    return drawn.X, drawn.y, np.where(drawn.y == drawn.y.max(), 1.0, -1.0)


def objective(K, among, y, C, alpha, b):
    return 0.5 * alpha @ among @ alpha + 0.5 * C * np.sum(np.maximum(1 - y * (K @ alpha + b), 0) ** 2)


def found(selection, m, C=2.0):
    X, _, sign = data()
    search = _Search(RBF(0.5), X, sign[:, None], np.ones(len(X)), C)
    drawn = np.random.default_rng(0).permutation(len(X))
    if selection == "greedy":
        search.choose(drawn, m, 20)
    else:
        search.take(drawn[:m])
    return X, sign, search


@pytest.mark.parametrize("selection", ["greedy", "random"])
def test_the_coefficients_minimise_the_objective(selection):
    X, y, search = found(selection, 7)
    K, among = rbf_kernel(X, X[search.chosen], 0.5), rbf_kernel(X[search.chosen], X[search.chosen], 0.5)
    slow = minimize(lambda p: objective(K, among, y, 2.0, p[:-1], p[-1]), np.zeros(8), tol=1e-12)
    ours = objective(K, among, y, 2.0, search.alpha[:, 0], search.bias[0])
    assert ours == pytest.approx(slow.fun, rel=1e-5)
    np.testing.assert_allclose(search.scores[:, 0], K @ search.alpha[:, 0] + search.bias[0], atol=1e-5)


def test_the_vector_taken_is_the_candidate_with_the_best_newton_step():
    X, y, search = found("random", 4)
    some = np.arange(30, 60)
    K = rbf_kernel(X, X[some], 0.5)
    best, step = search._best(some, K)
    kept = rbf_kernel(X[some], X[search.chosen], 0.5)
    lowered = []
    for j in range(len(some)):

        def value(t, j=j):
            slack = np.maximum(1 - y * (search.scores[:, 0] + t * K[:, j]), 0)
            return 0.5 * t * t + t * kept[j] @ search.alpha[:, 0] + np.sum(slack**2)

        slope = (value(1e-5) - value(-1e-5)) / 2e-5
        inside = y * search.scores[:, 0] < 1
        curve = 1 + 2.0 * np.sum(K[inside, j] ** 2)
        lowered.append((slope**2 / curve, -slope / curve))
    assert best == int(np.argmax([gain for gain, _ in lowered]))
    assert step[0] == pytest.approx(lowered[best][1], rel=1e-4)


def test_choosing_is_better_than_drawing():
    values = {}
    for selection in ("greedy", "random"):
        X, y, search = found(selection, 8)
        among = rbf_kernel(X[search.chosen], X[search.chosen], 0.5)
        K = rbf_kernel(X, X[search.chosen], 0.5)
        values[selection] = objective(K, among, y, 2.0, search.alpha[:, 0], search.bias[0])
        assert len(set(search.chosen)) == 8
    assert values["greedy"] < values["random"]


def test_several_classes_share_their_vectors():
    X, y, _ = data(n=240)
    y = y + 2 * (X[:, 0] > 0)
    model = ReducedSVC(C=10.0, gamma=0.5, n_vectors=20).fit(X, y)
    assert model.score(X, y) > 0.8
    np.testing.assert_array_equal(model.predict_cost(X), np.full(len(X), 20.0))
    np.testing.assert_array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))

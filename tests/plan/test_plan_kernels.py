"""Kernel dictionaries: the exponential, class probabilities from pairs, and what is refused."""

import math

import numpy as np
import pytest
from sklearn.metrics.pairwise import chi2_kernel

from miserly.kernels.machines import add_machines, add_machines_to_row
from miserly.plan import Chi2Kernels, PolynomialKernels, RBFKernels
from miserly.plan._links import labels, probabilities
from oracles import kernel_functions as oracle


def evaluated(kernels, X):
    """Row × learner, from the batch; the single row must say the same."""
    m, n = len(kernels), len(X)
    edges = (np.arange(m, dtype=np.int32), np.arange(m + 1, dtype=np.int32), np.arange(m, dtype=np.int32), np.ones(m))
    keep, values, known = np.full(m, -1, np.int32), np.zeros((1, 1)), np.zeros((1, 1), bool)
    out = np.zeros((n, m))
    add_machines(X, np.arange(n), kernels.machine, *edges, keep, values, known, out)
    for i in (0, n - 1):
        row = np.zeros(m)
        add_machines_to_row(X[i], kernels.machine, *edges, keep, values[0], known[0], row)
        np.testing.assert_array_equal(row, out[i])
    return out


@pytest.mark.parametrize("n", [1, 63, 64, 130])
@pytest.mark.parametrize("m", [1, 4, 11])
def test_values_equal_the_twin_to_the_bit(n, m):
    rng = np.random.default_rng(n + m)
    X, columns = rng.normal(size=(n, 5)), [3, 0, 4]
    for kernels in (
        RBFKernels(columns, rng.normal(size=(m, 3)), 0.7),
        PolynomialKernels(columns, rng.normal(size=(m, 3)), 0.7, 1.5, 3),
    ):
        got = evaluated(kernels, X)
        np.testing.assert_array_equal(got, [[oracle.value(kernels, t, x) for t in range(m)] for x in X])
        away = ((X[:, None, columns] - kernels.vectors) ** 2).sum(axis=2)
        library = np.exp(-0.7 * away) if kernels.kind == "rbf" else (0.7 * X[:, columns] @ kernels.vectors.T + 1.5) ** 3
        np.testing.assert_allclose(got, library, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("n", [1, 130])
def test_chi_squared_kernels_are_those_of_scikit_learn(n):
    """To the bit as the twin; values below zero count as zero, what is missing stays missing."""
    rng = np.random.default_rng(n)
    X, columns = np.maximum(rng.normal(size=(n, 5)), 0.0), [3, 0, 4]
    kernels = Chi2Kernels(columns, np.maximum(rng.normal(size=(11, 3)), 0.0), 0.7)
    got = evaluated(kernels, X)
    np.testing.assert_array_equal(got, [[oracle.value(kernels, t, x) for t in range(11)] for x in X])
    np.testing.assert_allclose(got, chi2_kernel(X[:, columns], kernels.vectors.copy(), 0.7), rtol=1e-13)
    X[X == 0.0] = -1.0
    np.testing.assert_array_equal(evaluated(kernels, X), got)
    assert np.isnan(evaluated(kernels, np.full((1, 5), np.nan))).all()
    with pytest.raises(ValueError, match="0 or more"):
        Chi2Kernels([0], [[-1.0]], 0.5)


def test_the_exponential_is_exact_to_one_unit_in_the_last_place():
    z = -np.concatenate([[0.0, 1e-300, 0.34657359, 0.3465736, 707.9], np.random.default_rng(0).exponential(20.0, 3000)])
    for x in z:
        assert abs(oracle.exponential(x) - math.exp(x)) <= math.ulp(math.exp(x))


def test_far_away_is_zero_and_missing_is_missing():
    kernels = RBFKernels([0], [[0.0]], 1.0)
    got = evaluated(kernels, np.array([[0.0], [26.0], [27.0], [1e200], [np.inf], [np.nan]]))[:, 0]
    np.testing.assert_array_equal(got[[0, 2, 3, 4, 5]], [1.0, 0.0, 0.0, 0.0, np.nan])
    assert 0 < got[1] < 1e-290


@pytest.mark.parametrize("n_classes", [3, 7, 26])
def test_coupled_probabilities_solve_the_equations(n_classes):
    rng = np.random.default_rng(n_classes)
    z = rng.normal(size=(20, n_classes * (n_classes - 1) // 2)) * 3
    p = probabilities("coupled", z, n_classes)
    np.testing.assert_allclose(p, [oracle.coupled(line, n_classes) for line in z], atol=2e-5)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(labels("coupled", z, np.arange(n_classes)), labels("vote", z, np.arange(n_classes)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [[1.0]], 1.0), "one value for each"),
        (([-1], [[1.0]], 1.0), "not negative"),
        (([0], [[np.nan]], 1.0), "finite"),
        (([0], [[1.0]], 0.0), "positive"),
        (([0], [1.0], 1.0), "2 dimensions"),
        (([0], [[1.0]], [1.0]), "0 dimensions"),
        (([0], [[1.0]], 1.0, 0.0, 0), "degree"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        (RBFKernels if len(arguments) == 3 else PolynomialKernels)(*arguments)

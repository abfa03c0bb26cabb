"""Kernel functions, least angle regression and the moving of vectors, against slow and independent ways."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import lars_path
from sklearn.metrics.pairwise import chi2_kernel, polynomial_kernel, rbf_kernel

from miserly.estimators.cvm._lars import least_angle
from miserly.estimators.cvm._matching import Matching
from miserly.solvers._calibration import common_temperature, temperature
from miserly.solvers._kernel_functions import RBF, Chi2, Polynomial

KERNELS = [RBF(0.7), Chi2(0.6), Polynomial(0.4, 1.2, 3), Polynomial(0.5, 0.0, 1)]
kernels = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def slope_by_differences(function, Z, step=1e-5):
    slope = np.empty(Z.shape)
    for at in np.ndindex(*Z.shape):
        up, down = Z.copy(), Z.copy()
        up[at] += step
        down[at] -= step
        slope[at] = (function(up) - function(down)) / (2 * step)
    return slope


def points(seed, n=30, d=3, m=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    return rng, X, rng.normal(size=(m, d))


def suitable(kernel, *tables):
    """Rows that the kernel takes."""
    return [np.abs(table) if isinstance(kernel, Chi2) else table for table in tables]


@kernels
@pytest.mark.parametrize("sparse", [False, True])
def test_a_kernel_and_its_pull(kernel, sparse):
    rng, X, Z = points(0)
    X, Z = suitable(kernel, X, Z)
    given = csr_matrix(X) if sparse else X
    if isinstance(kernel, Polynomial):
        expected = polynomial_kernel(X, Z, kernel.degree, kernel.gamma, kernel.coef0)
    else:
        expected = (rbf_kernel if isinstance(kernel, RBF) else chi2_kernel)(X, Z, kernel.gamma)
    np.testing.assert_allclose(kernel.matrix(given, Z), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.matrix(given, csr_matrix(Z)), expected, rtol=1e-12)
    G = rng.normal(size=expected.shape)
    found = kernel.gradient(given, Z, kernel.matrix(given, Z), G)
    np.testing.assert_allclose(found, slope_by_differences(lambda z: np.sum(G * kernel.matrix(X, z)), Z), rtol=1e-6)


def three_classes(seed, kernel, n=30, m=4):
    rng, X, Z = points(seed, n=n, m=m)
    X, Z = suitable(kernel, X, Z)
    F = rng.normal(size=(n, 3))
    return Matching(kernel, X, F, [n // 3, n // 2, n], [(0, 1), (0, 2), (1, 2)]), Z


def slow_value(matching, Z):
    """Each output by itself, by least squares on stacked rows; the constant is not shrunk."""
    total = 0.0
    K, S = matching.kernel.matrix(matching.X, Z), matching.kernel.matrix(Z, Z)
    values, vectors = np.linalg.eigh(S)
    root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    labels = np.repeat(np.arange(len(matching.blocks)), [b.stop - b.start for b in matching.blocks])
    for p, classes in enumerate(matching.outputs):
        rows = np.isin(labels, classes)
        top = np.column_stack([K[rows], np.ones(rows.sum())])
        shrink = np.sqrt(matching.norm(len(Z))) * np.column_stack([root, np.zeros(len(Z))])
        tiny = np.sqrt(matching.ridge) * np.eye(len(Z), len(Z) + 1)
        A = np.concatenate([top, shrink, tiny])
        b = np.concatenate([matching.F[rows, p], np.zeros(2 * len(Z))])
        solution = np.linalg.lstsq(A, b, rcond=None)[0]
        total += np.sum((A @ solution - b) ** 2)
    return total


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=repr)
@pytest.mark.parametrize("frozen", [0, 2])
def test_the_objective_and_its_slope(kernel, frozen):
    matching, Z = three_classes(1, kernel)
    value, slope = matching.value_and_slope(Z)
    assert value == pytest.approx(slow_value(matching, Z), rel=1e-8)
    assert value == pytest.approx(matching.fit(Z).losses[-1], rel=1e-12)
    np.testing.assert_allclose(slope, slope_by_differences(lambda z: slow_value(matching, z), Z), rtol=2e-4, atol=1e-5)
    moved = matching.move(Z, 40, frozen)
    assert (np.diff(moved.losses) <= 0).all()
    assert moved.losses[-1] < (0.95 if kernel == KERNELS[0] else 1.0) * value
    assert moved.losses[-1] == pytest.approx(slow_value(matching, moved.vectors), rel=1e-5)
    np.testing.assert_array_equal(moved.vectors[:frozen], Z[:frozen])


@pytest.mark.parametrize("kernel", KERNELS[:2], ids=repr)
def test_common_equations_for_many_outputs(kernel):
    """Where equations of their own would cost too much, all outputs share one Gram matrix on the way."""
    matching, Z = three_classes(2, kernel)
    matching.common = lambda m: True
    value, slope = matching.value_and_slope(Z)
    np.testing.assert_allclose(
        slope, slope_by_differences(lambda z: matching.value_and_slope(z)[0], Z), rtol=1e-4, atol=1e-5
    )
    moved = matching.move(Z, 40)
    assert (np.diff(moved.losses) <= 0).all()
    assert moved.losses[0] == pytest.approx(value)
    np.testing.assert_array_equal(matching.fit(moved.vectors).coef, moved.coef)


def test_least_angle_regression_equals_scikit_learns_on_the_thesis_matrices():
    """Ω = √D Sᵀ and β = −D^{−1/2} SᵀK(y − b) from K = S diag(κ) Sᵀ, D = κ² + κ/C; the target is −β (4.9)."""
    rng = np.random.default_rng(5)
    X, C, b = rng.normal(size=(60, 3)), 10.0, 0.3
    y = np.sign(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=60))
    K = rbf_kernel(X, X, 2.0)
    kappa, S = np.linalg.eigh(K)
    D = kappa**2 + kappa / C
    omega, beta = np.sqrt(D)[:, None] * S.T, -(S.T @ K @ (y - b)) / np.sqrt(D)
    _, order, coefs = lars_path(omega, -beta, method="lar", max_iter=15)
    Q = K @ K + K / C
    path = [(j, a.copy()) for j, a in least_angle(K @ (y - b), np.diag(Q).copy(), lambda j: Q[:, j], 15)]
    assert [j for j, _ in path] == list(order)[:15]
    for step, (_, alpha) in enumerate(path):
        np.testing.assert_allclose(alpha, coefs[:, step + 1], rtol=1e-6, atol=1e-9)


def test_on_the_path_the_coordinates_in_use_are_the_most_correlated_and_equally_so():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(80, 2))
    K = rbf_kernel(X, X, 0.5)
    Q, q = K @ K + 0.1 * K, K @ np.sign(X[:, 0] * X[:, 1])
    active, before = [], np.inf
    for j, alpha in least_angle(q, np.diag(Q).copy(), lambda j: Q[:, j], 25):
        active.append(j)
        size = np.abs(q - Q @ alpha)
        assert size[active].max() - size[active].min() <= 1e-8 * np.abs(q).max()
        assert size.max() <= size[active].max() + 1e-8 * np.abs(q).max()
        assert size[active].max() < before
        before = size[active].max()
    assert len(active) == 25


def test_least_angle_regression_passes_over_what_depends_on_others():
    rng = np.random.default_rng(6)
    A = rng.normal(size=(20, 5))
    A = np.column_stack([A, A[:, 0], np.zeros(20)])
    Q, q = A.T @ A, A.T @ rng.normal(size=20)
    entered = [j for j, _ in least_angle(q, np.diag(Q).copy(), lambda j: Q[:, j], 7)]
    assert len(entered) == 5
    assert not {0, 5} <= set(entered)


def test_temperatures_are_the_best_of_many():
    rng = np.random.default_rng(7)
    f = rng.normal(size=400)
    y = rng.random(400) < 1 / (1 + np.exp(-3 * f))
    assert temperature(f, y) == pytest.approx(3.0, rel=0.3)
    assert temperature(10 * f, y) == pytest.approx(temperature(f, y) / 10, rel=1e-3)
    z = rng.normal(size=(400, 3))
    p = np.exp(2 * z) / np.exp(2 * z).sum(axis=1, keepdims=True)
    codes = np.array([rng.choice(3, p=line) for line in p])
    softmax = lambda s: np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)  # noqa: E731
    assert common_temperature(z, codes, softmax) == pytest.approx(2.0, rel=0.25)
    assert temperature(np.zeros(5), np.ones(5)) == 1.0

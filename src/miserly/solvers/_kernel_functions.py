"""Kernel functions for training: whole matrices by BLAS, and how they change when the vectors move.

A kernel that can be compressed is differentiable in its second argument; that is the whole protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from miserly._typing import Floats
from miserly.plan import Chi2Kernels, Kernels, PolynomialKernels, RBFKernels


class KernelFunction(Protocol):
    """k(x, z) over rows of X (dense or sparse) and rows of Z (dense)."""

    @property
    def gamma(self) -> float: ...

    @property
    def least(self) -> float | None:
        """The smallest value that vectors may have."""
        ...

    def matrix(self, X: Any, Z: Any) -> Floats:
        """k(x_i, z_j), rows × vectors."""
        ...

    def diagonal(self, X: Any) -> Floats:
        """k(x_i, x_i)."""
        ...

    def gradient(self, X: Any, Z: Floats, K: Floats, G: Floats) -> Floats:
        """The gradient of Σ_ij G_ij k(x_i, z_j) in Z; K is the matrix at Z, and may be overwritten."""
        ...

    def dictionary(self, columns: ArrayLike, vectors: ArrayLike) -> Kernels:
        """The learners of a plan."""
        ...


@dataclass(frozen=True)
class RBF:
    """exp(−gamma ‖x − z‖²); the papers' σ is gamma = 1 / (2σ²)."""

    gamma: float
    least = None

    def matrix(self, X: Any, Z: Any) -> Floats:
        K = products(X, Z)
        K *= -2.0
        K += squares(X)[:, None]
        K += squares(Z)
        np.maximum(K, 0.0, out=K)
        K *= -self.gamma
        return np.exp(K, out=K)

    def diagonal(self, X: Any) -> Floats:
        return np.ones(X.shape[0])

    def gradient(self, X: Any, Z: Floats, K: Floats, G: Floats) -> Floats:
        K *= G
        return 2.0 * self.gamma * (sums(K, X) - K.sum(axis=0)[:, None] * Z)

    def dictionary(self, columns: ArrayLike, vectors: ArrayLike) -> Kernels:
        return RBFKernels(columns, vectors, self.gamma)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Polynomial:
    """(gamma xᵀz + coef0)^degree."""

    gamma: float
    coef0: float = 0.0
    degree: int = 3
    least = None

    def _base(self, X: Any, Z: Any) -> Floats:
        base = products(X, Z)
        base *= self.gamma
        base += self.coef0
        return base

    def matrix(self, X: Any, Z: Any) -> Floats:
        return np.asarray(self._base(X, Z) ** self.degree)

    def diagonal(self, X: Any) -> Floats:
        return np.asarray((self.gamma * squares(X) + self.coef0) ** self.degree)

    def gradient(self, X: Any, Z: Floats, K: Floats, G: Floats) -> Floats:
        slope = self._base(X, Z) ** (self.degree - 1)
        slope *= G
        return self.degree * self.gamma * sums(slope, X)

    def dictionary(self, columns: ArrayLike, vectors: ArrayLike) -> Kernels:
        return PolynomialKernels(columns, vectors, self.gamma, self.coef0, self.degree)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Chi2:
    """exp(−gamma Σ (x − z)² / (x + z)) of values that are not negative: counts, histograms."""

    gamma: float
    least = 0.0

    def matrix(self, X: Any, Z: Any) -> Floats:
        X, Z = _dense(X), _dense(Z)
        K = np.zeros((len(X), len(Z)))
        for x, z in zip(X.T, Z.T):
            total = x[:, None] + z
            K += np.divide((x[:, None] - z) ** 2, total, out=np.zeros_like(total), where=total > 0)
        K *= -self.gamma
        return np.exp(K, out=K)

    def diagonal(self, X: Any) -> Floats:
        return np.ones(X.shape[0])

    def gradient(self, X: Any, Z: Floats, K: Floats, G: Floats) -> Floats:
        """At x = z = 0 the slope from above: 1, since the distance is z there. A vector never leaves itself."""
        itself, X, slope = X is Z, _dense(X), np.empty_like(Z)
        K *= G
        for f, (x, z) in enumerate(zip(X.T, Z.T)):
            x = x[:, None]
            total = x + z
            steep = np.divide((z - x) * (3.0 * x + z), total**2, out=np.ones_like(total), where=total > 0)
            if itself:
                np.fill_diagonal(steep, 0.0)
            slope[:, f] = -self.gamma * np.einsum("ij,ij->j", K, steep)
        return slope

    def dictionary(self, columns: ArrayLike, vectors: ArrayLike) -> Kernels:
        return Chi2Kernels(columns, vectors, self.gamma)  # type: ignore[arg-type]


def _dense(X: Any) -> Floats:
    return np.asarray(X.toarray() if issparse(X) else X, np.float64)


def products(X: Any, Z: Any) -> Floats:
    """x_iᵀz_j between the rows of two matrices, dense, whichever of them is sparse."""
    made = X @ Z.T if issparse(X) or not issparse(Z) else (Z @ X.T).T
    return np.ascontiguousarray(made.toarray() if issparse(made) else made, np.float64)


def sums(G: Floats, X: Any) -> Floats:
    """Σ_i G_ij x_i: for each column of G a sum of rows."""
    return np.ascontiguousarray((X.T @ G).T if issparse(X) else G.T @ X, np.float64)


def squares(X: Any) -> Floats:
    """‖x‖² of each row."""
    if issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X), np.float64)

"""The group lasso with one penalty per feature: ½‖Y − Zβ‖² + Σ_j penalty_j ‖β_j‖₂, β_j a feature's row over outputs.

Features without a penalty are projected out, the others found by coordinate descent (on the Gram matrix, or on
residuals when there are more features than rows) and brought to full precision by Newton steps on those in use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from miserly._typing import Floats
from miserly.kernels import lasso as kernels

SINGULAR = 1e-10
TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10)
MAX_SWEEPS = 20_000
MAX_NEWTON_SIZE = 1500


@dataclass(frozen=True)
class LassoFit:
    """Coefficients (feature × output), and by how much the conditions of optimality are still violated."""

    beta: Floats
    violation: float
    n_sweeps: int
    converged: bool


class GroupLasso:
    """A data set ready to be solved for many penalties: the Gram matrix is made once for each set of free features.

    Z and Y are centred, their rows multiplied by the root of the row weights (which add up to one), the columns of Z
    have unit length; so a penalty is in the units of the *mean* loss.
    """

    def __init__(self, Z: Floats, Y: Floats) -> None:
        self.Z, self.Y = np.asfortranarray(Z), np.ascontiguousarray(Y)
        self._free: NDArray[np.bool_] | None = None

    def gradient_norms(self, free: NDArray[np.bool_]) -> Floats:
        """The length of each feature's gradient when only the free ones are used: penalties above it buy nothing."""
        self._project(free)
        strength = np.zeros(self.Z.shape[1])
        strength[~free] = np.linalg.norm(self._Z.T @ self._Y, axis=1)
        return strength

    def solve(self, penalty: Floats, start: Floats | None = None) -> LassoFit:
        """The minimum for these penalties, from the coefficients `start` if given."""
        free = penalty <= 0.0
        beta = np.zeros((self.Z.shape[1], self.Y.shape[1]))
        violation, sweeps, converged = 0.0, 0, True
        if not free.all():
            self._project(free)
            first = beta[~free] if start is None else start[~free]
            beta[~free], violation, sweeps, converged = self._descend(penalty[~free], first.copy())
        if free.any():
            used = np.flatnonzero(beta.any(axis=1))
            beta[free] = least_squares(self.Z[:, free], self.Y - self.Z[:, used] @ beta[used])
        return LassoFit(beta, violation, sweeps, converged)

    def _project(self, free: NDArray[np.bool_]) -> None:
        """Take out of Y and of the penalised features what the free ones explain."""
        if self._free is not None and np.array_equal(free, self._free):
            return
        self._free, Z, Y = free.copy(), self.Z, self.Y
        if free.any():
            basis = _orthonormal(Z[:, free])
            Z = np.asfortranarray(Z[:, ~free])
            Z, Y = Z - basis @ (basis.T @ Z), Y - basis @ (basis.T @ Y)
        self._Z, self._Y = np.asfortranarray(Z), Y
        self._squares = np.einsum("ij,ij->j", self._Z, self._Z)
        self._squares[self._squares < SINGULAR] = 0.0
        self._gram = self._Z.T @ self._Z if self._Z.shape[1] <= self._Z.shape[0] else None
        if self._gram is not None:
            np.fill_diagonal(self._gram, self._squares)
        self._moment = self._Z.T @ self._Y

    def _descend(self, penalty: Floats, beta: Floats) -> tuple[Floats, float, int, bool]:
        scale = float(np.linalg.norm(self._Y))
        sweeps, violation = 0, 0.0
        for tolerance in TOLERANCES:
            limit = tolerance * scale
            if self._gram is not None:
                residual = np.ascontiguousarray(self._residual_of(beta).T)
                done, violation = kernels.descend_gram(self._gram, penalty, residual, beta, limit, MAX_SWEEPS)
            else:
                residual = np.ascontiguousarray((self._Y - self._Z @ beta).T)
                done, violation = kernels.descend_residual(
                    self._Z.T, self._squares, penalty, residual, beta, limit, MAX_SWEEPS
                )
            sweeps += done
            exact = self._newton(penalty, beta)
            if exact is not None and (rest := self._violation(penalty, exact)) < min(violation, limit):
                beta, violation = exact, rest
                if violation <= TOLERANCES[-1] * scale:
                    break
        return beta, violation, sweeps, violation <= 10 * TOLERANCES[-1] * scale

    def _residual_of(self, beta: Floats) -> Floats:
        """Zᵀ(Y − Zβ)."""
        used = np.flatnonzero(beta.any(axis=1))
        if self._gram is not None:
            return self._moment - self._gram[:, used] @ beta[used]
        return self._Z.T @ (self._Y - self._Z[:, used] @ beta[used])

    def _violation(self, penalty: Floats, beta: Floats) -> float:
        residual, size = self._residual_of(beta), np.linalg.norm(beta, axis=1)
        used = size > 0
        wanted = penalty[used, None] * beta[used] / size[used, None]
        idle = np.linalg.norm(residual[~used & (self._squares > 0)], axis=1) - penalty[~used & (self._squares > 0)]
        return max(float(np.abs(residual[used] - wanted).max(initial=0.0)), float(idle.max(initial=0.0)))

    def _newton(self, penalty: Floats, beta: Floats) -> Floats | None:
        """Newton steps among the features in use; None if one of them would turn round, or nothing can be solved."""
        used = np.flatnonzero(beta.any(axis=1))
        n_outputs = beta.shape[1]
        if not len(used) or len(used) * n_outputs > MAX_NEWTON_SIZE:
            return None
        gram = self._gram[np.ix_(used, used)] if self._gram is not None else self._Z[:, used].T @ self._Z[:, used]
        at, weight, moment = beta[used], penalty[used], self._moment[used]
        for _ in range(1 if n_outputs == 1 else 4):
            size = np.linalg.norm(at, axis=1)
            unit = at / size[:, None]
            slope = gram @ at - moment + weight[:, None] * unit
            curve = np.kron(gram, np.eye(n_outputs)).reshape(len(used), n_outputs, len(used), n_outputs)
            curvature = (weight / size)[:, None, None] * (np.eye(n_outputs) - unit[:, :, None] * unit[:, None, :])
            curve[np.arange(len(used)), :, np.arange(len(used)), :] += curvature
            try:
                factor = linalg.cho_factor(curve.reshape(slope.size, slope.size), check_finite=False)
            except linalg.LinAlgError:
                return None
            after = at - linalg.cho_solve(factor, slope.ravel(), check_finite=False).reshape(slope.shape)
            if not (np.einsum("jk,jk->j", after, at) > 0).all():
                return None
            at = after
        exact = np.zeros_like(beta)
        exact[used] = at
        return exact


def least_squares(Z: Floats, Y: Floats) -> Floats:
    """Least squares; the shortest answer, in which collinear columns share, if there are several."""
    n, d = Z.shape
    return _pseudo_solve(Z.T @ Z, Z.T @ Y) if d <= n else Z.T @ _pseudo_solve(Z @ Z.T, Y)


def _pseudo_solve(gram: Floats, right: Floats) -> Floats:
    """By Cholesky's factor, or by eigenvectors without the directions that the data hardly have."""
    try:
        factor, lower = linalg.cho_factor(gram, check_finite=False)
        pivots = np.diag(factor) ** 2
        if pivots.min(initial=np.inf) > SINGULAR * pivots.max(initial=0.0):
            return np.asarray(linalg.cho_solve((factor, lower), right, check_finite=False))
    except linalg.LinAlgError:
        pass
    size, vectors = linalg.eigh(gram, check_finite=False)
    kept = vectors[:, size > SINGULAR * size[-1]]
    return np.asarray(kept @ ((kept.T @ right) / size[size > SINGULAR * size[-1], None]))


def _orthonormal(Z: Floats) -> Floats:
    """A basis of the columns' span."""
    left, size, _ = linalg.svd(Z, full_matrices=False, check_finite=False)
    return np.asarray(left[:, size > SINGULAR**0.5 * size[0]])

"""A linear SVM inside another objective: kept at its minimum while its inputs change, and differentiated through it.

The inner problem is ½‖w‖² + ½C Σ_T μ_i max(0, 1 − y_i J_i)² with J = wᵀφ + b over training rows T. The outer loss is
a smooth count of errors on validation rows V, Σ_V μ_i σ(y_i J_i) with σ(z) = 1 / (1 + e^{az}) (AFR, equation 6). The
minimum obeys M[w; b] = Σ_sv μ_i y_i φ̃_i, φ̃ = [φ; 1], M = diag(I/C, 0) + Σ_sv μ_i φ̃_i φ̃_iᵀ, so that one solve

    v = M⁻¹ Σ_V (∂ℓ/∂J_j) φ̃_j

gives the whole gradient: μ_i(y_i ξ_i v_s − w_s φ̃_iᵀv) for a training row inside the margin, zero for the other ones,
(∂ℓ/∂J_j) w_s for a validation row, and v_{1:S}ᵀw / C² for C.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from miserly._typing import Floats
from miserly.solvers import Inside, minimise

EXACT = 1e-9
FIRST_DIMS = 8


@dataclass(frozen=True)
class SVMState:
    """How many dimensions φ has, and the inner problem's penalty."""

    n_dims: int
    penalty: float


class NestedSVM:
    """Rows are T, then V, then any others, which are only scored. Dimensions of φ are columns, added and changed.

    `y` is ±1; `weights` are μ. The answer (`w`, `b`, `scores`) is brought up to date when it is asked for.
    """

    def __init__(self, y: Floats, weights: Floats, n_train: int, n_valid: int, C: float = 1.0, a: float = 5.0) -> None:
        self.y, self.weights, self.n_train, self.n_seen, self.a = y, weights, n_train, n_train + n_valid, a
        self._buffer = np.zeros((len(y), FIRST_DIMS), order="F")
        self.n_dims = 0
        self._inside = Inside(self._buffer[:n_train, :0], y[:n_train], C, weights[:n_train])
        self._w: Floats = np.zeros(0)
        self._b = 0.0
        self._changed: set[int] = set()
        self._current = False

    @property
    def phi(self) -> Floats:
        """The representation of all rows: row × dimension."""
        return self._buffer[:, : self.n_dims]

    @property
    def penalty(self) -> float:
        """The inner problem's trade between margin and slack."""
        return self._inside.C

    @penalty.setter
    def penalty(self, value: float) -> None:
        self._inside.C = value
        self._current = False

    def add(self, column: Floats) -> None:
        """One more dimension."""
        if self.n_dims == self._buffer.shape[1]:
            buffer = np.zeros((len(self.y), 2 * self.n_dims), order="F")
            buffer[:, : self.n_dims] = self._buffer
            self._buffer = buffer
        self._changed.add(self.n_dims)
        self._current = False
        self.n_dims += 1
        self.change(self.n_dims - 1, column)

    def change(self, s: int, column: Floats) -> None:
        """Other values of one dimension, for all rows or for the first ones."""
        matters = not np.array_equal(self._buffer[: self.n_train, s], column[: self.n_train])
        self._buffer[: len(column), s] = column
        if matters:
            self._changed.add(s)
            self._current = False

    def snapshot(self) -> SVMState:
        """What `restore` returns to, as long as only later dimensions change."""
        return SVMState(self.n_dims, self.penalty)

    def restore(self, state: SVMState) -> None:
        """Take the later dimensions off, and the penalty back."""
        self.n_dims, self.penalty = state.n_dims, state.penalty
        self._changed = {s for s in self._changed if s < state.n_dims}

    # ---- the answer -------------------------------------------------------------------------------------------

    @property
    def w(self) -> Floats:
        self._minimise()
        return self._w

    @property
    def b(self) -> float:
        self._minimise()
        return self._b

    @property
    def scores(self) -> Floats:
        """J of all rows."""
        return np.asarray(self.phi @ self.w + self.b)

    def _minimise(self) -> None:
        """Newton's steps from the last answer; where sums of rows that came and went have drifted, from fresh ones."""
        if self._current:
            return
        Z = self._buffer[: self.n_train, : self.n_dims]
        self._inside.with_columns(Z, np.array(sorted(self._changed), np.intp))
        start = np.zeros(self.n_dims)
        kept = min(len(self._w), self.n_dims)
        start[:kept] = self._w[:kept]
        self._w, self._b, _ = minimise(self._inside, start, self._b)
        if self.violation > EXACT:
            self._inside.forget()
            self._w, self._b, _ = minimise(self._inside, self._w, self._b)
        self._changed.clear()
        self._current = True

    @property
    def violation(self) -> float:
        """The largest entry of the inner gradient, against the largest of the two forces that cancel in it."""
        mu, Z, C = self.weights[: self.n_train], self._inside.Z, self.penalty
        forces = C * mu * self.y[: self.n_train] * np.maximum(0.0, self._slack)
        force = forces @ Z
        size = max(1.0, np.abs(self._w).max(initial=0.0), C * float(mu.sum()))
        return max(float(np.abs(self._w - force).max(initial=0.0)), abs(float(forces.sum()))) / size

    @property
    def _slack(self) -> Floats:
        Z = self._buffer[: self.n_train, : self.n_dims]
        return np.asarray(1.0 - self.y[: self.n_train] * (Z @ self._w + self._b))

    # ---- the outer loss ---------------------------------------------------------------------------------------

    @property
    def valid(self) -> slice:
        """The rows V."""
        return slice(self.n_train, self.n_seen)

    def soft_errors(self, rows: slice) -> Floats:
        """σ(yJ) of some rows."""
        J = self.phi[rows] @ self.w + self.b
        return np.asarray(0.5 - 0.5 * np.tanh(0.5 * self.a * self.y[rows] * J))

    def loss(self) -> float:
        """Σ_V μ σ(yJ)."""
        return float(self.weights[self.valid] @ self.soft_errors(self.valid))

    def score_gradient(self, rows: slice) -> Floats:
        """∂ℓ/∂J of some rows, if these are what the loss counts."""
        soft = self.soft_errors(rows)
        return np.asarray(-self.a * self.weights[rows] * self.y[rows] * soft * (1.0 - soft))

    def adjoint(self, rows: slice) -> tuple[Floats, float]:
        """v and its last entry, v_b, for a loss over some rows."""
        self._minimise()
        inside = self._inside
        if not inside.rows.any():
            return np.zeros(self.n_dims), 0.0
        score_gradient, centre = self.score_gradient(rows), inside.centre
        total = float(score_gradient.sum())
        v = inside.inverse(score_gradient @ self.phi[rows] - total * centre)
        return v, total / float(inside.mu.sum()) - float(centre @ v)

    def slope(self, s: int) -> Floats:
        """∂ℓ/∂φ^s of training and validation rows."""
        v, v_b = self.adjoint(self.valid)
        train = slice(0, self.n_train)
        own = self.y[train] * self._slack * v[s] - self.w[s] * (self.phi[train] @ v + v_b)
        return np.concatenate([self._inside.mu * own, self.score_gradient(self.valid) * self.w[s]])

    def slope_of_penalty(self, rows: slice | None = None) -> float:
        """∂ℓ/∂C, also for a loss over other rows than V."""
        v, _ = self.adjoint(self.valid if rows is None else rows)
        return float(v @ self.w) / self.penalty**2

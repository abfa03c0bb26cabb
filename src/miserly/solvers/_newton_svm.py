"""The linear SVM with squared hinge loss, ½‖w‖² + ½C Σ μ_i max(0, 1 − y_i(wᵀz_i + b))², by Newton's method.

With the rows inside the margin known, the minimum is a linear system. Each step solves it and goes to the exact minimum
along the way there; when the rows inside no longer change, the answer is exact (Keerthi & DeCoste 2005).
"""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from miserly._typing import Floats

logger = logging.getLogger(__name__)
MAX_STEPS = 200


def newton_svm(Z: Floats, y: Floats, C: float = 1.0, weights: Floats | None = None) -> tuple[Floats, float, int]:
    """Weights, free intercept and number of steps; y in {−1, +1}."""
    weights = np.ones(len(y)) if weights is None else weights
    total, positive = float(weights.sum()), float(weights[y > 0].sum())
    if positive in (0.0, total):
        return np.zeros(Z.shape[1]), 1.0 if positive else -1.0, 0
    if Z.shape[1] > Z.shape[0]:
        left, size, right = linalg.svd(Z, full_matrices=False, check_finite=False)
        inner, b, steps = newton_svm(np.asfortranarray(left * size), y, C, weights)
        return right.T @ inner, b, steps
    return minimise(Inside(Z, y, C, weights), np.zeros(Z.shape[1]), 0.0)


def minimise(margin: Inside, w: Floats, b: float) -> tuple[Floats, float, int]:
    """Newton's steps from a start, which may be the answer to a problem nearby."""
    Z, y, C, weights = margin.Z, margin.y, margin.C, margin.weights
    slack = 1.0 - y * (Z @ w + b)
    for step in range(1, MAX_STEPS + 1):
        inside = (slack > 0) & (weights > 0)
        w_new, b_new = margin.solve(inside)
        slack_new = 1.0 - y * (Z @ w_new + b_new)
        if np.array_equal((slack_new > 0) & (weights > 0), inside):
            return w_new, b_new, step
        t = _best_step(w, w_new - w, slack, slack - slack_new, C * weights)
        w, b, slack = w + t * (w_new - w), b + t * (b_new - b), slack + t * (slack_new - slack)
        if np.abs(slack - slack_new).max() <= 1e-14:
            return w, b, step
    logger.warning("The linear SVM did not converge in %d Newton steps; its weights are approximate.", MAX_STEPS)
    return w, b, MAX_STEPS


class Inside:
    """The sums over the rows inside the margin; rows that enter or leave are added or taken off."""

    def __init__(self, Z: Floats, y: Floats, C: float, weights: Floats) -> None:
        self.Z, self.y, self.C, self.weights = Z, y, C, weights
        self.forget()

    def forget(self) -> None:
        """Count all rows again at the next step."""
        self.rows = np.zeros(len(self.y), bool)
        self.gram: Floats = np.zeros((self.Z.shape[1], self.Z.shape[1]))

    def with_columns(self, Z: Floats, changed: NDArray[np.intp]) -> None:
        """The same rows with other columns: those up to the old number that are not `changed` are as they were."""
        kept = min(len(self.gram), Z.shape[1])
        gram = np.zeros((Z.shape[1], Z.shape[1]))
        gram[:kept, :kept] = self.gram[:kept, :kept]
        self.Z, self.gram = Z, gram
        mu = np.where(self.rows, self.weights, 0.0)
        for s in changed:
            gram[s] = gram[:, s] = (mu * Z[:, s]) @ Z

    def solve(self, rows: NDArray[np.bool_]) -> tuple[Floats, float]:
        """The minimum if exactly these rows are inside: M[w; b] = Σ μ y φ̃, with b eliminated."""
        entered, left = rows & ~self.rows, self.rows & ~rows
        if np.count_nonzero(entered) + np.count_nonzero(left) >= np.count_nonzero(rows):
            self.gram, entered, left = np.zeros_like(self.gram), rows, np.zeros_like(rows)
        for some, sign in ((entered, 1.0), (left, -1.0)):
            if some.any():
                part = np.take(self.Z.T, np.flatnonzero(some), axis=1) * np.sqrt(self.weights[some])
                self.gram += sign * (part @ part.T)
        self.rows = rows
        if not rows.any():  # nobody inside: only the length of w counts, towards zero some row will enter
            return np.zeros(self.Z.shape[1]), 0.0
        mu = self.mu
        mean = float(mu @ self.y) / float(mu.sum())
        w = self.inverse((mu * (self.y - mean)) @ self.Z)
        return w, mean - float(self.centre @ w)

    @property
    def mu(self) -> Floats:
        """The weights of the rows inside, zero for the others."""
        return np.where(self.rows, self.weights, 0.0)

    @property
    def centre(self) -> Floats:
        """The mean of the rows inside."""
        mu = self.mu
        return np.asarray(mu @ self.Z / mu.sum())

    def inverse(self, right: Floats) -> Floats:
        """v of M[v; v_b] = [r; r_b], for right = r − centre·r_b; then v_b is r_b / Σμ − centre @ v."""
        if not len(right):
            return right
        centre = self.centre
        matrix = self.gram - float(self.mu.sum()) * np.outer(centre, centre)
        matrix[np.diag_indices(len(matrix))] += 1.0 / self.C
        factor = linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
        return np.asarray(linalg.cho_solve(factor, right, check_finite=False))


def _best_step(w: Floats, move: Floats, slack: Floats, along: Floats, costs: Floats) -> float:
    """The minimum of the objective on the line w + t·move: the zero of a rising, piecewise linear slope.

    Row i has slack_i − t·along_i; it counts while that is positive, so it starts or stops counting at one t.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        meets = slack / along
    meets = np.unique(meets[np.isfinite(meets) & (meets > 0) & (costs > 0)])
    low, high = 0, len(meets)
    while low < high:
        half = (low + high) // 2
        if _slope(float(meets[half]), w, move, slack, along, costs) < 0:
            low = half + 1
        else:
            high = half
    left = float(meets[low - 1]) if low else 0.0
    right = float(meets[low]) if low < len(meets) else left + 1.0
    a, b = (_slope(t, w, move, slack, along, costs) for t in (left, right))
    return left - a * (right - left) / (b - a) if b > a else right


def _slope(t: float, w: Floats, move: Floats, slack: Floats, along: Floats, costs: Floats) -> float:
    rest = np.maximum(slack - t * along, 0.0)
    return float((w + t * move) @ move - (costs * rest) @ along)

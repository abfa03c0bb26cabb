"""Moving the vectors of a small kernel machine until it says what a large one says (thesis 4.10).

J(Z) = Σ_p min over a, b of  Σ_{i ∈ rows of p} w_i (k(x_i, Z) a + b − F_ip)² + norm · aᵀ k(Z, Z) a. The coefficients are
eliminated (variable projection), only the vectors Z, which all outputs share, are searched for, by L-BFGS. F holds what
the large machine says; an output that parts two classes is matched on the rows of these two. Rows lie class by class,
so that the Gram matrix of an output is the sum of its classes'. The norm keeps many vectors from running wild between
few rows: it grows with their share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, optimize

from miserly._typing import Floats
from miserly.solvers import KernelFunction

NORM = 0.01
RIDGE = 1e-9


@dataclass(frozen=True)
class Moved:
    """Vectors, their coefficients (vector × output), the constants; what was minimised, at the start and after each
    iteration; and the squared residuals as a share of the squared targets."""

    vectors: Floats
    coef: Floats
    bias: Floats
    losses: tuple[float, ...]
    distance: float = 0.0


class Matching:
    """Targets F (row × output) at points X. `ends` are where each class of rows ends; `outputs` names the classes that
    each output parts; `weights` say how many rows each stands for (one, if not given)."""

    def __init__(
        self,
        kernel: KernelFunction,
        X: Any,
        F: Floats,
        ends: Sequence[int],
        outputs: Sequence[tuple[int, ...]],
        weights: Floats | None = None,
    ) -> None:
        self.kernel, self.X, self.F, self.outputs = kernel, X, F, tuple(outputs)
        self.weights = np.ones(len(F)) if weights is None else weights
        self.blocks = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends)]
        self.seen = np.zeros((len(self.blocks), len(self.outputs)))  # class × output
        for p, classes in enumerate(self.outputs):
            self.seen[list(classes), p] = 1.0
        self.sizes = np.array([self.weights[block].sum() for block in self.blocks])
        self.size = float(kernel.diagonal(X).mean())
        self.ridge = RIDGE * float(self.weights.sum()) * self.size**2
        self.total = float(np.vdot(self._masked(F.copy()), self.weights[:, None] * F))

    def norm(self, m: int) -> float:
        """How much the length of m coefficients counts."""
        return NORM * self.size * min(1.0, m / float(np.mean(self.sizes @ self.seen)))

    def common(self, m: int) -> bool:
        """Whether the way is found with one Gram matrix, every output matched on all rows: where the m³ steps of
        solving for each output would be most of the work. Each output gets its own coefficients at the end."""
        return len(self.outputs) * m**2 > 6.0 * len(self.F) * (m + len(self.outputs) + self.X.shape[1])

    def fit(self, Z: Floats) -> Moved:
        """The coefficients for these vectors as they stand, each output for itself."""
        K, among = self.kernel.matrix(self.X, Z), self.kernel.matrix(Z, Z)
        coef, bias = self._solve(K, among)
        value, R = self._value(K, among, coef, bias, masked=True)
        rest = float(np.vdot(R, self.weights[:, None] * R))
        return Moved(Z, coef, bias, (value,), rest / self.total if self.total else 0.0)

    def agreement(self, moved: Moved) -> float:
        """For how much of the rows the small machine decides as the large one, of the outputs that they count for."""
        scores = self.kernel.matrix(self.X, moved.vectors) @ moved.coef + moved.bias
        same = self._masked(((scores > 0) == (self.F > 0)).astype(np.float64))
        return float(self.weights @ same.sum(axis=1)) / float((self.sizes @ self.seen).sum())

    def doubled(self, moved: Moved) -> Matching:
        """The same with twice the weight on rows for which a small machine decides otherwise."""
        scores = self.kernel.matrix(self.X, moved.vectors) @ moved.coef + moved.bias
        wrong = self._masked(((scores > 0) != (self.F > 0)).astype(np.float64)).any(axis=1)
        weights = self.weights * np.where(wrong, 2.0, 1.0)
        weights *= self.weights.sum() / weights.sum()
        ends = [block.stop for block in self.blocks]
        return Matching(self.kernel, self.X, self.F, ends, self.outputs, weights)

    def value_and_slope(self, Z: Floats) -> tuple[float, Floats]:
        """What is minimised, and its gradient: at the best coefficients only the direct change of the kernel counts."""
        K, among = self.kernel.matrix(self.X, Z), self.kernel.matrix(Z, Z)
        common = self.common(len(Z))
        coef, bias = self._solve_common(K, among) if common else self._solve(K, among)
        value, R = self._value(K, among, coef, bias, masked=not common)
        slope = self.kernel.gradient(self.X, Z, K, 2.0 * ((self.weights[:, None] * R) @ coef.T))
        slope += self.kernel.gradient(Z, Z, among, 2.0 * self.norm(len(Z)) * (coef @ coef.T))
        return value, slope

    def move(self, Z: Floats, max_iter: int, frozen: int = 0, tell: Callable[[Floats], None] | None = None) -> Moved:
        """Move all but the first `frozen` vectors downhill, never up. `tell` is shown the vectors on their way."""
        fixed, shape = Z[:frozen], (len(Z) - frozen, Z.shape[1])
        start = self.value_and_slope(Z)[0]
        if not max_iter or not shape[0] or not start > 0:
            return self.fit(Z)
        losses = [start]

        def function(free: Floats) -> tuple[float, Floats]:
            value, slope = self.value_and_slope(np.concatenate([fixed, free.reshape(shape)]))
            return value / start, slope[frozen:].ravel() / start

        def follow(intermediate_result: Any) -> None:
            losses.append(float(intermediate_result.fun) * start)
            if tell is not None:
                tell(np.concatenate([fixed, intermediate_result.x.reshape(shape)]))

        options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": 1e-7, "gtol": 1e-9}
        start_at, least = Z[frozen:].ravel(), self.kernel.least
        bounds = None if least is None else [(least, None)] * len(start_at)
        found = optimize.minimize(
            function, start_at, jac=True, method="L-BFGS-B", bounds=bounds, callback=follow, options=options
        )
        end = self.fit(np.concatenate([fixed, found.x.reshape(shape)]))
        return Moved(end.vectors, end.coef, end.bias, tuple(losses), end.distance)

    def _solve(self, K: Floats, among: Floats) -> tuple[Floats, Floats]:
        """The best coefficients and constants of each output on the rows of its classes."""
        m = K.shape[1]
        weighted = K * self.weights[:, None]
        grams = [weighted[block].T @ K[block] for block in self.blocks]
        shrink = self.norm(m) * among
        shrink[np.diag_indices(m)] += self.ridge
        wanted = self._masked(self.F.copy())
        totals = np.maximum(self.sizes @ self.seen, np.finfo(float).tiny)
        means = self.seen.T @ np.array([weighted[block].sum(axis=0) for block in self.blocks]) / totals[:, None]
        means_F = self.weights @ wanted / totals
        right = weighted.T @ wanted - means.T * (totals * means_F)
        coef = np.empty((m, len(self.outputs)))
        for p, classes in enumerate(self.outputs):
            gram = shrink - totals[p] * np.outer(means[p], means[p])
            for c in classes:
                gram += grams[c]
            coef[:, p] = linalg.solve(gram, right[:, p], assume_a="pos", overwrite_a=True, check_finite=False)
        return coef, means_F - np.einsum("pj,jp->p", means, coef)

    def _solve_common(self, K: Floats, among: Floats) -> tuple[Floats, Floats]:
        """The best coefficients and constants on all rows."""
        total, weighted = float(self.weights.sum()), K * self.weights[:, None]
        mean, mean_F = weighted.sum(axis=0) / total, self.weights @ self.F / total
        gram = weighted.T @ K - total * np.outer(mean, mean) + self.norm(len(among)) * among
        gram[np.diag_indices(len(gram))] += self.ridge
        right = weighted.T @ self.F - np.outer(mean, total * mean_F)
        coef = linalg.solve(gram, right, assume_a="pos", overwrite_a=True, check_finite=False)
        return coef, mean_F - mean @ coef

    def _value(self, K: Floats, among: Floats, coef: Floats, bias: Floats, masked: bool) -> tuple[float, Floats]:
        """What is minimised, and the residuals."""
        R = K @ coef
        R += bias
        R -= self.F
        if masked:
            self._masked(R)
        length = float(np.vdot(coef, self.norm(len(among)) * (among @ coef) + self.ridge * coef))
        return float(np.vdot(R, self.weights[:, None] * R)) + length, R

    def _masked(self, table: Floats) -> Floats:
        """A table of rows × outputs with zeros, in place, where a row's class is none of the output's."""
        for c, block in enumerate(self.blocks):
            table[block] *= self.seen[c]
        return table

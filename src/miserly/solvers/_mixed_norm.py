"""The mixed-norm problem on a Gram matrix, by alternating minimisation.

    ½ tr βᵀAβ − tr bᵀβ + ρ Σ_t ‖β_t‖ + w [ Σ_t e_t √Q_t + Σ_a c_a √(Σ_t N_at Q_t) ],   Q_t = base_t + (d ‖β_t‖)²

β_t are the weights of learner t over the outputs. `base` is what other nodes of the path use already: an acquisition is
paid once per path, so its norm runs over all learners that need it (N) and over all nodes. Each root is replaced by a
quadratic that touches it from above, with an auxiliary variable that has a closed form; the quadratic is then solved
exactly. A weight that is zero stays zero: the set in use only shrinks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from miserly._typing import Floats
from miserly.costs import set_bits, total_price

START_RIDGE = 1e-3
SMALL = 1e-3
FLAT = 1e-10
SLACK = 1e-2
EDGE = 1e-2
SHARPENED = 4
NOISE = 64 * np.finfo(np.float64).eps  # of a sum of squares: less around the mean is rounding


def centred_gram(gram: Floats, total: float, centre: Floats) -> Floats:
    """Products around the weighted means, given those around zero; nothing of columns that only rounding makes vary."""
    found = gram - total * np.outer(centre, centre)
    flat = np.diag(found) <= NOISE * np.diag(gram)
    found[flat] = 0.0
    found[:, flat] = 0.0
    return found


@dataclass(frozen=True)
class AcquisitionNorm:
    """Prices of learners' evaluations (T), prices of acquisitions (A), and who needs what (A × T, zeros and ones)."""

    evaluation: Floats
    prices: Floats
    needs: sparse.csr_array

    @cached_property
    def _needed(self) -> Any:
        """Who is needed by whom: the transpose, which scipy makes again at each use."""
        return self.needs.T

    @cached_property
    def by_learner(self) -> sparse.csr_array:
        """The acquisitions of each learner."""
        return self.needs.T.tocsr()

    @classmethod
    def of(cls, masks: Sequence[int], evaluation: Sequence[float], prices: Sequence[float]) -> AcquisitionNorm:
        """From the acquisitions of each learner as bit sets; what nobody needs, or what is free, is left out."""
        rows, columns = [], []
        for t, mask in enumerate(masks):
            for a in set_bits(mask):
                rows.append(a)
                columns.append(t)
        needs = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(prices), len(masks)))
        some = np.flatnonzero((np.asarray(prices, np.float64) > 0) & (np.diff(needs.indptr) > 0))
        return cls(np.asarray(evaluation, np.float64), np.asarray(prices, np.float64)[some], needs[some])

    def times(self, factor: float) -> AcquisitionNorm:
        """All prices times a factor; times zero there are no acquisitions left, so that nothing depends on them."""
        if factor == 0:
            return AcquisitionNorm(np.zeros_like(self.evaluation), self.prices[:0], self.needs[:0])
        return AcquisitionNorm(self.evaluation * factor, self.prices * factor, self.needs)

    def of_columns(self, columns: NDArray[np.intp]) -> AcquisitionNorm:
        """For these learners alone."""
        return AcquisitionNorm(self.evaluation[columns], self.prices, self.needs[:, columns])

    def value(self, squares: Floats, shared: Floats | float = 0.0) -> Any:
        """The norm for squared weights of each learner; `shared` are squares (per acquisition) of others.

        One path, or several as columns.
        """
        return self.evaluation @ np.sqrt(squares) + self.prices @ np.sqrt(self.needs @ squares + shared)

    def slopes(self, squares: Floats, shared: Floats | float = 0.0) -> Floats:
        """m_t = e_t/√Q_t + Σ_a c_a N_at/√G_a: twice the slope in Q_t; zero where there is nothing."""
        root, group = np.sqrt(squares), np.sqrt(self.needs @ squares + shared)
        own = np.divide(self.evaluation, root.T, out=np.zeros_like(root.T), where=root.T > 0).T
        bought = np.divide(self.prices, group.T, out=np.zeros_like(group.T), where=group.T > 0).T
        return np.asarray(own + self._needed @ bought)


@dataclass(frozen=True)
class MixedFit:
    """Weights (learner × output), the values of the objective on the way, and whether they converged."""

    beta: Floats
    values: tuple[float, ...]
    converged: bool


class MixedNorm:
    """One problem; `run()` solves it. `d` and `w` are as in the objective above.

    `shared` are squares (per acquisition) of learners that the problem does not know: those of other nodes.
    """

    def __init__(
        self,
        A: Floats,
        b: Floats,
        norm: AcquisitionNorm,
        rho: float = 0.0,
        w: float = 1.0,
        d: float = 1.0,
        base: Floats | None = None,
        shared: Floats | None = None,
    ) -> None:
        self.A, self.b, self.norm = A, b, norm
        self.rho, self.w, self.d = rho, w, d
        self.base = np.zeros(len(A)) if base is None else base
        self.shared = np.zeros(len(norm.prices)) if shared is None else shared

    def value(self, beta: Floats) -> float:
        """The objective."""
        used = np.flatnonzero(beta.any(axis=1))
        at = beta[used]
        quadratic = 0.5 * float(np.vdot(at, self.A[np.ix_(used, used)] @ at)) - float(np.vdot(self.b[used], at))
        size = np.linalg.norm(beta, axis=1)
        cost = float(self.norm.value(self.base + (self.d * size) ** 2, self.shared))
        return quadratic + self.rho * float(size.sum()) + self.w * cost

    def ridge_start(self) -> Floats:
        """Every weight that can matter, not zero: from a zero there is no return."""
        beta, active = np.zeros_like(self.b), self._varying()
        if len(active):
            A = self.A[np.ix_(active, active)]
            A[np.diag_indices(len(A))] += START_RIDGE * np.trace(A) / len(A)
            beta[active] = linalg.solve(A, self.b[active], assume_a="pos", check_finite=False)
        return beta

    def run(self, start: Floats | None = None, tol: float = 1e-7, max_iter: int = 500) -> MixedFit:
        """Alternate until the objective falls by less than `tol` of the loss that is there to explain."""
        beta = self.ridge_start() if start is None else start.copy()
        scale = max(self._explained(beta), np.finfo(np.float64).tiny)
        values = [self.value(beta)]
        for _ in range(max_iter):
            if not beta.any():
                return MixedFit(beta, tuple(values), True)
            self._solve(beta)
            self._drop(beta, SMALL)
            values.append(self.value(beta))
            if values[-2] - values[-1] <= tol * scale and not self._drop(beta, 1.0):
                return MixedFit(beta, tuple(values), True)
        return MixedFit(beta, tuple(values), False)

    def run_from(self, start: Floats | None) -> MixedFit:
        """From weights that may be good already; if a zero among them turns out to be wrong, from the ridge again."""
        if start is not None and start.any():
            fit = self.run(start)
            if fit.converged and not self.misses(fit.beta):
                return fit
        return self.run()

    def reweighted(self, start: Floats | None = None) -> MixedFit:
        """As `run_from`, and where learners share acquisitions with a cost that is nearer to a count: another problem,
        which is not convex.

        Roots ask for many small weights rather than few large ones among learners that share what they need, so all of
        them stay until none does. Here each root g becomes L ln(1 + g/εL) / ln(1 + 1/ε), which is g at 0 and at L, the
        largest of the first solution; its tangents are roots again, at other prices (ε is EDGE).
        """
        fit = self.run_from(start)
        largest = max(part.max(initial=0.0) for part in self._roots(fit.beta))
        if not largest > 0 or (np.diff(self.norm.needs.indptr) <= 1).all():
            return fit
        for _ in range(SHARPENED):
            own, shared = (
                largest / ((root + EDGE * largest) * math.log1p(1.0 / EDGE)) for root in self._roots(fit.beta)
            )
            norm = AcquisitionNorm(self.norm.evaluation * own, self.norm.prices * shared, self.norm.needs)
            fit = MixedNorm(self.A, self.b, norm, self.rho, self.w, self.d, self.base, self.shared).run(fit.beta)
        return fit

    def _roots(self, beta: Floats) -> tuple[Floats, Floats]:
        """The roots of the norm: of learners, and of acquisitions."""
        squares = self.base + self.d**2 * (beta**2).sum(axis=1)
        return np.sqrt(squares), np.sqrt(self.norm.needs @ squares + self.shared)

    def misses(self, beta: Floats) -> bool:
        """Whether some weight that is zero would lower the objective if it were not, by itself or with its group.

        Exact where a learner needs at most one acquisition that other unused ones need too; else it may say so in vain.
        """
        size = np.linalg.norm(beta, axis=1)
        residual = np.linalg.norm(self.b - self.A @ beta, axis=1) / (1.0 + SLACK)
        zero = (size == 0) & (np.diag(self.A) > FLAT * np.diag(self.A).max(initial=0.0))
        owned = self.norm.needs @ ((size > 0) | (self.base > 0)).astype(np.float64) + self.shared > 0
        prices = np.where(owned, 0.0, self.norm.prices) * self.w * self.d
        wanted = self.norm.needs @ zero.astype(np.float64)
        own = self.rho + self.w * self.d * np.where(self.base == 0, self.norm.evaluation, 0.0)
        own += self.norm.needs.T @ np.where(wanted == 1, prices, 0.0)
        rest = np.where(zero, np.maximum(residual - own, 0.0), 0.0)
        joint = np.where(wanted > 1, prices, 0.0)
        together = np.zeros(len(prices))
        by_learner = self.norm.by_learner
        for t in np.flatnonzero(rest):
            needed = by_learner.indices[by_learner.indptr[t] : by_learner.indptr[t + 1]]
            if not joint[needed].any():
                return True
            together[needed[np.argmax(joint[needed])]] += rest[t] ** 2
        return bool((np.sqrt(together) > joint).any())

    def majoriser(self, beta: Floats) -> Floats:
        """Γ_t: the curvature of the touching quadratic for each learner in use."""
        size = np.linalg.norm(beta, axis=1)
        used = size > 0
        curve = self.w * self.d**2 * self.norm.slopes(self.base + (self.d * size) ** 2, self.shared)
        curve[used] += self.rho / size[used]
        return curve

    def _varying(self) -> NDArray[np.intp]:
        diagonal = np.diag(self.A)
        return np.flatnonzero(diagonal > FLAT * diagonal.max(initial=0.0))

    def _explained(self, beta: Floats) -> float:
        """How much of the loss the start explains: the scale of what an iteration may still gain."""
        return abs(0.5 * float(np.vdot(beta, self.A @ beta)) - float(np.vdot(self.b, beta)))

    def _solve(self, beta: Floats) -> None:
        """β = (A + Γ)⁻¹ b on the set in use, in units in which the diagonal is one."""
        used = np.flatnonzero(beta.any(axis=1))
        M = self.A[np.ix_(used, used)]
        M[np.diag_indices(len(M))] += self.majoriser(beta)[used]
        unit = 1.0 / np.sqrt(np.diag(M))
        M *= unit[:, None] * unit
        M[np.diag_indices(len(M))] = 1.0 + FLAT
        solved = linalg.solve(M, self.b[used] * unit[:, None], assume_a="pos", check_finite=False)
        beta[used] = solved * unit[:, None]

    def _drop(self, beta: Floats, below: float) -> bool:
        """Set to zero what is best at zero, given the rest, among weights below a share of the largest.

        First single learners (the condition is exact), then whole acquisitions, whose learners hold each other up, then
        all.
        """
        size = np.linalg.norm(beta, axis=1)
        largest = size.max(initial=0.0)
        small = np.flatnonzero((size > 0) & (size <= below * largest))
        if not len(small):
            return False
        before = len(np.flatnonzero(size))
        residual = self.b - self.A @ beta
        holders = self.norm.needs @ ((size > 0) | (self.base > 0)).astype(np.float64) + (self.shared > 0)
        by_learner = self.norm.by_learner
        for t in small[np.argsort(size[small], kind="stable")]:
            needed = by_learner.indices[by_learner.indptr[t] : by_learner.indptr[t + 1]]
            alone = needed[holders[needed] == 1] if self.base[t] == 0 else needed[:0]
            paid = total_price(self.norm.prices[alone]) + (self.norm.evaluation[t] if self.base[t] == 0 else 0.0)
            limit = self.rho + self.w * self.d * paid
            if limit > 0 and np.linalg.norm(residual[t] + self.A[t, t] * beta[t]) <= limit:
                residual += np.outer(self.A[:, t], beta[t])
                beta[t] = 0.0
                holders[needed] -= self.base[t] == 0
        self._drop_together(beta, below * largest)
        return int(np.count_nonzero(beta.any(axis=1))) < before

    def _drop_together(self, beta: Floats, limit: float) -> None:
        size = np.linalg.norm(beta, axis=1)
        held = np.sqrt(self.norm.needs @ size**2)
        members = self.norm.needs
        for a in np.flatnonzero((held > 0) & (held <= min(limit, SMALL * size.max(initial=0.0)))):
            those = members.indices[members.indptr[a] : members.indptr[a + 1]]
            without = beta.copy()
            without[those] = 0.0
            if self.value(without) <= self.value(beta):
                beta[:] = without
        if limit >= size.max(initial=0.0) and self.value(np.zeros_like(beta)) <= self.value(beta):
            beta[:] = 0.0

"""Cronus (Chen, Xu, Weinberger, Chapelle, Kedem, AISTATS 2012): a cascade of re-weighted learners.

    Σ_i ω_i Σ_k q_i^k ½(y_i − f^k(x_i))² + Σ_k d_k ρ_k Σ_t |β_t^k|
        + λ [ Σ_t e_t √(Σ_k (d_k β_t^k)²) + Σ_a c_a √(Σ_k Σ_t N_at (d_k β_t^k)²) ]

Rows go on from stage k with probability s^k; q^k is the probability of leaving there, d_k the share of
rows that come to it. Unlike CSTC, a stage's weights count in the cost with the share of rows that meet them, inside the
root. f^k = h β^k + b^k, the intercept is free. A stage that rejects nobody is a dummy: no weights, θ = −∞.

Rows go on with σ(γ(h β^k − θ^k)), one γ for all as in the paper: absolute, for targets ±1 or of unit variance. Ours:
ρ_k counts with d_k, like the loss of stage k. In the paper it does not, so the weights of the last stage become zero
first and all survivors tie.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from miserly._typing import Floats
from miserly.solvers import (
    AcquisitionNorm,
    Asked,
    Design,
    GateGraph,
    Held,
    MixedNorm,
    Traversal,
    Window,
    centred_gram,
    descend,
    drop_small,
    repeat_until_converged,
    soft_gate,
)

NEGLIGIBLE = 1e-10
STEPS = 8
HARD = 50.0  # over the deviation of a stage's scores: nearly all rows are on one side


@dataclass(frozen=True)
class CascadeTask:
    """Data, row weights of the loss and of the cost (each adds up to one), prices with λ, and one ρ per stage."""

    design: Design
    y: Floats
    omega: Floats
    share: Floats
    norm: AcquisitionNorm
    rhos: tuple[float, ...]
    reweight: bool = True


@dataclass
class Stage:
    """Weights of standardised columns, intercept and threshold."""

    beta: Floats
    bias: float
    threshold: float = -np.inf

    @property
    def is_dummy(self) -> bool:
        """Whether everybody passes and nothing is looked at."""
        return not self.beta.any()


class SoftCascade:
    """The stages with what is known of the rows at each: gates, losses, and the share d_k that comes."""

    def __init__(self, task: CascadeTask, steepness: float) -> None:
        self.task, self.steepness = task, steepness
        n_stages = len(task.rhos)
        self.traversal = Traversal(GateGraph.cascade(n_stages), task.design.n_rows)
        self.loss = np.zeros((n_stages, task.design.n_rows))
        self.d = np.ones(n_stages)
        self.stages: list[Stage] = []

    @property
    def last(self) -> int:
        """The number of the last stage."""
        return len(self.task.rhos) - 1

    # ---- the objective ----------------------------------------------------------------------------------------

    def squares(self, without: int | None = None) -> Floats:
        """Σ_k (d_k β_t^k)² for each column."""
        total = np.zeros(self.task.design.n_columns)
        for k, stage in enumerate(self.stages):
            if k != without:
                total += (self.d[k] * stage.beta) ** 2
        return total

    def objective(self) -> float:
        """The value of the whole, equation (8)."""
        expected = self.traversal.loss_from(0, self.loss, at_exit=True)
        sizes = [float(np.abs(stage.beta).sum()) for stage in self.stages]
        size = sum(rho * d * each for rho, d, each in zip(self.task.rhos, self.d, sizes))
        return float(self.task.omega @ expected) + size + float(self.task.norm.value(self.squares()))

    def refresh(self, k: int, steepness: float | None = None) -> None:
        """What the rows meet at stage k and after, when k has changed."""
        stage = self.stages[k]
        scores = self.task.design.scores(stage.beta)
        if k < self.last:
            self.traversal.set(k, soft_gate(scores, stage.threshold, steepness or self.steepness))
        self.loss[k] = 0.5 * (scores + stage.bias - self.task.y) ** 2
        for j in range(k + 1, self.last + 1):
            self.d[j] = float(self.task.share @ self.traversal.reach(j))

    def sharpen(self, steepness: float) -> None:
        """Another steepness of all gates."""
        self.steepness = steepness
        for k in range(len(self.stages)):
            self.refresh(k)

    # ---- algorithm 2 ------------------------------------------------------------------------------------------

    @classmethod
    def initialise(cls, task: CascadeTask, inflation: float, keep: float, gram: Floats | None = None) -> SoftCascade:
        """Each stage in closed form as if it were the last, with λ_k = λ δ^(K−k); then a threshold that keeps a share.

        A stage without weights lets everybody pass. `gram` is the first stage's Gram matrix if it is known. Gates are
        practically hard here, so that d_k is the share that was asked for; `sharpen` gives them another steepness.
        """
        cascade = cls(task, HARD)
        for k in range(cascade.last + 1):
            norm = task.norm.times(inflation ** (cascade.last - k))
            stage = cascade._pretend_last(k, norm, gram if k == 0 else None)
            cascade.stages.append(stage)
            if k < cascade.last and not stage.is_dummy:
                weight, scores = task.share * cascade.traversal.reach(k), task.design.scores(stage.beta)
                stage.threshold = weighted_quantile(scores, weight, 1.0 - keep)
                cascade.refresh(k, HARD / (_deviation(scores, weight) or 1.0))
            else:
                cascade.refresh(k)
        return cascade

    def _pretend_last(self, k: int, norm: AcquisitionNorm, gram: Floats | None) -> Stage:
        task = self.task
        weight = task.omega * self.traversal.reach(k)
        weight = np.where(weight > NEGLIGIBLE * weight.max(), weight, 0.0)
        total = float(weight.sum())
        mean = float(weight @ task.y) / total
        sums = task.design.sums(np.column_stack([weight, weight * (task.y - mean)]))
        centre = sums[:, 0] / total
        A = centred_gram(task.design.gram(weight) if gram is None else gram, total, centre)
        problem = MixedNorm(
            A, sums[:, 1:], norm, task.rhos[k] * float(self.d[k]), d=float(self.d[k]), base=self.squares()
        )
        beta = (problem.reweighted() if task.reweight else problem.run()).beta[:, 0]
        return Stage(beta, mean - float(centre @ beta))

    # ---- algorithm 1 ------------------------------------------------------------------------------------------

    def optimise(self, max_cycles: int, tol: float = 1e-4, rounds: int = 3) -> list[float]:
        """Cycle over the stages until the objective falls by less than `tol` of itself; its values on the way."""

        def cycle() -> None:
            for k in range(self.last + 1):
                self.improve(k, rounds)

        return repeat_until_converged(cycle, self.objective, max_cycles, tol)

    def improve(self, k: int, rounds: int = 3) -> None:
        """Lower the objective in one stage; a stage that is better away becomes a dummy, and stays one."""
        if self.stages[k].is_dummy:
            return
        StageProblem(self, k).improve(rounds)
        self.refresh(k)
        if k == self.last:
            return
        kept, value = self.stages[k], self.objective()
        self.stages[k] = Stage(np.zeros_like(kept.beta), kept.bias)
        self.refresh(k)
        if self.objective() > value:
            self.stages[k] = kept
            self.refresh(k)


class StageProblem:
    """Stage k, all others fixed: the touching surrogate, its gradient, and descent. Parameters: β, b, θ in one list."""

    def __init__(self, cascade: SoftCascade, k: int) -> None:
        task, stage = cascade.task, cascade.stages[k]
        self.cascade, self.k, self.stage, self.task = cascade, k, stage, task
        self.is_last, self.steepness = k == cascade.last, cascade.steepness
        self.columns = np.flatnonzero(stage.beta)
        reach = cascade.traversal.reach(k)
        weight = np.maximum(task.omega, task.share) * reach
        rows = np.flatnonzero(weight > NEGLIGIBLE * weight.max())
        self.Z = _window(task.design, self.columns, rows)
        self.y, self.loss_weight = task.y[rows], (task.omega * reach)[rows]
        if self.is_last:
            self.beyond = np.zeros(len(rows))
            self.later: list[int] = []
            self.coming: Floats = np.zeros((0, len(rows)))
        else:
            self.beyond = cascade.traversal.loss_given(k, True, cascade.loss, True, rows).astype(np.float64)
            self.later, given = cascade.traversal.reach_given(k, True, rows)
            self.coming = given * (task.share * reach)[rows]
        self.before = np.zeros(task.design.n_columns)
        for j in range(k):
            self.before += (cascade.d[j] * cascade.stages[j].beta) ** 2
        self.later_squares = np.array([cascade.stages[j].beta ** 2 for j in self.later]).reshape(
            len(self.later), task.design.n_columns
        )
        self.d = float(cascade.d[k])
        self.rho = task.rhos[k] * self.d
        sizes = [float(np.abs(cascade.stages[j].beta).sum()) for j in self.later]
        self.later_sizes = np.array([task.rhos[j] * size for j, size in zip(self.later, sizes)])
        self.at = np.concatenate([stage.beta[self.columns], [stage.bias, stage.threshold]])
        self.majorise(self.at)

    def majorise(self, v: Floats) -> None:
        """Auxiliary variables for these parameters."""
        squares = self._squares(v[:-2], self.coming @ self._gate(v))
        self._slopes, self._norm = self.task.norm.slopes(squares), float(self.task.norm.value(squares))
        self._at_norm = 0.5 * float(self._slopes @ squares)
        size = np.abs(v[:-2])
        self._shrink = np.divide(self.rho, size, out=np.zeros_like(size), where=size > 0)
        self._least = 0.5 * self.rho * float(size.sum())

    def surrogate(self, v: Floats) -> tuple[float, Floats]:
        """S and its gradient."""
        beta, s = v[:-2], self._gate(v)
        shares = self.coming @ s
        value, residual, gate_slope = self._expected(v, s)
        squares = self._squares(beta, shares)
        value += self._norm + 0.5 * float(self._slopes @ squares) - self._at_norm
        value += self._least + 0.5 * float(self._shrink @ beta**2)
        value += float(shares @ self.later_sizes)
        gate_slope = gate_slope + (shares * (self.later_squares @ self._slopes) + self.later_sizes) @ self.coming
        a = gate_slope * self.steepness * s * (1.0 - s)
        slope = self.Z.sums(residual + a) + (self._shrink + self.d**2 * self._slopes[self.columns]) * beta
        self._gate_curvature, self._here = np.abs((1.0 - 2.0 * s) * a) * self.steepness, self.loss_weight * (1.0 - s)
        return value, np.concatenate([slope, [residual.sum(), -a.sum()]])

    def value(self, v: Floats) -> float:
        """The part of the objective itself that depends on this stage."""
        s = self._gate(v)
        shares = self.coming @ s
        squares = self._squares(v[:-2], shares)
        sizes = self.rho * float(np.abs(v[:-2]).sum()) + float(shares @ self.later_sizes)
        return self._expected(v, s)[0] + sizes + float(self.task.norm.value(squares))

    def _gate(self, v: Floats) -> Floats:
        if self.is_last:
            return np.zeros(len(self.y))
        return np.asarray(soft_gate(self.Z.scores(v[:-2]), float(v[-1]), self.steepness), np.float64)

    def _squares(self, beta: Floats, shares: Floats) -> Floats:
        squares = self.before + shares**2 @ self.later_squares
        squares[self.columns] += (self.d * beta) ** 2
        return squares

    def _expected(self, v: Floats, s: Floats) -> tuple[float, Floats, Floats]:
        """Expected loss, its slope in the scores, and its slope in the gates."""
        rest = self.Z.scores(v[:-2]) + v[-2] - self.y
        own = 0.5 * rest**2
        value = float(self.loss_weight @ ((1.0 - s) * own + s * self.beyond))
        return value, self.loss_weight * (1.0 - s) * rest, self.loss_weight * (self.beyond - own)

    def improve(self, rounds: int) -> None:
        """Touch, descend, drop what has become nothing; a few times. The objective never rises."""
        value = self.value(self.at)
        for _ in range(rounds):
            start = self.surrogate(self.at)[0]
            self.at, end, _ = descend(self.surrogate, self.at, self._metric(), STEPS, tol=1e-7 * abs(value))
            dropped = self._drop()
            if not dropped and start - end <= 1e-6 * abs(value):
                break
            self.majorise(self.at)
        self.stage.beta[:] = 0.0
        self.stage.beta[self.columns] = self.at[:-2]
        self.stage.bias = float(self.at[-2])
        if not self.is_last:
            self.stage.threshold = float(self.at[-1])

    def _metric(self) -> Callable[[Floats], Floats]:
        """The inverse of the loss's curvature, with the gate's as if it curved upwards everywhere."""
        total, gate_curvature = max(float(self._here.sum()), 1e-300), max(float(self._gate_curvature.sum()), 1e-300)
        centre = self.Z.sums(self._here) / total
        M = self.Z.around(centre).gram(self._here + self._gate_curvature)
        ridge = 1e-9 * np.trace(M) / len(M) + 1e-300
        M[np.diag_indices(len(M))] += self._shrink + self.d**2 * self._slopes[self.columns] + ridge
        factor = linalg.cho_factor(M, check_finite=False)

        def apply(slope: Floats) -> Floats:
            to_beta = linalg.cho_solve(factor, slope[:-2] - centre * slope[-2], check_finite=False)
            gate = 0.0 if self.is_last else float(slope[-1]) / max(gate_curvature, 1e-6 * total)
            return np.concatenate([to_beta, [slope[-2] / total - float(centre @ to_beta), gate]])

        return apply

    def _drop(self) -> bool:
        """Leave out small weights; they do not come back."""
        self.at, kept = drop_small(self.value, self.at, len(self.columns))
        self.columns, self.Z = self.columns[kept], self.Z.part(columns=kept)
        return not kept.all()


def _window(design: Design, columns: NDArray[np.intp], rows: NDArray[np.intp]) -> Window:
    if design.far:
        return Asked(design, columns, rows)
    return Held(np.column_stack([design.column(int(j))[rows] for j in columns]))


def weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    """A threshold between two values such that about this share of the weight lies below."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order]) / weights.sum()
    place = min(int(np.searchsorted(below, share)), len(values) - 1)
    ordered = values[order]
    higher = ordered[ordered > ordered[place]]
    return float(0.5 * (ordered[place] + higher[0])) if len(higher) else float(ordered[place])


def _deviation(values: Floats, weights: Floats) -> float:
    mean = float(weights @ values) / float(weights.sum())
    return float(np.sqrt(weights @ (values - mean) ** 2 / weights.sum()))

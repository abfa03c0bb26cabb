"""Cascades whose stages know beforehand which columns they may use, all stages learned together.

    Σ_i ω_i ℓ(z_i, y_i) + λ Σ_i s_i C(z_i) + Σ_k Σ_t c_t |β_t^k|,      z_i^k = h_i β^k + b^k

ℓ and C see the scores of all stages at once. Two of them are here: the likelihood of a soft cascade with its expected
cost (Raykar, Krishnapuram, Yu, KDD 2010), and the AND-OR loss (Dundar, Bi, CVPR 2007). Weights are found by L-BFGS over
their positive and negative parts, so that those which do not pay are exactly zero; intercepts are free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from miserly._typing import Floats
from miserly.solvers import Design

Loss = Callable[[Floats], tuple[float, Floats]]
SHARPNESS = 8
TINY = 1e-300
DENSE_CELLS = 1 << 25
STEPS_REMEMBERED = 20


@dataclass(frozen=True)
class Stages:
    """Weights of standardised columns (column × stage), intercepts, and how many steps it took."""

    beta: Floats
    bias: Floats
    n_iter: int


def fit_stages(
    design: Design,
    allowed: NDArray[np.bool_],
    loss: Loss,
    penalty: Floats,
    bias: Floats,
    max_iter: int,
    tol: float,
) -> Stages:
    """Minimise `loss` of the scores (row × stage) plus the penalties; `allowed` says which stage may use which column.

    `loss` gives its value and the slope for every score. It starts without weights, with these intercepts.
    """
    columns, stages = np.nonzero(allowed)
    n = len(columns)
    H = _dense(design)
    prices = np.concatenate([penalty[columns], penalty[columns]])
    beta = np.zeros(allowed.shape)

    def value(v: Floats) -> tuple[float, Floats]:
        beta[columns, stages] = v[:n] - v[n : 2 * n]
        scores = (design.scores(beta) if H is None else H @ beta) + v[2 * n :]
        found, slopes = loss(scores)
        gradient = (design.sums(slopes) if H is None else H.T @ slopes)[columns, stages]
        return found + float(prices @ v[: 2 * n]), np.concatenate(
            [prices + np.r_[gradient, -gradient], slopes.sum(axis=0)]
        )

    start = np.concatenate([np.zeros(2 * n), bias])
    bounds = [(0.0, None)] * (2 * n) + [(None, None)] * len(bias)
    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "maxcor": STEPS_REMEMBERED, "ftol": tol, "gtol": 1e-9}
    found = minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    beta = np.zeros(allowed.shape)
    beta[columns, stages] = found.x[:n] - found.x[n : 2 * n]
    return Stages(beta, found.x[2 * n :].copy(), int(found.nit))


def _dense(design: Design) -> Floats | None:
    """The design as a matrix, if it is small enough to be held."""
    if design.far or design.n_rows * design.n_columns > DENSE_CELLS:
        return None
    return np.column_stack([design.column(j) for j in range(design.n_columns)])


# ---- the soft cascade ---------------------------------------------------------------------------------------------


def soft_likelihood(scores: Floats, positive: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """−log-likelihood of each row, and its slopes, where all stages must say yes: P(y = 1) = Π_k σ(z^k)."""
    log_p = -np.logaddexp(0.0, -scores).sum(axis=1)
    not_yet = _sigmoid(-scores)
    rest = np.maximum(-np.expm1(log_p), TINY)
    loss = np.where(positive, -log_p, -np.log(rest))
    slopes = np.where(positive[:, None], -not_yet, not_yet * (np.exp(log_p) / rest)[:, None])
    return loss, slopes


def expected_cost(scores: Floats, prices: Floats) -> tuple[Floats, Floats]:
    """What each row is expected to pay, Σ_k prices_k Π_{j<k} σ(z^j), and its slopes; all pay for the first stage."""
    n_stages = scores.shape[1]
    passed = _sigmoid(scores)
    reach = np.cumprod(np.column_stack([np.ones(len(scores)), passed[:, :-1]]), axis=1)
    paid = reach * prices
    later = np.cumsum(paid[:, ::-1], axis=1)[:, ::-1] - paid
    slopes = _sigmoid(-scores) * later
    slopes[:, n_stages - 1] = 0.0
    return paid.sum(axis=1), slopes


def _sigmoid(z: Floats) -> Floats:
    return 0.5 + 0.5 * np.tanh(0.5 * z)


# ---- AND-OR -------------------------------------------------------------------------------------------------------


def and_or(
    scores: Floats, positive: NDArray[np.bool_], negatives: Literal["noisy_or", "minimum"] = "noisy_or"
) -> tuple[Floats, Floats]:
    """The loss of each row and its slopes, with e^k = max(0, 1 − s z^k), s = ±1 the row's class.

    A positive row must pass all stages: ½ max_k (e^k)². A negative one must fail at one: ½ Π_k (e^k)² ("noisy_or"), or
    ½ min_k (e^k)². Maximum and minimum are norms of the order ±8, which have slopes everywhere.
    """
    sign = np.where(positive, 1.0, -1.0)
    slack = np.maximum(0.0, 1.0 - sign[:, None] * scores)
    loss, push = np.zeros(len(scores)), np.zeros_like(scores)
    loss[positive], push[positive] = _norm(slack[positive], SHARPNESS)
    if negatives == "noisy_or":
        loss[~positive], push[~positive] = _product(slack[~positive])
    else:
        loss[~positive], push[~positive] = _norm(slack[~positive], -SHARPNESS)
    return loss, -sign[:, None] * push


def _norm(slack: Floats, order: int) -> tuple[Floats, Floats]:
    """½‖e‖² in the norm of this order, and its slopes in e; of a negative order: nearly the least, 0 if one is 0."""
    loss, slopes = np.zeros(len(slack)), np.zeros_like(slack)
    some = slack.any(axis=1) if order > 0 else slack.all(axis=1)
    if not some.any():
        return loss, slopes
    scale = slack[some].max(axis=1) if order > 0 else slack[some].min(axis=1)
    ratio = slack[some] / scale[:, None]
    size = (ratio**order).sum(axis=1) ** (1.0 / order)
    loss[some] = 0.5 * (scale * size) ** 2
    slopes[some] = (scale * size)[:, None] * (ratio / size[:, None]) ** (order - 1)
    return loss, slopes


def _product(slack: Floats) -> tuple[Floats, Floats]:
    """½ Π_k (e^k)² and its slopes in e."""
    n, n_stages = slack.shape
    before, after = np.ones((n, n_stages)), np.ones((n, n_stages))
    for k in range(1, n_stages):
        before[:, k] = before[:, k - 1] * slack[:, k - 1]
        after[:, n_stages - 1 - k] = after[:, n_stages - k] * slack[:, n_stages - k]
    others = (before * after) ** 2
    return 0.5 * (slack[:, 0] ** 2) * others[:, 0], slack * others

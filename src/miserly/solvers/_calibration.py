"""Scores read as probabilities.

Four ways, each linear in the scores so that it can be folded into the weights of a plan:

- `platt`, two classes: σ(scale · score + offset) by maximum likelihood with Platt's softened targets, by Newton's
  method as Lin, Lin and Weng (2007) made it stable;
- `softmax_scaling`, several classes: multinomial logistic regression on the scores, with a slight ridge. Targets are
  softened by one row's worth of each class, so that separable classes, and absent ones, stay finite;
- `temperature` and `common_temperature`: one factor, which changes no prediction;
- `discriminant`, several classes: least squares of each class against the rest hides a class that lies between others.
  The same scores, taken as Gaussian clouds of one shape around the classes' means, do not: with all features this *is*
  linear discriminant analysis (Hastie, Tibshirani and Buja 1994).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize
from scipy.optimize import minimize
from scipy.special import log_softmax

from miserly._typing import Floats

PLATT_STEPS = 100
PLATT_RIDGE = 1e-12
PLATT_NOISE = 1e-15
HARDLY_VARIES = 1e-9
SOFTMAX_RIDGE = 1.0
MAX_NEWTON_WORK = 2e9
MOST_LOG_SCALE = 8.0
ROUNDING = 1e-13


# ---- two classes: Platt --------------------------------------------------------------------------------------------


def platt(scores: ArrayLike, y01: ArrayLike, weights: ArrayLike | None = None) -> tuple[float, float]:
    """The scale and the offset that make scores log-odds of y = 1; `weights` say how often each row counts."""
    f, y = np.asarray(scores, np.float64), np.asarray(y01, np.float64)
    counts = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
    total = float(counts.sum())
    mean = float(counts @ f) / total
    std = float(np.sqrt(counts @ (f - mean) ** 2 / total))
    if not std > 1e-12 * abs(mean):
        std = np.inf
    x = (f - mean) / std
    positive = float(counts @ y)
    target = np.where(y > 0, (positive + 1.0) / (positive + 2.0), 1.0 / (total - positive + 2.0))
    at = np.array([0.0, np.log((positive + 1.0) / (total - positive + 1.0))])
    value = _platt_loss(at, x, target, counts)
    for _ in range(PLATT_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(at[0] * x + at[1], -700, 700)))
        error, curve = counts * (p - target) / total, counts * p * (1.0 - p) / total
        slope = np.array([error @ x, error.sum()])
        if np.abs(slope).max() <= 1e-14:
            break
        across = float(curve @ x)
        hessian = np.array([[curve @ x**2 + PLATT_RIDGE, across], [across, curve.sum() + PLATT_RIDGE]])
        step = -np.linalg.solve(hessian, slope)
        size, least = 1.0, 1e-4 * float(slope @ step)
        while (
            size >= 1e-10
            and (new := _platt_loss(at + size * step, x, target, counts)) > value + size * least + PLATT_NOISE
        ):
            size /= 2.0
        if size < 1e-10:
            break
        at, value = at + size * step, new
    scale = float(at[0]) / std
    return scale, float(at[1]) - scale * mean


def _platt_loss(at: Floats, x: Floats, target: Floats, counts: Floats) -> float:
    z = at[0] * x + at[1]
    return float(counts @ (np.maximum(z, 0.0) - target * z + np.log1p(np.exp(-np.abs(z))))) / float(counts.sum())


# ---- several classes: multinomial logistic regression --------------------------------------------------------------


def softmax_scaling(scores: Floats, member: NDArray[np.bool_], weights: Floats) -> tuple[Floats, Floats]:
    """(matrix, offset) such that softmax(scores @ matrix + offset) are the probabilities of the classes.

    `member` (row × class) says where a row belongs, `weights` how often it counts. Scores are brought to uncorrelated
    directions of unit variance first; directions in which they do not vary are left out.
    """
    total, n_classes = float(weights.sum()), member.shape[1]
    prior = (weights @ member + 1.0) / (total + n_classes)
    share = weights / total
    mean = share @ scores
    away = scores - mean
    size, vectors = np.linalg.eigh(away.T @ (away * share[:, None]))
    kept = size > HARDLY_VARIES * max(float(size[-1]), HARDLY_VARIES * float((mean**2).sum()))
    basis = vectors[:, kept] / np.sqrt(size[kept])
    Z = np.column_stack([away @ basis, np.ones(len(away))])
    soft = n_classes / (total + n_classes)
    target = (1.0 - soft) * member + soft / n_classes
    start = np.zeros((Z.shape[1], n_classes))
    start[-1] = np.log(prior)
    ridge = np.full((Z.shape[1], 1), SOFTMAX_RIDGE / total)
    ridge[-1] = 0.0
    found = minimize(
        softmax_objective,
        start.ravel(),
        (Z, target, share, ridge),
        "L-BFGS-B",
        jac=True,
        options={"maxiter": 2000, "maxfun": 4000, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 20},
    )
    at = _newton_polished(found.x.reshape(start.shape), Z, target, share, ridge)
    at -= at.mean(axis=1, keepdims=True)
    matrix = basis @ at[:-1]
    return matrix, at[-1] - mean @ matrix


def softmax_objective(at: Floats, Z: Floats, target: Floats, share: Floats, ridge: Floats) -> tuple[float, Floats]:
    """Mean cross-entropy plus ridge, and its gradient."""
    weights = at.reshape(Z.shape[1], target.shape[1])
    log_p = log_softmax(Z @ weights, axis=1)
    value = -float(share @ (target * log_p).sum(axis=1)) + 0.5 * float((ridge * weights**2).sum())
    slope = Z.T @ ((np.exp(log_p) - target) * share[:, None]) + ridge * weights
    return value, slope.ravel()


def _newton_polished(at: Floats, Z: Floats, target: Floats, share: Floats, ridge: Floats) -> Floats:
    """Newton's steps to full precision, where the Hessian is cheap: what comes out then depends on the data alone."""
    n, d, k = len(Z), Z.shape[1], target.shape[1]
    if n * (d * k) ** 2 > MAX_NEWTON_WORK:
        return at
    _, slope = softmax_objective(at.ravel(), Z, target, share, ridge)
    for _ in range(5):
        p = np.exp(log_softmax(Z @ at, axis=1))
        curve = np.zeros((d, k, d, k))
        for b in range(k):
            for c in range(b, k):
                weight = share * p[:, b] * ((b == c) - p[:, c])
                curve[:, b, :, c] = curve[:, c, :, b] = Z.T @ (Z * weight[:, None])
        curve = curve.reshape(d * k, d * k) + np.diag(np.repeat(ridge[:, 0], k))
        curve += np.kron(np.eye(d), np.full((k, k), 1.0 / k))  # scores may all be raised alike: nothing changes
        step = np.linalg.solve(curve, slope)
        _, new_slope = softmax_objective(at.ravel() - step, Z, target, share, ridge)
        if not np.abs(new_slope).max() < np.abs(slope).max():
            break
        at, slope = at - step.reshape(at.shape), new_slope
    return at


# ---- one factor, which changes no prediction -----------------------------------------------------------------------


def temperature(scores: ArrayLike, y01: ArrayLike) -> float:
    """The scale that makes scores log-odds of y = 1 (maximum likelihood with Platt's softened targets)."""
    f, y = np.asarray(scores, np.float64), np.asarray(y01, np.float64)
    positive = float(y.sum())
    target = np.where(y > 0, (positive + 1.0) / (positive + 2.0), 1.0 / (len(y) - positive + 2.0))

    def loss(scale: float) -> float:
        z = scale * f
        return float(np.sum(np.maximum(z, 0.0) - target * z + np.log1p(np.exp(-np.abs(z)))))

    return _best_scale(loss, f)


def common_temperature(scores: Floats, codes: NDArray[np.intp], probabilities: Callable[[Floats], Floats]) -> float:
    """The scale of all outputs with which the probability of the true class, read from scaled scores, is largest.

    One row of each class is added that could as well be any: no class is ever certain.
    """

    def loss(scale: float) -> float:
        p = probabilities(scale * scores)
        true = np.maximum(p[np.arange(len(codes)), codes], 1e-12)
        return float(-np.sum(np.log(true)) - np.sum(np.log(np.maximum(p, 1e-12))) / len(codes))

    return _best_scale(loss, scores)


def _best_scale(loss: Callable[[float], float], scores: Floats) -> float:
    std = float(np.abs(scores).max(initial=0.0))
    if not std > 0:
        return 1.0
    found = optimize.minimize_scalar(
        lambda log_scale: loss(float(np.exp(log_scale)) / std),
        bounds=(-MOST_LOG_SCALE, MOST_LOG_SCALE),
        method="bounded",
    )
    return float(np.exp(found.x)) / std


# ---- several classes: linear discriminant analysis -----------------------------------------------------------------


def discriminant(scores: Floats, member: NDArray[np.bool_], weights: Floats) -> tuple[Floats, Floats]:
    """(matrix, offset) such that softmax(scores @ matrix + offset) are the probabilities of the classes.

    `member` (row × class) says where a row belongs. One row's worth of the whole cloud is added to the shape, so that
    classes without any std stay finite; every class has one row's worth of prior. Directions in which scores differ
    by no more than their rounding say nothing.
    """
    total, counts = float(weights.sum()), weights @ member
    share = member * weights[:, None]
    means = (share.T @ scores) / np.maximum(counts, 1e-300)[:, None]
    mean = weights @ scores / total
    own = scores - member @ means
    cloud = (scores - mean).T @ ((scores - mean) * weights[:, None]) / total
    shape = (own.T @ (own * weights[:, None]) + cloud) / (total + 1.0)
    size, vectors = linalg.eigh(shape, check_finite=False)
    kept = size > 1e-10 * np.trace(cloud) + (ROUNDING * np.abs(scores).max(initial=0.0)) ** 2
    inverse = (vectors[:, kept] / size[kept]) @ vectors[:, kept].T
    matrix = inverse @ (means - mean).T
    offset = np.log((counts + 1.0) / (total + len(counts))) - 0.5 * np.einsum("ij,ji->i", means + mean, matrix)
    return matrix, offset

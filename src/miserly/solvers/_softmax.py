"""Scores of several classes read as probabilities by multinomial logistic regression: Platt's scaling for K classes.

It minimises the mean cross-entropy of softmax(scores @ matrix + offset) plus a slight ridge on the matrix. Targets are
softened by one row's worth of each class, so that separable classes, and classes that are not there, stay finite.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from miserly._typing import Floats

HARDLY_VARIES = 1e-9
RIDGE = 1.0
MAX_NEWTON_WORK = 2e9


def softmax_scaling(scores: Floats, member: NDArray[np.bool_], weights: Floats) -> tuple[Floats, Floats]:
    """(matrix, offset) such that softmax(scores @ matrix + offset) are the probabilities of the classes.

    `member` (row × class) says where a row belongs, `weights` how often it counts. Scores are brought to uncorrelated
    directions of unit variance first; directions in which they do not vary are left out.
    """
    total, n_classes = float(weights.sum()), member.shape[1]
    prior = (weights @ member + 1.0) / (total + n_classes)
    share = weights / total
    middle = share @ scores
    away = scores - middle
    size, vectors = np.linalg.eigh(away.T @ (away * share[:, None]))
    kept = size > HARDLY_VARIES * max(float(size[-1]), HARDLY_VARIES * float((middle**2).sum()))
    basis = vectors[:, kept] / np.sqrt(size[kept])
    Z = np.column_stack([away @ basis, np.ones(len(away))])
    soft = n_classes / (total + n_classes)
    target = (1.0 - soft) * member + soft / n_classes
    start = np.zeros((Z.shape[1], n_classes))
    start[-1] = np.log(prior)
    ridge = np.full((Z.shape[1], 1), RIDGE / total)
    ridge[-1] = 0.0
    found = minimize(
        objective,
        start.ravel(),
        (Z, target, share, ridge),
        "L-BFGS-B",
        jac=True,
        options={"maxiter": 2000, "maxfun": 4000, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 20},
    )
    at = _polished(found.x.reshape(start.shape), Z, target, share, ridge)
    at -= at.mean(axis=1, keepdims=True)
    matrix = basis @ at[:-1]
    return matrix, at[-1] - middle @ matrix


def objective(at: Floats, Z: Floats, target: Floats, share: Floats, ridge: Floats) -> tuple[float, Floats]:
    """Mean cross-entropy plus ridge, and its gradient."""
    weights = at.reshape(Z.shape[1], target.shape[1])
    log_p = log_softmax(Z @ weights, axis=1)
    value = -float(share @ (target * log_p).sum(axis=1)) + 0.5 * float((ridge * weights**2).sum())
    slope = Z.T @ ((np.exp(log_p) - target) * share[:, None]) + ridge * weights
    return value, slope.ravel()


def _polished(at: Floats, Z: Floats, target: Floats, share: Floats, ridge: Floats) -> Floats:
    """Newton's steps to full precision, where the Hessian is cheap: what comes out then depends on the data alone."""
    n, d, k = len(Z), Z.shape[1], target.shape[1]
    if n * (d * k) ** 2 > MAX_NEWTON_WORK:
        return at
    _, slope = objective(at.ravel(), Z, target, share, ridge)
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
        _, new_slope = objective(at.ravel() - step, Z, target, share, ridge)
        if not np.abs(new_slope).max() < np.abs(slope).max():
            break
        at, slope = at - step.reshape(at.shape), new_slope
    return at

"""Platt's scaling: scores read as probabilities, σ(scale · score + offset).

Maximum likelihood with Platt's softened targets, by Newton's method as Lin, Lin and Weng (2007) made it stable.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from miserly._typing import Floats

MAX_STEPS = 100
RIDGE = 1e-12
NOISE = 1e-15


def platt(scores: ArrayLike, y01: ArrayLike, weights: ArrayLike | None = None) -> tuple[float, float]:
    """The scale and the offset that make scores log-odds of y = 1; `weights` say how often each row counts."""
    f, y = np.asarray(scores, np.float64), np.asarray(y01, np.float64)
    counts = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
    total = float(counts.sum())
    middle = float(counts @ f) / total
    spread = float(np.sqrt(counts @ (f - middle) ** 2 / total))
    if not spread > 1e-12 * abs(middle):
        spread = np.inf
    x = (f - middle) / spread
    positive = float(counts @ y)
    target = np.where(y > 0, (positive + 1.0) / (positive + 2.0), 1.0 / (total - positive + 2.0))
    at = np.array([0.0, np.log((positive + 1.0) / (total - positive + 1.0))])
    value = _loss(at, x, target, counts)
    for _ in range(MAX_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(at[0] * x + at[1], -700, 700)))
        error, curve = counts * (p - target) / total, counts * p * (1.0 - p) / total
        slope = np.array([error @ x, error.sum()])
        if np.abs(slope).max() <= 1e-14:
            break
        across = float(curve @ x)
        hessian = np.array([[curve @ x**2 + RIDGE, across], [across, curve.sum() + RIDGE]])
        step = -np.linalg.solve(hessian, slope)
        size, least = 1.0, 1e-4 * float(slope @ step)
        while size >= 1e-10 and (new := _loss(at + size * step, x, target, counts)) > value + size * least + NOISE:
            size /= 2.0
        if size < 1e-10:
            break
        at, value = at + size * step, new
    scale = float(at[0]) / spread
    return scale, float(at[1]) - scale * middle


def _loss(at: Floats, x: Floats, target: Floats, counts: Floats) -> float:
    z = at[0] * x + at[1]
    return float(counts @ (np.maximum(z, 0.0) - target * z + np.log1p(np.exp(-np.abs(z))))) / float(counts.sum())

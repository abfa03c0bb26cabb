"""Scores read as log-odds by one factor, which changes no answer: for two classes zero stays one half."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from miserly._typing import Floats

MOST = 8.0


def temperature(scores: ArrayLike, y01: ArrayLike) -> float:
    """The scale that makes scores log-odds of y = 1 (maximum likelihood with Platt's softened targets)."""
    f, y = np.asarray(scores, np.float64), np.asarray(y01, np.float64)
    positive = float(y.sum())
    target = np.where(y > 0, (positive + 1.0) / (positive + 2.0), 1.0 / (len(y) - positive + 2.0))

    def loss(scale: float) -> float:
        z = scale * f
        return float(np.sum(np.maximum(z, 0.0) - target * z + np.log1p(np.exp(-np.abs(z)))))

    return _best(loss, f)


def common_temperature(scores: Floats, codes: NDArray[np.intp], probabilities: Callable[[Floats], Floats]) -> float:
    """The scale of all outputs with which the probability of the true class, read from scaled scores, is largest.

    One row of each class is added that could as well be any: no class is ever certain.
    """

    def loss(scale: float) -> float:
        p = probabilities(scale * scores)
        true = np.maximum(p[np.arange(len(codes)), codes], 1e-12)
        return float(-np.sum(np.log(true)) - np.sum(np.log(np.maximum(p, 1e-12))) / len(codes))

    return _best(loss, scores)


def _best(loss: Callable[[float], float], scores: Floats) -> float:
    spread = float(np.abs(scores).max(initial=0.0))
    if not spread > 0:
        return 1.0
    found = optimize.minimize_scalar(
        lambda log_scale: loss(float(np.exp(log_scale)) / spread), bounds=(-MOST, MOST), method="bounded"
    )
    return float(np.exp(found.x)) / spread

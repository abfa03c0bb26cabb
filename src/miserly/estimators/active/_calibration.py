"""Calibration by how much is known: scores of states with few known values are read more cautiously than others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_expit, log_softmax

from miserly._typing import Array, Floats
from miserly.plan import probabilities
from miserly.solvers import common_temperature, platt

MOST_LEVELS = 6
FEWEST_STATES = 200  # per level: a factor and an offset are two numbers
MOST_STATES = 5000  # per level: more make them no better
RADII = (0.5, 0.75, 0.9, 0.96, 0.99)  # quantiles of the distance to the prior; few states may know what matters
LESS = 2e-3  # of log-loss per state, that moving small scores towards the prior must save


@dataclass(frozen=True)
class Calibration:
    """`level` of each number of known features, `scale` and `offset` by level and output, `radius` by level.

    States that know as much are not alike: some know what matters, others only noise, whose scores are small but not
    zero. No factor suits both, so scores within the radius are moved towards the prior first.
    """

    level: Array
    scale: Floats
    offset: Floats
    radius: Floats

    def apply(self, scores: Floats, prior: Floats, n_known: Array) -> Floats:
        """Calibrated scores."""
        at = self.level[n_known]
        return np.asarray(drawn(scores, prior, self.radius[at]) * self.scale[at] + self.offset[at], np.float64)


def drawn(scores: Floats, prior: Floats, radius: Floats) -> Floats:
    """Scores moved towards the prior: those within the radius to (distance / radius)² of their distance."""
    away = scores - prior
    distance = np.abs(away).max(axis=1)
    within = distance < radius
    share = np.where(within, distance / np.where(within, radius, 1.0), 1.0) ** 2
    return np.where(within[:, None], prior + away * share[:, None], scores)


def calibrate(link: str, scores: Floats, prior: Floats, y: Floats, n_known: Array, n_used: int) -> Calibration:
    """Fit scale, offset and radius on held-out states, by the number of used features that they know."""
    n_levels = int(np.clip(len(y) // FEWEST_STATES, 1, MOST_LEVELS))
    borders = np.unique(np.quantile(n_known, np.linspace(0, 1, n_levels + 1)[1:-1], method="lower"))
    borders = borders[borders < n_known.max(initial=0)]
    level = np.searchsorted(borders, np.arange(n_used + 1), side="left")
    of_state = level[n_known]
    parts = [np.flatnonzero(of_state == k)[:MOST_STATES] for k in range(len(borders) + 1)]
    fits = [_fit(link, scores[part], prior[part], y[part]) for part in parts]
    return Calibration(level.astype(np.int32), *(np.array(numbers) for numbers in zip(*fits)))


def _fit(link: str, scores: Floats, prior: Floats, y: Floats) -> tuple[Floats, Floats, float]:
    n_outputs = scores.shape[1]
    if len(y) < FEWEST_STATES // 4:
        return np.ones(n_outputs), np.zeros(n_outputs), 0.0
    if link == "identity":
        spread = float(np.var(scores[:, 0]))
        a = float(np.mean((scores[:, 0] - scores[:, 0].mean()) * (y - y.mean()))) / spread if spread > 0 else 1.0
        return *_line(a, float(y.mean() - a * scores[:, 0].mean())), 0.0
    fit = _two_classes if link == "logistic" else _classes
    distance = np.abs(scores - prior).max(axis=1)
    best, least = None, np.inf
    for radius in (0.0, *np.unique(np.quantile(distance, RADII))):
        moved = drawn(scores, prior, np.full(len(y), radius))
        scale, offset = fit(moved, prior, y)
        loss = _log_loss(link, moved * scale + offset, y)
        if loss < least - (LESS if best else 0.0):
            best, least = (scale, offset, float(radius)), loss
    assert best is not None
    return best


def _two_classes(scores: Floats, prior: Floats, y: Floats) -> tuple[Floats, Floats]:
    return _line(*platt(scores[:, 0], y))


def _line(a: float, b: float) -> tuple[Floats, Floats]:
    """A factor that would turn scores round says nothing."""
    return (np.array([a]), np.array([b])) if a > 0 else (np.ones(1), np.zeros(1))


def _classes(scores: Floats, prior: Floats, y: Floats) -> tuple[Floats, Floats]:
    """One factor for all classes, of what is above the prior."""
    n_classes, mean = scores.shape[1], prior.mean(axis=0)
    factor = common_temperature(
        scores - mean, y.astype(np.intp), lambda away: probabilities("softmax", away + mean, n_classes)
    )
    return np.full(n_classes, factor), mean * (1.0 - factor)


def _log_loss(link: str, z: Floats, y: Floats) -> float:
    if link == "logistic":
        return -float(log_expit(np.where(y > 0, z[:, 0], -z[:, 0])).mean())
    return -float(log_softmax(z, axis=1)[np.arange(len(y)), y.astype(np.intp)].mean())

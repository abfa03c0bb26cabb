"""Calibration by how much is known: scores of states with few known values are read more cautiously than others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from miserly._typing import Array, Floats
from miserly.plan import probabilities
from miserly.solvers import common_temperature, platt

MOST_LEVELS = 6
FEWEST_STATES = 200  # per level: a factor and an offset are two numbers
MOST_STATES = 5000  # per level: more make them no better


@dataclass(frozen=True)
class Calibration:
    """`level` of each number of known features, `scale` and `offset` by level and output."""

    level: Array
    scale: Floats
    offset: Floats

    def apply(self, scores: Floats, n_known: Array) -> Floats:
        """Calibrated scores."""
        at = self.level[n_known]
        return np.asarray(scores * self.scale[at] + self.offset[at], np.float64)


def calibrate(link: str, scores: Floats, y: Floats, n_known: Array, n_used: int) -> Calibration:
    """Fit scale and offset on held-out states, by the number of used features that they know."""
    n_levels = int(np.clip(len(y) // FEWEST_STATES, 1, MOST_LEVELS))
    borders = np.unique(np.quantile(n_known, np.linspace(0, 1, n_levels + 1)[1:-1], method="lower"))
    borders = borders[borders < n_known.max(initial=0)]
    level = np.searchsorted(borders, np.arange(n_used + 1), side="left")
    of_state = level[n_known]
    fits = [_fit(link, scores, y, np.flatnonzero(of_state == k)[:MOST_STATES]) for k in range(len(borders) + 1)]
    return Calibration(level.astype(np.int32), np.array([a for a, _ in fits]), np.array([b for _, b in fits]))


def _fit(link: str, scores: Floats, y: Floats, which: Array) -> tuple[Floats, Floats]:
    n_outputs = scores.shape[1]
    scale, offset = np.ones(n_outputs), np.zeros(n_outputs)
    if len(which) < FEWEST_STATES // 4:
        return scale, offset
    s, t = scores[which], y[which]
    if link == "softmax":
        codes = t.astype(np.intp)
        return scale * common_temperature(s, codes, lambda z: probabilities("softmax", z, n_outputs)), offset
    if link == "logistic":
        a, b = platt(s[:, 0], t)
    else:
        spread = float(np.var(s[:, 0]))
        a = float(np.mean((s[:, 0] - s[:, 0].mean()) * (t - t.mean()))) / spread if spread > 0 else 1.0
        b = float(t.mean() - a * s[:, 0].mean())
    return (scale * a, offset + b) if a > 0 else (scale, offset)

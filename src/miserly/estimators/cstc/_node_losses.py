"""The loss of a node: half the square, as in the papers, or the logistic loss of targets ±1.

The logistic loss lies below the parabola of curvature ¼ that touches it, so a problem with it is solved by problems of
least squares, each with targets that follow from the scores of the one before; the objective never rises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from miserly._typing import Floats

LossName = Literal["squared", "logistic"]
TOUCHES = 100  # of the parabola and the logistic loss: they mostly end by the tolerance before that
TOUCH_TOL = 1e-6  # of the loss of the mean: less than one touch gains is not worth the next


@dataclass(frozen=True)
class NodeLoss:
    """The loss of scores (row × output) against targets."""

    name: LossName = "squared"

    @property
    def is_squared(self) -> bool:
        """Whether a problem with it is one of least squares."""
        return self.name == "squared"

    @property
    def curvature(self) -> float:
        """The largest second derivative."""
        return 1.0 if self.is_squared else 0.25

    def values(self, scores: Floats, targets: Floats) -> Floats:
        """Of each row, the sum over outputs."""
        if self.is_squared:
            return np.asarray(0.5 * ((scores - targets) ** 2).sum(axis=1))
        return np.asarray(np.logaddexp(0.0, -targets * scores).sum(axis=1))

    def slopes(self, scores: Floats, targets: Floats) -> Floats:
        """The derivative in each score."""
        if self.is_squared:
            return scores - targets
        return -targets / (1.0 + np.exp(np.clip(targets * scores, -500.0, 500.0)))

    def working(self, scores: Floats, targets: Floats) -> Floats:
        """Targets of least squares whose parabola, times the curvature, touches the loss at these scores."""
        if self.is_squared:
            return targets
        return scores - self.slopes(scores, targets) / self.curvature

    def constant(self, targets: Floats, weight: Floats) -> Floats:
        """The best score that is the same for all rows, for each output."""
        mean = weight @ targets / weight.sum()
        if self.is_squared:
            return np.asarray(mean)
        return np.asarray(2.0 * np.arctanh(np.clip(mean, -1.0 + 1e-6, 1.0 - 1e-6)))


SQUARED = NodeLoss()

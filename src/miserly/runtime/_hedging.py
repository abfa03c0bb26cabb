"""When a second call is worth its price: after the time within which most calls of an extractor end."""

from __future__ import annotations

import math
from collections import deque

FEWEST = 20  # calls that must have ended before their quantile says anything
REMEMBERED = 256  # calls whose times count
MARGIN = 1.05  # calls that all take the same time are not repeated for a jitter
FRESH = 16  # calls after which the quantile is computed again


class HedgeTimer:
    """The time after which a call is repeated: a quantile of the times of the last calls that ended well.

    Parameters
    ----------
    quantile : float
        Which, between 0 and 1.
    """

    def __init__(self, quantile: float) -> None:
        self._quantile = quantile
        self._times: deque[float] = deque(maxlen=REMEMBERED)
        self._n_new = 0
        self.after = math.inf

    def count(self, seconds: float) -> None:
        """A call ended well."""
        self._times.append(seconds)
        self._n_new += 1
        n = len(self._times)
        if n >= FEWEST and (self._n_new >= FRESH or self.after == math.inf):
            self._n_new = 0
            self.after = MARGIN * sorted(self._times)[min(n - 1, math.ceil(self._quantile * n) - 1)]

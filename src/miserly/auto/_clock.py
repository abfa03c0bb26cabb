"""How long a portfolio may still take, what is reported on the way, and whether the user interrupted."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)
Progress = Callable[[str, float, float], None]


class TimeLimit:
    """Counts down a time limit. Without a limit nothing depends on the time, so the same seed gives the same bits."""

    def __init__(self, limit: float | None, progress: Progress | None = None) -> None:
        self.limit = math.inf if limit is None else float(limit)
        self.started = time.monotonic()
        self.interrupted = False
        self.progress = progress

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def over(self, share: float = 1.0) -> bool:
        """Whether this share of the time is used up, or the user interrupted."""
        return self.interrupted or (self.limit < math.inf and self.elapsed > share * self.limit)

    def interrupt(self) -> None:
        """Keep what is done and finish."""
        logger.warning("Interrupted: what is done so far is kept.")
        self.interrupted = True

    def report(self, what: str, share: float) -> None:
        """Log a step; `share` of the work is done."""
        left = self.elapsed / share * (1.0 - share) if share > 0 else math.nan
        logger.info("%s (%.0f %% done, about %.0f s left)", what, 100 * share, left)
        if self.progress is not None:
            self.progress(what, share, left)

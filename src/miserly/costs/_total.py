"""The one addition of prices beside the ledger."""

from __future__ import annotations

import math
from collections.abc import Iterable


def total_price(prices: Iterable[float]) -> float:
    """Add prices up, exactly rounded, so that the sum does not depend on their order.

    Parameters
    ----------
    prices : iterable of float
        The prices of acquisitions, each of which is counted once, and of evaluations.

    Returns
    -------
    float
        Their sum.

    Examples
    --------
    >>> total_price([0.1] * 10)
    1.0
    """
    return math.fsum(prices)

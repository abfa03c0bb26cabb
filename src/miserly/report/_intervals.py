"""How sure a figure is: the jackknife over groups of rows, whole queries together, which suits any metric."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from miserly.metrics import Metric
from miserly.report._observed import LabelledRows, Observed

GROUPS = 20
CONFIDENCE = 0.95


def parts_left(rows: LabelledRows, seed: int = 0) -> list[np.ndarray]:
    """The rows that are left when one group at a time is taken away."""
    n_units = int(rows.query.max(initial=-1)) + 1
    group = np.random.default_rng(seed).permutation(n_units)[rows.query] % GROUPS
    return [np.flatnonzero(group != g) for g in range(min(GROUPS, n_units))]


def replicates(observed: Observed, metric: Metric, parts: Sequence[np.ndarray]) -> np.ndarray:
    """The figure on each part; NaN where a part does not have it (one class only, say)."""
    rows, output = observed.rows, observed.output(metric)
    figures = np.full(len(parts), np.nan)
    for i, part in enumerate(parts):
        qid = None if rows.qid is None else rows.qid[part]
        try:
            figures[i] = metric(rows.y[part], output[part], qid=qid, classes=observed.plan.classes)
        except ValueError:
            continue
    return figures


def half_width(figures: np.ndarray) -> float:
    """Half of the 95 % interval around the whole figure; NaN where it is undefined."""
    n = len(figures)
    if n < 2:
        return float("nan")
    variance = (n - 1) / n * np.sum((figures - figures.mean()) ** 2)
    return float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2) * np.sqrt(variance))


def wilson(hits: int, n: int) -> tuple[float, float, float]:
    """A share with Wilson's 95 % interval; NaN where there is nothing to count."""
    if not n:
        return float("nan"), 0.0, 1.0
    z = float(stdtrit(1e9, 0.5 + CONFIDENCE / 2))
    share = hits / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * float(np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)))
    return share, max(0.0, middle - half), min(1.0, middle + half)

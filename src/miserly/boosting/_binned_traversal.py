"""A tree and rows that are in bins: which rows reach which node, without the values themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from miserly.boosting._binning import BinnedData
from miserly.kernels.histograms import MISSING


def traverse_binned(data: BinnedData, table: Mapping[str, np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
    """Every node of a tree (in the plan's format) with the rows that reach it, the root first."""
    waiting = [(0, np.arange(data.n_rows, dtype=np.uint32))]
    while waiting:
        node, rows = waiting.pop()
        yield node, rows
        left = int(table["left"][node])
        if left == node:
            continue
        feature = int(table["feature"][node])
        bins = data.lane(feature)[rows]
        right = bins > data.cut(feature, float(table["threshold"][node]))
        if not table["missing_right"][node]:
            right &= bins != MISSING
        waiting += [(left + 1, rows[right]), (left, rows[~right])]

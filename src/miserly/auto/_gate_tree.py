"""Small regression trees for the rules of gates, grown best first on coarse bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from miserly._typing import Floats

N_BINS = 32
MOST_LEAVES = 10
SHRINK = 5.0  # rows' worth of the parent's mean in a leaf


@dataclass(frozen=True)
class Inputs:
    """Columns in bins: `codes` (rows × columns) say in which; value v is in bin b if cuts[b-1] < v <= cuts[b].

    Missing values are in the first bin: rules send them left.
    """

    codes: np.ndarray
    cuts: tuple[Floats, ...]
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, values: Floats, numbers: tuple[int, ...]) -> Inputs:
        """Put columns in bins of about as many rows; `numbers` is what a rule calls each."""
        cuts = []
        for column in values.T:
            known = column[~np.isnan(column)]
            distinct = np.unique(known)
            if len(distinct) > N_BINS:
                distinct = np.unique(np.quantile(known, np.linspace(0, 1, N_BINS), method="lower"))
            cuts.append(distinct[:-1] + np.diff(distinct) / 2)
        return cls(_encode(values, cuts), tuple(cuts), numbers)

    def encode(self, values: Floats) -> np.ndarray:
        """The bins of other rows."""
        return _encode(values, self.cuts)


def _encode(values: Floats, cuts: Sequence[Floats]) -> np.ndarray:
    codes = np.zeros(values.shape, np.intp)
    for j, (column, middle) in enumerate(zip(values.T, cuts)):
        codes[:, j] = np.where(np.isnan(column), 0, np.searchsorted(middle, column))
    return codes


@dataclass(frozen=True)
class GateTree:
    """A grown tree: for each node its value and, where it is split, the column, the cut and the left child."""

    nodes: tuple[dict[str, float], ...]

    def predict(self, codes: np.ndarray) -> Floats:
        """The tree's value for rows in bins."""
        at = np.zeros(len(codes), np.intp)
        for k, node in enumerate(self.nodes):
            if "left" in node:
                here = np.flatnonzero(at == k)
                at[here] = int(node["left"]) + (codes[here, int(node["column"])] > node["cut"])
        return np.array([node["value"] for node in self.nodes])[at]

    def table(self, inputs: Inputs, weight: float) -> dict[str, np.ndarray]:
        """The tree as a plan keeps it, its values times a weight."""
        n = len(self.nodes)
        table = {
            "feature": np.zeros(n, np.int32),
            "threshold": np.full(n, np.inf),
            "left": np.arange(n, dtype=np.int32),
            "missing_right": np.zeros(n, bool),
            "value": weight * np.array([node["value"] for node in self.nodes]),
        }
        for k, node in enumerate(self.nodes):
            if "left" in node:
                column = int(node["column"])
                table["feature"][k] = inputs.numbers[column]
                table["threshold"][k] = inputs.cuts[column][int(node["cut"])]
                table["left"][k] = int(node["left"])
        return table


def grow(inputs: Inputs, target: Floats, rows: np.ndarray, least_rows: int) -> GateTree:
    """A tree for the target of some rows."""
    n_columns = inputs.codes.shape[1]
    offset = np.arange(n_columns) * N_BINS
    places = inputs.codes[rows] + offset
    y = target[rows]
    mean = float(y.mean()) if len(y) else 0.0
    nodes: list[dict[str, float]] = [{"value": mean}]
    open_leaves = {0: (np.arange(len(rows)), _best_split(places, y, n_columns, least_rows))}
    while len(open_leaves) < MOST_LEAVES:
        at = max(open_leaves, key=lambda k: open_leaves[k][1][0])
        members, (gain, column, cut) = open_leaves[at]
        if gain <= 0:
            break
        del open_leaves[at]
        right = places[members, column] - offset[column] > cut
        nodes[at] |= {"column": column, "cut": cut, "left": len(nodes)}
        for part in (members[~right], members[right]):
            value = (y[part].sum() + SHRINK * nodes[at]["value"]) / (len(part) + SHRINK)
            open_leaves[len(nodes)] = (part, _best_split(places[part], y[part], n_columns, least_rows))
            nodes.append({"value": float(value)})
    return GateTree(tuple(nodes))


def _best_split(places: np.ndarray, y: Floats, n_columns: int, least_rows: int) -> tuple[float, int, int]:
    """The gain, the column and the cut of the split that explains most; a gain of 0 where there is none."""
    n = len(y)
    if n < 2 * least_rows or n_columns == 0:
        return 0.0, -1, -1
    flat = places.ravel()
    counts = np.bincount(flat, minlength=n_columns * N_BINS).reshape(n_columns, N_BINS)
    centred = y - y.mean()
    sums = np.bincount(flat, np.repeat(centred, n_columns), minlength=n_columns * N_BINS).reshape(n_columns, N_BINS)
    left_n, left = np.cumsum(counts, axis=1)[:, :-1], np.cumsum(sums, axis=1)[:, :-1]
    right_n = n - left_n
    allowed = (left_n >= least_rows) & (right_n >= least_rows)
    gains = np.where(allowed, left**2 / np.maximum(left_n, 1) + left**2 / np.maximum(right_n, 1), 0.0)
    best = int(np.argmax(gains))
    gain = float(gains.flat[best])
    return (gain if gain > 1e-12 * n else 0.0), best // (N_BINS - 1), best % (N_BINS - 1)

"""Small regression trees for the rules of gates, grown best first on coarse bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from miserly._typing import Floats
from miserly.kernels import gates

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
    codes = np.zeros(values.shape, np.int64)
    for j, (column, middle) in enumerate(zip(values.T, cuts)):
        codes[:, j] = np.where(np.isnan(column), 0, np.searchsorted(middle, column))
    return codes


@dataclass(frozen=True)
class GateTree:
    """A grown tree: for each node its value and, where it is split, the column (-1 in a leaf), the last bin that goes
    left, and the left child; the right child is the next."""

    column: np.ndarray
    cut: np.ndarray
    left: np.ndarray
    value: Floats

    def predict(self, codes: np.ndarray) -> Floats:
        """The tree's value for rows in bins."""
        out = np.empty(len(codes))
        gates.gate_values(codes, self.column, self.cut, self.left, self.value, out)
        return out

    def table(self, inputs: Inputs, weight: float) -> dict[str, np.ndarray]:
        """The tree as a plan keeps it, its values times a weight."""
        n = len(self.value)
        table = {
            "feature": np.zeros(n, np.int32),
            "threshold": np.full(n, np.inf),
            "left": np.arange(n, dtype=np.int32),
            "missing_right": np.zeros(n, bool),
            "value": weight * self.value,
        }
        for k in np.flatnonzero(self.column >= 0):
            table["feature"][k] = inputs.numbers[self.column[k]]
            table["threshold"][k] = inputs.cuts[self.column[k]][self.cut[k]]
            table["left"][k] = self.left[k]
        return table


def grow(inputs: Inputs, target: Floats, rows: np.ndarray, least_rows: int, weights: Floats | None = None) -> GateTree:
    """A tree for the target of some rows; those of weight 0 are left out."""
    weight = np.ones(len(target))
    if weights is not None:
        rows = rows[weights[rows] > 0]
        weight = weights / weights[rows].mean() if len(rows) else weights
    return GateTree(*gates.grow_gate(inputs.codes, N_BINS, target, weight, rows, MOST_LEAVES, least_rows, SHRINK))

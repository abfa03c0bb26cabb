"""What the grower and a backend say to each other about nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from miserly.kernels import histograms as kernels
from miserly.kernels import tree_values


@dataclass(frozen=True)
class TreeSplit:
    """A node cut in two: bins up to `cut` go left; `gain` is raw, `price` what was paid for it (both per row).

    `shares` says for each acquisition bought which part of all rows pays for it here.
    """

    node: int
    left: int
    feature: int
    cut: int
    missing_right: bool
    gain: float
    price: float
    bought: tuple[int, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class NodeSums:
    """Of a node's rows: the sum of each lane and that of the squared quantised gradients (by weight).

    Lanes are the gradients of one or more outputs, the first packed with the counts, and the weights, if any, last.
    """

    lanes: tuple[int, ...]
    squares: float
    weighted: bool = False

    @property
    def n_rows(self) -> int:
        return self.lanes[0] & kernels.COUNT_MASK

    @property
    def weight(self) -> int:
        return self.lanes[-1] if self.weighted else self.n_rows

    @property
    def n_gradients(self) -> int:
        return len(self.lanes) - self.weighted

    @property
    def squared_error(self) -> float:
        """Around the mean: no split of the node can gain more. Exact where the squares are whole."""
        if len(self.lanes) == 1:
            error: float = tree_values.squared_error.py_func(self.lanes[0], self.squares)
            return error
        first, *others = self.lanes[: self.n_gradients]
        explained = (first >> kernels.COUNT_BITS) ** 2 + sum(g * g for g in others)
        return self.squares - explained / max(self.weight, 1) + 1e-9 * self.squares

    def __add__(self, other: NodeSums) -> NodeSums:
        """The sums of rows in two places."""
        lanes = tuple(a + b for a, b in zip(self.lanes, other.lanes))
        return NodeSums(lanes, self.squares + other.squares, self.weighted)


@dataclass(frozen=True)
class Ahead:
    """What will most likely be needed once a node is split: histograms of its smaller child, for these features."""

    node: int
    features: np.ndarray

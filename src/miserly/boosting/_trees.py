"""What boosting is asked for and what it grows: settings, limits, rounds, and trees with their form in a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from miserly.boosting._binning import BinnedData
from miserly.boosting._constraints import Constraints
from miserly.boosting._nodes import TreeSplit

Table = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class TreeLimits:
    """How far a tree may grow.

    Parameters
    ----------
    max_depth : int or None, default=3
        Levels of splits, from 1; None is no limit.
    max_leaf_nodes : int or None, default=None
        Leaves, from 2; None is no limit.
    min_samples_leaf : int, default=20
        Rows that each leaf must hold.
    """

    max_depth: int | None = 3
    max_leaf_nodes: int | None = None
    min_samples_leaf: int = 20

    def most_leaves(self, n_rows: int) -> int:
        """How many leaves a tree on this many rows can have."""
        by_rows = max(1, n_rows // max(1, self.min_samples_leaf))
        by_depth = by_rows if self.max_depth is None else 1 << min(self.max_depth, 32)
        by_leaves = by_rows if self.max_leaf_nodes is None else self.max_leaf_nodes
        return min(by_rows, by_depth, by_leaves)


@dataclass(frozen=True)
class Settings:
    """How to boost.

    Parameters
    ----------
    n_estimators : int, default=100
        Rounds at most.
    learning_rate : float, default=0.1
        The part of each Newton step that is taken, in (0, 1].
    limits : TreeLimits
        How far trees grow.
    max_features : float, default=1.0
        The share of features that each tree may use, in (0, 1].
    seed : int, default=0
        Chooses them.
    l2 : float, default=0.0
        Draws leaves towards zero, as if this many rows more had a zero gradient.
    lazy : bool, default=False
        Look at what is not owned yet less often when it does not pay: after a round that bought nothing the next one,
        two, four, then every eight rounds use what is owned, until something is bought again.
    constraints : Constraints or None, default=None
        What trees must respect. Such trees are grown split by split.
    """

    n_estimators: int = 100
    learning_rate: float = 0.1
    limits: TreeLimits = field(default_factory=TreeLimits)
    max_features: float = 1.0
    seed: int = 0
    l2: float = 0.0
    lazy: bool = False
    constraints: Constraints | None = None


class GrownTree:
    """The splits of a tree in the order of growing, and its leaves.

    Made from splits, or (`from_records`) from the compiled grower's arrays, of which splits are made when asked for.
    """

    def __init__(self, splits: Sequence[TreeSplit], leaves: Sequence[int]) -> None:
        self._splits: tuple[TreeSplit, ...] | None = tuple(splits)
        self._leaves: tuple[int, ...] | None = tuple(leaves)
        self._records: Any = np.empty(0)
        self._purchases: Any = np.empty(0)

    @classmethod
    def from_records(cls, records: np.ndarray, purchases: np.ndarray) -> GrownTree:
        """From arrays of `kernels.growing.SPLIT` and `PURCHASE`."""
        tree = cls.__new__(cls)
        tree._splits = tree._leaves = None
        tree._records, tree._purchases = records, purchases
        return tree

    @property
    def splits(self) -> tuple[TreeSplit, ...]:
        """All splits."""
        if self._splits is None:
            bought = self._bought_by_split()
            self._splits = tuple(
                TreeSplit(node, left, feature, cut, right, gain, price, *bought.get(i, ((), ())))
                for i, (gain, price, node, left, feature, cut, right) in enumerate(self._records.tolist())
            )
        return self._splits

    @property
    def leaves(self) -> tuple[int, ...]:
        """The numbers of the leaves."""
        if self._leaves is None:
            self._leaves = tuple(sorted(set(range(2 * len(self._records) + 1)) - set(self._records["node"].tolist())))
        return self._leaves

    @property
    def score(self) -> float:
        """Gain less what was paid, added in the order of the splits, as the compiled grower does."""
        total = 0.0
        for split in self.splits:
            total += split.gain - split.price
        return total

    @property
    def bought(self) -> list[int]:
        """The acquisitions that the tree bought."""
        if self._splits is None:
            acquisitions: list[int] = self._purchases["acquisition"].tolist()
            return acquisitions
        return [a for split in self._splits for a in split.bought]

    @property
    def buying_splits(self) -> list[TreeSplit]:
        """The splits that bought something."""
        if self._splits is None and not len(self._purchases):
            return []
        return [split for split in self.splits if split.bought]

    def _bought_by_split(self) -> dict[int, tuple[tuple[int, ...], tuple[float, ...]]]:
        found: dict[int, tuple[tuple[int, ...], tuple[float, ...]]] = {}
        for share, split, acquisition in self._purchases.tolist():
            acquisitions, shares = found.get(split, ((), ()))
            found[split] = ((*acquisitions, acquisition), (*shares, share))
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GrownTree) and (self.splits, self.leaves) == (other.splits, other.leaves)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"GrownTree(splits={self.splits!r}, leaves={self.leaves!r})"


@dataclass(frozen=True)
class Round:
    """What one round added: for some outputs a tree, in the plan's table format, with its splits for the record."""

    outputs: tuple[int, ...] = ()
    tables: tuple[dict[str, np.ndarray], ...] = ()
    trees: tuple[GrownTree, ...] = ()


def tree_table(data: BinnedData, tree: GrownTree, values: Mapping[int, float]) -> dict[str, np.ndarray]:
    """The tree as a plan keeps it: leaves point to themselves behind an infinite threshold."""
    n = 2 * len(tree.splits) + 1
    table = {
        "feature": np.zeros(n, np.int32),
        "threshold": np.full(n, np.inf),
        "left": np.arange(n, dtype=np.int32),
        "missing_right": np.zeros(n, bool),
        "value": np.zeros(n),
    }
    for split in tree.splits:
        table["feature"][split.node] = split.feature
        table["threshold"][split.node] = data.threshold(split.feature, split.cut)
        table["left"][split.node] = split.left
        table["missing_right"][split.node] = split.missing_right
    for leaf, value in values.items():
        table["value"][leaf] = value
    return table

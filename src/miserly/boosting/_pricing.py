"""What boosting has bought, and what each feature would still cost, in the exchange rate λ.

A `ModelPricing` sells to the whole model: whoever buys first pays, and prices fall for all that share the purchase. A
`RowPricing` sells to rows: a split is charged for those of its rows that do not own yet what it needs, as on-demand
evaluation does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from miserly.boosting._backend import Backend
from miserly.costs import CostTable, set_bits


@dataclass(frozen=True)
class Bought:
    """What a split had to buy, and which part of all rows pays for each."""

    acquisitions: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()


class ModelPricing:
    """Marginal price of every feature times λ, refreshed the moment something is bought.

    `repeat` is the part of the price that a later use of something owned still pays.
    """

    same_for_all_nodes = True

    def __init__(self, costs: CostTable, tradeoff: float, repeat: float = 0.0) -> None:
        self._needs = _needs(costs)
        self._needed_by = self._needs.T.tocsr()
        self._price = np.array(costs.price_list, float) * tradeoff
        self._repeat = repeat
        self.owned = np.zeros(len(self._price), bool)
        self.prices = self._marginal()
        self.evaluation = float(np.max(costs.evaluation, initial=0.0)) * tradeoff
        self._fresh: list[int] = []

    def own(self, acquisitions: Iterable[int]) -> None:
        """What an earlier fit has paid is owned."""
        self.owned[list(acquisitions)] = True
        self.prices = self._marginal()

    def free_features(self) -> np.ndarray:
        """Which features need nothing more that costs anything."""
        return self._needs @ np.where(self.owned, 0.0, self._price) == 0

    def begin(self) -> None:
        """A new tree."""
        self._fresh = []

    def prices_in(self, node: int) -> np.ndarray:
        """What each feature would cost a split of a node."""
        return self.prices

    def buy(self, node: int, feature: int) -> Bought:
        """Buy what a feature still lacks."""
        bought = [int(a) for a in _line(self._needs, feature) if not self.owned[a]]
        if bought:
            self.owned[bought] = True
            self._fresh += bought
            cheaper = np.unique(np.concatenate([_line(self._needed_by, a) for a in bought]))
            self.prices[cheaper] = self._needs[cheaper] @ self._charged()
        return Bought(tuple(bought), (1.0,) * len(bought))

    def divide(self, node: int, left: int) -> None:
        """A node was split."""

    def give_back(self) -> None:
        """Undo the purchases of the tree."""
        self.owned[self._fresh] = False
        self.prices = self._marginal()

    def _charged(self) -> np.ndarray:
        return np.where(self.owned, self._repeat, 1.0) * self._price

    def _marginal(self) -> np.ndarray:
        return self._needs @ self._charged()


class RowPricing:
    """Expected price of every feature in every open node: λ · Σ price · share of all rows that would have to pay."""

    same_for_all_nodes = False

    def __init__(self, costs: CostTable, tradeoff: float, backend: Backend, repeat: float = 0.0) -> None:
        self._needs = _needs(costs)
        self._price = np.array(costs.price_list, float) * tradeoff
        self._repeat = repeat
        self._backend = backend
        self.evaluation = float(np.max(costs.evaluation, initial=0.0)) * tradeoff

    def begin(self) -> None:
        """A new tree: all rows in node 0."""
        weight, lacking = self._backend.lacking(0, range(len(self._price)))
        self._weight = {0: weight}
        self._lacking = {0: np.array(lacking, np.int64)}

    def prices_in(self, node: int) -> np.ndarray:
        """What each feature would cost a split of a node."""
        lacking, weight = self._lacking[node], self._weight[node]
        payers = lacking + self._repeat * (weight - lacking) if self._repeat else lacking
        return self._needs @ (self._price * (payers / self._backend.weight))

    def buy(self, node: int, feature: int) -> Bought:
        """Every row of the node buys what it lacks of a feature's needs."""
        lacking = self._lacking[node]
        bought = [int(a) for a in _line(self._needs, feature) if lacking[a] > 0]
        shares = tuple(float(lacking[a] / self._backend.weight) for a in bought)
        self._backend.own(node, bought)
        lacking[bought] = 0
        return Bought(tuple(bought), shares)

    def divide(self, node: int, left: int) -> None:
        """A node was split: count in one child who lacks what only some rows of the node own."""
        lacking, weight = self._lacking.pop(node), self._weight.pop(node)
        some = np.flatnonzero((lacking > 0) & (lacking < weight))
        of_left, counted = self._backend.lacking(left, some.tolist())
        here = np.where(lacking > 0, of_left, 0)
        here[some] = counted
        self._weight |= {left: of_left, left + 1: weight - of_left}
        self._lacking |= {left: here, left + 1: lacking - here}

    def give_back(self) -> None:
        """Undo the purchases of the tree."""
        self._backend.disown()


def _needs(costs: CostTable) -> csr_array:
    """Features × acquisitions, one where a feature needs an acquisition."""
    lines = [list(set_bits(mask)) for mask in costs.feature_masks]
    pointer = np.concatenate([[0], np.cumsum([len(line) for line in lines], dtype=np.int64)])
    columns = np.array([a for line in lines for a in line], np.int64)
    return csr_array((np.ones(len(columns)), columns, pointer), shape=(len(lines), len(costs.price_list)))


def _line(matrix: csr_array, i: int) -> np.ndarray:
    return matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]]

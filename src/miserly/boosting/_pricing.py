"""What boosting has bought, and what each feature would still cost, in the exchange rate λ.

`ModelPricing` charges the whole model: the first split that needs an acquisition pays, and prices fall for all features
that share it. `RowPricing` charges rows: a split pays for those of its rows that do not own yet what it needs, as
on-demand evaluation does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from miserly.boosting._backend import BackendOfRows
from miserly.boosting._nodes import TreeSplit
from miserly.costs import CostTable, set_bits

Sparse = tuple[np.ndarray, np.ndarray]  # where each line begins, and the columns of its ones


@dataclass(frozen=True)
class Bought:
    """What a split had to buy, and which part of all rows pays for each."""

    acquisitions: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()


class Pricing:
    """What both ways of charging share.

    Attributes
    ----------
    evaluation : float
        λ times the price of evaluating a tree.
    price : ndarray of shape (n_acquisitions,)
        λ times the price of each acquisition.
    repeat : float
        The part of a price that a later use of something owned still pays.
    needs, needed_by : pair of ndarrays
        The acquisitions of each feature, and the features of each acquisition.
    compiled : bool
        Whether trees may be grown compiled at these prices.
    """

    same_for_all_nodes: bool
    compiled = True

    def __init__(self, costs: CostTable, tradeoff: float, repeat: float) -> None:
        self._matrix = _needs(costs)
        self.price = np.array(costs.price_list, float) * tradeoff
        self.repeat = float(repeat)
        self.evaluation = float(np.max(costs.evaluation, initial=0.0)) * tradeoff
        self.needs, self.needed_by = _sparse(self._matrix), _sparse(self._matrix.T.tocsr())

    def begin(self) -> None:
        """A new tree: all rows in node 0."""
        raise NotImplementedError

    def prices_in(self, node: int) -> np.ndarray:
        """What each feature would cost a split of a node."""
        raise NotImplementedError

    def buy(self, node: int, feature: int) -> Bought:
        """Buy what a split of a node lacks."""
        raise NotImplementedError

    def divide(self, node: int, left: int) -> None:
        """A node was split."""

    def keep(self, splits: Iterable[TreeSplit]) -> None:
        """The tree is kept with these splits."""

    def give_back(self) -> None:
        """The tree is not kept."""

    def _needed(self, feature: int) -> np.ndarray:
        pointer, acquisitions = self.needs
        return acquisitions[pointer[feature] : pointer[feature + 1]]


class ModelPricing(Pricing):
    """Marginal price of every feature times λ, refreshed the moment something is bought.

    Parameters
    ----------
    costs : CostTable
        What each feature needs, and what that costs.
    tradeoff : float
        λ: the loss that a unit of cost must save.
    repeat : float, default=0.0
        The part of the price, in [0, 1], that a later use of something owned still pays.
    """

    same_for_all_nodes = True

    def __init__(self, costs: CostTable, tradeoff: float, repeat: float = 0.0) -> None:
        super().__init__(costs, tradeoff, repeat)
        self.owned = np.zeros(len(self.price), bool)
        self.prices = self._marginal()
        self._fresh: list[int] = []
        self._free = b"", np.empty(0, bool)

    def own(self, acquisitions: Iterable[int]) -> None:
        """What an earlier fit has paid is owned."""
        self.owned[list(acquisitions)] = True
        self.prices[:] = self._marginal()

    def free_features(self) -> np.ndarray:
        """Which features need nothing more that costs anything."""
        owned = self.owned.tobytes()
        if owned != self._free[0]:
            self._free = owned, self._matrix @ np.where(self.owned, 0.0, self.price) == 0
        return self._free[1]

    def begin(self) -> None:
        self._fresh = []

    def prices_in(self, node: int) -> np.ndarray:
        return self.prices

    def buy(self, node: int, feature: int) -> Bought:
        bought = [int(a) for a in self._needed(feature) if not self.owned[a]]
        if bought:
            self.owned[bought] = True
            self._fresh += bought
            pointer, features = self.needed_by
            cheaper = np.unique(np.concatenate([features[pointer[a] : pointer[a + 1]] for a in bought]))
            self.prices[cheaper] = self._matrix[cheaper] @ self._charged()
        return Bought(tuple(bought), (1.0,) * len(bought))

    def bought(self, acquisitions: list[int]) -> None:
        """What the last tree bought where it was grown compiled: it can still be given back."""
        self._fresh = acquisitions

    def give_back(self) -> None:
        self.owned[self._fresh] = False
        self.prices[:] = self._marginal()

    def _charged(self) -> np.ndarray:
        return np.where(self.owned, self.repeat, 1.0) * self.price

    def _marginal(self) -> np.ndarray:
        return self._matrix @ self._charged()


class RowPricing(Pricing):
    """Expected price of every feature in every open node: λ · Σ price · share of all rows that would have to pay.

    Parameters
    ----------
    costs : CostTable
        What each feature needs, and what that costs.
    tradeoff : float
        λ: the mean loss that a unit of cost per row must save.
    backend : BackendOfRows
        Knows which rows own what.
    repeat : float, default=0.0
        The part of the price, in [0, 1], that a later use of something owned still pays.
    """

    same_for_all_nodes = False

    def __init__(self, costs: CostTable, tradeoff: float, backend: BackendOfRows, repeat: float = 0.0) -> None:
        super().__init__(costs, tradeoff, repeat)
        self._backend = backend

    def begin(self) -> None:
        weight, lacking = self._backend.lacking(0, range(len(self.price)))
        self._weight = {0: weight}
        self._lacking = {0: np.array(lacking, np.int64)}

    def prices_in(self, node: int) -> np.ndarray:
        lacking, weight = self._lacking[node], self._weight[node]
        payers = lacking + self.repeat * (weight - lacking) if self.repeat else lacking
        return self._matrix @ (self.price * (payers / self._backend.weight))

    def buy(self, node: int, feature: int) -> Bought:
        """Every row of the node buys what it lacks; the rows own it once the tree is kept."""
        lacking = self._lacking[node]
        bought = [int(a) for a in self._needed(feature) if lacking[a] > 0]
        shares = tuple(float(lacking[a] / self._backend.weight) for a in bought)
        lacking[bought] = 0
        return Bought(tuple(bought), shares)

    def divide(self, node: int, left: int) -> None:
        """Count in one child who lacks what only some rows of the node own."""
        lacking, weight = self._lacking.pop(node), self._weight.pop(node)
        some = np.flatnonzero((lacking > 0) & (lacking < weight))
        of_left, counted = self._backend.lacking(left, some.tolist())
        here = np.where(lacking > 0, of_left, 0)
        here[some] = counted
        self._weight |= {left: of_left, left + 1: weight - of_left}
        self._lacking |= {left: here, left + 1: lacking - here}

    def keep(self, splits: Iterable[TreeSplit]) -> None:
        """The rows of each node own from now on what its split bought."""
        purchases = [(split.node, split.bought) for split in splits if split.bought]
        if purchases:
            self._backend.own(purchases)


def _needs(costs: CostTable) -> csr_array:
    """Features × acquisitions, one where a feature needs an acquisition."""
    lines = [list(set_bits(mask)) for mask in costs.feature_masks]
    pointer = np.concatenate([[0], np.cumsum([len(line) for line in lines], dtype=np.int64)])
    columns = np.array([a for line in lines for a in line], np.int64)
    return csr_array((np.ones(len(columns)), columns, pointer), shape=(len(lines), len(costs.price_list)))


def _sparse(matrix: csr_array) -> Sparse:
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)

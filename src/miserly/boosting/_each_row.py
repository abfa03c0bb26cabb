"""What features cost rows that have prices of their own."""

from __future__ import annotations

import math

import numpy as np

from miserly.boosting._backend import LocalBackend
from miserly.boosting._pricing import Bought, RowPricing
from miserly.costs import CostTable

SUM_BITS = 62  # of a sum of prices over all rows, in quanta


class EachRowPricing(RowPricing):
    """Expected price of every feature in every open node, where each row has its own prices.

    Sums over rows are of whole quanta, so that they do not depend on the order of the rows. Trees are grown split by
    split.

    Parameters
    ----------
    costs : CostTable
        What each feature needs.
    tradeoff : float
        λ: the mean loss that a unit of cost per row must save.
    backend : LocalBackend
        Knows which rows own what.
    prices : ndarray of shape (n_rows, n_acquisitions)
        What each acquisition costs each row, 0 or more.
    repeat : float, default=0.0
        The part of the price, in [0, 1], that a later use of something owned still pays.
    """

    compiled = False

    def __init__(
        self, costs: CostTable, tradeoff: float, backend: LocalBackend, prices: np.ndarray, repeat: float = 0.0
    ) -> None:
        super().__init__(costs, tradeoff, backend, repeat)
        self._rows, self._tradeoff = backend.rows, tradeoff
        weights = np.ones(len(prices)) if backend.rows.weights is None else backend.rows.weights.astype(np.float64)
        weighted = np.asarray(prices, np.float64) * weights[:, None]
        most = weighted.sum(axis=0)
        self._quantum = np.array([2.0 ** (math.frexp(m)[1] - SUM_BITS) if m > 0 else 1.0 for m in most.tolist()])
        self._quanta = np.rint(weighted / self._quantum).astype(np.int64)

    def prices_in(self, node: int) -> np.ndarray:
        return self._matrix @ (self._tradeoff * self._to_pay(node))

    def buy(self, node: int, feature: int) -> Bought:
        paid = self._to_pay(node) * self._tradeoff
        bought = super().buy(node, feature)
        # as parts of the expected price, so that the record of purchases says what rows paid in the mean
        shares = tuple(float(paid[a] / self.price[a]) if self.price[a] else 0.0 for a in bought.acquisitions)
        return Bought(bought.acquisitions, shares)

    def _to_pay(self, node: int) -> np.ndarray:
        """What the rows of a node would pay for each acquisition, per row of all rows."""
        rows, lacks = self._rows.in_node(node), self._lacking[node] > 0
        everything = self._quanta[rows].sum(axis=0)
        lacking = np.where(lacks, everything, 0)
        for a in np.flatnonzero(lacks & (self._lacking[node] < self._weight[node])):
            lacking[a] -= self._quanta[rows[self._rows.owns(rows, int(a))], a].sum()
        payers = lacking + self.repeat * (everything - lacking) if self.repeat else lacking
        return payers * self._quantum / self._backend.weight

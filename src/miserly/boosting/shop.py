"""What boosting has bought, and what each feature would still cost: prices fall for all that share a purchase."""

from __future__ import annotations

import numpy as np

from miserly.costs import CostTable


class Shop:
    """Marginal price of every feature times λ, refreshed the moment something is bought."""

    def __init__(self, costs: CostTable, tradeoff: float) -> None:
        self._needs = costs.needs_matrix
        self._price = np.array(costs.price_list) * tradeoff
        self.owned = np.zeros(len(self._price), bool)
        self.prices = self._marginal(slice(None))
        self.evaluation = float(np.max(costs.evaluation, initial=0.0)) * tradeoff

    def buy(self, feature: int) -> np.ndarray:
        """Buy what a feature still lacks; returns the acquisitions bought (none if it is owned)."""
        bought = np.flatnonzero(self._needs[feature] & ~self.owned)
        if len(bought):
            self.owned[bought] = True
            cheaper = np.flatnonzero(self._needs[:, bought].any(axis=1))
            self.prices[cheaper] = self._marginal(cheaper)
        return bought

    def give_back(self, acquisitions: np.ndarray) -> None:
        """Undo purchases."""
        self.owned[acquisitions] = False
        self.prices = self._marginal(slice(None))

    def _marginal(self, features: slice | np.ndarray) -> np.ndarray:
        return np.where(self._needs[features], np.where(self.owned, 0.0, self._price), 0.0).sum(axis=1)

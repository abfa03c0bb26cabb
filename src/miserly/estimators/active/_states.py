"""States of knowledge: which acquisitions a training row owns, and so which of its values are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from miserly._typing import Array, Bools, Floats, Rows
from miserly.boosting import BinnedData, bin_data
from miserly.costs import CostTable, set_bits

MISSING_BIN = 255
BOUGHT_BUT_MISSING = -np.inf  # as `kernels.policy` writes it; NaN is a value that was not bought
BY_FEATURE = 4  # every fourth random state knows single features, whatever they need


@dataclass(frozen=True)
class States:
    """Rows of the data (by number) with what each owns (× acquisitions) and knows (× features)."""

    rows: Rows
    owned: Bools
    known: Bools

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: Any) -> States:
        return States(self.rows[which], self.owned[which], self.known[which])

    def __add__(self, other: States) -> States:
        rows = np.concatenate([self.rows, other.rows])
        owned, known = np.concatenate([self.owned, other.owned]), np.concatenate([self.known, other.known])
        return States(rows, owned, known)


class StateTable:
    """The training data with all values known, in numbers and in bins, and what each feature needs."""

    def __init__(self, X: Floats, costs: CostTable, max_bins: int) -> None:
        missing = np.isnan(X)
        self.raw, self.costs = X, costs
        self.misses: Bools = np.asarray(missing.any(axis=0))
        self.X: Floats = np.where(missing, BOUGHT_BUT_MISSING, X)
        self.binned = bin_data(self.X, max_bins)
        self.needs = np.zeros((X.shape[1], len(costs.acquisitions)), bool)
        for f, mask in enumerate(costs.feature_masks):
            self.needs[f, list(set_bits(mask))] = True

    def known(self, owned: Bools) -> Bools:
        """The features that owners of these acquisitions know."""
        lacks: Bools = (~owned).astype(np.float32) @ self.needs.T.astype(np.float32) > 0
        return ~lacks

    def states(self, rows: Rows, owned: Bools) -> States:
        """Rows that own these acquisitions."""
        return States(rows, owned, self.known(owned))

    def everything(self, rows: Rows) -> States:
        """Rows that own everything."""
        return self.states(rows, np.ones((len(rows), self.needs.shape[1]), bool))

    def random(self, rows: Rows, rng: np.random.Generator, by_feature: bool = False) -> States:
        """A random set of acquisitions for each row, small ones more often; for some rows (or all) of features."""
        nothing = np.zeros((len(rows), self.needs.shape[1]), bool)
        states = self.states(rows, nothing if by_feature else _random_sets(*nothing.shape, rng))
        is_shared = (self.needs.sum(axis=0) > 1).any() or (self.needs.sum(axis=1) > 1).any()
        if by_feature or is_shared:
            some = np.arange(0, len(rows), 1 if by_feature else BY_FEATURE)
            states.known[some] = self._random_features(len(some), rng) | ~self.needs.any(axis=1)
            states.owned[some] = False
        return states

    def _random_features(self, n: int, rng: np.random.Generator) -> Bools:
        """Random sets of features, drawn in the order of their names: it does not matter where their columns are."""
        known = np.empty((n, len(self.needs)), bool)
        known[:, np.argsort(self.costs.features)] = _random_sets(n, len(self.needs), rng)
        return known

    def bought(self, states: States, mask: int) -> States:
        """The same rows after one more purchase."""
        owned = states.owned.copy()
        owned[:, list(set_bits(mask))] = True
        touched = np.flatnonzero(self.needs[:, list(set_bits(mask))].any(axis=1))
        known = states.known.copy()
        needs = self.needs[touched].T.astype(np.float32)
        known[:, touched] |= ~((~owned).astype(np.float32) @ needs > 0)
        return States(states.rows, owned, known)

    def values(self, states: States) -> Floats:
        """What is known, as numbers; NaN for the rest."""
        return np.where(states.known, self.X[states.rows], np.nan)

    def bins(self, states: States, scores: Floats | None = None) -> BinnedData:
        """What is known, in bins, with columns of scores after the features."""
        n, n_features = len(states), self.X.shape[1]
        extra = None if scores is None else bin_data(scores, MISSING_BIN)
        width = n_features + (0 if extra is None else extra.n_features)
        words = np.zeros((-(-width // 8), n), "<u8")
        words[: len(self.binned.words)] = self.binned.words[:, states.rows]
        cuts, n_bins = self.binned.cuts, self.binned.n_bins
        if extra is not None:
            cuts, n_bins = np.concatenate([cuts, extra.cuts]), np.concatenate([n_bins, extra.n_bins])
        data = BinnedData(words, cuts, n_bins)
        for f in range(n_features):
            data.lane(f)[~states.known[:, f]] = MISSING_BIN
        for k in range(width - n_features):
            assert extra is not None
            data.lane(n_features + k)[:] = extra.lane(k)
        return data


def some_columns(data: BinnedData, rows: Rows) -> BinnedData:
    """Some rows of data in bins."""
    return BinnedData(np.ascontiguousarray(data.words[:, rows]), data.cuts, data.n_bins)


def _random_sets(n: int, size: int, rng: np.random.Generator) -> Array:
    """A random subset of 0 … size − 1 in each of n rows."""
    n_chosen = np.floor((size + 1) * rng.random(n) ** 2)
    order = np.argsort(np.argsort(rng.random((n, size)), axis=1), axis=1)
    return np.asarray(order < n_chosen[:, None])

"""Logged tables hold a value only where somebody bought it: which purchases are there, and how likely each was.

A row on which some purchases were logged stands for all rows like it, 1 / chance of them: the chances of the single
purchases, multiplied. Each chance is learned from the label, from the columns that are always there, and from what the
acquisitions before it in the price table brought. That is right if rows that are alike in these were chosen without
regard to what the purchase would have brought, and if every purchase had some chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeRegressor

from miserly._typing import Array, Floats
from miserly.costs import CostTable, RowAccounts, set_bits

N_FOLDS = 3
MOST_ROUNDS, PATIENCE, STEP, DEPTH, LEAST_LEAF = 100, 5, 0.2, 3, 20  # of boosting the log-odds of a purchase
LEAST_CHANCE = 0.02  # so that no row stands for more than 50 others in one purchase


@dataclass(frozen=True, eq=False)
class LoggedRows:
    """Some rows of a logged table: `inverse` (rows × acquisitions) is 1 / chance of a purchase that was logged, 0 of
    one that was not, and 1 of what is not logged but always there."""

    inverse: Floats

    def weights(self, bought: int) -> Floats:
        """How many rows each row stands for, if these acquisitions (bits) are bought: 0 where one was not logged."""
        return self.inverse[:, list(set_bits(bought))].prod(axis=1)

    def weights_of(self, accounts: RowAccounts) -> Floats:
        """The same, if each row buys what its account has."""
        out = np.ones(len(self.inverse))
        for number, account in enumerate(accounts.accounts):
            here = np.flatnonzero(accounts.of_row == number)
            if len(here) and account.owned:
                out[here] = self.part(here).weights(account.owned)
        return out

    def part(self, rows: np.ndarray) -> LoggedRows:
        """Some of the rows."""
        return LoggedRows(self.inverse[rows])

    def joined(self, other: LoggedRows) -> LoggedRows:
        """These rows and others."""
        return LoggedRows(np.concatenate([self.inverse, other.inverse]))


@dataclass(frozen=True, eq=False)
class LoggedPurchases:
    """How likely purchases are, as learned from the rows of a logged table; `own` are these rows, each judged by models
    that have not seen it."""

    costs: CostTable
    models: dict[int, list[_Chance]]
    own: LoggedRows
    labels: Array

    @classmethod
    def learn(cls, costs: CostTable, X: Floats, y: Any, seed: int = 0) -> LoggedPurchases:
        """Learn from rows with the columns of a bound table, and their labels."""
        labels = np.unique(y)
        inverse = np.ones((len(X), len(costs.acquisitions)))
        models: dict[int, list[_Chance]] = {}
        for a, logged in _logged(costs, X).items():
            seen, chance = _seen(costs, a, X, y, labels), np.full(len(X), logged.mean())
            models[a] = []
            for fit, score in KFold(min(N_FOLDS, len(X)), shuffle=True, random_state=seed).split(X):
                model = _Chance.learn(seen[fit], logged[fit], seen[score], logged[score])
                chance[score] = model(seen[score])
                models[a].append(model)
            inverse[:, a] = _inverse(logged, chance)
        return cls(costs, models, LoggedRows(inverse), labels)

    def rows(self, X: Floats, y: Any) -> LoggedRows:
        """Other rows of the same log."""
        inverse = np.ones((len(X), len(self.costs.acquisitions)))
        for a, logged in _logged(self.costs, X).items():
            seen = _seen(self.costs, a, X, y, self.labels)
            inverse[:, a] = _inverse(logged, np.mean([model(seen) for model in self.models[a]], axis=0))
        return LoggedRows(inverse)


def effective_number(weights: Floats) -> float:
    """How many rows of the same weight would say as much about a mean."""
    total = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / total if total else 0.0


def weighted_mean(values: Floats, weights: Floats | None) -> float:
    """The mean, where rows may count differently; of rows that do not count at all, NaN."""
    if weights is None:
        return float(values.mean())
    counted = weights > 0
    return float(np.average(values[counted], weights=weights[counted])) if counted.any() else float("nan")


def _logged(costs: CostTable, X: Floats) -> dict[int, np.ndarray]:
    """Of each acquisition that is not always there, on which rows some feature of it has a value."""
    return {a: np.asarray(~np.isnan(X[:, list(features)]).all(axis=1)) for a, features in costs.not_ordered.items()}


def _seen(costs: CostTable, acquisition: int, X: Floats, y: Any, labels: Array) -> Floats:
    """What a chance depends on: the features that are always there, those of acquisitions before this one, and the
    place of the label among all labels."""
    later = {f for a, features in costs.not_ordered.items() if a >= acquisition for f in features}
    known = [f for f in range(len(costs.features)) if f not in later]
    return np.column_stack([X[:, known], np.searchsorted(labels, np.asarray(y))])


def _inverse(logged: np.ndarray, chance: Floats) -> Floats:
    return np.where(logged, 1.0 / np.maximum(chance, LEAST_CHANCE), 0.0)


@dataclass(frozen=True, eq=False)
class _Chance:
    """The probability of a purchase: boosted trees, as many as are best on rows that they have not seen."""

    start: float
    rounds: Sequence[tuple[Any, Floats]]

    @classmethod
    def learn(cls, X: Floats, bought: np.ndarray, watched: Floats, watched_bought: np.ndarray) -> _Chance:
        share = float(np.clip(bought.mean(), 1e-6, 1 - 1e-6))
        start = float(np.log(share / (1.0 - share)))
        if not X.shape[1] or bought.all() or not bought.any():
            return cls(start, ())
        rounds: list[tuple[Any, Floats]] = []
        logit, seen = np.full(len(X), start), np.full(len(watched), start)
        losses = [_log_loss(seen, watched_bought)]
        while len(rounds) < MOST_ROUNDS and len(rounds) < int(np.argmin(losses)) + PATIENCE:
            p = _probability(logit)
            tree = DecisionTreeRegressor(max_depth=DEPTH, min_samples_leaf=LEAST_LEAF, random_state=0)
            at = tree.fit(X, bought - p).apply(X)
            sums, curvature = np.bincount(at, bought - p), np.bincount(at, p * (1.0 - p))
            values = STEP * sums / (curvature + 1.0)
            logit += values[at]
            seen += values[tree.apply(watched)]
            rounds.append((tree, values))
            losses.append(_log_loss(seen, watched_bought))
        return cls(start, tuple(rounds[: int(np.argmin(losses))]))

    def __call__(self, X: Floats) -> Floats:
        logit = np.full(len(X), self.start)
        for tree, values in self.rounds:
            logit += values[tree.apply(X)]
        return _probability(logit)


def _probability(logit: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-logit)))


def _log_loss(logit: Floats, bought: np.ndarray) -> float:
    return float(np.logaddexp(0.0, np.where(bought, -logit, logit)).mean())

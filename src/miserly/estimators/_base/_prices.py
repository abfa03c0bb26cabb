"""Prices of training rows: those that depend on the row, and those that were measured, and what a plan keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.tree import DecisionTreeRegressor

from miserly.costs import MOST, CostTable, RowPrices, TreePrice, expecting, set_bits
from miserly.plan import measured_prices

MOST_LEAVES = 8  # of a learned price: an estimate, not a model
FEWEST_ROWS = 20  # of each of its leaves
LEAST_GAIN = 0.02  # of the variance, on rows left out: with less, the mean is as good
CAUTION = 0.9  # the quantile that strict=True decides by


@dataclass(frozen=True)
class TrainingPrices:
    """The table that a plan gets, and what each training row pays for each acquisition.

    Parameters
    ----------
    costs : CostTable
        The bound table, whose prices by row know their mean.
    matrix : ndarray of shape (n_rows, n_acquisitions)
        The prices of the training rows.
    """

    costs: CostTable
    matrix: np.ndarray

    @property
    def differ(self) -> bool:
        """Whether some acquisition has not the same price for all rows."""
        return bool((self.matrix != self.matrix[:1]).any())


def training_prices(costs: CostTable, X: Any, prices: Any) -> TrainingPrices | None:
    """The prices of training rows; None where all have the table's own."""
    if prices is None and not costs.row_prices:
        return None
    values = _looked_at(costs, X, prices is not None)
    if costs.row_prices:
        costs = expecting(costs, values)
    matrix = RowPrices(costs).matrix(values)
    if prices is None:
        return TrainingPrices(costs, matrix)
    if costs.exchange:
        raise ValueError(
            "Measured prices are in one unit, the table has several currencies. Give the table prices in that unit."
        )
    measured = measured_prices(costs, prices, X.shape[0])
    for a in measured:
        matrix[:, a] = measured[a]
    return TrainingPrices(_estimated(costs, values, measured), matrix)


def _estimated(costs: CostTable, X: np.ndarray, measured: dict[int, np.ndarray]) -> CostTable:
    """The table with an estimate of each measured price: its mean, or a small tree of what is known before."""
    names, specs, upper = costs.acquisitions, costs.specs, dict(costs.upper)
    for a, prices in measured.items():
        if names[a] in costs.row_prices:  # the user has said what it depends on
            continue
        tree = _tree_of(costs, a, X, prices)
        specs[names[a]] = float(prices.mean()) if tree is None else tree
        if tree is None:
            upper[names[a]] = float(np.quantile(prices, CAUTION))
    return replace(costs, prices=specs, row_prices={}, upper=upper)


def known_before(costs: CostTable, acquisition: int) -> list[int]:
    """The columns that every row knows before it buys an acquisition."""
    masks, bit = costs.feature_masks, 1 << acquisition
    users = [mask for mask in masks if mask & bit]
    if not users:
        return []
    before = ~bit
    for mask in users:
        before &= mask
    return [f for f, mask in enumerate(masks) if not mask & ~before]


def _tree_of(costs: CostTable, acquisition: int, X: np.ndarray, prices: np.ndarray) -> TreePrice | None:
    """A small tree for a price, if it is better than the mean on rows that it has not seen."""
    columns = known_before(costs, acquisition)
    if not columns or len(prices) < 2 * FEWEST_ROWS or not np.ptp(prices):
        return None
    seen = X[:, columns]
    model = DecisionTreeRegressor(max_leaf_nodes=MOST_LEAVES, min_samples_leaf=FEWEST_ROWS, random_state=0)
    left_out = cross_val_predict(model, seen, prices, cv=KFold(5, shuffle=True, random_state=0))
    if not np.square(left_out - prices).mean() < (1.0 - LEAST_GAIN) * prices.var():
        return None
    tree = model.fit(seen, prices).tree_
    return _in_order(tree, [costs.features[f] for f in columns], seen, prices)


def _in_order(tree: Any, names: list[str], X: np.ndarray, prices: np.ndarray) -> TreePrice | None:
    """A fitted tree with the pairs of children side by side, and what training rows paid at its leaves."""
    parts: list[list[Any]] = [[], [], [], []]
    queue, n_places = [0], 1
    for number in queue:  # which grows on the way
        is_leaf = tree.children_left[number] < 0
        at = len(parts[2])
        parts[0].append(0 if is_leaf else int(tree.feature[number]))
        parts[1].append(0.0 if is_leaf else min(float(tree.threshold[number]), MOST))
        parts[2].append(at if is_leaf else n_places)
        parts[3].append(False if is_leaf else not tree.missing_go_to_left[number])
        if not is_leaf:
            queue += [int(tree.children_left[number]), int(tree.children_right[number])]
            n_places += 2
    mean = float(prices.mean())
    used = sorted({c for c, at, i in zip(parts[0], parts[2], range(n_places)) if at != i})
    if not used:
        return None
    column, threshold, left, right = (tuple(part) for part in parts)
    column = tuple(used.index(c) if at != i else 0 for i, (c, at) in enumerate(zip(column, left)))
    features = tuple(names[f] for f in used)
    bare = TreePrice(features, column, threshold, left, right, (mean,) * n_places, (mean,) * n_places, mean)
    leaves = bare.leaves([X[:, f] for f in used])
    value, upper = [mean] * n_places, [mean] * n_places
    for leaf in np.unique(leaves).tolist():
        there = prices[leaves == leaf]
        value[leaf], upper[leaf] = float(there.mean()), float(np.quantile(there, CAUTION))
    return replace(bare, value=tuple(value), upper=tuple(upper))


def _looked_at(costs: CostTable, X: Any, everything: bool) -> np.ndarray:
    """The columns on which prices may depend, in their places; those of sparse data that they do not are zero."""
    if not issparse(X):
        return np.asarray(X)
    lines = X.tocsc()
    wanted = set(RowPrices(costs).columns)
    if everything:
        bits = sum(1 << a for a in range(len(costs.acquisitions)))
        wanted |= {f for a in set_bits(bits) for f in known_before(costs, a)}
    values = np.zeros(X.shape, order="F")  # pages that are not written take no memory
    for f in wanted:
        values[:, f] = lines[:, [f]].toarray()[:, 0]
    return values

"""The trees of a foreign model as tables, with the share of training rows that went left at each split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from miserly._typing import Array, Floats
from miserly.boosting._importing import _table as table_of

Table = dict[str, Array]
NO_LINK = "A plan has no such link: its scores are numbers, log-odds or shares."


@dataclass(frozen=True)
class ImportedModel:
    """What a reader finds: trees with the output that each adds to, or the weights of a linear model."""

    link: str
    classes: Array | None
    names: Sequence[str] | None
    n_features: int
    base: Floats
    tables: Sequence[Table] = ()
    outputs: Sequence[int] | Array = ()
    n_rounds: int = 0
    scale: float = 1.0
    weights: Floats | None = None


def with_shares(table: Table, order: Sequence[int], left: Array, counts: Array) -> Table:
    """A table with the share of training rows that went left at each split; `counts` and `left` in the old order."""
    old, end = np.array(order), table["left"] == np.arange(len(table["left"]))
    counts = np.asarray(counts, np.float64)
    of_left = counts[np.where(end, old, np.asarray(left)[old])]
    goes = np.where(table["missing_right"], 0.0, 1.0)
    table["shares"] = np.clip(np.where(counts[old] > 0, of_left / np.maximum(counts[old], 1e-300), goes), 0.0, 1.0)
    table["shares"][end] = 1.0
    return table


def level_order(leaf: Array, left: Array, right: Array) -> list[int]:
    """The old numbers of a tree's nodes as `table_of` arranges them."""
    order, at = [0], 0
    while at < len(order):
        old = order[at]
        order += [] if leaf[old] else [int(left[old]), int(right[old])]
        at += 1
    return order


def numbered(leaf: Array, feature: Array, limit: Array, left: Array, right: Array, *others: Array) -> Table:
    """A table with shares, from a tree's nodes in any order; `others` are missing_right, value and counts."""
    missing_right, value, counts = others
    table = table_of(leaf, feature, limit, left.tolist(), right.tolist(), missing_right, value)
    return with_shares(table, level_order(leaf, left, right), left, counts)

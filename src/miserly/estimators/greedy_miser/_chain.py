"""From boosted rounds to a plan: a chain of open gates, and the record of what was bought on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from miserly.boosting import Boosted
from miserly.costs import CostTable, total_price
from miserly.plan import EXIT, Node


@dataclass(frozen=True)
class Purchase:
    """What boosting bought, one entry of `path_`.

    Parameters
    ----------
    round : int
        Number of the round, from 0.
    feature : str
        Feature that was bought for a split.
    acquisitions : tuple of str
        What was paid for.
    price : float
        Price per row, 0 or more.
    gain : float
        Mean squared error of the gradients that the split removed, before the learning rate: what its price was
        compared with.

    Examples
    --------
    >>> Purchase(0, "crp", ("blood", "crp_test"), 3.5, 0.2).price
    3.5
    """

    round: int
    feature: str
    acquisitions: tuple[str, ...]
    price: float
    gain: float


def purchases(boosted: Boosted, costs: CostTable) -> list[Purchase]:
    """What the rounds bought, in order."""
    names, prices = costs.acquisitions, costs.price_list
    return [
        Purchase(
            number,
            costs.features[split.feature],
            tuple(names[a] for a in split.bought),
            total_price(prices[a] * share for a, share in zip(split.bought, split.shares)),
            split.gain,
        )
        for number, this in enumerate(boosted.rounds)
        for tree in this.trees
        for split in tree.buying_splits
    ]


def chain(
    outputs: Sequence[Sequence[int]],
    factors: np.ndarray,
    others: Sequence[dict[str, Any]],
    trees: Sequence[Sequence[int]] | None = None,
) -> tuple[Node, ...]:
    """One node for each list of trees: which output each adds to, times a factor for each output.

    `trees` are their numbers in the dictionary, numbered through if not given; `others` are what else each node says.
    """
    ends = np.cumsum([0, *(len(to) for to in outputs)]).tolist()
    numbers = [range(a, b) for a, b in pairwise(ends)] if trees is None else trees
    nodes, n_outputs = [], factors.shape[1]
    for number, (to, factor, other, learners) in enumerate(zip(outputs, factors, others, numbers), start=1):
        weights = np.zeros((len(to), n_outputs))
        weights[np.arange(len(to)), to] = factor[list(to)]
        nodes.append(
            Node(
                learners=np.array(learners, np.int32),
                weights=weights,
                outputs=tuple(range(n_outputs)),
                passed=number if number < len(outputs) else EXIT,
                **other,
            )
        )
    return tuple(nodes)

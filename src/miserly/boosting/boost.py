"""The boosting loop: rounds of trees until no split pays, the rounds are used up, or validation stops improving."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from miserly.boosting.backend import Backend
from miserly.boosting.grower import Grower, GrownTree, Limits
from miserly.boosting.shop import Shop


@dataclass(frozen=True)
class Settings:
    """How to boost."""

    n_estimators: int = 100
    learning_rate: float = 0.1
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Round:
    """What one round added: for some outputs a tree, in the plan's table format, with its splits for the record."""

    outputs: tuple[int, ...]
    tables: tuple[dict[str, np.ndarray], ...]
    trees: tuple[GrownTree, ...]


@dataclass(frozen=True)
class Boosted:
    """The starting scores and the rounds that were kept; `losses` is the mean training loss after each."""

    constant: np.ndarray
    start_loss: float
    rounds: tuple[Round, ...]
    losses: tuple[float, ...]


def boost(
    backend: Backend,
    shop: Shop,
    settings: Settings,
    n_outputs: int,
    after_round: Callable[[Round, np.ndarray], bool] | None = None,
) -> Boosted:
    """Boost until no tree pays for itself. `after_round(round, constant)` may end the loop by returning True."""
    constant, start_loss = backend.start(), backend.loss()
    grower = Grower(backend, shop, settings.limits)
    rounds: list[Round] = []
    losses: list[float] = []
    for _ in range(settings.n_estimators):
        backend.gradients()
        this = _one_round(backend, shop, grower, n_outputs, settings.learning_rate)
        if not this.outputs:
            break
        rounds.append(this)
        losses.append(backend.loss())
        if after_round is not None and after_round(this, constant):
            break
    return Boosted(constant, start_loss, tuple(rounds), tuple(losses))


def _one_round(backend: Backend, shop: Shop, grower: Grower, n_outputs: int, learning_rate: float) -> Round:
    outputs, tables, trees = [], [], []
    for output in range(n_outputs):
        tree = grower.grow(output)
        if tree.score <= shop.evaluation:
            shop.give_back(np.array(tree.bought, np.intp))
            continue
        sums = backend.leaf_sums(tree.leaves)
        values = {leaf: learning_rate * g / h if h > 0 else 0.0 for leaf, (g, h) in zip(tree.leaves, sums)}
        backend.add(values)
        outputs.append(output)
        tables.append(_table(backend, tree, values))
        trees.append(tree)
    return Round(tuple(outputs), tuple(tables), tuple(trees))


def _table(backend: Backend, tree: GrownTree, values: dict[int, float]) -> dict[str, np.ndarray]:
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
        table["threshold"][split.node] = backend.data.threshold(split.feature, split.cut)
        table["left"][split.node] = split.left
        table["missing_right"][split.node] = split.missing_right
    for leaf, value in values.items():
        table["value"][leaf] = value
    return table

"""The boosting loop: rounds of trees until no split pays, the rounds are used up, or validation stops improving."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from miserly.boosting._backend import Backend
from miserly.boosting._grower import Grower, GrownTree, TreeLimits
from miserly.boosting._pricing import ModelPricing, RowPricing

LONGEST_PAUSE = 8
Pause = tuple[int, int]


@dataclass(frozen=True)
class Settings:
    """How to boost. `l2` draws leaves towards zero, as if so many rows more had a zero gradient.

    `lazy` looks at what is not owned yet less often when it does not pay: after a round that bought nothing the next
    one, two, four, then every eight rounds use what is owned, until something is bought again.
    """

    n_estimators: int = 100
    learning_rate: float = 0.1
    limits: TreeLimits = field(default_factory=TreeLimits)
    max_features: float = 1.0
    seed: int = 0
    l2: float = 0.0
    lazy: bool = False


@dataclass(frozen=True)
class Round:
    """What one round added: for some outputs a tree, in the plan's table format, with its splits for the record."""

    outputs: tuple[int, ...]
    tables: tuple[dict[str, np.ndarray], ...]
    trees: tuple[GrownTree, ...]


NOTHING = Round((), (), ())


@dataclass(frozen=True)
class Boosted:
    """The starting scores and the rounds that were kept; `losses` is the mean training loss after each.

    `n_tried` also counts rounds that found nothing worth its price among the rows and features drawn; `pause` says for
    how many rounds nothing more will be bought, and how long that pause was when it began.
    """

    constant: np.ndarray
    start_loss: float
    rounds: tuple[Round, ...]
    losses: tuple[float, ...]
    n_tried: int = 0
    pause: Pause = (0, 0)


def boost(
    backend: Backend,
    shop: ModelPricing | RowPricing,
    settings: Settings,
    n_outputs: int,
    after_round: Callable[[Round, np.ndarray], bool] | None = None,
    earlier: Boosted | None = None,
    patient: bool = False,
    keep: Callable[[Boosted], None] | None = None,
) -> Boosted:
    """Boost until no tree pays for itself; `patient` goes on, since the next draw of rows may find one.

    `after_round(round, constant)` may end the loop by returning True. With `earlier` rounds (whose scores the backend
    and whose purchases the shop know already) it goes on from there. `keep` is given all that is done after each round.
    """
    if earlier is None:
        earlier = Boosted(backend.start(), backend.loss(), (), ())
    grower = Grower(backend, shop, settings.limits)
    rounds, losses, n_tried, pause = list(earlier.rounds), list(earlier.losses), earlier.n_tried, earlier.pause

    def done() -> Boosted:
        return Boosted(earlier.constant, earlier.start_loss, tuple(rounds), tuple(losses), n_tried, pause)

    while n_tried < settings.n_estimators:
        backend.gradients(n_tried)
        this = NOTHING
        if pause[0] > 0 and isinstance(shop, ModelPricing):
            this = _one_round(backend, shop, grower, n_outputs, settings, n_tried, shop.free_features())
            pause = (pause[0] - 1, pause[1])
        if not this.outputs:
            this = _one_round(backend, shop, grower, n_outputs, settings, n_tried)
            pause = _next_pause(this, pause) if settings.lazy else pause
        if not this.outputs and not patient:
            break
        n_tried += 1
        if not this.outputs:
            continue
        rounds.append(this)
        losses.append(backend.loss())
        stop = after_round is not None and after_round(this, earlier.constant)
        if keep is not None:
            keep(done())
        if stop:
            break
    return done()


def _next_pause(this: Round, pause: Pause) -> Pause:
    """None after a purchase; else twice as long as the last one."""
    if any(tree.bought for tree in this.trees):
        return 0, 0
    length = min(LONGEST_PAUSE, max(1, 2 * pause[1]))
    return length, length


def _one_round(
    backend: Backend,
    shop: ModelPricing | RowPricing,
    grower: Grower,
    n_outputs: int,
    settings: Settings,
    number: int,
    among: np.ndarray | None = None,
) -> Round:
    outputs, tables, trees = [], [], []
    for output in range(n_outputs):
        tree = grower.grow((output,), _drawn(backend.data.n_features, settings, number, output, among))
        if tree.score <= shop.evaluation:
            shop.give_back()
            continue
        sums = backend.leaf_sums(tree.leaves)[:, 0].tolist()
        steps = [settings.learning_rate * g / (h + settings.l2) if h > 0 else 0.0 for g, h in sums]
        values = dict(zip(tree.leaves, backend.settle(steps)))
        for leaf, value in values.items():
            backend.add(leaf, [value])
        outputs.append(output)
        tables.append(tree_table(backend, tree, values))
        trees.append(tree)
    return Round(tuple(outputs), tuple(tables), tuple(trees))


def _drawn(
    n_features: int, settings: Settings, number: int, output: int, among: np.ndarray | None
) -> np.ndarray | None:
    """The features that a tree may use; None for all."""
    if settings.max_features == 1.0:
        return among
    rng = np.random.default_rng([settings.seed, number, output])
    drawn = np.zeros(n_features, bool)
    drawn[rng.choice(n_features, max(1, round(settings.max_features * n_features)), replace=False)] = True
    return drawn if among is None else drawn & among


def tree_table(backend: Backend, tree: GrownTree, values: dict[int, float]) -> dict[str, np.ndarray]:
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

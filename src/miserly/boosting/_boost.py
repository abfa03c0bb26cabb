"""The boosting loop: rounds of trees until no split pays, the rounds are used up, or validation stops improving."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from miserly._typing import Floats
from miserly.boosting._backend import BackendOfRows, LocalBackend
from miserly.boosting._binning import BinnedData
from miserly.boosting._losses import Loss
from miserly.boosting._pricing import ModelPricing, Pricing
from miserly.boosting._rounds import rounds_on
from miserly.boosting._trees import Round, Settings

LONGEST_PAUSE = 8  # rounds without a look at what is not owned: longer ones save hardly more
Pause = tuple[int, int]


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


NOTHING = Boosted(np.zeros(1), 0.0, (), ())


def boost(
    backend: BackendOfRows,
    pricing: Pricing,
    settings: Settings,
    n_outputs: int,
    after_round: Callable[[Round, np.ndarray], bool] | None = None,
    earlier: Boosted | None = None,
    patient: bool = False,
    keep: Callable[[Boosted], None] | None = None,
) -> Boosted:
    """Boost until no tree pays for itself; `patient` goes on, since the next draw of rows may find one.

    `after_round(round, constant)` may end the loop by returning True. With `earlier` rounds (whose scores the backend
    and whose purchases the pricing know already) it goes on from there. `keep` gets all that is done after each round.
    """
    if earlier is None:
        earlier = Boosted(backend.start(), backend.loss(), (), ())
    grower = rounds_on(backend, pricing, settings, n_outputs)
    rounds, losses, n_tried, pause = list(earlier.rounds), list(earlier.losses), earlier.n_tried, earlier.pause

    def done() -> Boosted:
        return Boosted(earlier.constant, earlier.start_loss, tuple(rounds), tuple(losses), n_tried, pause)

    while n_tried < settings.n_estimators:
        backend.gradients(n_tried)
        this = Round()
        if pause[0] > 0 and isinstance(pricing, ModelPricing):
            this = grower.grow(n_tried, pricing.free_features())
            pause = (pause[0] - 1, pause[1])
        if not this.outputs:
            this = grower.grow(n_tried)
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


def boost_from(
    scores: Floats,
    data: BinnedData,
    y: np.ndarray,
    loss: Loss,
    pricing: Pricing,
    settings: Settings,
    after_round: Callable[[Round, Floats], bool] | None = None,
    weight: np.ndarray | None = None,
    earlier: Boosted = NOTHING,
) -> tuple[Boosted, Floats]:
    """Boost on rows in this process, from these scores (outputs × rows), and return the rounds and the scores after
    them. `after_round(round, scores)` may end the loop by returning True."""
    backend = LocalBackend(data, y, loss, weight)
    backend.resume(scores)

    def after(this: Round, _: np.ndarray) -> bool:
        return after_round is not None and after_round(this, backend.rows.scores.copy())

    return boost(backend, pricing, settings, len(scores), after, earlier), backend.rows.scores


def _next_pause(this: Round, pause: Pause) -> Pause:
    """None after a purchase; else twice as long as the last one."""
    if any(tree.bought for tree in this.trees):
        return 0, 0
    length = min(LONGEST_PAUSE, max(1, 2 * pause[1]))
    return length, length

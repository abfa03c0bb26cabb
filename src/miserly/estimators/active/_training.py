"""Training in rounds: first from random states of knowledge, then also from those that the policy itself comes to."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from miserly._typing import Array, Floats, Rows
from miserly.boosting import Loss
from miserly.costs import CostTable
from miserly.estimators.active._calibration import calibrate
from miserly.estimators.active._forest import Forest, Growth, HeldOut
from miserly.estimators.active._states import States, StateTable
from miserly.estimators.active._values import Judge, Predictor, Values
from miserly.kernels.threads import n_threads, threads
from miserly.plan import PolicyPlan

logger = logging.getLogger(__name__)
MOST_COPIES, FEWEST_COPIES = 8, 2  # of each row, in different states
MOST_PREDICTOR_STATES = 200_000
MOST_VALUE_STATES = 12_000
MOST_AHEAD_STATES = 3_000
MOST_RATED = 100_000  # candidates × rows that a policy walks with; without it these walks take a third of a large fit
FEWEST_ROWS = 30  # fewer are not divided into folds


@dataclass(frozen=True)
class ActiveSettings:
    """What the user chose (see `ActiveClassifier`)."""

    growth: Growth
    value_growth: Growth
    n_rounds: int
    n_folds: int
    lookahead: bool
    max_bins: int
    n_jobs: int | None
    seed: int
    blind: bool


class Training:
    """From rows and labels to a policy plan. A `blind` one takes no account of prices, nor of what is shared."""

    def __init__(
        self,
        X: Floats,
        y: Floats,
        loss: Loss,
        link: str,
        weight: Floats | None,
        costs: CostTable,
        settings: ActiveSettings,
    ) -> None:
        self._y, self._loss, self._link, self._weight, self._settings = y, loss, link, weight, settings
        self._table = StateTable(X, costs, settings.max_bins)
        self._rng = np.random.default_rng(settings.seed)
        self._fold = self._folds()
        prices = np.array(costs.price_list, np.float64)
        typical = float(prices.mean()) if len(prices) else 0.0
        self._unit = 2.0 ** np.floor(np.log2(typical)) if typical > 0 else 1.0
        self._prices = prices
        self._blind = settings.blind or not prices.any()

    def _folds(self) -> Array:
        """The fold of each row; each class is spread over all folds."""
        n, n_folds = len(self._y), self._settings.n_folds
        if n < FEWEST_ROWS:
            return np.zeros(n, np.intp)
        drawn = self._rng.permutation(n)
        order = drawn[np.argsort(self._y[drawn], kind="stable")] if self._link != "identity" else drawn
        fold = np.empty(n, np.intp)
        fold[order] = np.arange(n) % n_folds
        return fold

    def plan(self, tradeoff: float, classes: Array | None, notes: dict[str, Any]) -> PolicyPlan:
        """Train."""
        states = self._random_states(1.0)
        n_trainings = 1 if self._blind else self._settings.n_rounds
        for number in range(n_trainings):
            predictor, n_rounds = self._predictor(states)
            if number + 1 < n_trainings:
                values = self._values(predictor, states)
                plans = [self._plan(f, predictor, values, 0.0, classes, {}) for f in predictor.forests]
                states = self._random_states(0.5) + self._visited(plans)
        forest = self._grown(states, np.arange(len(states)), n_rounds)
        predictor = self._calibrated(predictor, forest)
        values = self._values(predictor, states)
        logger.debug("%d rounds, %d candidates", n_rounds, len(values.candidates))
        return self._plan(forest, predictor, values, tradeoff, classes, notes)

    # ---- states -------------------------------------------------------------------------------------------------

    @property
    def _copies(self) -> int:
        return int(np.clip(MOST_PREDICTOR_STATES // len(self._y), FEWEST_COPIES, MOST_COPIES))

    def _random_states(self, share: float) -> States:
        """Rows in random states, one copy of each with everything known."""
        rows = np.arange(len(self._y))
        states = self._table.everything(rows)
        for _ in range(max(1, round(share * self._copies) - 1)):
            states = states + self._table.random(rows, self._rng, self._blind)
        return states

    def _visited(self, plans: list[PolicyPlan]) -> States:
        """Where the policies come with the rows that their predictor has not seen, after any number of purchases."""
        n_copies = max(1, self._copies // 2)
        rows = np.tile(np.arange(len(self._y)), n_copies)
        most = max(1, max(len(plan.candidates) for plan in plans))
        if len(rows) * most > MOST_RATED:
            rows = self._rng.permutation(rows)[: max(len(self._y), MOST_RATED // most)]
        steps = np.floor((most + 1) * self._rng.random(len(rows)) ** 2).astype(np.int64)
        owned = np.zeros((len(rows), len(self._prices)), bool)
        for k, plan in enumerate(plans):
            here = np.flatnonzero(self._fold[rows] == k)
            with threads(self._settings.n_jobs):
                owned[here] = plan.walk_all(self._table.raw[rows[here]], steps=steps[here])[1]
        return self._table.states(rows, owned)

    def _some(self, states: States, most: int) -> States:
        chosen = self._rng.permutation(len(states))[:most]
        return states[chosen]

    # ---- predictor ----------------------------------------------------------------------------------------------

    def _grown(self, states: States, which: Rows, n_rounds: int | None = None, watch: HeldOut | None = None) -> Forest:
        growth = self._settings.growth
        rows = states.rows[which]
        n = growth.n_estimators if n_rounds is None else max(1, n_rounds)
        leaf, l2 = growth.min_samples_leaf * self._copies, growth.l2 * self._copies
        growth = Growth(n, growth.learning_rate, growth.max_leaf_nodes, leaf, l2)
        weight = None if self._weight is None else self._weight[rows]
        return growth.grow(self._table.bins(states[which]), self._y[rows], self._loss, weight, watch)

    def _predictor(self, states: States) -> tuple[Predictor, int]:
        """One forest per fold, grown on the others, all with the number of rounds that is best for rows not seen."""
        fold, n_folds = self._fold[states.rows], int(self._fold.max()) + 1

        if n_folds == 1:
            forests = [self._grown(states, np.arange(len(states)))]
            n_rounds = len(forests[0].ends)
        else:
            some = self._some(states, MOST_VALUE_STATES)
            parts = [some[self._fold[some.rows] == k] for k in range(n_folds)]
            watches = [HeldOut(self._table.values(part), self._y[part.rows], self._loss) for part in parts]
            forests = self._each(lambda k: self._grown(states, np.flatnonzero(fold != k), None, watches[k]), n_folds)
            n_rounds = _best_rounds([watch.losses for watch in watches])
            forests = [forest.up_to(min(n_rounds, len(forest.ends))) for forest in forests]
        used = np.unique(np.concatenate([forest.trees.used for forest in forests]))
        empty = Predictor(self._table, self._link, forests, self._fold, used, None)  # type: ignore[arg-type]
        return self._calibrated(empty, None), n_rounds

    def _calibrated(self, predictor: Predictor, final: Forest | None) -> Predictor:
        """The predictor with a calibration on held-out rows; for the features that the final forest uses.

        It is fitted on new random states only. Those that the policy visits know what matters, so their scores are
        right, and would make all scores of states that know as much look better than they are.
        """
        used = predictor.used if final is None else final.trees.used.astype(np.intp)
        n_copies = max(1, -(-2 * MOST_VALUE_STATES // len(self._y)))
        rows = np.tile(np.arange(len(self._y)), min(n_copies, MOST_COPIES))
        some = self._some(self._table.random(rows, self._rng, self._blind), 2 * MOST_VALUE_STATES)
        n_known = some.known[:, used].sum(axis=1)
        scores, prior = predictor.scores(some), predictor.prior(some)
        calibration = calibrate(self._link, scores, prior, self._y[some.rows], n_known, len(used))
        return Predictor(predictor.table, predictor.link, predictor.forests, predictor.fold, used, calibration)

    # ---- values and plan ----------------------------------------------------------------------------------------

    def _values(self, predictor: Predictor, states: States) -> Values:
        some = self._some(states[~states.known[:, predictor.used].all(axis=1)], MOST_VALUE_STATES)
        judge = Judge(predictor, some, self._settings.value_growth, self._weight, self._each)
        values = judge.alone()
        return judge.ahead(values, self._prices, self._unit, MOST_AHEAD_STATES) if self._settings.lookahead else values

    def _plan(
        self,
        forest: Forest,
        predictor: Predictor,
        values: Values,
        tradeoff: float,
        classes: Array | None,
        notes: dict[str, Any],
    ) -> PolicyPlan:
        costs, used = self._table.costs, forest.trees.used
        candidates = tuple(sorted({costs.feature_masks[f] for f in used} - {0}))
        calibration, level = predictor.calibration, predictor.calibration.level
        if len(level) != len(used) + 1:  # of a fold's own forest: it may use fewer features than all forests together
            level = level[np.minimum(np.arange(len(used) + 1), len(level) - 1)]
            calibration = replace(calibration, level=level)
        nodes = forest.node() if forest.tables else ()
        return PolicyPlan(
            costs=costs,
            dictionary=forest.trees,
            nodes=nodes,
            prior=forest.constant,
            link=self._link,  # type: ignore[arg-type]
            classes=classes,
            roots=(0,) if nodes else (),
            notes=notes,
            policy=values.policy(candidates, calibration, self._table.misses, tradeoff),
        )

    def _each(self, work: Callable[[int], Forest], n: int) -> list[Forest]:
        """The results of a piece of work for 0 … n − 1, on threads of one kernel thread each."""

        def one(k: int) -> Forest:
            with threads(1):
                return work(k)

        with ThreadPoolExecutor(n_threads(self._settings.n_jobs)) as pool:
            return list(pool.map(one, range(n)))


def _best_rounds(losses: list[list[float]]) -> int:
    """The number of rounds with the least loss over all folds; a fold that ended before goes on with its last loss."""
    most = max(len(mine) for mine in losses)
    if not most:
        return 0
    means = np.mean([mine + mine[-1:] * (most - len(mine)) for mine in losses if mine], axis=0)
    return int(np.argmin(means)) + 1

"""What a purchase is worth: the expected drop of loss by each candidate, alone or with the best purchases after it.

For calibrated predictions p before and q after a purchase the expected drop of log-loss, given what was bought, is the
divergence Σ q log(q / p): the mean over what might be found is the conditional mutual information. It needs no label,
so its noise is small. For numbers it is half the squared change. Trees regress it on what is known and the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from miserly._typing import Array, Floats
from miserly.boosting import SquaredLoss
from miserly.costs import set_bits
from miserly.estimators.active._calibration import Calibration
from miserly.estimators.active._forest import Forest, Growth, side_by_side
from miserly.estimators.active._states import States, StateTable, some_columns
from miserly.plan import Policy, probabilities, stack_trees

LEAST_P = 1e-12
MORE = 1.25  # times the best rate of one purchase: what several must reach to be counted as better
OFTEN = 0.02  # of the states: a candidate that opens such purchases less often is judged alone
MOST_FOLLOWING = 6  # purchases after the first: each is another pass over the states that are worth it
Each = Callable[[Callable[[int], Forest], int], list[Forest]]


@dataclass(frozen=True)
class Predictor:
    """Forests that are asked about the rows that they were not grown on, with one calibration."""

    table: StateTable
    link: str
    forests: Sequence[Forest]
    fold: Array  # of each row
    used: Array  # features
    calibration: Calibration

    def calibrated(self, states: States) -> Floats:
        """Calibrated scores of states."""
        n_known = states.known[:, self.used].sum(axis=1)
        return self.calibration.apply(self.scores(states), self.prior(states), n_known)

    def prior(self, states: States) -> Floats:
        """The scores before any tree, by the forest of each row's fold."""
        return np.stack([forest.constant for forest in self.forests])[self.fold[states.rows]]

    def scores(self, states: States) -> Floats:
        """Raw scores of states."""
        scores, X, fold = np.empty((len(states), len(self.forests[0].constant))), None, self.fold[states.rows]
        for k, forest in enumerate(self.forests):
            here = np.flatnonzero(fold == k)
            X = self.table.values(states[here])
            scores[here] = forest.scores(X)
        return scores

    def read(self, z: Floats) -> Floats:
        """Calibrated scores as probabilities, or as they are."""
        return z if self.link == "identity" else probabilities(self.link, z, max(2, z.shape[1]))  # type: ignore[arg-type]

    def appended(self, p: Floats) -> Floats:
        """What value trees read besides the features (see `kernels.policy.append_scores`)."""
        if self.link == "identity":
            return p
        entropy = -(p * np.log(np.maximum(p, LEAST_P))).sum(axis=1, keepdims=True)
        return np.concatenate([p[:, 1:] if self.link == "logistic" else p, entropy], axis=1)

    def drop(self, before: Floats, after: Floats) -> Floats:
        """The expected drop of loss, given what was bought."""
        if self.link == "identity":
            return np.asarray(0.5 * ((after - before) ** 2).sum(axis=1))
        ratio = np.log(np.maximum(after, LEAST_P)) - np.log(np.maximum(before, LEAST_P))
        return np.asarray((after * ratio).sum(axis=1))


@dataclass(frozen=True)
class Values:
    """A forest for each candidate (a set of acquisitions): the drop by it alone, and where several purchases were
    judged, the drop by all and the price of those after the first."""

    candidates: tuple[int, ...]
    alone: Sequence[Forest]
    both: dict[int, tuple[Forest, Forest]]

    def policy(self, candidates: Sequence[int], calibration: Calibration, misses: Array, tradeoff: float) -> Policy:
        """The arrays of a plan with these candidates; one that was never judged is worth nothing."""
        nothing = Forest((), (), np.zeros(1))
        of = dict(zip(self.candidates, self.alone))
        pairs = [self.both.get(mask, (nothing, nothing)) for mask in candidates]
        lines = [of.get(mask, nothing) for mask in candidates]
        lines += [first for first, _ in pairs] + [second for _, second in pairs]
        return Policy(
            values=stack_trees([table for forest in lines for table in forest.tables]),
            first=np.cumsum([0, *(len(forest.tables) for forest in lines)]),
            bias=np.array([forest.constant[0] for forest in lines], np.float64),
            ahead=np.array([mask in self.both for mask in candidates], bool),
            level=calibration.level,
            scale=calibration.scale,
            offset=calibration.offset,
            misses=misses,
            tradeoff=tradeoff,
            radius=calibration.radius,
        )


class Judge:
    """Learns values on states of rows that the predictor has not seen."""

    def __init__(self, predictor: Predictor, states: States, growth: Growth, weight: Floats | None, each: Each) -> None:
        self._predictor, self._states, self._growth, self._each = predictor, states, growth, each
        self._table = predictor.table
        self._weight = None if weight is None else weight[states.rows]
        self._p = predictor.read(predictor.calibrated(states))
        unused = np.ones(self._table.X.shape[1], bool)
        unused[predictor.used] = False
        data = self._table.bins(states, predictor.appended(self._p))
        data.n_bins[: len(unused)][unused] = 0
        self._data = data
        masks = self._table.costs.feature_masks
        self.candidates = tuple(sorted({masks[f] for f in predictor.used} - {0}))
        self._own = [np.array([f for f in predictor.used if masks[f] == mask], np.intp) for mask in self.candidates]

    def alone(self) -> Values:
        """The drop of loss by each candidate alone."""
        predictor, drops, open_ = self._predictor, [], []
        for mask, own in zip(self.candidates, self._own):
            here = np.flatnonzero(~self._states.known[:, own].all(axis=1))
            after = predictor.calibrated(self._table.bought(self._states[here], mask))
            drops.append(predictor.drop(self._p[here], predictor.read(after)))
            open_.append(here)
        return Values(self.candidates, self._forests(open_, drops), {})

    def ahead(self, values: Values, prices: Floats, unit: float, n_states: int) -> Values:
        """The same values, with those of several purchases for candidates that open better ones often enough."""
        if not self.candidates or not len(self._states):
            return values
        few = self._states[np.arange(min(n_states, len(self._states)))]
        forest = side_by_side(values.alone)
        now = np.maximum(0.0, forest.scores(self._inputs(few, self._p[: len(few)])))
        price_now = np.stack([self._price(few, mask, prices) for mask in self.candidates], axis=1)
        unknown = np.stack([~few.known[:, own].all(axis=1) for own in self._own], axis=1)
        best = np.where(unknown, now / np.maximum(price_now, 1e-12 * unit), 0.0).max(axis=1, initial=0.0)
        chosen, open_, gains, following = [], [], [], []
        for c, mask in enumerate(self.candidates):
            here = np.flatnonzero(unknown[:, c])
            if not len(here):
                continue
            then, price, rate = self._following(
                few[here], c, forest, now[here, c], price_now[here, c], prices, best[here]
            )
            if (rate > MORE * best[here]).mean() < OFTEN:
                continue
            after = self._predictor.read(self._predictor.calibrated(then))
            chosen.append(mask)
            open_.append(here)
            gains.append(self._predictor.drop(self._p[here], after))
            following.append(price / unit)
        both = zip(self._forests(open_, gains), self._forests(open_, following, unit))
        return Values(values.candidates, values.alone, dict(zip(chosen, both)))

    def _following(
        self, states: States, c: int, forest: Forest, gain: Floats, paid: Floats, prices: Floats, single: Floats
    ) -> tuple[States, Floats, Floats]:
        """The states after candidate c and the purchases that make the best rate with it, their price, and that rate.

        One purchase follows always. More follow where the rate is better than that of each `single` purchase now, as
        long as each makes it better still: a context that tells which tests decide is worth all of these tests.
        """
        then = self._table.bought(states, self.candidates[c])
        gain, price, rate, live = gain.copy(), np.zeros(len(then)), np.full(len(then), -1.0), np.arange(len(then))
        for _ in range(MOST_FOLLOWING):
            one = then[live]
            p = self._predictor.read(self._predictor.calibrated(one))
            value = np.maximum(0.0, forest.scores(self._inputs(one, p)))
            cost = np.stack([self._price(one, mask, prices) for mask in self.candidates], axis=1)
            rates = (gain[live, None] + value) / np.maximum((paid + price)[live, None] + cost, 1e-300)
            rates[np.stack([one.known[:, own].all(axis=1) for own in self._own], axis=1)] = -1.0
            best = rates.argmax(axis=1)
            at = np.flatnonzero(rates[np.arange(len(live)), best] > rate[live])
            live, best = live[at], best[at]
            gain[live] += value[at, best]
            price[live] += cost[at, best]
            rate[live] = rates[at, best]
            self._buy(then, live, best)
            live = live[rate[live] > MORE * single[live]]
            if not len(live):
                break
        return then, price, rate

    def _buy(self, states: States, rows: Array, candidates: Array) -> None:
        """Each of these rows buys its candidate; in place."""
        for k in np.unique(candidates):
            here = rows[candidates == k]
            after = self._table.bought(states[here], self.candidates[k])
            states.owned[here], states.known[here] = after.owned, after.known

    def _price(self, states: States, mask: int, prices: Floats) -> Floats:
        """What a candidate costs each state now."""
        wanted = list(set_bits(mask))
        return np.asarray(np.where(states.owned[:, wanted], 0.0, prices[wanted]) @ np.ones(len(wanted)))

    def _inputs(self, states: States, p: Floats) -> Floats:
        return np.concatenate([self._table.values(states), self._predictor.appended(p)], axis=1)

    def _forests(self, open_: Sequence[Array], targets: Sequence[Floats], unit: float = 1.0) -> list[Forest]:
        """A forest for each list of states and what is to be predicted there, times a unit."""

        def one(k: int) -> Forest:
            here, y = open_[k], targets[k]
            if not len(here) or not np.ptp(y) > 0:
                return Forest((), (), np.array([unit * y[0] if len(here) else 0.0]))
            weight = None if self._weight is None else self._weight[here]
            forest = self._growth.grow(some_columns(self._data, here), y, SquaredLoss(), weight)
            tables = tuple({**table, "value": unit * table["value"]} for table in forest.tables)
            return Forest(tables, forest.outputs, unit * forest.constant)

        return self._each(one, len(open_))

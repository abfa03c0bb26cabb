"""Which sets of acquisitions are worth a model: forward selection with retraining, at several rates of exchange.

At a rate λ the best next unit (what one more feature lacks) lowers  loss + λ · price  most, where the loss is that of a
small model fitted again with the unit, on rows that it has not seen. Then units that no longer pay are dropped.
"""

from __future__ import annotations

import math

import numpy as np

from miserly._typing import Floats
from miserly.auto._clock import TimeLimit
from miserly.auto._parallel import in_parallel
from miserly.auto._stages import StageFitter
from miserly.auto._task import Task

MOST_ROWS = 3000  # a search needs an order of sets, not their exact quality
MOST_TRIED = 8  # units looked at in each step
LONGEST = 10
FEW_UNITS = 4  # up to here all unions are tried
LEAST_GAIN = 1e-3  # of the loss of the constant, below which a step is noise
N_BINS = 16
MOST_TIERS = 4
SEARCH = 0.4  # share of the time that the search may take


class SetSearch:
    """Greedy selection; losses of sets are remembered, so that rates share them."""

    def __init__(self, task: Task, clock: TimeLimit, like: StageFitter) -> None:
        rng = np.random.default_rng(task.seed)
        train = task.train
        if len(train) > MOST_ROWS and task.kind != "lists":
            train = train.part(np.sort(rng.permutation(len(train))[:MOST_ROWS]))
        self.task = Task(task.kind, train, None, task.classes, task.costs, task.metric, task.seed + 1)
        self.clock = clock
        shrink = like.model.get_params()["l2_regularization"]
        small = {
            "subsample": 1.0,
            "n_estimators": 50,
            "learning_rate": 0.2,
            "n_iter_no_change": 3,
            "l2_regularization": shrink,
        }
        self.fitter = StageFitter(self.task, clock, **small)
        self.masks = sorted({mask for mask in self.fitter.masks if mask})
        self._losses: dict[int, float] = {}
        self._outputs: dict[int, Floats] = {}
        self._codes = coarse(train.X)

    def loss(self, bought: int) -> float:
        """Out-of-fold loss of a small model on a set."""
        if bought not in self._losses:
            output = self.fitter.out_of_fold(bought)
            self._outputs[bought] = output
            self._losses[bought] = self.task.mean_loss(output, "log", bought)
        return self._losses[bought]

    def price(self, bought: int) -> float:
        """What a set costs."""
        return self.fitter.price(bought)

    def forward(self, rate: float | None, most_expensive: float = math.inf, longest: int = LONGEST) -> list[int]:
        """Sets, each with one unit more than the one before; without a rate the units with most gain per price."""
        sets = [0]
        least = LEAST_GAIN * abs(self.loss(0))
        while len(sets) <= longest and not self.clock.over(SEARCH):
            now = sets[-1]
            units = sorted({m & ~now for m in self.masks if m & ~now and self.price(m & ~now) <= most_expensive})
            units = [unit for unit in units if self.task.can_learn(now | unit)]
            best, found = -math.inf, 0
            units = self._promising(now, units)
            in_parallel(self.loss, [now | unit for unit in units], len(self.task.train))
            for unit in units:
                gain, price = self.loss(now) - self.loss(now | unit), self.price(unit)
                if gain <= least and rate is not None:
                    continue
                worth = gain / max(price, 1e-12) if rate is None else gain - rate * price
                if worth > max(best, 0.0):
                    best, found = worth, unit
            if not found:
                break
            sets.append(now | found)
        return sets

    def without_useless(self, bought: int, rate: float) -> int:
        """The set less the acquisitions that are not worth their price any more."""
        acquisitions = [1 << a for a in range(bought.bit_length()) if bought >> a & 1]
        while acquisitions and not self.clock.over(SEARCH):
            worth = [self.loss(bought & ~a) - self.loss(bought) - rate * self.price(a) for a in acquisitions]
            least = int(np.argmin(worth))
            if worth[least] > 0:
                break
            bought &= ~acquisitions.pop(least)
        return bought

    def _promising(self, now: int, units: list[int]) -> list[int]:
        """Some of the units, where there are many: those whose features explain most of the residual, for themselves
        and per price."""
        if len(units) <= MOST_TRIED:
            return units
        self.loss(now)
        residual = self._residual(self._outputs[now])  # of all rows: the search scores every fold
        gain = dict.fromkeys(units, 0.0)
        for f, mask in enumerate(self.fitter.masks):
            unit = mask & ~now
            if unit in gain:
                gain[unit] = max(gain[unit], explained(self._codes[:, f], residual))
        by_price = sorted(units, key=lambda u: (-gain[u] / max(self.price(u), 1e-12), u))
        by_gain = sorted(units, key=lambda u: (-gain[u], u))
        half = MOST_TRIED // 2
        return list(dict.fromkeys(by_price[:half] + by_gain[:half]))

    def _residual(self, output: Floats) -> Floats:
        y = self.task.train.y
        if self.task.kind != "classes":
            return (y - y.mean() - (output[:, 0] - output[:, 0].mean()))[:, None]
        residual = -output
        residual[np.arange(len(y)), y.astype(np.intp)] += 1.0
        return residual


def find_sets(task: Task, fitter: StageFitter, clock: TimeLimit) -> list[int]:
    """The sets worth a model, smallest first. Each but the empty one has all that is free, so that a row which can buy
    nothing more is answered with that. Sets of logged purchases that few rows have are left out."""
    free = 0
    if float(np.max(task.costs.evaluation)) == 0:
        free = _union([mask for mask in fitter.masks if fitter.price(mask) == 0])
    found = _by_size({0, free, *(found | free for found in _find(task, fitter, clock))})
    return [s for s in found if task.can_learn(s)]


def _find(task: Task, fitter: StageFitter, clock: TimeLimit, n_rates: int = 4) -> set[int]:
    """Chains of several rates, each after a few cheap questions, and the features with most gain per price."""
    units = sorted({mask for mask in fitter.masks if mask})
    prices = [p for p in map(fitter.price, units) if p > 0]
    if len(units) <= FEW_UNITS:
        return _all_unions(units)
    if not prices:
        return {0, _union(units) & fitter.everything}
    if task.kind == "lists":
        sets = {0}
        for k, tier in enumerate(_tiers(fitter, units)):
            for power in (1.0, 0.5, 0.0) if k == 0 else (1.0, 0.0):
                if not clock.over(0.3):
                    sets.update(_by_importance(fitter, power, tier, 10 if k == 0 else 7))
        return sets
    everything = _union(units) & fitter.everything
    search = SetSearch(task, clock, fitter)
    start = abs(search.loss(0)) or 1.0
    sets = {0, everything, *search.forward(None)}
    if len(set(prices)) > 1:
        for rate in np.geomspace(0.1 * start / min(prices), 0.002 * start / np.mean(prices), n_rates)[::-1]:
            chain = search.forward(rate)
            sets.update(chain)
            sets.add(search.without_useless(chain[-1], rate))
    cheap = _cheap_questions(search, prices)
    sets = {a | b for a in sets for b in [0, *cheap]}
    if len(units) > LONGEST or clock.over(SEARCH):  # a search that was cut short has found no large sets
        longest = max(sets - {everything}, key=lambda s: (s.bit_count(), s))
        ranked = _by_importance(fitter, 1.0, everything)
        sets.update(longest | s for s in ranked)
        sets.update(ranked[:4])
    return sets


def _by_size(sets: set[int]) -> list[int]:
    return sorted(sets, key=lambda s: (s.bit_count(), s))


def _by_importance(fitter: StageFitter, power: float, within: int, n_sets: int = 10) -> list[int]:
    """Nested sets of the units of a set with most gain per price (to a power), of sizes that grow by a factor."""
    gains = fitter.importance(within)
    left = {mask: 0.0 for mask in fitter.masks if mask and not mask & ~within}
    for mask, gain in zip(fitter.masks, gains):
        if mask in left:
            left[mask] += float(gain)
    worth = {m: g / max(fitter.price(m), 1e-12) ** power for m, g in left.items()}
    order = sorted((m for m in left if left[m] > 0), key=lambda m: (-worth[m], m))
    sizes = np.unique(np.geomspace(1, max(1, len(order)), n_sets).round().astype(int))
    return [_union(order[:k]) for k in sizes if k <= len(order)] + [within]


def _tiers(fitter: StageFitter, units: list[int]) -> list[int]:
    """All units up to some prices: those at which there is much more to have than below."""
    levels = sorted({fitter.price(u) for u in units})
    tiers = [_union([u for u in units if fitter.price(u) <= level]) for level in levels]
    kept = [tiers[-1]]
    for tier in reversed(tiers[:-1]):
        if len(kept) < MOST_TIERS and 2 * tier.bit_count() <= kept[-1].bit_count() + 1:
            kept.append(tier)
    return list(dict.fromkeys([*kept, tiers[0]]))


def _cheap_questions(search: SetSearch, prices: list[float]) -> list[int]:
    """A few sets of cheap units: what they say decides which rows are worth an expensive one."""
    levels = sorted(set(prices))
    if len(levels) < 2:
        return []
    return search.forward(None, most_expensive=levels[0], longest=2)[1:]


def _all_unions(units: list[int]) -> set[int]:
    sets = {0}
    for unit in units:
        sets |= {s | unit for s in sets}
    return sets


def _union(units: list[int]) -> int:
    total = 0
    for unit in units:
        total |= unit
    return total


def coarse(X: Floats) -> np.ndarray:
    """Each column in a few bins of about as many rows; missing values have one of their own."""
    codes = np.zeros(X.shape, np.int16)
    for f in range(X.shape[1]):
        column = X[:, f]
        known = ~np.isnan(column)
        if known.any():
            cuts = np.unique(np.quantile(column[known], np.linspace(0, 1, N_BINS + 1)[1:-1]))
            codes[known, f] = 1 + np.searchsorted(cuts, column[known])
    return codes


def explained(codes: np.ndarray, residual: Floats) -> float:
    """How much of the squared residual the means of bins explain, less what they would of noise."""
    counts = np.bincount(codes)
    full = counts > 0
    total = 0.0
    for column in residual.T:
        sums = np.bincount(codes, column)[full]
        total += float((sums**2 / counts[full]).sum()) - column.var() * full.sum()
    return total / len(codes)

"""How trees are grown: the paper's two ways, ifan and dfan, and a search that improves on both."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import numpy as np

from miserly.estimators.fast_frugal._levels import DIGITS, CueRows, FrugalLevel, Levels, better

MANY_ROWS = (
    1000  # below it the wider search fits noise: on 180 rows of heart ifan had the larger area, on 2600 of thyroid best
)
EXITS = ("positive", "negative")
MOST_SWEEPS = 20
LEAST_GAIN = 1e-9


def grow(rows: CueRows, algorithm: str, max_levels: int, n_candidates: int) -> Levels:
    """The best tree that an algorithm finds; no levels if nothing is better than a constant."""
    none: Levels = ()
    if algorithm == "auto":
        algorithm = "best" if len(rows.X) >= MANY_ROWS else "ifan"
    if algorithm == "ifan":
        return better(rows, [none, *ifan(rows, max_levels)])
    if algorithm == "dfan":
        return better(rows, [none, *dfan(rows, max_levels)])
    starts = [better(rows, [none, *ifan(rows, max_levels)]), better(rows, [none, *dfan(rows, max_levels)])]
    starts.append(better(rows, [none, *orders(rows, max_levels, n_candidates)]))
    return better(rows, [none, *(improved(rows, tree, max_levels) for tree in starts)])


def ranked_cues(rows: CueRows) -> list[FrugalLevel]:
    """The best cut of each feature over all rows, best first: wacc less the price."""
    everyone = np.ones(len(rows.X), bool)
    found = []
    for feature in range(rows.X.shape[1]):
        cut = rows.best_cut(feature, rows.worth, everyone)
        if cut is not None:
            worth = cut[0] - rows.tradeoff * rows.step_price(0, feature)
            found.append((-round(worth, DIGITS), feature, FrugalLevel(feature, cut[1], cut[2], "both")))
    return [cue for _, _, cue in sorted(found)]


def ifan(rows: CueRows, max_levels: int) -> Iterator[Levels]:
    """Thresholds and order from all rows; every structure of exits, and every number of levels."""
    cues = ranked_cues(rows)[:max_levels]
    for n in range(1, len(cues) + 1):
        yield from _structures(tuple(cues[:n]))


def _structures(cues: Levels) -> Iterator[Levels]:
    for exits in product(EXITS, repeat=len(cues) - 1):
        yield tuple(cue._replace(exit=way) for cue, way in zip(cues, (*exits, "both")))


def dfan(rows: CueRows, max_levels: int) -> Iterator[Levels]:
    """At each level the best cue for the rows that are left, for every structure of exits."""
    yield from _dfan(rows, (), np.ones(len(rows.X), bool), max_levels)


def _dfan(rows: CueRows, levels: Levels, here: np.ndarray, max_levels: int) -> Iterator[Levels]:
    owned = 0
    for level in levels:
        owned |= rows.masks[level.feature]
    used, share = {level.feature for level in levels}, float(rows.share[here].sum())
    found = []
    for feature in set(range(rows.X.shape[1])) - used:
        cut = rows.best_cut(feature, rows.worth, here)
        if cut is not None:
            worth = cut[0] - rows.tradeoff * share * rows.step_price(owned, feature)
            found.append((-round(worth, DIGITS), feature, FrugalLevel(feature, cut[1], cut[2], "both")))
    if not found:
        return
    cue = min(found)[2]
    yield (*levels, cue)
    if len(levels) + 1 == max_levels:
        return
    yes, known = rows.says(cue)
    for way in EXITS:
        left = here & ~(yes if way == "positive" else known & ~yes)
        yield from _dfan(rows, (*levels, cue._replace(exit=way)), left, max_levels)


def orders(rows: CueRows, max_levels: int, n_candidates: int) -> Iterator[Levels]:
    """Every order of the best cues with every structure of exits, the best tree of each order.

    Rows with the same answers to all candidates are one pattern, so that a tree is worth a few sums.
    """
    cues = ranked_cues(rows)[:n_candidates]
    answers = np.stack([_answers(rows, cue) for cue in cues], axis=1) if cues else np.zeros((len(rows.X), 0), np.int8)
    patterns, number = np.unique(answers, axis=0, return_inverse=True)
    worth = np.bincount(number.ravel(), rows.worth, len(patterns))
    share = np.bincount(number.ravel(), rows.share, len(patterns))
    for n in range(1, min(max_levels, len(cues)) + 1):
        for order in permutations(range(len(cues)), n):
            prices, owned = [], 0
            for c in order:
                prices.append(rows.tradeoff * rows.step_price(owned, cues[c].feature))
                owned |= rows.masks[cues[c].feature]
            exits = _best_exits(patterns[:, order], worth, share, prices)
            yield tuple(cues[c]._replace(exit=way) for c, way in zip(order, (*exits, "both")))


def _answers(rows: CueRows, cue: FrugalLevel) -> np.ndarray:
    """1 for rows that a cue calls positive, 0 for negative ones, -1 where its value is missing."""
    yes, known = rows.says(cue)
    return np.where(known, yes, -1).astype(np.int8)


def _best_exits(answers: np.ndarray, worth: np.ndarray, share: np.ndarray, prices: list[float]) -> tuple[str, ...]:
    """The exits of all levels but the last, for one order of cues."""
    best, found = -np.inf, tuple[str, ...]()
    n = answers.shape[1]
    waiting: list[tuple[tuple[str, ...], np.ndarray, float]] = [((), np.ones(len(worth), bool), 0.0)]
    while waiting:
        exits, here, value = waiting.pop()
        column = answers[:, len(exits)]
        value -= prices[len(exits)] * float(share[here].sum())
        yes, no = here & (column == 1), here & (column == 0)
        if len(exits) == n - 1:
            missing = float(worth[here & (column == -1)].sum())
            value += float(worth[yes].sum()) + max(0.0, missing)
            if value > best:
                best, found = value, exits
            continue
        waiting.append(((*exits, "positive"), here & ~yes, value + float(worth[yes].sum())))
        waiting.append(((*exits, "negative"), here & ~no, value))
    return found


def improved(rows: CueRows, levels: Levels, max_levels: int) -> Levels:
    """Change one level at a time, with the best threshold given all others, add or leave out one, as long as the
    objective grows."""
    value = rows.objective(levels)
    for _ in range(MOST_SWEEPS):
        best = better(rows, [levels, *_neighbours(rows, levels, max_levels)])
        reached = rows.objective(best)
        if reached <= value + LEAST_GAIN:
            return levels
        levels, value = best, reached
    return levels


def _neighbours(rows: CueRows, levels: Levels, max_levels: int) -> Iterator[Levels]:
    for k in range(len(levels)):
        shorter = (*levels[:k], *levels[k + 1 :])
        if shorter:
            yield (*shorter[:-1], shorter[-1]._replace(exit="both"))
        yield from _cut_again(rows, levels, k)
    if len(levels) < max_levels:
        for k in range(len(levels)):
            for way in EXITS:
                yield from _cut_again(rows, (*levels[:k], levels[k]._replace(exit=way), *levels[k:]), k)
        if levels:
            for way in EXITS:
                last = levels[-1]
                longer = (*levels[:-1], last._replace(exit=way), last)
                yield from _cut_again(rows, longer, len(levels))


def _cut_again(rows: CueRows, levels: Levels, k: int) -> Iterator[Levels]:
    """The tree with another cue at level k: each feature with its best threshold while the other levels stay.

    A row that leaves at level k is worth v or nothing; one that goes on is worth what the rest of the tree makes of it,
    less the price of the rest. So the best cut is again the one whose side has the greatest sum of differences.
    """
    here = rows.follow(levels).reached[k]
    used = {level.feature for i, level in enumerate(levels) if i != k}
    ways = ("both",) if k == len(levels) - 1 else EXITS
    for feature in set(range(rows.X.shape[1])) - used:
        for way in ways:
            gain = rows.worth
            if way != "both":
                gain = (rows.worth if way == "positive" else 0.0) - _worth_of_rest(rows, levels, k, feature, here)
            cut = rows.best_cut(feature, gain, here)
            if cut is None:
                continue
            above = cut[2] if way != "negative" else not cut[2]
            yield (*levels[:k], FrugalLevel(feature, cut[1], above, way), *levels[k + 1 :])


def _worth_of_rest(rows: CueRows, levels: Levels, k: int, feature: int, here: np.ndarray) -> np.ndarray:
    """What each row of level k is worth if it goes on, less the price of the levels that it meets."""
    owned = rows.masks[feature]
    for level in levels[:k]:
        owned |= rows.masks[level.feature]
    rest = levels[k + 1 :]
    path = rows.follow(rest)
    worth = np.where(path.positive, rows.worth, 0.0)
    for level, reached in zip(rest, path.reached):
        worth = worth - np.where(reached, rows.tradeoff * rows.step_price(owned, level.feature) * rows.share, 0.0)
        owned |= rows.masks[level.feature]
    return np.where(here, worth, 0.0)

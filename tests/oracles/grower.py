"""The tree grower as the rules state it: every open leaf, feature and cut is weighed again before every split.

Sums are Python integers and gains are fractions, so the oracle's raw gains have no rounding before the last step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

MISSING = 255
TIE = 1e-12
LEAST_GAIN = 1e-12


@dataclass(frozen=True)
class Rows:
    """Integer gradients (in quanta; output × row) and bins, feature × row, 255 where a value is missing.

    `weight` are whole numbers; rows that are not `counted` go along, but no sum and no count sees them. `slack` is what
    the engine adds to a node's squared error for its rounding, as a share of the squares.
    """

    gradient: np.ndarray
    quantum: float
    bins: np.ndarray
    n_bins: np.ndarray
    weight: np.ndarray
    counted: np.ndarray
    slack: float = 0.0


@dataclass
class Market:
    """What features need (feature × acquisition), what that costs, λ, and what is owned; growing a tree buys."""

    needs: np.ndarray
    prices: np.ndarray
    tradeoff: float
    owned: set[int]

    repeat: float = 0.0

    def lacking(self, feature: int, inside: np.ndarray) -> tuple[int, ...]:
        return tuple(a for a in range(len(self.prices)) if self.needs[feature, a] and a not in self.owned)

    def price(self, feature: int, inside: np.ndarray) -> float:
        needed = np.flatnonzero(self.needs[feature])
        return self.tradeoff * sum(float(self.prices[a]) * (self.repeat if a in self.owned else 1.0) for a in needed)

    def buy(self, acquisitions: tuple[int, ...], inside: np.ndarray) -> None:
        self.owned |= set(acquisitions)


@dataclass
class PathMarket:
    """The same where every row pays for itself: `owned` is a set of acquisitions for each row."""

    needs: np.ndarray
    prices: np.ndarray
    tradeoff: float
    owned: list[set[int]]
    weight: np.ndarray
    repeat: float = 0.0

    def lacking(self, feature: int, inside: np.ndarray) -> tuple[int, ...]:
        return tuple(int(a) for a in np.flatnonzero(self.needs[feature]) if self._share(a, inside)[0] > 0)

    def price(self, feature: int, inside: np.ndarray) -> float:
        total = 0.0
        for a in np.flatnonzero(self.needs[feature]):
            pays, again = self._share(a, inside)
            total += float(self.prices[a]) * float(pays + Fraction(self.repeat) * again)
        return self.tradeoff * total

    def buy(self, acquisitions: tuple[int, ...], inside: np.ndarray) -> None:
        for i in inside:
            self.owned[i] |= set(acquisitions)

    def _share(self, a: int, inside: np.ndarray) -> tuple[Fraction, Fraction]:
        """Of all weight, what is inside and lacks an acquisition, and what is inside and owns it."""
        total = int(self.weight.sum())
        lacks = sum(int(self.weight[i]) for i in inside if a not in self.owned[i])
        return Fraction(lacks, total), Fraction(int(self.weight[inside].sum()) - lacks, total)


@dataclass(frozen=True)
class Limits:
    max_depth: int | None
    max_leaf_nodes: int | None
    min_samples_leaf: int


@dataclass(frozen=True)
class OracleSplit:
    node: int
    left: int
    feature: int
    cut: int
    missing_right: bool
    gain: float
    price: float
    bought: tuple[int, ...]

    @property
    def score(self) -> float:
        return self.gain - self.price


@dataclass(frozen=True)
class OracleTree:
    """The splits, the rows of each leaf, and how many splits were taken from `follow` among equals."""

    splits: list[OracleSplit]
    leaves: dict[int, np.ndarray]
    ties: int
    owned_before: list[set[int]]


class DisagreementError(AssertionError):
    """The splits that the oracle was told to follow are not the best ones."""


def goes_left(rows: Rows, inside: np.ndarray, feature: int, cut: int, missing_right: bool) -> np.ndarray:
    """Of the rows inside a node: does each go left?"""
    b = rows.bins[feature, inside].astype(int)
    return np.where(b == MISSING, not missing_right, b <= cut)


def raw_gain(rows: Rows, inside: np.ndarray, left: np.ndarray) -> float:
    """½(G_L²/W_L + G_R²/W_R − G²/W)·quantum²/N for the rows inside a node, summed over outputs."""

    def term(part: np.ndarray) -> Fraction:
        part = part[rows.counted[part]]
        square = sum(sum(int(g) for g in line[part]) ** 2 for line in rows.gradient)
        return Fraction(square, int(rows.weight[part].sum()))

    spread = term(inside[left]) + term(inside[~left]) - term(inside)
    return float(spread * Fraction(rows.quantum) ** 2 / (2 * int(rows.weight[rows.counted].sum())))


def squared_error(rows: Rows, inside: np.ndarray) -> float:
    """All that splits of a node could gain: ½ Σ (g²/w) − G²/W, in the same units, and the slack."""
    part = inside[rows.counted[inside]]
    squares = sum(
        Fraction(int(g) ** 2, int(w)) for line in rows.gradient for g, w in zip(line[part], rows.weight[part])
    )
    sums = sum(Fraction(sum(int(g) for g in line[part]) ** 2, int(rows.weight[part].sum())) for line in rows.gradient)
    spread = (1 + Fraction(rows.slack)) * squares - sums
    return float(spread * Fraction(rows.quantum) ** 2 / (2 * int(rows.weight[rows.counted].sum())))


def pruned(splits: Sequence[OracleSplit], kept: set[int]) -> list[OracleSplit]:
    """The splits that pay together with all below them; `kept` decides where that is a matter of rounding."""
    stays: list[OracleSplit] = []
    for split in splits:
        below = [s for s in splits if _is_below(splits, s.node, split.node)]
        worth = {s.node: s.score for s in below}
        for s in sorted(below, key=lambda s: -s.left):
            worth[s.node] = s.score + sum(max(0.0, worth.get(child, 0.0)) for child in (s.left, s.left + 1))
        total = worth[split.node]
        close = abs(total) <= TIE * max(max(s.gain, s.price) for s in below)
        above = [s for s in splits if s.left <= split.node <= s.left + 1]
        if (total > 0 or close) and all(s in stays for s in above) and (not close or split.node in kept):
            stays.append(split)
    return stays


def _is_below(splits: Sequence[OracleSplit], node: int, top: int) -> bool:
    while node not in (top, 0):
        node = next(s.node for s in splits if s.left <= node <= s.left + 1)
    return node == top


def candidates(rows: Rows, inside: np.ndarray, feature: int, min_rows: int) -> Iterator[tuple[int, bool, float]]:
    """Cut, missing side and gain of all splits of one node by one feature, in the order in which ties are decided."""
    counted = inside[rows.counted[inside]]
    b = rows.bins[feature, counted]
    some_missing = bool((b == MISSING).any())
    for missing_right in (False, True) if some_missing else (False,):
        for cut in sorted({int(x) for x in b} - {MISSING}):
            left = goes_left(rows, inside, feature, cut, missing_right)
            n_left, n_right = (int(rows.counted[inside[side]].sum()) for side in (left, ~left))
            if min(n_left, n_right) >= max(1, min_rows):
                side = missing_right if some_missing else n_left < n_right
                yield cut, side, raw_gain(rows, inside, left)


def grow(rows: Rows, market: Market | PathMarket, limits: Limits, follow: Sequence | None = None) -> OracleTree:
    """One tree; with `follow` (another's splits) those are taken wherever none is better by more than rounding."""
    open_leaves = {0: (np.arange(rows.bins.shape[1]), 0)}
    found: dict[int, list[tuple[int, int, bool, float]]] = {}
    splits: list[OracleSplit] = []
    ties = 0
    before = [set(owned) for owned in market.owned] if isinstance(market, PathMarket) else []
    while True:
        offers = []
        for node, (inside, depth) in sorted(open_leaves.items()):
            if limits.max_depth is not None and depth >= limits.max_depth:
                continue
            if node not in found:  # a leaf's rows never change, only the prices do
                found[node] = [
                    (f, *c) for f in range(len(rows.bins)) for c in candidates(rows, inside, f, limits.min_samples_leaf)
                ]
            left = 2 * len(splits) + 1
            lacking = [market.lacking(f, inside) for f in range(len(rows.bins))]
            price = [market.price(f, inside) for f in range(len(rows.bins))]
            most = squared_error(rows, inside)
            offers += [
                OracleSplit(node, left, f, c, m, g, price[f], lacking[f])
                for f, c, m, g in found[node]
                if g > LEAST_GAIN * most and price[f] < most
            ]
        full = limits.max_leaf_nodes is not None and len(open_leaves) >= limits.max_leaf_nodes
        best = max(offers, key=lambda s: s.score, default=None) if not full else None
        if best is not None and best.score <= 0 and isinstance(market, Market):
            best = None
        if follow is not None:
            chosen = _followed(offers, best, follow[len(splits)] if len(splits) < len(follow) else None, full)
            ties += chosen != best
            best = chosen
        if best is None:
            return OracleTree(splits, {node: inside for node, (inside, _) in open_leaves.items()}, ties, before)
        splits.append(best)
        inside, depth = open_leaves.pop(best.node)
        market.buy(best.bought, inside)
        left = goes_left(rows, inside, best.feature, best.cut, best.missing_right)
        open_leaves[best.left] = (inside[left], depth + 1)
        open_leaves[best.left + 1] = (inside[~left], depth + 1)


def _followed(offers: list[OracleSplit], best: OracleSplit | None, other, full: bool) -> OracleSplit | None:
    """The other's choice, if no offer beats it by more than rounding."""
    rounding = TIE * max(best.gain, best.price) if best is not None else 0.0
    if other is None:
        if best is not None and (best.score > rounding or best.score < 0):
            raise DisagreementError(f"stopped before {best}")
        return None
    same = [s for s in offers if (s.node, s.feature, s.cut) == (other.node, other.feature, other.cut)]
    same = [s for s in same if s.missing_right == other.missing_right]
    if full or not same:
        raise DisagreementError(f"{other} is not allowed; best is {best}")
    rounding = max(rounding, TIE * max(same[0].gain, same[0].price))
    if same[0].score < (best.score if best is not None else 0.0) - rounding:
        raise DisagreementError(f"{other} scores {same[0].score}, but best is {best}")
    return same[0]

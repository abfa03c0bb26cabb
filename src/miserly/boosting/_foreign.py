"""The trees of a foreign model as tables, with the share of training rows that went left at each split.

A plan's split compares a number with one threshold. What other libraries ask besides (is the category in a set, is the
value zero, is it this one) is a question about intervals: it becomes a search tree over their edges. The two ends of
such a question are shared by all its branches, not copied, so that its size does not multiply with what lies below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from miserly._typing import Array, Bools, Floats
from miserly.plan import Dictionary, Plan

Table = dict[str, Array]
NO_LINK = "A plan has no such link."
DAMAGED = "A tree's children lead back or outside the tree: the model is damaged. Save it again."


@dataclass(frozen=True)
class ImportedModel:
    """What a reader finds: trees with the output that each adds to, or the weights of features or kernels."""

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
    kernels: Dictionary | None = None
    means: Floats | None = None
    categories: Mapping[int, Sequence[Any]] = field(default_factory=dict)
    error_costs: Sequence[Sequence[float]] | None = None
    check: Callable[[Plan], None] | None = None
    ranks: bool = False


@dataclass(frozen=True)
class Question:
    """Which intervals of the line go right, as does NaN or not: interval i is above edge i − 1 and at most edge i."""

    edges: Floats
    right: Bools
    nan_right: bool

    @classmethod
    def of(cls, edges: Iterable[float], goes_right: Callable[[float], bool], nan_right: bool) -> Question:
        """Intervals are asked at their upper edges; neighbours that agree are one."""
        ends = sorted({float(e) for e in edges if e < np.inf})
        sides = [bool(goes_right(end)) for end in [*ends, np.inf]]
        kept = [i for i in range(len(ends)) if sides[i] != sides[i + 1]]
        return cls(np.array([ends[i] for i in kept]), np.array([*(sides[i] for i in kept), sides[-1]]), nan_right)


@dataclass
class Splits:
    """The nodes of one tree, in any order, node 0 the root. `limit` is the largest value that goes left, `counts` the
    training rows of each node, `share` the share that goes left where it is not that of the counts (else NaN)."""

    leaf: Bools
    feature: Array
    limit: Floats
    left: Array
    right: Array
    missing_right: Bools
    counts: Floats
    questions: Mapping[int, Question] = field(default_factory=dict)
    share: Floats | None = None

    def tables(self, *values: Array) -> list[Table]:
        """A plan's table for each array of values (one per node)."""
        tree = self if not self.questions else _unfolded(self)
        order, first_child = _order(tree) if not self.questions else _shared_order(tree)
        end, old = tree.leaf[order], np.array(order)
        shares = _shares(tree)[old]
        feature, limit = tree.feature[old].astype(np.int32), tree.limit[old]
        missing_right = tree.missing_right[old].astype(bool) & ~end
        extra = np.zeros(len(tree.leaf) - len(self.leaf))
        return [
            {
                "feature": np.where(end, 0, feature).astype(np.int32),
                "threshold": np.where(end, np.inf, limit),
                "left": np.array(first_child, np.int32),
                "missing_right": missing_right,
                "value": np.where(end, np.r_[np.asarray(value, np.float64), extra][old], 0.0),
                "shares": np.where(end, 1.0, shares),
            }
            for value in values
        ]


def one_leaf(value: float) -> Table:
    """A tree of nothing but a constant."""
    none = np.zeros(1, int)
    tree = Splits(none == 0, none, none + np.inf, none, none, none > 0, none + 1.0)
    return tree.tables(np.array([value]))[0]


def _shares(tree: Splits) -> Floats:
    """The share that goes left; as missing values go where no training row came."""
    n = len(tree.leaf)
    left = np.where(tree.leaf, 0, tree.left).astype(np.intp)
    if ((left < 0) | (left >= n)).any():
        raise ValueError(DAMAGED)
    counts = np.maximum(np.nan_to_num(np.asarray(tree.counts, np.float64)), 0.0)
    goes = np.where(tree.missing_right, 0.0, 1.0)
    of_left = counts[left]
    shares = np.where(counts > 0, of_left / np.where(counts > 0, counts, 1.0), goes)
    if tree.share is not None:
        shares = np.where(np.isnan(tree.share), shares, tree.share)
    return np.clip(shares, 0.0, 1.0)


def _order(tree: Splits) -> tuple[list[int], Array]:
    """Old numbers of nodes, level by level, the right child next to the left; and where first children are."""
    level, parts, first, n_seen, n = np.zeros(1, np.intp), [], [], 1, len(tree.leaf)
    while len(level):
        parts.append(level)
        inner = ~tree.leaf[level].astype(bool)
        at = n_seen - len(level) + np.arange(len(level))
        at[inner] = n_seen + 2 * np.arange(inner.sum())
        first.append(at)
        below = level[inner]
        level = np.column_stack([tree.left[below], tree.right[below]]).ravel().astype(np.intp)
        n_seen += len(level)
        if n_seen > n or ((level < 0) | (level >= n)).any():
            raise ValueError(DAMAGED)
    return np.concatenate(parts).tolist(), np.concatenate(first)


def _unfolded(tree: Splits) -> Splits:
    """The same tree with a search tree in place of each question."""
    names = ("feature", "limit", "left", "right", "missing_right")
    columns: dict[str, list[Any]] = {name: np.asarray(getattr(tree, name)).tolist() for name in names}
    share = [np.nan] * len(tree.leaf)

    def write(node: int | None, f: int, limit: float, ways: tuple[int, int], nan: bool, of_left: float) -> int:
        if node is None:
            node = len(share)
            share.append(np.nan)
            for column in columns.values():
                column.append(0)
        for name, value in zip(names, (f, limit, *ways, nan)):
            columns[name][node] = value
        share[node] = of_left
        return node

    for node, question in tree.questions.items():
        ends = int(tree.left[node]), int(tree.right[node])
        counts = [max(float(tree.counts[end]), 0.0) for end in ends]
        _ask(question, ends, counts, int(tree.feature[node]), node, write)
    extra = len(share) - len(tree.leaf)
    leaf = np.r_[tree.leaf.astype(bool), np.zeros(extra, bool)]
    arrays = [np.array(columns[name], np.asarray(getattr(tree, name)).dtype) for name in names]
    feature, limit, left, right, missing_right = arrays
    counts = np.r_[tree.counts, np.ones(extra)]
    return Splits(leaf, feature, limit, left, right, missing_right, counts, share=np.array(share))


def _ask(question: Question, ends: tuple[int, int], counts: Sequence[float], f: int, root: int, write: Any) -> None:
    """Write the search tree of one question; its own node is the root. Rows of a side are taken to be spread evenly
    over its intervals."""
    sides = question.right
    mass = np.array([counts[side] / max(1, int((sides == side).sum())) for side in sides.astype(int)])
    alike = np.flatnonzero(sides == question.nan_right)

    def build(first: int, last: int, node: int | None) -> int:
        if first == last and node is None:
            return ends[int(sides[first])]
        middle = (first + last) // 2
        below, total = mass[first : middle + 1].sum(), mass[first : last + 1].sum()
        nan = bool(len(alike)) and alike[0] > middle
        ways = build(first, middle, None), build(middle + 1, last, None)
        return int(write(node, f, float(question.edges[middle]), ways, nan, below / total if total > 0 else 1.0 - nan))

    if len(sides) > 1:
        build(0, len(sides) - 1, root)
    else:  # only NaN is different, or nothing
        side, nan = int(sides[0]), int(question.nan_right)
        write(root, f, np.inf, (ends[side], ends[nan]), side != nan, counts[side] / max(sum(counts), 1e-300))


def _shared_order(tree: Splits) -> tuple[list[int], list[int]]:
    """As `_order`, where a pair of children may have several parents: it comes after all of them."""
    n, parents, seen, stack = len(tree.leaf), [0] * len(tree.leaf), {0}, [0]
    while stack:
        node = stack.pop()
        if tree.leaf[node]:
            continue
        for child in (int(tree.left[node]), int(tree.right[node])):
            if not 0 <= child < n:
                raise ValueError(DAMAGED)
            parents[child] += 1
            if child not in seen:
                seen.add(child)
                stack.append(child)
    order, place, ready = [0], {}, [0] if parents[0] == 0 else []
    for node in ready:
        if tree.leaf[node]:
            continue
        place[node] = len(order)
        for child in (int(tree.left[node]), int(tree.right[node])):
            order.append(child)
            parents[child] -= 1
            if not parents[child]:
                ready.append(child)
    if len(ready) < len(seen):
        raise ValueError(DAMAGED)
    return order, [at if tree.leaf[node] else place[node] for at, node in enumerate(order)]


def members(sets: Iterable[int], below: Callable[[float], float]) -> tuple[list[float], Callable[[float], bool]]:
    """The edges of whole numbers, and whether an upper edge lies in one of the set: number c is what is at least c and
    below c + 1. `below` gives the largest value that counts as below a number."""
    chosen = sorted({int(c) for c in sets})
    low = np.array([below(float(c)) for c in chosen])
    high = np.array([below(float(c) + 1.0) for c in chosen])

    def inside(x: float) -> bool:
        at = int(np.searchsorted(low, x, side="left")) - 1
        return at >= 0 and bool(low[at] < x <= high[at])

    return [*low.tolist(), *high.tolist()], inside

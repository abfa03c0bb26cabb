"""Where a score comes from: what each feature moved, added up along a row's way through a plan.

A tree moves from the mean of its training rows to the value of a leaf; each split on the way moves it by the difference
of the means on its two ends (Saabas 2014), which is the feature's part. A raw feature moves the score by its weight
times its distance from the training mean. Kernels are asked again after each feature, in the order of buying, with the
training means for those to come. What a node predicts before any of it is the constant. Parts are feature × output with
the constant as the last line; they add up to the score whatever a plan does with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from miserly._typing import Array, Bools, Floats
from miserly.kernels import machines
from miserly.plan import _links as links
from miserly.plan._dictionary import Kernels, RawFeatures, Trees
from miserly.plan._node import Node

if TYPE_CHECKING:
    from miserly.plan._plan import Plan

CELLS = 1 << 20
NEAR = 1e-9  # closer to the constant the slope is the derivative, not a quotient


def check_background(plan: Plan) -> None:
    """Refuse a plan that does not know what its training rows say about values that are not known."""
    lacks = plan.shares is None if isinstance(plan.dictionary, Trees) else plan.means is None
    if plan.nodes and lacks:
        what = "the shares of rows at its splits" if isinstance(plan.dictionary, Trees) else "the training means"
        raise ValueError(
            f"Contributions are changes from what is known of the training rows, and this plan has not kept {what}. "
            "Use plan.with_background(X_train)."
        )


def start_parts(plan: Plan, n_rows: int) -> Floats:
    """The parts before any node: the prior is the constant."""
    parts = np.zeros((n_rows, len(plan.used_features) + 1, plan.n_outputs))
    parts[:, -1] = plan.prior
    return parts


def add_nodes(plan: Plan, nodes: Iterable[int], X: Floats, seen: Bools, parts: Floats) -> None:
    """Take nodes into the parts of rows that they scored. `seen` says which features each row knows (rows × features,
    or one line for all)."""
    for group in _sums([plan.nodes[k] for k in nodes]):
        own = _own_parts(plan, group, X, seen)
        if len(group) > 1:
            parts += own
        else:
            _join(group[0], own, parts)


def _sums(nodes: list[Node]) -> Iterator[list[Node]]:
    """Nodes one by one, those that only add together."""
    group: list[Node] = []
    for node in nodes:
        if group and not (node.is_sum and group[-1].is_sum):
            yield group
            group = []
        group.append(node)
    if group:
        yield group


def _own_parts(plan: Plan, nodes: list[Node], X: Floats, seen: Bools) -> Floats:
    """The parts of what some nodes add up themselves, for all outputs of the plan."""
    learners = np.concatenate([node.learners for node in nodes])
    weights, at = np.zeros((len(learners), plan.n_outputs)), 0
    parts = start_parts(plan, len(X))
    parts[:, -1] = 0.0
    for node in nodes:
        here = list(node.outputs)
        weights[at : at + len(node.learners), here] = node.weights
        parts[:, -1, here] += node.bias
        at += len(node.learners)
    if not len(learners):
        return parts
    slot = np.zeros(len(plan.costs.features), np.intp)
    slot[list(plan.used_features)] = np.arange(len(plan.used_features))
    dictionary = plan.dictionary
    if isinstance(dictionary, Trees):
        _add_trees(plan, learners, weights, X, seen, slot, parts)
    elif isinstance(dictionary, RawFeatures):
        means = plan.means
        assert means is not None
        columns = dictionary.columns[learners]
        for f, weight in zip(columns.tolist(), weights):
            parts[:, slot[f]] += (X[:, f] - means[f])[:, None] * weight
        parts[:, -1] += means[columns] @ weights
    else:
        assert isinstance(dictionary, Kernels)
        _add_kernels(plan, dictionary, learners, weights, X, slot, parts)
    return parts


def _add_trees(
    plan: Plan, learners: Array, weights: Floats, X: Floats, seen: Bools, slot: Array, parts: Floats
) -> None:
    """Path attribution, all trees of some rows at once. At a split whose feature a row does not know nothing moves: the
    executor corrects the value by what the split would change in the mean."""
    trees, gaps = plan.dictionary, plan.tables.program("none").gaps
    assert isinstance(trees, Trees)
    assert gaps is not None
    start = trees.start[learners]
    parts[:, -1] += gaps[1][start] @ weights
    tree, output = np.nonzero(weights)
    start, weight = start[tree], weights[tree, output]
    rows = max(1, CELLS // max(1, len(tree), parts[0].size))
    for first in range(0, len(X), rows):
        block = slice(first, first + rows)
        mine = seen if len(seen) == 1 else seen[block]
        parts[block] += _paths(trees, gaps, start, output, weight, X[block], mine, slot, parts.shape[1:])


def _paths(
    trees: Trees,
    gaps: Any,
    start: Array,
    output: Array,
    weight: Floats,
    X: Floats,
    seen: Bools,
    slot: Array,
    shape: tuple[int, ...],
) -> Floats:
    """What each feature moves in some rows."""
    n, (n_lines, n_outputs) = len(X), shape
    major_right, mean = gaps
    row, tree = np.repeat(np.arange(n), len(start)), np.tile(np.arange(len(start)), n)
    at, moved = start[tree].astype(np.intp), np.zeros(n * n_lines * n_outputs)
    while True:
        going = np.flatnonzero(trees.left[at] != at)
        if not len(going):
            return moved.reshape(n, n_lines, n_outputs)
        row, tree, at = row[going], tree[going], at[going]
        f = trees.feature[at]
        x, known = X[row, f], seen[row if len(seen) > 1 else 0, f]
        right = np.where(np.isnan(x), trees.missing_right[at], x > trees.threshold[at])
        child = trees.left[at] + np.where(known, right, major_right[at])
        change = np.where(known, mean[child] - mean[at], 0.0) * weight[tree]
        place = (row * n_lines + slot[f]) * n_outputs + output[tree]
        moved += np.bincount(place, change, len(moved))
        at = child.astype(np.intp)


def _add_kernels(
    plan: Plan, kernels: Kernels, learners: Array, weights: Floats, X: Floats, slot: Array, parts: Floats
) -> None:
    """Features are put in the place of their means one after the other."""
    assert plan.means is not None
    columns, vectors, gamma = kernels.columns, kernels.vectors[learners], kernels.numbers[0]
    is_rbf = kernels.function == machines.RBF
    size = max(1, CELLS // max(1, len(learners)))
    for first in range(0, len(X), size):
        rows = X[first : first + size]
        inner = np.zeros((len(rows), len(learners)))
        for j, f in enumerate(columns):
            inner += _term(plan.means[f], vectors[:, j], is_rbf)
        before = _kernel(kernels, inner, gamma, is_rbf) @ weights
        parts[first : first + size, -1] += before
        for j, f in enumerate(columns):
            inner += _term(rows[:, f, None], vectors[:, j], is_rbf) - _term(plan.means[f], vectors[:, j], is_rbf)
            after = _kernel(kernels, inner, gamma, is_rbf) @ weights
            parts[first : first + size, slot[f]] += after - before
            before = after


def _term(x: Any, v: Floats, is_rbf: bool) -> Floats:
    """What one column adds to the distance or to the product."""
    return np.asarray((x - v) ** 2 if is_rbf else x * v)


def _kernel(kernels: Kernels, inner: Floats, gamma: float, is_rbf: bool) -> Floats:
    if is_rbf:
        return np.asarray(np.exp(-gamma * inner))
    return np.asarray((gamma * inner + kernels.numbers[1]) ** kernels.numbers[2])


def _join(node: Node, own: Floats, parts: Floats) -> None:
    """How the node's own parts join those of the score so far."""
    here = list(node.outputs)
    mine = own[:, :, here]
    if node.activation == "logistic":
        mine = _squashed(mine)
    if node.combine == "replace":
        parts[:, :, here] = mine
    elif node.combine == "add":
        parts[:, :, here] += mine
    else:
        parts[:, :, here] = _product(parts[:, :, here], mine)


def _squashed(parts: Floats) -> Floats:
    """The parts of a sigmoid: its rise from the constant, in proportion to what each feature moved before it."""
    whole, constant = parts.sum(axis=1), parts[:, -1]
    after, before = links.sigmoid(whole), links.sigmoid(constant)
    far = np.abs(whole - constant) > NEAR
    slope = np.where(far, (after - before) / np.where(far, whole - constant, 1.0), before * (1.0 - before))
    found = parts * slope[:, None]
    found[:, -1] = after - found[:, :-1].sum(axis=1)
    return np.asarray(found)


def _product(one: Floats, other: Floats) -> Floats:
    """The parts of a product of two scores: each moves it by its own change at the mean of the other (Shapley)."""
    a, b, a0, b0 = one.sum(axis=1), other.sum(axis=1), one[:, -1], other[:, -1]
    found = one * ((b + b0) / 2)[:, None] + other * ((a + a0) / 2)[:, None]
    found[:, -1] = a0 * b0
    return np.asarray(found)


def by_acquisition(
    plan: Plan, parts: Floats, wanted: list[int], apart: NDArray[np.bool_] | None = None
) -> tuple[Floats, Floats]:
    """Parts of features as parts of the acquisitions `wanted`, and what features moved that need none. Features that
    need several divide their part equally: without the others none is of use. Those that are known `apart` need none.
    """
    place = {a: i for i, a in enumerate(wanted)}
    share = np.zeros((len(plan.used_features), len(wanted)))
    free = np.zeros(len(plan.used_features), bool)
    for s, f in enumerate(plan.used_features):
        mask = plan.tables.masks[f]
        needs = [place[a] for a in place if mask >> a & 1]
        if not needs or (apart is not None and apart[f]):
            free[s] = True
        else:
            share[s, needs] = 1.0 / len(needs)
    features = parts[:, :-1]
    return np.einsum("nfk,fa->nak", features, share), features[:, free].sum(axis=1)

"""A plan as one small tree: its own, if it is one tree, otherwise a tree that imitates its predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from miserly.baselines import PathTreeClassifier, PathTreeRegressor
from miserly.plan import Plan, Trees
from miserly.report._observed import Observed

MOST_ROWS = 4000  # rows that are imitated: enough for a dozen questions, and quick
TRADEOFFS = 8  # exchange rates that are tried for the imitation
OVERSPEND = 1.1  # the imitation may cost this much more than the plan
FEWEST_ROWS = 40  # fewer rows cannot be held out


@dataclass(frozen=True, eq=False)
class SmallTree:
    """One tree as arrays: row x goes to `left[i]` where it is at most `threshold[i]`, else to `left[i] + 1`.

    `labels` has the prediction of every place, `columns` the numbers of the features in the plan's own order.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    missing_right: np.ndarray
    labels: list[Any]

    def is_leaf(self, place: int) -> bool:
        """Whether a place asks nothing."""
        return int(self.left[place]) == place

    def right(self, place: int, X: np.ndarray) -> np.ndarray:
        """Which rows go to the right of a place."""
        x = X[:, self.feature[place]]
        return np.where(np.isnan(x), self.missing_right[place], x > self.threshold[place])

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The prediction of each row."""
        place = np.zeros(len(X), int)
        while True:
            asking = np.flatnonzero(self.left[place] != place)
            if not len(asking):
                return np.array([self.labels[p] for p in place])
            for p in np.unique(place[asking]):
                rows = asking[place[asking] == p]
                place[rows] = self.left[p] + self.right(int(p), X[rows])

    @property
    def n_questions(self) -> int:
        """How many places ask something, where their answers lead to different predictions."""
        waiting, n = [0], 0
        while waiting:
            place = waiting.pop()
            if not self.is_decided(place):
                n += 1
                waiting += [int(self.left[place]), int(self.left[place]) + 1]
        return n

    def is_decided(self, place: int) -> bool:
        """Whether everything below a place predicts the same."""
        if self.is_leaf(place):
            return True
        children = int(self.left[place]), int(self.left[place]) + 1
        return all(self.is_decided(c) for c in children) and self.label(children[0]) == self.label(children[1])

    def label(self, place: int) -> Any:
        """The prediction of a place below which nothing differs."""
        while not self.is_leaf(place):
            place = int(self.left[place])
        return self.labels[place]


def own_tree(plan: Plan) -> SmallTree | None:
    """The plan's tree, if the plan is one tree that is charged by path."""
    trees = plan.dictionary
    if not isinstance(trees, Trees) or len(plan.nodes) != 1 or plan.charge != "path":
        return None
    node, k = plan.nodes[0], len(trees)
    plain = node.combine == "replace" and np.array_equal(node.weights, np.eye(k)) and not np.any(node.bias)
    sizes = np.diff(trees.start)
    if not plain or (sizes != sizes[0]).any():
        return None
    n = int(sizes[0])
    z = np.stack([trees.value[s : s + n] for s in trees.start[:-1]], axis=1)
    return SmallTree(
        trees.feature[:n], trees.threshold[:n], trees.left[:n], trees.missing_right[:n], list(plan.read(z))
    )


def imitate(seen: Observed, most_questions: int) -> tuple[SmallTree, np.ndarray]:
    """The small tree that agrees best with the plan on rows it was not grown on, for about the plan's cost.

    Returns it, grown on all rows, and the predictions of trees that were grown on the other half of the rows.
    """
    plan, answers = seen.plan, np.asarray(seen.answers)
    rows = np.random.default_rng(0).permutation(len(seen.rows))[:MOST_ROWS]
    X, y = seen.rows.X[rows], answers[rows]
    used = sorted(plan.used_features)
    is_class = plan.classes is not None
    if not used or len(np.unique(y)) < 2:
        tree = _constant(y if len(y) else answers, is_class)
        return tree, tree.predict(seen.rows.X)
    costs = replace(plan.costs.restrict([plan.costs.features[f] for f in used]), evaluation=0.0)
    kind = PathTreeClassifier if is_class else PathTreeRegressor
    model = kind(costs, max_leaf_nodes=most_questions + 1, min_samples_leaf=max(1, min(5, len(y) // 50)), n_jobs=1)
    halves = np.arange(len(y)) % 2 == 0
    best: tuple[tuple[bool, float, float], float] | None = None
    for tradeoff in [0.0, *model.suggest_grid(y, TRADEOFFS)]:
        model.set_params(tradeoff=float(tradeoff))
        cost = float(model.fit(X[:, used], y).predict_cost(X[:, used]).mean())
        score = _agreement(_other_half(model, X[:, used], y, halves), y, is_class)
        key = (cost <= OVERSPEND * float(seen.cost.mean()), round(score, 3), -cost)
        if best is None or key > best[0]:
            best = key, float(tradeoff)
    assert best is not None
    model.set_params(tradeoff=best[1]).fit(X[:, used], y)
    tree = _tree_of(model, used) if model.plan_.nodes else _constant(y, is_class)
    held_out = np.empty(len(answers), answers.dtype if is_class else float)
    everyone = np.arange(len(answers)) % 2 == 0
    matrix = seen.rows.X[:, used]
    held_out[:] = _other_half(model, matrix, answers, everyone)
    return tree, held_out


def _other_half(model: Any, X: np.ndarray, y: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Predictions for each half by the model grown on the other; of the model itself where a half has one class."""
    out = np.array(model.fit(X, y).predict(X))
    if len(y) < FEWEST_ROWS:
        return out
    for part in (half, ~half):
        if len(np.unique(y[~part])) > 1:
            out[part] = model.fit(X[~part], y[~part]).predict(X[part])
        else:
            out[part] = y[~part][0]
    return out


def _agreement(one: np.ndarray, other: np.ndarray, is_class: bool) -> float:
    """The share of equal labels; of numbers, the share of the variance that is explained."""
    if is_class:
        return float(np.mean(one == other))
    variance = float(np.var(other))
    return 1.0 - float(np.mean((one - other) ** 2)) / variance if variance else 1.0


def agreement(seen: Observed, held_out: np.ndarray) -> float:
    """How well predictions agree with those of the plan."""
    return _agreement(held_out, np.asarray(seen.answers), seen.plan.classes is not None)


def _tree_of(model: Any, used: list[int]) -> SmallTree:
    """The model's tree, its features numbered as in the plan that it imitates."""
    tree = own_tree(model.plan_)
    assert tree is not None
    return SmallTree(np.array(used)[tree.feature], tree.threshold, tree.left, tree.missing_right, tree.labels)


def _constant(y: np.ndarray, is_class: bool) -> SmallTree:
    values, counts = np.unique(y, return_counts=True)
    label = values[counts.argmax()] if is_class else float(np.mean(y))
    return SmallTree(np.zeros(1, int), np.array([np.inf]), np.zeros(1, int), np.zeros(1, bool), [label])

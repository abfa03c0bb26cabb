"""What the values that a row does not know are worth: how far they may move its score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from miserly._typing import Array, Floats
from miserly.kernels import gaps as kernels
from miserly.plan import _links as links
from miserly.plan._dictionary import RawFeatures, Trees
from miserly.plan._node import EXIT, Node

if TYPE_CHECKING:
    from miserly.plan._plan import Plan

Estimate = tuple[float, float, float]


def gains_of_unknowns(plan: Plan, known: Mapping[str, float]) -> dict[str, Estimate]:
    """The expected drop of the loss by each feature in use that is not known: (low, expected, high).

    Knowing a feature moves the score by a random amount of some variance V. To second order the loss then falls by
    half its curvature times V: V itself for squared error, ½ p (1 − p) V for log loss. For trees V follows from the
    splits on the row's way; the low estimate takes them as independent, the high one as moving together, and the
    expected gain lies in the middle. Plans without shares, and other learners, have the gains of training instead.
    """
    names = plan.costs.features
    unknown = [f for f in plan.used_features if names[f] not in known]
    trees = plan.dictionary
    if not isinstance(trees, Trees) or plan.shares is None:
        gain = _gains_of_training(plan)
        return {names[f]: (gain[f], gain[f], gain[f]) for f in unknown}
    x, seen = np.full(len(names), np.nan), np.zeros(len(names), bool)
    for name, value in known.items():
        x[plan.tables.feature_numbers[name]], seen[plan.tables.feature_numbers[name]] = value, True
    variance, deviation = np.zeros((2, len(names), plan.n_outputs))
    program = plan.tables.program("none")
    for k in _last_answer(plan):
        node, step = plan.nodes[k], program.steps[k]
        if node.is_direct:
            edges = (step.learners, step.pointer, step.column, step.weight)
            kernels.spread_of_unknowns(x, seen, trees.table, program.gaps, plan.shares, *edges, variance, deviation)
    curvature = _curvature(plan, x, seen)
    low, high = variance @ curvature, (deviation**2) @ curvature
    return {names[f]: (float(low[f]), float(low[f] + high[f]) / 2.0, float(high[f])) for f in unknown}


def _last_answer(plan: Plan) -> list[int]:
    """The nodes of a chain from the last that replaces all before; all nodes where ways part."""
    chain: list[int] = []
    k = plan.roots[0] if len(plan.roots) == 1 else EXIT
    while k != EXIT:
        chain = [k] if plan.nodes[k].combine == "replace" else [*chain, k]
        k = plan.nodes[k].passed
    return chain or list(range(len(plan.nodes)))


def _curvature(plan: Plan, x: Floats, seen: Array) -> Floats:
    """Half the second derivative of the loss in each score, at the present answer."""
    if plan.classes is None:
        return np.ones(plan.n_outputs)
    walk = plan.start(0.0, {f: x[i] for i, f in enumerate(plan.costs.features) if seen[i]} | _absent(plan, seen))
    z = np.atleast_2d(walk.best.score)
    p = links.sigmoid(z)[0] if plan.link != "softmax" else plan.probabilities(z)[0]
    return np.asarray(0.5 * p * (1.0 - p))


def _absent(plan: Plan, seen: Array) -> dict[str, float]:
    return {name: np.nan for name, f in plan.tables.arriving(0, 0).items() if not seen[f]}


def _gains_of_training(plan: Plan) -> Floats:
    """How much each feature lowered the training loss: the gain of each node, divided among its features; where no gain
    is known, the squared weights of a linear model."""
    gain = np.zeros(len(plan.costs.features))
    has_gains = any(np.isfinite(node.gain) for node in plan.nodes)
    for node in plan.nodes:
        features = [int(f) for t in node.learners for f in plan.dictionary.features_of(int(t))]
        for f, weight in zip(features, _weights(node, features, plan)):
            gain[f] += (node.gain if np.isfinite(node.gain) else 0.0) / len(features) if has_gains else weight
    return gain


def _weights(node: Node, features: list[int], plan: Plan) -> Floats:
    if isinstance(plan.dictionary, RawFeatures):
        return np.asarray((node.weights**2).sum(axis=1))
    return np.full(len(features), float((node.weights**2).sum()) / max(1, len(features)))

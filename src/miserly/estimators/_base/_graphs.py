"""What trees and cascades of linear scorers share: data made ready for any trade-off, validation rows, and the plan.

A node of the plan predicts with one set of weights; its gate may look at another, the node's routing vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from miserly._typing import Floats
from miserly.costs import CostTable
from miserly.estimators._base._base import row_weights
from miserly.estimators._base._dictionary import Learners
from miserly.estimators._base._learner_base import LearnerEstimator
from miserly.estimators._base._target import Reading, Target
from miserly.metrics import Metric, get_metric
from miserly.plan import Gate, Node, Plan, Trees
from miserly.solvers import AcquisitionNorm, Design, GateGraph, RawDesign, TreeDesign, shares


@dataclass(frozen=True)
class Posed:
    """The data of a fit, ready for any tradeoff: learners, targets (row × output), row weights as they were given.

    `emphasis` are the weights of the rows' classes: they count in the loss, never in the cost.
    """

    costs: CostTable
    learners: Learners
    target: Target
    targets: Floats
    weights: Floats
    emphasis: Floats
    norm: AcquisitionNorm
    gram: Floats | None = None

    @property
    def n_cells(self) -> int:
        """How many numbers the design has."""
        return self.learners.design.n_rows * self.learners.design.n_columns

    @property
    def share(self) -> Floats:
        """Row weights of the cost; they add up to one."""
        return self.weights / self.weights.sum()

    @property
    def counts(self) -> Floats:
        """Row weights of the loss, in rows."""
        counted = self.weights * self.emphasis
        return counted * (self.weights.sum() / counted.sum())

    @property
    def omega(self) -> Floats:
        """Row weights of the loss; they add up to one."""
        return self.counts / self.weights.sum()

    @property
    def std(self) -> float:
        """The deviation of the targets, all outputs together."""
        mean = self.share @ self.targets
        return math.sqrt(float(self.share @ ((self.targets - mean) ** 2).sum(axis=1)))


@dataclass(frozen=True)
class Scorer:
    """A node as the plan will have it: what it predicts and what its gate looks at, over standardised columns."""

    beta: Floats
    bias: Floats
    routing: Floats
    threshold: float


class GraphEstimator(LearnerEstimator):
    """From data to a posed problem, and from scorers on a graph to a plan; the parameters are its subclasses'."""

    def _pose(self, X: Any, y: Any, sample_weight: Any, backend: Any = None) -> Posed:
        learners, y, target, weights = self._ready(X, y, sample_weight, backend)
        norm = AcquisitionNorm.of(learners.masks, learners.evaluation, learners.costs.price_list)
        return Posed(learners.costs, learners, target, target.encode(y), weights, self._emphasis(y, weights), norm)

    def _emphasis(self, y: np.ndarray, weights: Floats) -> Floats:
        """The weight of each row's class, as scikit-learn's `class_weight` says it."""
        wanted = getattr(self, "class_weight", None)
        if wanted is None:
            return np.ones(len(y))
        if isinstance(wanted, str):
            of_class = {c: weights.sum() / (len(self.classes_) * weights[y == c].sum()) for c in self.classes_}
        else:
            unknown = set(wanted) - set(self.classes_.tolist())
            if unknown:
                raise ValueError(
                    f"class_weight names {sorted(unknown)}, which y does not hold. It holds {self.classes_.tolist()}."
                )
            of_class = {c: float(wanted.get(c, 1.0)) for c in self.classes_.tolist()}
        return np.array([of_class[c] for c in self.classes_])[np.searchsorted(self.classes_, y)]

    def suggest_grid(self, y: Any, n_points: int = 24, sample_weight: Any = None) -> np.ndarray:
        """Values of `tradeoff` from nearly cost-blind to nothing but the cheapest, whatever the unit of the prices.

        No standardised feature has a larger gradient than the deviation of y. The useful window may be narrow.

        Parameters
        ----------
        y : array-like
            Labels of the training rows.
        n_points : int, default=24
            How many values, 1 or more.
        sample_weight : array-like or None, default=None
            Weights of the rows, 0 or more.

        Returns
        -------
        ndarray
        """
        costs = self._given_costs()
        y = np.asarray(y)
        targets = self._target_of(y).encode(y)
        share = shares(row_weights(sample_weight, len(y)), len(y))
        std = math.sqrt(float(share @ ((targets - share @ targets) ** 2).sum(axis=1))) or 1.0
        each = np.array(list(costs.marginal().values()) if costs.each is None else [costs.each])
        if isinstance(costs.evaluation, float):
            each = each + costs.evaluation
        paid = each[each > 0] if (each > 0).any() else np.ones(1)
        return np.geomspace(1e-3 / paid.max(), 0.5 / paid.min(), n_points) * std

    def _reading(self, posed: Posed, scores: Floats) -> Reading:
        """How the scores of the training rows are to be read."""
        return posed.target.read(scores, posed.targets, posed.counts)

    def _graph_plan(
        self, posed: Posed, graph: GateGraph, scorers: list[Scorer], reading: Reading, tiers: list[int] | None = None
    ) -> Plan:
        """The plan: node k of the graph is node k there; without any learner in use it only has a prior."""
        nodes = [
            _node(posed.learners, scorer, reading, graph, k, 0 if tiers is None else tiers[k])
            for k, scorer in enumerate(scorers)
        ]
        bought = any(len(node.learners) for node in nodes)
        return self._with_background(
            Plan(
                costs=posed.costs,
                dictionary=posed.learners.dictionary,
                nodes=tuple(nodes) if bought else (),
                prior=reading.prior,
                link=reading.link,
                classes=posed.target.classes,
                roots=(0,) if bought else (),
                notes={
                    "estimator": type(self).__name__,
                    "tradeoff": float(getattr(self, "tradeoff", 0.0)),
                    **self._category_notes(),
                },
            )
        )

    def _metric(self, name: str | Metric | None, target: Target) -> Metric:
        return get_metric(name or target.default_metric)


def _node(learners: Learners, scorer: Scorer, reading: Reading, graph: GateGraph, k: int, tier: int) -> Node:
    """One node of the plan; its learners stand in the order of their influence, so that columns may be permuted."""
    leaf = graph.is_leaf(k)
    routing = np.zeros_like(scorer.routing) if leaf else scorer.routing
    both = np.column_stack([scorer.beta @ reading.matrix, routing])
    order = np.argsort(-np.abs(both).max(axis=1), kind="stable")
    number, weights, bias = learners.for_node(both, np.append(scorer.bias @ reading.matrix + reading.offset, 0.0))
    place = {int(t): i for i, t in enumerate(number)}
    order = np.array([place[t] for t in (int(learners.number[j]) for j in order) if t in place], np.intp)
    number, weights = number[order], weights[order]
    return Node(
        number,
        weights[:, :-1],
        bias=bias[:-1],
        outputs=tuple(range(len(bias) - 1)),
        combine="replace",
        routing=None if leaf else weights[:, -1],
        routing_bias=0.0 if leaf else float(bias[-1]),
        gate=Gate() if leaf else Gate.above(scorer.threshold),
        passed=graph.up[k],
        failed=graph.low[k],
        tier=tier,
    )


class HeldOutRows:
    """Scores of other rows: a design of its own for them, weights given for the training design."""

    def __init__(self, learners: Learners, X: Any) -> None:
        self.trained: Design = learners.design
        if isinstance(learners.dictionary, Trees):
            self.design: Design = TreeDesign(learners.dictionary, X)
        else:
            self.design = RawDesign(X, None, learners.number)

    def scores(self, beta: Floats, bias: Floats | float = 0.0) -> Floats:
        """What the training design's weights give here."""
        raw = np.where(self.trained.varies, 1.0 / self.trained.scale, 0.0)[:, None] * beta.reshape(len(beta), -1)
        constant = (self.design.centre - self.trained.centre) @ raw + bias
        return self.design.scores(raw * self.design.scale[:, None]) + constant

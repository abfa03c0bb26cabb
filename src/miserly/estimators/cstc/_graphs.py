"""What trees and cascades of linear classifiers share: data made ready, hard routing, answers, and the plan.

A soft graph decides who goes where. What a node then answers is fitted anew on the rows that really come there
(`answers`); the gate keeps looking at what it was trained on, as the node's routing vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from miserly._typing import Floats
from miserly.costs import CostTable, set_bits
from miserly.estimators._base import LearnerEstimator, Learners, PlanClassifier
from miserly.estimators.cstc._answers import Scorer, Trust, answers
from miserly.estimators.cstc._soft_graph import SoftGraph
from miserly.metrics import Metric, get_metric
from miserly.plan import Gate, Node, Plan, Trees, labels, probabilities
from miserly.solvers import EXIT, AcquisitionNorm, Design, Graph, RawDesign, TreeDesign, discriminant, platt

Link = Literal["identity", "logistic", "softmax"]


@dataclass(frozen=True)
class Posed:
    """The data of a fit, ready for any tradeoff: learners, targets (row × output), row weights as they were given.

    `emphasis` are the weights of the rows' classes: they count in the loss, never in the cost.
    """

    costs: CostTable
    learners: Learners
    targets: Floats
    weights: Floats
    emphasis: Floats
    norm: AcquisitionNorm
    gram: Floats | None = None

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
    def spread(self) -> float:
        """The deviation of the targets, all outputs together."""
        middle = self.share @ self.targets
        return math.sqrt(float(self.share @ ((self.targets - middle) ** 2).sum(axis=1)))


@dataclass(frozen=True)
class Reading:
    """How raw scores become what the plan's link reads: scores @ matrix + offset."""

    link: Link
    matrix: Floats
    offset: Floats
    prior: Floats


class GraphEstimator(LearnerEstimator):
    """From data to a posed problem, and from scorers on a graph to a plan; the parameters are its subclasses'."""

    def _pose(self, X: Any, y: Any, sample_weight: Any, backend: Any = None) -> Posed:
        learners, y, targets, weights = self._ready(X, y, sample_weight, backend)
        norm = AcquisitionNorm.of(learners.masks, learners.evaluation, learners.costs.price_list)
        return Posed(learners.costs, learners, targets, weights, self._emphasis(y, weights), norm)

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

    def _targets(self, y: np.ndarray) -> Floats:
        """What is fitted, row × output: numbers, or ±1 for each class against the rest (one column for two)."""
        if not isinstance(self, PlanClassifier):
            return y.astype(np.float64)[:, None]
        classes = self.classes_ = self._find_classes(y)
        return np.where(y[:, None] == (classes[1:] if len(classes) == 2 else classes), 1.0, -1.0)

    def suggest_grid(self, y: Any, n_points: int = 24) -> np.ndarray:
        """Values of `tradeoff` from nearly cost-blind to nothing but the cheapest, whatever the unit of the prices.

        No standardised feature pulls harder than the spread of y. The useful window may be narrow: many points.
        """
        costs = self._given_costs()
        targets = self._targets(np.asarray(y))
        spread = math.sqrt(float(targets.var(axis=0).sum())) or 1.0
        masks = costs.feature_masks if costs.each is None else ()
        each = np.array([math.fsum(costs.price_list[a] for a in set_bits(m)) for m in masks] or [costs.each or 0.0])
        if isinstance(costs.evaluation, float):
            each = each + costs.evaluation
        paid = each[each > 0] if (each > 0).any() else np.ones(1)
        return np.geomspace(1e-3 / paid.max(), 0.5 / paid.min(), n_points) * spread

    def _reading(self, posed: Posed, scores: Floats) -> Reading:
        """Numbers as they are; two classes by Platt's scaling, several by discriminant analysis of the scores."""
        if not isinstance(self, PlanClassifier):
            return Reading("identity", np.eye(1), np.zeros(1), posed.share @ posed.targets)
        member, weights = posed.targets > 0, posed.counts
        counts, total = weights @ member, float(weights.sum())
        if posed.targets.shape[1] == 1:
            scale, shift = platt(scores[:, 0], member[:, 0], weights)
            prior = np.log((counts + 1.0) / (total - counts + 1.0))
            return Reading("logistic", np.array([[scale]]), np.array([shift]), prior)
        matrix, offset = discriminant(scores, member, weights)
        return Reading("softmax", matrix, offset, np.log((counts + 1.0) / (total + len(counts))))

    def _answers(self, soft: SoftGraph, posed: Posed, trust: Trust = "model") -> tuple[list[Scorer], Reading]:
        """What each node answers when gates are hard, and how scores are read."""
        tuned = trust if getattr(self, "fine_tune", True) else None
        scorers, scores = answers(soft, posed.learners, posed.targets, posed.counts, tuned)
        return scorers, self._reading(posed, scores)

    def _graph_plan(
        self, posed: Posed, graph: Graph, scorers: list[Scorer], reading: Reading, tiers: list[int] | None = None
    ) -> Plan:
        """The plan: node k of the graph is node k there; without any learner in use it only has a prior."""
        nodes = [
            _node(posed.learners, scorer, reading, graph, k, 0 if tiers is None else tiers[k])
            for k, scorer in enumerate(scorers)
        ]
        bought = any(len(node.learners) for node in nodes)
        classes = self.classes_ if isinstance(self, PlanClassifier) else None
        return Plan(
            costs=posed.costs,
            dictionary=posed.learners.dictionary,
            nodes=tuple(nodes) if bought else (),
            prior=reading.prior,
            link=reading.link,
            classes=classes,
            roots=(0,) if bought else (),
            notes={
                "estimator": type(self).__name__,
                "tradeoff": float(getattr(self, "tradeoff", 0.0)),
                **self._category_notes(),
            },
        )

    def _eval_parts(self, eval_set: Any, metric: Metric) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Checked validation data (X, y) or (X, y, qid)."""
        if not isinstance(eval_set, tuple) or len(eval_set) not in (2, 3):
            raise ValueError("eval_set is validation data: (X, y) or, for metrics of queries, (X, y, qid).")
        X, *columns = self._checked(eval_set[0]), *(column_or_1d(part) for part in eval_set[1:])
        if any(len(column) != X.shape[0] for column in columns):
            raise ValueError(f"eval_set has {X.shape[0]} rows in X and {len(columns[0])} in y. Give one label per row.")
        if metric.grouped and len(columns) < 2:
            raise ValueError(f"{metric.name} compares the rows of a query: give eval_set=(X, y, qid).")
        return X, columns[0], columns[1] if len(columns) > 1 else None

    def _metric(self, name: str | Metric | None) -> Metric:
        return get_metric(name or ("accuracy" if isinstance(self, PlanClassifier) else "mse"))

    def _measured(self, metric: Metric, y: np.ndarray, scores: Floats, reading: Reading, qid: Any) -> float:
        """A metric of raw scores; the larger, the better."""
        z = scores @ reading.matrix + reading.offset
        output: Any = z[:, 0]
        if isinstance(self, PlanClassifier):
            if metric.input == "proba":
                output = probabilities(reading.link, z, len(self.classes_))
            elif metric.input == "value":
                output = labels(reading.link, z, self.classes_)
            elif z.shape[1] > 1:
                output = z
        figure = metric(y, output, qid=qid, classes=getattr(self, "classes_", None))
        return figure if metric.greater_is_better else -figure


def _node(learners: Learners, scorer: Scorer, reading: Reading, graph: Graph, k: int, tier: int) -> Node:
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


class Elsewhere:
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


def prunable(graph: Graph, kept: NDArray[np.bool_], k: int) -> bool:
    """Whether node k is a leaf among those that are kept."""
    return k > 0 and not any(c != EXIT and kept[c] for c in (graph.up[k], graph.low[k]))

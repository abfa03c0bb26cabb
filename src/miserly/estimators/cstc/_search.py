"""The best hard graph of a fit: candidates from the descent, judged with the gates as they will be in the plan.

What the descent lowers is the objective of soft gates. A graph that is better there may be worse once its gates are
hard, so the start, the graph after each round of the descent and its prunings are all candidates. They are judged on
validation rows by a metric if there are any, ties by mean cost; otherwise on the training rows by

    Σ_i ω_i ℓ(y_i, f(x_i)) + π · mean cost,    π = λ times `price_scale`

with f the prediction at the exit and the cost as the ledger counts it. Erratum of (3.13) with 3.4.5 of the thesis:
pruning must follow the descent. In a pruned tree a row that exits early is charged fewer node losses, so a descent that
follows moves rows to the exits (ann-thyroid: one node is left, .941 correct instead of .987).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from miserly._typing import Bools, Floats, Rows
from miserly.estimators._base import HeldOutRows, Posed, Reading, Scorer
from miserly.estimators.cstc._answers import GONE, TRUSTS, Trust, answers, fine_tuned, prunable
from miserly.estimators.cstc._node_losses import SQUARED, NodeLoss
from miserly.estimators.cstc._polish import Polish
from miserly.estimators.cstc._soft_graph import SoftGraph
from miserly.metrics import Metric
from miserly.solvers import EXIT, Design, GateGraph

SHARPENING = (1.0, 3.0, 9.0)  # gates that follow the scores' deviation are annealed: soft ones find, steep ones refine
STEEP = 200.0  # of a second start, over the scores' deviation: nodes are found as hard gates will send rows there
FRUGAL = 8.0  # times λ, of a third start: its gates look at cheap columns only, leaves choose theirs at λ itself
LEAST_CURVATURE = 1e-3  # of the logistic loss, in the price of cost: where all rows are certain it has no meaning
TIE = 1e-7  # of the figure of one node: less than that is rounding, and the cheaper candidate is better
PATIENCE = 3  # rounds without a better candidate on validation rows: the descent fits the training rows by then


@dataclass(frozen=True)
class HardGraph:
    """What a plan is made of, and how good it is: the larger `figure`, the better."""

    graph: GateGraph
    scorers: list[Scorer]
    reading: Reading
    figure: tuple[float, ...]


@dataclass(frozen=True)
class Routed:
    """Rows on their way: those that reach each node, what it says of them, and where and with what all rows leave."""

    reached: list[Rows]
    outputs: list[Floats]
    scores: Floats
    exits: Rows


@dataclass(frozen=True)
class ValidationRows:
    """Rows that were not trained on, with what is measured on them."""

    rows: HeldOutRows
    y: np.ndarray
    qid: np.ndarray | None
    metric: Metric


class Search:
    """Keeps the best of the candidates that it is shown.

    `price` is that of a unit of cost; `tiers`: later exits rank higher; `swaps`: greedy moves are tried; `loss` is that
    of the nodes.
    """

    def __init__(
        self,
        posed: Posed,
        price: float,
        fine_tune: bool,
        validation: ValidationRows | None = None,
        tiers: bool = False,
        swaps: bool = False,
        loss: NodeLoss = SQUARED,
    ) -> None:
        self.swaps, self.loss = swaps, loss
        self.posed, self.price, self.fine_tune, self.validation, self.tiers = posed, price, fine_tune, validation, tiers
        self.trust: Trust = "model"
        self.best: HardGraph | None = None
        self.worse = 0
        self.unit: float | None = None

    def start(self, soft: SoftGraph) -> None:
        """The first candidates: one node, which sets the unit of figures, and the start.

        How far weights of trees are to be trusted is decided here, if validation rows can.
        """
        if self.validation is not None:
            self._hard(soft.keep(np.arange(len(soft.graph)) < 1), self.trust)
        known = self.posed.learners.known(self.posed.targets.shape[1])
        if self.validation is not None and known is not None and self.fine_tune:
            found = {trust: self._hard(soft, trust) for trust in TRUSTS}
            self.trust = max(found, key=lambda trust: found[trust].figure)
        self.consider(soft)

    def consider(self, soft: SoftGraph) -> bool:
        """Judge a graph and its prunings; tells whether the descent may stop."""
        hard = self._hard(soft, self.trust)
        candidates = [hard]
        if self.validation is not None:
            candidates += [self._hard(part, self.trust) for part in self._prunings(soft, hard)]
        best = max(candidates, key=lambda candidate: candidate.figure)
        improves = self.best is None or best.figure > self.best.figure
        self.best = best if improves else self.best
        self.worse = 0 if improves else self.worse + 1
        return self.validation is not None and self.worse >= PATIENCE

    def polish(self, soft: SoftGraph) -> None:
        """Judge the graph after greedy moves with hard gates."""
        if self.swaps and self.posed.targets.any():
            self.consider(Polish(soft, self.posed.learners, self.price).run())

    def _hard(self, soft: SoftGraph, trust: Trust) -> HardGraph:
        scorers, reading = fine_tuned(soft, self.posed, trust if self.fine_tune else None)
        hard = HardGraph(soft.graph, scorers, reading, ())
        return HardGraph(soft.graph, scorers, reading, (*self._figure(hard), -float(len(scorers))))

    def _figure(self, hard: HardGraph) -> tuple[float, float]:
        if self.validation is not None:
            routed = route(self.validation.rows, len(self.validation.y), hard)
            cost = float(self._costs(hard)[routed.exits].mean())
            return self._measured(hard, routed.scores, routed.exits), -cost
        routed = route(self.posed.learners.design, len(self.posed.weights), hard)
        error = float(self.posed.omega @ self.loss.values(routed.scores, self.posed.targets))
        return -error - self.price * float(self.posed.share @ self._costs(hard)[routed.exits]), 0.0

    def _measured(self, hard: HardGraph, scores: Floats, exits: Rows) -> float:
        """The metric of some predictions on validation rows, rounded: what differs by less is a tie."""
        figure = self._exactly(hard, scores, exits)
        if self.unit is None:
            self.unit = TIE * abs(figure)
        return self.unit * round(figure / self.unit) if self.unit > 0 else figure

    def _exactly(self, hard: HardGraph, scores: Floats, exits: Rows) -> float:
        assert self.validation is not None
        metric, reading = self.validation.metric, hard.reading
        if self.tiers and metric.input == "score" and scores.shape[1] == 1:
            ranks = rank_by_exit(scores[:, 0], exits)[:, None]
            reading = Reading(reading.link, np.eye(1), np.zeros(1), reading.prior)
            return self.posed.target.measure(metric, self.validation.y, ranks, reading, self.validation.qid)
        return self.posed.target.measure(metric, self.validation.y, scores, reading, self.validation.qid)

    def _costs(self, hard: HardGraph) -> Floats:
        """What a row pays that leaves at each node."""
        used = [np.flatnonzero(scorer.beta.any(axis=1) | (scorer.routing != 0)) for scorer in hard.scorers]
        paths = [hard.graph.path(k) for k in range(len(hard.graph))]
        columns = [np.unique(np.concatenate([used[j] for j in path])) for path in paths]
        return np.array([self.posed.learners.price(each) for each in columns])

    def _prunings(self, soft: SoftGraph, hard: HardGraph) -> list[SoftGraph]:
        """The graph without what does not better the metric on validation rows, from the leaves up; and its root.

        Where losses count at the exits a node's weights depend on who leaves there: then all shorter cascades.
        """
        n = len(soft.graph)
        if n == 1:
            return []
        if soft.task.at_exit:
            return [soft.keep(np.arange(n) < length) for length in range(1, n)]
        root = soft.keep(np.arange(n) < 1)
        kept = self._wanted(hard)
        return [root] if kept.all() or kept.sum() == 1 else [soft.keep(kept), root]

    def _wanted(self, hard: HardGraph) -> Bools:
        """Which nodes better the metric (thesis 3.4.5)."""
        assert self.validation is not None
        graph, routed = hard.graph, route(self.validation.rows, len(self.validation.y), hard)
        scores, kept = routed.scores, np.ones(len(graph), bool)
        best = self._measured(hard, scores, routed.exits)
        for k in range(len(graph) - 1, 0, -1):
            if not prunable(graph, kept, k):
                continue
            parent = graph.parents[k][0]  # type: ignore[index]
            without, rows = scores.copy(), routed.reached[k]
            without[rows] = routed.outputs[parent][np.searchsorted(routed.reached[parent], rows)]
            if (now := self._measured(hard, without, routed.exits)) >= best:
                scores, best, kept[k] = without, now, False
        return kept


def route(rows: HeldOutRows | Design, n_rows: int, hard: HardGraph) -> Routed:
    """Send rows through hard gates."""
    graph, at = hard.graph, np.zeros(n_rows, np.intp)
    exits = np.zeros(n_rows, np.intp)
    reached, outputs = [], []
    scores = np.zeros((n_rows, hard.scorers[0].beta.shape[1]))
    for k, scorer in enumerate(hard.scorers):
        here = np.flatnonzero(at == k)
        both = rows.scores(np.column_stack([scorer.beta, scorer.routing]))[here]
        reached.append(here)
        outputs.append(both[:, :-1] + scorer.bias)
        scores[here], exits[here] = outputs[-1], k
        if not graph.is_leaf(k):
            ways = np.where(both[:, -1] > scorer.threshold, graph.up[k], graph.low[k])
            at[here] = np.where(ways == EXIT, GONE, ways)
    return Routed(reached, outputs, scores, exits)


def rank_by_exit(scores: Floats, exits: Rows) -> Floats:
    """An order in which rows that left later stand above, then by score."""
    return exits + 0.49 * scores / (1.0 + np.abs(scores))


def price_scale(soft: SoftGraph, posed: Posed) -> float:
    """What λ, a price of cost times weight, is as a price of cost alone: half the deviation of what is left to explain.

    A purchase that explains all of a residual of deviation σ has the weight σ: the mixed norm makes it while λc < σ. By
    a count of what is bought at a price of π it is made while πc < ½σ²; so the two agree where π = ½λσ. For a loss with
    curvature h and slopes of size g that is ½λg/h.
    """
    _, scores = answers(soft, posed.learners, posed.targets, posed.counts, None)
    slopes = soft.task.loss.slopes(scores, posed.targets)
    size = math.sqrt(float(posed.omega @ (slopes**2).sum(axis=1)))
    if soft.task.loss.is_squared:
        return 0.5 * size
    curvature = float(posed.omega @ (np.abs(slopes) * (1.0 - np.abs(slopes))).mean(axis=1))
    return 0.5 * size / max(curvature, LEAST_CURVATURE)


def anneal(
    soft: SoftGraph, search: Search, sharpening: tuple[float, ...], max_iter: int, tol: float
) -> list[list[float]]:
    """Descend with gates that get steeper by these factors of the first steepness.

    The graph at the end of each is a candidate; with validation rows the one after each round too. Tells the values of
    the objective on the way, a list for each steepness.
    """
    search.start(soft)
    search.polish(soft)
    values, before = [], 1.0
    after = None if search.validation is None else search.consider
    for factor in sharpening if max_iter else ():
        soft.sharpen(factor / before)
        before = factor
        search.worse = 0
        values.append(soft.optimise(max_iter, tol, after))
        search.consider(soft)
    if values:
        search.polish(soft)
    return values

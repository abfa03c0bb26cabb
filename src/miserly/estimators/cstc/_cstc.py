"""CSTC (Xu, Kusner, Chen, Weinberger, ICML 2013; thesis ch. 3): a cost-sensitive tree of linear classifiers.

Each node scores its rows and sends them up or low; soft gates make the expected loss of all nodes and the expected cost
of all paths differentiable, a mixed norm stands for the cost of a path (`_soft_graph` has the objective). Nodes
are found from the top down, then improved one after the other; supports only shrink. At the end gates are hard, and
what nodes answer is fitted again on the rows that come there (`fine_tune`).

Not in the papers: a steepness that follows the standard deviation of each node's scores, acquisitions that several
learners share, and several classes as one tree with an output for each and one routing direction.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from miserly._typing import Floats, Rows
from miserly.costs import CostTable
from miserly.estimators._base import (
    DICTIONARY,
    GraphEstimator,
    HeldOutRows,
    PlanClassifier,
    PlanRegressor,
    Posed,
    Reading,
    Scorer,
    check_eval_set,
    constraints,
)
from miserly.estimators.cstc._answers import GONE, TRUSTS, Trust, fine_tuned, prunable
from miserly.estimators.cstc._soft_graph import Classifier, GraphTask, SoftGraph
from miserly.metrics import Metric
from miserly.solvers import EXIT, GateGraph


class _CSTC(GraphEstimator):
    """The parameters and the fit that regression and classification share."""

    cost_axis = "tradeoff"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "costs": constraints.COSTS,
        "tradeoff": [constraints.not_negative()],
        "max_depth": [constraints.whole(1, 10)],
        "dictionary": DICTIONARY,
        "rho": [constraints.not_negative()],
        "steepness": [constraints.one_of("auto"), constraints.positive()],
        "fine_tune": ["boolean"],
        "min_samples_leaf": [constraints.at_least(1)],
        "max_iter": [constraints.at_least(0)],
        "tol": [constraints.not_negative()],
        "metric": [str, Metric, None],
    }

    def __init__(
        self,
        costs: CostTable | None = None,
        tradeoff: float = 1e-3,
        max_depth: int = 3,
        dictionary: Any = None,
        rho: float = 1e-3,
        steepness: str | float = "auto",
        fine_tune: bool = True,
        min_samples_leaf: int = 20,
        max_iter: int = 10,
        tol: float = 1e-3,
        metric: str | Metric | None = None,
    ) -> None:
        self.costs = costs
        self.tradeoff = tradeoff
        self.max_depth = max_depth
        self.dictionary = dictionary
        self.rho = rho
        self.steepness = steepness
        self.fine_tune = fine_tune
        self.min_samples_leaf = min_samples_leaf
        self.max_iter = max_iter
        self.tol = tol
        self.metric = metric

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, eval_set: Any = None, backend: Any = None) -> Self:
        """Learn. With `eval_set`, (X, y) or (X, y, qid), nodes that do not help `metric` there are pruned.

        A `backend` holds the rows held_out; for Dask collections it is found.
        """
        posed = self._pose(X, y, sample_weight, backend)
        with closing(posed.learners.design):
            self._solve(posed, None if eval_set is None else self._validation(posed, eval_set), None)
        return self

    def path(
        self,
        X: Any,
        y: Any,
        tradeoffs: Iterable[float] | None = None,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        backend: Any = None,
    ) -> list[Self]:
        """Fitted models for rising tradeoffs (the suggested ones if none are given), each started from the one before.

        The data are made ready once. A start that misses the optimum of a node's first problem is not used.
        """
        first = clone(self)
        posed = first._pose(X, y, sample_weight, backend)
        values = first.suggest_grid(y) if tradeoffs is None else np.asarray(list(tradeoffs), float)
        models, starts = [], None
        with closing(posed.learners.design) as design:
            posed = replace(posed, gram=design.gram(posed.share))
            validation = None if eval_set is None else first._validation(posed, eval_set)
            for value in np.sort(values):
                model = copy.copy(first).set_params(tradeoff=float(value))
                model._validate_params()
                starts = model._solve(posed, validation, starts)
                models.append(model)
        return models

    def _solve(self, posed: Posed, validation: _Validation | None, starts: list[Classifier] | None) -> list[Classifier]:
        """Solve for this tradeoff and make the plan; returns the first nodes, where another tradeoff may start."""
        task = self._task(posed)
        soft = SoftGraph.initialise(task, GateGraph.tree(self.max_depth), posed.gram, starts)
        first = [copy.deepcopy(node) for node in soft.started]
        trust: Trust = "model"
        if validation is not None:
            if posed.learners.known(posed.targets.shape[1]) is not None:
                trust = max(
                    TRUSTS,
                    key=lambda t: self._figure(posed, validation, soft, *fine_tuned(soft, posed, self._tuned_by(t))),
                )
            soft = self._prune(soft, posed, validation, trust)
        self.objective_ = soft.optimise(self.max_iter, self.tol)
        if validation is not None:
            soft = self._prune(soft, posed, validation, trust)
        scorers, reading = fine_tuned(soft, posed, self._tuned_by(trust))
        self.n_iter_ = len(self.objective_) - 1
        self.n_nodes_ = len(soft.graph)
        self.plan_ = self._graph_plan(posed, soft.graph, scorers, reading)
        return first

    def _tuned_by(self, trust: Trust) -> Trust | None:
        return trust if self.fine_tune else None

    def _task(self, posed: Posed) -> GraphTask:
        return GraphTask(
            design=posed.learners.design,
            targets=posed.targets,
            omega=posed.omega,
            share=posed.share,
            norm=posed.norm.times(float(self.tradeoff)),
            rho=float(self.rho) * posed.std,
            min_rows=self.min_samples_leaf / float(posed.weights.sum()),
            steepness=None if isinstance(self.steepness, str) else float(self.steepness),
        )

    # ---- pruning ----------------------------------------------------------------------------------------------

    def _validation(self, posed: Posed, eval_set: Any) -> _Validation:
        metric = self._metric(self.metric, posed.target)
        X, y, qid = check_eval_set(self, eval_set, qid=metric.name if metric.grouped else True)
        return _Validation(HeldOutRows(posed.learners, X), y, qid, metric)

    def _prune(self, soft: SoftGraph, posed: Posed, validation: _Validation, trust: Trust) -> SoftGraph:
        """Take away, from the leaves up, what does not better the metric on validation data (thesis 3.4.5)."""
        scorers, reading = fine_tuned(soft, posed, self._tuned_by(trust))
        rows, outputs, scores = validation.routed(soft.graph, scorers)

        def figure(of: Floats) -> float:
            return posed.target.measure(validation.metric, validation.y, of, reading, validation.qid)

        best, kept = figure(scores), np.ones(len(soft.graph), bool)
        for k in range(len(soft.graph) - 1, 0, -1):
            if not prunable(soft.graph, kept, k):
                continue
            parent = soft.graph.parents[k][0]  # type: ignore[index]
            without = scores.copy()
            without[rows[k]] = outputs[parent][np.searchsorted(rows[parent], rows[k])]
            if (now := figure(without)) >= best:
                scores, best, kept[k] = without, now, False
        return soft.keep(kept)

    def _figure(
        self, posed: Posed, validation: _Validation, soft: SoftGraph, scorers: list[Scorer], reading: Reading
    ) -> float:
        """The metric of these answers on validation data; the larger, the better."""
        scores = validation.routed(soft.graph, scorers)[2]
        return posed.target.measure(validation.metric, validation.y, scores, reading, validation.qid)


class _Validation:
    """Rows that were not trained on, with what is to be measured on them."""

    def __init__(self, held_out: HeldOutRows, y: np.ndarray, qid: np.ndarray | None, metric: Metric) -> None:
        self.held_out, self.y, self.qid, self.metric = held_out, y, qid, metric

    def routed(self, graph: GateGraph, scorers: list[Scorer]) -> tuple[list[Rows], list[Floats], Floats]:
        """The rows that reach each node, what the node says of them, and what is said of all rows at the end."""
        at = np.zeros(len(self.y), np.intp)
        reached, outputs = [], []
        scores = np.zeros((len(self.y), scorers[0].beta.shape[1]))
        for k, scorer in enumerate(scorers):
            rows = np.flatnonzero(at == k)
            both = self.held_out.scores(np.column_stack([scorer.beta, scorer.routing]))[rows]
            reached.append(rows)
            outputs.append(both[:, :-1] + scorer.bias)
            scores[rows] = outputs[-1]
            if not graph.is_leaf(k):
                ways = np.where(both[:, -1] > scorer.threshold, graph.up[k], graph.low[k])
                at[rows] = np.where(ways == EXIT, GONE, ways)
        return reached, outputs, scores


class CSTCRegressor(PlanRegressor, _CSTC):
    """A cost-sensitive tree of linear regressions.

    Parameters: `tradeoff` is λ, the price of a unit of cost in units of the mean of ½(y − f)²; `max_depth` counts
    levels of nodes (3 is seven nodes). `dictionary` is what nodes weigh: features, or trees (`dictionary`).
    `rho` is a penalty on all weights alike, in units of the deviation of y. `steepness` of the gates: "auto" is twelve
    over the standard deviation of a node's scores. `fine_tune` fits what nodes predict again, without penalties, on
    the rows that come there. A node is made for at least `min_samples_leaf` expected rows; at most `max_iter`
    sweeps over all nodes follow the initialisation. `metric` is what `eval_set` prunes by: "mse" if not given,
    "ndcg@5" and others by name.
    """

    def rank_score(self, X: Any, budget: float | None = None) -> np.ndarray:
        """The order to show: the predictions."""
        return self.predict(X, budget)


class CSTCClassifier(PlanClassifier, _CSTC):
    """A cost-sensitive tree of linear classifiers: squared loss on ±1, one output for each class.

    Probabilities by Platt's scaling (two classes) or linear discriminant analysis (several) of the scores at the exits,
    on the training data. Parameters as for the regressor; `metric` is "accuracy" if not given.
    """

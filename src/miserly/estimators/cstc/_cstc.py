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

from miserly.costs import CostTable
from miserly.estimators._base import (
    DICTIONARY,
    GraphEstimator,
    HeldOutRows,
    PlanClassifier,
    PlanRegressor,
    Posed,
    check_eval_set,
    constraints,
)
from miserly.estimators.cstc._search import SHARPENING, Search, ValidationRows, anneal
from miserly.estimators.cstc._soft_graph import Classifier, GraphTask, SoftGraph
from miserly.metrics import Metric
from miserly.solvers import GateGraph, blas_threads


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
        "reweight": ["boolean"],
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
        reweight: bool = True,
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
        self.reweight = reweight

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, eval_set: Any = None, backend: Any = None) -> Self:
        """Learn. With `eval_set`, (X, y) or (X, y, qid), nodes that do not help `metric` there are pruned.

        A `backend` holds the rows held_out; for Dask collections it is found.
        """
        posed = self._pose(X, y, sample_weight, backend)
        with closing(posed.learners.design), blas_threads(posed.n_cells):
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
        values = (
            first.suggest_grid(y, sample_weight=sample_weight)
            if tradeoffs is None
            else np.asarray(list(tradeoffs), float)
        )
        models, starts = [], None
        with closing(posed.learners.design) as design, blas_threads(posed.n_cells):
            posed = replace(posed, gram=design.gram(posed.share))
            validation = None if eval_set is None else first._validation(posed, eval_set)
            for value in np.sort(values):
                model = copy.copy(first).set_params(tradeoff=float(value))
                model._validate_params()
                starts = model._solve(posed, validation, starts)
                models.append(model)
        return models

    def _solve(
        self, posed: Posed, validation: ValidationRows | None, starts: list[Classifier] | None
    ) -> list[Classifier]:
        """Solve for this tradeoff and make the plan; returns the first nodes, where another tradeoff may start."""
        soft = SoftGraph.initialise(self._task(posed), GateGraph.tree(self.max_depth), posed.gram, starts)
        first = [copy.deepcopy(node) for node in soft.started]
        search = Search(posed, float(self.tradeoff), bool(self.fine_tune), validation)
        self.objective_ = anneal(soft, search, self._sharpening(), self.max_iter, self.tol)
        assert search.best is not None
        graph, scorers, reading = search.best.graph, search.best.scorers, search.best.reading
        self.n_iter_ = sum(len(values) - 1 for values in self.objective_)
        self.n_nodes_ = len(graph)
        self.plan_ = self._graph_plan(posed, graph, scorers, reading)
        return first

    def _sharpening(self) -> tuple[float, ...]:
        return SHARPENING if isinstance(self.steepness, str) else (1.0,)

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
            reweight=bool(self.reweight),
        )

    def _validation(self, posed: Posed, eval_set: Any) -> ValidationRows:
        metric = self._metric(self.metric, posed.target)
        X, y, qid = check_eval_set(self, eval_set, qid=metric.name if metric.grouped else True)
        return ValidationRows(HeldOutRows(posed.learners, X), y, qid, metric)


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

"""CSCC (Xu, Kusner, Weinberger, Chen, Chapelle, JMLR 2014; thesis 3.5): a cost-sensitive cascade of classifiers.

The objective of CSTC on a chain, with two changes: a stage's loss counts with the probability of *leaving* there, since
a row that leaves is answered there for good, and classes may have weights (never in the cost, which is that of the rows
as they come). Rows that a stage scores low leave; they rank below all that went on.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any, ClassVar, Self

import numpy as np

from miserly.costs import CostTable
from miserly.estimators._base import (
    DICTIONARY,
    GraphEstimator,
    HeldOutRows,
    PlanClassifier,
    Posed,
    check_eval_set,
    constraints,
)
from miserly.estimators.cstc._search import SHARPENING, Search, ValidationRows, anneal
from miserly.estimators.cstc._soft_graph import GraphTask, SoftGraph
from miserly.metrics import Metric
from miserly.solvers import GateGraph, blas_threads


class CSCCClassifier(PlanClassifier, GraphEstimator):
    """A cascade of linear classifiers that share what they buy.

    Parameters: `tradeoff` is λ, the price of a unit of cost in units of the mean loss ½(y − f)², y = ±1; `n_stages` is
    how many stages are tried. `class_weight` as in scikit-learn. `dictionary` is what stages weigh: features, or trees.
    `rho`, `steepness`, `fine_tune`, `min_samples_leaf`, `max_iter` and `tol` are CSTC's. With several classes
    (ours) a stage has an output for each and sends rows on along the direction in which its scores vary most; then
    exits have no order.
    """

    cost_axis = "tradeoff"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "costs": constraints.COSTS,
        "tradeoff": [constraints.not_negative()],
        "n_stages": [constraints.at_least(1)],
        "class_weight": [constraints.one_of("balanced"), dict, None],
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
        n_stages: int = 4,
        class_weight: Any = None,
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
        self.n_stages = n_stages
        self.class_weight = class_weight
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
        """Learn. With `eval_set`, (X, y) or (X, y, qid), the candidate that is best by `metric` there is kept.

        Candidates are the initialisation, the cascade after each round of the descent (which stops early) and their
        first stages. A `backend` holds remote rows; for Dask collections it is found.
        """
        posed = self._pose(X, y, sample_weight, backend)
        with closing(posed.learners.design), blas_threads(posed.n_cells):
            self._solve(posed, None if eval_set is None else self._validation(posed, eval_set))
        return self

    def _validation(self, posed: Posed, eval_set: Any) -> ValidationRows:
        metric = self._metric(self.metric, posed.target)
        X, y, qid = check_eval_set(self, eval_set, qid=metric.name if metric.grouped else True)
        return ValidationRows(HeldOutRows(posed.learners, X), y, qid, metric)

    def _solve(self, posed: Posed, validation: ValidationRows | None) -> None:
        """Solve and make the plan."""
        task = GraphTask(
            design=posed.learners.design,
            targets=posed.targets,
            omega=posed.omega,
            share=posed.share,
            norm=posed.norm.times(float(self.tradeoff)),
            rho=float(self.rho) * posed.std,
            at_exit=True,
            min_rows=self.min_samples_leaf / float(posed.weights.sum()),
            steepness=None if isinstance(self.steepness, str) else float(self.steepness),
            reweight=bool(self.reweight),
        )
        soft = SoftGraph.initialise(task, GateGraph.cascade(self.n_stages))
        two = len(self.classes_) == 2
        search = Search(posed, float(self.tradeoff), bool(self.fine_tune), validation, tiers=two)
        # steeper gates fit the training rows better and rank others worse: only validation rows can tell
        anneals = isinstance(self.steepness, str) and validation is not None
        sharpening = SHARPENING if anneals else (1.0,)
        self.objective_ = anneal(soft, search, sharpening, self.max_iter, self.tol)
        assert search.best is not None
        best = search.best
        self.n_iter_ = sum(len(values) - 1 for values in self.objective_)
        self.n_stages_ = len(best.graph)
        tiers = list(range(len(best.scorers))) if two else None
        self.plan_ = self._graph_plan(posed, best.graph, best.scorers, best.reading, tiers)

    def rank_score(self, X: Any, budget: float | None = None) -> np.ndarray:
        """The order to show: rows that left early stand below all that went on."""
        return self._by_blocks(X, lambda plan, block: plan.rank_score(block, budget=budget))

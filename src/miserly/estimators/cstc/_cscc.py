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
from miserly.estimators._base import DICTIONARY, GraphEstimator, PlanClassifier, Posed, constraints
from miserly.estimators.cstc._answers import fine_tuned
from miserly.estimators.cstc._soft_graph import GraphTask, SoftGraph
from miserly.solvers import GateGraph


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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, backend: Any = None) -> Self:
        """Learn. A `backend` holds the rows held_out; for Dask collections it is found."""
        posed = self._pose(X, y, sample_weight, backend)
        with closing(posed.learners.design):
            self._solve(posed)
        return self

    def _solve(self, posed: Posed) -> None:
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
        )
        soft = SoftGraph.initialise(task, GateGraph.cascade(self.n_stages))
        self.objective_ = soft.optimise(self.max_iter, self.tol)
        self.n_iter_ = len(self.objective_) - 1
        self.n_stages_ = len(soft.graph)
        scorers, reading = fine_tuned(soft, posed, "model" if self.fine_tune else None)
        tiers = list(range(len(scorers))) if len(self.classes_) == 2 else None
        self.plan_ = self._graph_plan(posed, soft.graph, scorers, reading, tiers)

    def rank_score(self, X: Any, budget: float | None = None) -> np.ndarray:
        """The order to show: rows that left early stand below all that went on."""
        return self._by_blocks(X, lambda plan, block: plan.rank_score(block, budget=budget))

"""CSCC (Xu, Kusner, Weinberger, Chen, Chapelle, JMLR 2014; thesis 3.5): a cost-sensitive cascade of classifiers.

The objective of CSTC on a chain, with two changes: a stage's loss counts with the probability of *leaving* there, since
a row that leaves is answered there for good, and classes may have weights (never in the cost, which is that of the rows
as they come). Rows that a stage scores low leave; they rank below all that went on.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any, ClassVar, Self

import numpy as np

from miserly._blas import blas_threads
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
from miserly.estimators.cstc._node_losses import NodeLoss
from miserly.estimators.cstc._search import SHARPENING, Search, ValidationRows, anneal, price_scale
from miserly.estimators.cstc._soft_graph import GraphTask, SoftGraph
from miserly.metrics import Metric
from miserly.solvers import GateGraph


class CSCCClassifier(PlanClassifier, GraphEstimator):
    """A cost-sensitive cascade of linear classifiers.

    A stage's loss counts with the probability of leaving there. Rows with low scores leave early and rank below
    those that go on (`rank_score`). With several classes a stage sends rows on along the direction in which its
    scores vary most, and exits have no order.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    tradeoff : float, default=0.001
        λ, 0 or more: the price of a unit of cost times weight, in units of the mean loss of a stage.
    n_stages : int, default=4
        Stages tried, 1 or more.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes in the loss, as in scikit-learn; never in the cost.
    dictionary : None, "trees", Trees, Plan or estimator, default=None
        The learners that are weighed: the raw features (None), trees of mixed depth grown on the same rows
        ("trees", see `tree_dictionary`), what `import_trees` gives, a plan, or a model of boosted trees, which is
        fitted first unless it is fitted already.
    rho : float, default=0.001
        ρ, 0 or more: a penalty on all weights alike, in units of the standard deviation of y.
    steepness : "auto" or float, default="auto"
        Steepness of the gates while training. "auto" is 12 over the standard deviation of a stage's scores, with
        `eval_set` then 3 and 9 times that; a number (above 0) is used as it is.
    fine_tune : bool, default=True
        Whether the weights of nodes are fitted again, without penalties, on the rows that come there with hard
        gates.
    min_samples_leaf : int, default=20
        Fewest expected rows of a node, 1 or more.
    max_iter : int, default=10
        Most rounds of descent at each steepness, 0 or more; 0 keeps the initialisation.
    tol : float, default=0.001
        The descent ends when a round lowers the objective by less than this share of it; 0 or more.
    metric : str, Metric or None, default=None
        What candidates are judged by on `eval_set`; None is "accuracy".
    reweight : bool, default=True
        Whether learners that share acquisitions are chosen by a log-reweighted norm, which is nearer to a count of
        acquisitions but not convex. False is the mixed norm of the papers.
    loss : {"squared", "logistic"}, default="squared"
        Loss of the stages: ½(y − f)² on ±1 as in the papers, or the logistic loss.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    objective_ : list of list of float
        Values of the objective at each steepness.
    n_iter_ : int
        Rounds of descent done.
    n_stages_ : int
        Stages left.
    classes_ : ndarray
        The classes, in order.

    References
    ----------
    Z. Xu, M. Kusner, K. Weinberger, M. Chen, O. Chapelle. Classifier Cascades and Trees for Minimizing Feature
    Evaluation Cost. JMLR 2014; Xu's thesis (2014), section 3.5.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = ms.CSCCClassifier(costs, tradeoff=0.001, n_stages=2).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
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
        "loss": [constraints.one_of("squared", "logistic")],
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
        loss: str = "squared",
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
        self.loss = loss

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, eval_set: Any = None, backend: Any = None) -> Self:
        """Learn the cascade.

        With `eval_set` candidates are the initialisation, the cascade after each round of the descent (which stops
        early) and their first stages.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or Dask collection of shape (n_rows, n_features)
            Training rows.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like or None, default=None
            Weights of the rows, 0 or more.
        eval_set : tuple or None, default=None
            Validation rows, (X, y) or (X, y, qid): the best candidate there is kept.
        backend : DaskBackend or None, default=None
            Holds remote rows; for Dask collections it is found.

        Returns
        -------
        self
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
            loss=NodeLoss(self.loss),  # type: ignore[arg-type]
        )
        soft = SoftGraph.initialise(task, GateGraph.cascade(self.n_stages))
        two = len(self.classes_) == 2
        price = float(self.tradeoff) * price_scale(soft, posed)
        search = Search(posed, price, bool(self.fine_tune), validation, tiers=two, loss=task.loss)
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

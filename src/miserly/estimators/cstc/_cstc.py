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

from miserly._blas import blas_threads
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
from miserly.estimators.cstc._node_losses import NodeLoss
from miserly.estimators.cstc._search import FRUGAL, SHARPENING, STEEP, Search, ValidationRows, anneal, price_scale
from miserly.estimators.cstc._soft_graph import Classifier, GraphTask, SoftGraph
from miserly.metrics import Metric
from miserly.plan import Trees
from miserly.solvers import GateGraph


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
        "swaps": ["boolean"],
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
        swaps: bool = True,
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
        self.swaps = swaps

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, eval_set: Any = None, backend: Any = None) -> Self:
        """Learn the tree.

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
        begun = [(soft, self._sharpening())]
        # one node is the convex problem: it has no gates, and its optimum is found
        polished = (
            self.swaps and self.fine_tune and self.max_depth > 1 and not isinstance(posed.learners.dictionary, Trees)
        )
        if polished and isinstance(self.steepness, str):
            steep = replace(soft.task, sharpness=STEEP)
            begun.append((SoftGraph.initialise(steep, GateGraph.tree(self.max_depth), posed.gram), (1.0,)))
            frugal = replace(steep, norm=posed.norm.times(FRUGAL * float(self.tradeoff)))
            begun.append((SoftGraph.initialise(frugal, GateGraph.tree(self.max_depth), posed.gram), ()))
        price = float(self.tradeoff) * min(price_scale(start, posed) for start, _ in begun[:2])
        search = Search(posed, price, bool(self.fine_tune), validation, swaps=bool(polished), loss=soft.task.loss)
        self.objective_ = [
            values
            for start, sharpening in begun
            for values in anneal(start, search, sharpening, self.max_iter, self.tol)
        ]
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
            loss=NodeLoss(getattr(self, "loss", "squared")),
        )

    def _validation(self, posed: Posed, eval_set: Any) -> ValidationRows:
        metric = self._metric(self.metric, posed.target)
        X, y, qid = check_eval_set(self, eval_set, qid=metric.name if metric.grouped else True)
        return ValidationRows(HeldOutRows(posed.learners, X), y, qid, metric)


class CSTCRegressor(PlanRegressor, _CSTC):
    """A cost-sensitive tree of linear regressions.

    With `eval_set` the best candidate of the fit on these rows is kept: the start, the tree after each round of
    descent, their prunings and one node.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    tradeoff : float, default=0.001
        λ, 0 or more: the price of a unit of cost times weight, in units of the mean of ½(y − f)².
    max_depth : int, default=3
        Levels of nodes, 1 to 10; 3 is seven nodes.
    dictionary : None, "trees", Trees, Plan or estimator, default=None
        The learners that are weighed: the raw features (None), trees of mixed depth grown on the same rows
        ("trees", see `tree_dictionary`), what `import_trees` gives, a plan, or a model of boosted trees, which is
        fitted first unless it is fitted already.
    rho : float, default=0.001
        ρ, 0 or more: a penalty on all weights alike, in units of the standard deviation of y.
    steepness : "auto" or float, default="auto"
        Steepness of the gates while training. "auto" is 12 over the standard deviation of a node's scores, then 3
        and 9 times that; a number (above 0) is used as it is.
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
        What candidates are judged by on `eval_set`; None is "mse".
    reweight : bool, default=True
        Whether learners that share acquisitions are chosen by a log-reweighted norm, which is nearer to a count of
        acquisitions but not convex. False is the mixed norm of the papers.
    swaps : bool, default=True
        Whether trees over features are also improved with hard gates by greedy moves (gates with weights of their
        own, swaps of columns at each leaf), from two steeper starts too. Not in the papers; False is faster.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    objective_ : list of list of float
        Values of the objective at each steepness.
    n_iter_ : int
        Rounds of descent done.
    n_nodes_ : int
        Nodes of the tree.

    References
    ----------
    Z. Xu, M. Kusner, M. Chen, K. Weinberger. Cost-Sensitive Tree of Classifiers. ICML 2013; Xu's thesis (2014),
    equations (3.13) to (3.19) and algorithm 5, with the errata of our notes.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = X[:, 0] + X[:, 1] * X[:, 2]
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = ms.CSTCRegressor(costs, tradeoff=0.01, max_depth=2).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """

    def rank_score(self, X: Any, budget: float | None = None) -> np.ndarray:
        """The order to show: the predictions."""
        return self.predict(X, budget)


class CSTCClassifier(PlanClassifier, _CSTC):
    """A cost-sensitive tree of linear classifiers, with squared or logistic loss on ±1 and one output for each class.

    Probabilities by Platt's scaling (two classes) or linear discriminant analysis (several) of the scores at the
    exits. With `eval_set` the best candidate of the fit on these rows is kept.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    tradeoff : float, default=0.001
        λ, 0 or more: the price of a unit of cost times weight, in units of the mean loss of a node.
    max_depth : int, default=3
        Levels of nodes, 1 to 10; 3 is seven nodes.
    dictionary : None, "trees", Trees, Plan or estimator, default=None
        The learners that are weighed: the raw features (None), trees of mixed depth grown on the same rows
        ("trees", see `tree_dictionary`), what `import_trees` gives, a plan, or a model of boosted trees, which is
        fitted first unless it is fitted already.
    rho : float, default=0.001
        ρ, 0 or more: a penalty on all weights alike, in units of the standard deviation of y.
    steepness : "auto" or float, default="auto"
        Steepness of the gates while training. "auto" is 12 over the standard deviation of a node's scores, then 3
        and 9 times that; a number (above 0) is used as it is.
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
    swaps : bool, default=True
        Whether trees over features are also improved with hard gates by greedy moves (gates with weights of their
        own, swaps of columns at each leaf), from two steeper starts too. Not in the papers; False is faster.
    loss : {"squared", "logistic"}, default="squared"
        Loss of the nodes: ½(y − f)² as in the papers, or the logistic loss.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    objective_ : list of list of float
        Values of the objective at each steepness.
    n_iter_ : int
        Rounds of descent done.
    n_nodes_ : int
        Nodes of the tree.
    classes_ : ndarray
        The classes, in order.

    References
    ----------
    Z. Xu, M. Kusner, M. Chen, K. Weinberger. Cost-Sensitive Tree of Classifiers. ICML 2013; Xu's thesis (2014),
    equations (3.13) to (3.19) and algorithm 5, with the errata of our notes.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = ms.CSTCClassifier(costs, tradeoff=0.001, max_depth=2).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_CSTC._parameter_constraints,
        "loss": [constraints.one_of("squared", "logistic")],
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
        swaps: bool = True,
        loss: str = "squared",
    ) -> None:
        super().__init__(
            costs,
            tradeoff,
            max_depth,
            dictionary,
            rho,
            steepness,
            fine_tune,
            min_samples_leaf,
            max_iter,
            tol,
            metric,
            reweight,
            swaps,
        )
        self.loss = loss

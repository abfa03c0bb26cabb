"""`AutoMiser*`: the whole frontier in one call."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from miserly._typing import Floats
from miserly.auto._candidates import Scale, TriedPlan
from miserly.auto._clock import Progress, TimeLimit
from miserly.auto._large import LargeData
from miserly.auto._menus import make_menu
from miserly.auto._planned import PlannedClassifier, PlannedRanker, PlannedRegressor
from miserly.auto._portfolio import build, compile_kernels
from miserly.auto._task import Kind, Rows, Task, choose_metric, cost_of_mistakes
from miserly.costs import CostTable, RowPrices
from miserly.estimators import PlanClassifier, PlanEstimator, PlanRegressor, constraints
from miserly.frontiers import Frontier, Measured, Point, PredictedRows
from miserly.metrics import Metric, get_metric
from miserly.plan import Menu, Plan, as_error_costs, mistakes_of
from miserly.solvers import LoggedPurchases

logger = logging.getLogger(__name__)


class _AutoMiser(PlanEstimator):
    """What classification, regression and ranking share."""

    cost_axis = "budget"
    weighs_logged_rows = True
    _kind: ClassVar[Kind]
    _planned: ClassVar[Any]
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "costs": constraints.COSTS,
        "time_limit": [constraints.positive(), None],
        "metric": [str, Metric],
        "random_state": ["random_state"],
        "max_rounds": [constraints.at_least(1), None],
    }
    frontier_: Frontier
    metric_: Metric

    def __init__(
        self,
        costs: CostTable | None = None,
        time_limit: float | None = 60,
        metric: str | Metric = "auto",
        random_state: Any = 0,
        max_rounds: int | None = None,
    ) -> None:
        self.costs = costs
        self.time_limit = time_limit
        self.metric = metric
        self.random_state = random_state
        self.max_rounds = max_rounds

    def _fit_rows(
        self,
        X: Any,
        y: Any,
        qid: Any,
        eval_set: Any,
        progress: Progress | None,
        prices: Any = None,
        error_costs: Any = None,
    ) -> None:
        """From data to `frontier_`, `plan_` and `metric_`."""
        seed = int(check_random_state(self.random_state).randint(2**31))
        large = LargeData.of(X, y, qid)
        if large is not None:
            if self._given_costs().missing:
                raise ValueError("Logged purchases are learned from an array or a frame: give X as one.")
            if prices is not None or error_costs is not None or self._given_costs().row_prices:
                raise ValueError("Prices and error costs by row are learned from an array or a frame: give X as one.")
            sample = large.sample(seed, self._kind != "classes")
            X, y, qid = sample.X, sample.y, sample.qid
        X, y, _ = self._fit_data(X, y, y_numeric=self._kind != "classes", prices=prices)
        if large is not None:
            self._name_features(X.shape[1], sample.names)
            self.categories_ = sample.categories
        X = np.asarray(X.toarray() if issparse(X) else X, np.float64)
        classes, target = self._targets(y if large is None or self._kind != "classes" else sample.labels)
        if large is not None and classes is not None:
            target = np.searchsorted(classes, y).astype(np.float64)
        if self._kind == "lists":
            qid = np.zeros(len(X), np.intp) if qid is None else column_or_1d(qid)
            if len(qid) != len(X):
                raise ValueError(f"qid must give one query id per row: {len(X)} rows, got {len(qid)}.")
        held = None if eval_set is None else self._held(eval_set, classes)
        matrix, mistakes = self._error_costs(classes, target, error_costs)
        if matrix is not None and isinstance(self.metric, str) and self.metric == "auto":
            self.metric_ = cost_of_mistakes(matrix)
        elif isinstance(self.metric, str) and self.metric == "auto":
            self.metric_, why = choose_metric(self._kind, target)
            logger.info("The metric is %s: %s.", self.metric_.name, why)
        else:
            self.metric_ = get_metric(self.metric)
        task = self._task(Rows(X, target, qid, None, mistakes), held, classes, seed, matrix)
        if self.time_limit is not None:
            compile_kernels(self._kind)
        clock = TimeLimit(self.time_limit, progress)
        kept, scale = build(task, clock, large)
        self.frontier_ = self._frontier(kept, scale, complete=not clock.interrupted)
        given = matrix if error_costs is None else error_costs
        points = self.frontier_.points  # the best has the least total of tests and mistakes, or the highest quality
        best = points[-1] if matrix is None else self.frontier_.choose_point(error_costs=given)
        self.plan_ = best.model.plan_

    def _task(
        self, train: Rows, held: Rows | None, classes: np.ndarray | None, seed: int, matrix: Floats | None
    ) -> Task:
        """The rows with what each pays, where rows differ, as a task."""
        costs, own = self._bound_costs(), self.__dict__.pop("_training_prices", None)
        if own is not None and own.differ:
            train = replace(train, prices=own.matrix)
            if held is not None:  # what they are expected to pay
                held = replace(held, prices=RowPrices(costs).matrix(held.X))
        if held is not None and train.mistakes is not None and matrix is not None:
            held = replace(held, mistakes=matrix[held.y.astype(np.intp)])
        if costs.not_ordered:
            if self._kind == "lists" or train.prices is not None:
                raise ValueError(
                    "missing='not_ordered' is for classes and numbers, with prices that are the same for all rows. "
                    "Remove it from the cost table, or the other."
                )
            purchases = LoggedPurchases.learn(costs, train.X, train.y, seed)
            train = replace(train, logged=purchases.own)
            held = None if held is None else replace(held, logged=purchases.rows(held.X, held.y))
        return Task(self._kind, train, held, classes, costs, self.metric_, seed, matrix, self.max_rounds)

    def _error_costs(self, classes: np.ndarray | None, y: Floats, each_row: Any) -> tuple[Floats | None, Floats | None]:
        """What predictions cost, checked, by class and, if it was given, for each row; None without classes or
        costs."""
        given = getattr(self, "error_costs", None)
        if classes is None or (given is None and each_row is None):
            return None, None
        if each_row is None:
            return as_error_costs(given, len(classes)), None
        if given is not None:
            raise ValueError("error_costs were given twice: to the constructor by class, and to fit by row. Give one.")
        return mistakes_of(each_row, y.astype(np.intp), len(classes))

    def _targets(self, y: np.ndarray) -> tuple[np.ndarray | None, Floats]:
        return None, y.astype(np.float64)

    def _held(self, eval_set: Any, classes: np.ndarray | None) -> Rows:
        """The user's validation rows, checked."""
        parts = ("X", "y", "qid") if self._kind == "lists" else ("X", "y")
        if not isinstance(eval_set, (tuple, list)) or len(eval_set) != len(parts):
            raise ValueError(f"eval_set is validation data: ({', '.join(parts)}).")
        X, y = self._dense(eval_set[0]), column_or_1d(eval_set[1])
        if len(y) != len(X) or not len(y):
            raise ValueError(f"eval_set has {len(X)} rows in X and {len(y)} in y. Give one label per row.")
        if classes is None:
            target = y.astype(np.float64)
        else:
            unknown = np.setdiff1d(y, classes)
            if len(unknown):
                raise ValueError(f"eval_set has classes that the training rows have not: {unknown[:5]}.")
            target = np.searchsorted(classes, y).astype(np.float64)
        return Rows(np.asarray(X, np.float64), target, column_or_1d(eval_set[2]) if len(parts) == 3 else None)

    def _frontier(self, kept: list[TriedPlan], scale: Scale, complete: bool) -> Frontier:
        points = []
        for candidate in kept:
            model = self._model(candidate.plan(False), scale.task)
            figure = candidate.quality if scale.task.metric.greater_is_better else -candidate.quality
            params = {"member": candidate.member, "rate": candidate.rate}
            measured = Measured.of(figure, candidate.costs, candidate.weights)
            points.append(Point(params, model, measured, None, math.nan))
        plans = [point.model.plan_ for point in points]
        offer = _Offer(scale, kept, plans)
        unit, name = scale.task.costs.unit, type(self).__name__
        rows = _OutOfFold(scale, kept) if scale.task.kind == "classes" else None
        return Frontier(tuple(points), scale.task.metric, unit, name, complete, offer, rows)

    def _model(self, plan: Plan, task: Task) -> Any:
        """A fitted model of one plan."""
        classes = plan.classes if plan.classes is None else task.classes
        notes = {**plan.notes, **self._category_notes()}
        costs = replace(plan.costs, missing=task.costs.missing)  # stages are learned by a table without it
        return self._planned.of(
            self, replace(plan, costs=costs, classes=classes, notes=notes, error_costs=task.error_costs)
        )

    @property
    def menu_(self) -> Menu:
        """All models of the frontier in one thing that answers under any budget."""
        check_is_fitted(self)
        return self.frontier_.menu()

    def _ask(
        self,
        what: str,
        X: Any,
        budget: float | None,
        mean_budget: float | None,
        mix: bool,
        qid: Any = None,
        prices: Any = None,
    ) -> Any:
        """Ask the best plan or, with a budget, the menu."""
        check_is_fitted(self)
        more = {} if prices is None else {"prices": prices}
        if budget is None and mean_budget is None:
            best = self._planned.of(self, self.plan_)
            return getattr(best, what)(X, qid, **more) if self._kind == "lists" else getattr(best, what)(X, **more)
        matrix = self._dense(X)
        if self._kind == "lists":  # documents of a later tier stand higher
            chosen = self.menu_.choose(budget, mean_budget)
            ask = chosen.plan.rank_score if what == "predict" else chosen.plan.predict_cost
            return ask(matrix, qid, chosen.cap, **more)
        return getattr(self.menu_, what)(matrix, budget=budget, mean_budget=mean_budget, mix=mix, qid=qid, **more)


class _Offer:
    """Makes the menu of a frontier when it is asked for, once."""

    def __init__(self, scale: Scale, kept: list[TriedPlan], plans: list[Plan]) -> None:
        self._parts = scale, kept, plans

    def __call__(self) -> Menu:
        return self.menu

    @cached_property
    def menu(self) -> Menu:
        """The menu."""
        return make_menu(*self._parts)


class _OutOfFold:
    """What each model says of rows that it was not fitted on."""

    def __init__(self, scale: Scale, kept: list[TriedPlan]) -> None:
        self._scale, self._kept = scale, kept

    def __call__(self, number: int) -> PredictedRows:
        scale, candidate = self._scale, self._kept[number]
        probabilities = scale.outputs[candidate.ends, scale.every]
        teacher = scale.outputs[scale.graph.number[scale.graph.teacher]]
        truth = scale.rows.y.astype(np.intp)
        if candidate.weights is not None:
            return PredictedRows(probabilities, truth, candidate.costs, None, scale.counted, candidate.weights)
        return PredictedRows(probabilities, truth, candidate.costs, teacher, scale.counted)


class AutoMiserClassifier(PlanClassifier, _AutoMiser):
    """The best frontier of classifiers that a time limit allows, in one call.

    Parameters
    ----------
    costs : CostTable
        What features need, and what that costs. `CostTable.uniform()` if all cost the same.
    time_limit : float or None, default=60
        Seconds after which no new model is begun; compiling does not count. None: all of the portfolio is tried, and
        the same seed gives the same bits.
    metric : str or Metric, default="auto"
        What "better" means on the frontier. "auto": accuracy; the area under the ROC curve
        where the smaller of two classes has less than 20 % of the rows; log loss where one of many has more than 80 %.
    random_state : int, RandomState instance or None, default=0
        Divides the rows into folds.
    error_costs : array-like of shape (n_classes, n_classes) or None, default=None
        What predictions cost, in the unit of the prices, 0 or more: rows are true classes, columns predictions, in the
        order of the labels. With it every model predicts the class with the least expected cost, the frontier is
        measured by the mean cost of mistakes (unless a metric is given), and the best model is that with the least
        total of tests and mistakes.
    max_rounds : int or None, default=None
        The most orders that a row may make, such as visits. What is ordered together counts once, so which tests belong
        together is learned.

    Attributes
    ----------
    frontier_ : Frontier
        The models worth keeping, cheapest first. The free constant is one of them.
    menu_ : Menu
        All of them in one thing that keeps any budget; it can be saved and served. Made when first asked for.
    plan_ : Plan
        The plan of the best model.
    metric_ : Metric
        The metric that was used.
    classes_ : array
        The class labels.

    Notes
    -----
    Sets of acquisitions are found by forward selection with retraining and by gain per price. Each gets a boosted
    model, and on few rows a linear one beside it. Between them fitted value iteration learns for whom going on is
    worth its price.
    Without `eval_set` everything is chosen on out-of-fold predictions, and models are fitted again on all rows.
    Of Dask collections and of a `BinnedDataset` a sample of about 12,000 rows is brought here, and decides; the models
    of the frontier are then learned from all rows, where these are.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly import AutoMiserClassifier, CostTable
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 2))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> model = AutoMiserClassifier(CostTable.per_feature([1.0, 10.0])).fit(X, y)
    >>> bool(model.predict_cost(X, budget=5).max() <= 5)
    True
    >>> bool(model.frontier_.choose(budget=0).predict_cost(X).max() == 0)
    True
    """

    _kind, _planned = "classes", PlannedClassifier
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_AutoMiser._parameter_constraints,
        "error_costs": ["array-like", None],
    }

    def __init__(
        self,
        costs: CostTable | None = None,
        time_limit: float | None = 60,
        metric: str | Metric = "auto",
        random_state: Any = 0,
        error_costs: Any = None,
        max_rounds: int | None = None,
    ) -> None:
        super().__init__(costs, time_limit, metric, random_state, max_rounds)
        self.error_costs = error_costs

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        eval_set: Any = None,
        progress: Progress | None = None,
        prices: Any = None,
        error_costs: Any = None,
    ) -> AutoMiserClassifier:
        """Learn the frontier. Ctrl-C keeps what is done.

        Parameters
        ----------
        X : array or frame, rows × features
            Categories of frames and missing values are fine; so are Dask collections and a `BinnedDataset`.
        y : array
            Labels, of at least two classes.
        eval_set : tuple or None, default=None
            Validation rows, (X, y): then models are chosen on them (fewer than 1000: together with out-of-fold
            predictions), instead of by cross-validation alone.
        progress : callable or None, default=None
            Called with (what is done, share of the work, seconds left).
        prices : frame, mapping, array of shape (n_rows, n_acquisitions) or None, default=None
            What each acquisition really cost each row, by name or in the order of `costs.acquisitions`: stops are
            learned by it, and plans keep estimates of it.
        error_costs : array-like of shape (n_rows, n_classes) or None, default=None
            What each prediction costs for each row, if it is not the same for all rows of a class. Predictions follow
            the mean of each class; models are compared by what their mistakes on these rows cost. The rows of
            `eval_set` count the mean of their class.
        """
        self._fit_rows(X, y, None, eval_set, progress, prices, error_costs)
        return self

    def _targets(self, y: np.ndarray) -> tuple[np.ndarray | None, Floats]:
        self.classes_ = self._find_classes(y)
        return self.classes_, np.searchsorted(self.classes_, y).astype(np.float64)

    def predict(
        self, X: Any, budget: float | None = None, mean_budget: float | None = None, mix: bool = False
    ) -> np.ndarray:
        """Labels, by the best model, or by what is best under a budget.

        Parameters
        ----------
        X : array or frame, rows × features
            The rows; each reads only what it pays for.
        budget : float or None, default=None
            The most that any row may pay.
        mean_budget : float or None, default=None
            What rows may pay in the mean, as measured on validation rows.
        mix : bool, default=False
            Draw rows between two neighbours of the frontier, by a hash of the row, so that the mean is used up.
        """
        return self._ask("predict", X, budget, mean_budget, mix)

    def predict_proba(
        self, X: Any, budget: float | None = None, mean_budget: float | None = None, mix: bool = False
    ) -> np.ndarray:
        """Probability of each class, in the order of `classes_`; arguments as in `predict`."""
        return self._ask("predict_proba", X, budget, mean_budget, mix)

    def predict_cost(  # type: ignore[override]
        self,
        X: Any,
        budget: float | None = None,
        mean_budget: float | None = None,
        mix: bool = False,
        *,
        prices: Any = None,
    ) -> np.ndarray:
        """What each row pays, or with measured `prices` really paid; arguments as in `predict` and `fit`."""
        return self._ask("predict_cost", X, budget, mean_budget, mix, prices=prices)


class AutoMiserRegressor(PlanRegressor, _AutoMiser):
    """The best frontier of regressors that a time limit allows, in one call.

    Parameters
    ----------
    costs : CostTable
        What features need, and what that costs. `CostTable.uniform()` if all cost the same.
    time_limit : float or None, default=60
        Seconds after which no new model is begun; compiling does not count. None: all of the portfolio is tried, and
        the same seed gives the same bits.
    metric : str or Metric, default="auto"
        What "better" means on the frontier. "auto": mean squared error.
    random_state : int, RandomState instance or None, default=0
        Divides the rows into folds.
    max_rounds : int or None, default=None
        The most orders that a row may make, such as visits. What is ordered together counts once, so which tests belong
        together is learned.

    Attributes
    ----------
    frontier_ : Frontier
        The models worth keeping, cheapest first. The free constant is one of them.
    menu_ : Menu
        All of them in one thing that keeps any budget; it can be saved and served. Made when first asked for.
    plan_ : Plan
        The plan of the best model.
    metric_ : Metric
        The metric that was used.

    Notes
    -----
    Sets of acquisitions are found by forward selection with retraining and by gain per price. Each gets a boosted
    model, and on few rows a linear one beside it. Between them fitted value iteration learns for whom going on is
    worth its price.
    Without `eval_set` everything is chosen on out-of-fold predictions, and models are fitted again on all rows.
    Of Dask collections and of a `BinnedDataset` a sample of about 12,000 rows is brought here, and decides; the models
    of the frontier are then learned from all rows, where these are.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly import AutoMiserRegressor, CostTable
    >>> X = np.random.default_rng(0).normal(size=(120, 2))
    >>> model = AutoMiserRegressor(CostTable.per_feature([1.0, 10.0])).fit(X, X[:, 0] + X[:, 1])
    >>> bool(model.predict_cost(X, budget=5).max() <= 5)
    True
    """

    _kind, _planned = "numbers", PlannedRegressor

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        eval_set: Any = None,
        progress: Progress | None = None,
        prices: Any = None,
    ) -> AutoMiserRegressor:
        """Learn the frontier. Ctrl-C keeps what is done.

        Parameters
        ----------
        X : array or frame, rows × features
            Categories of frames and missing values are fine; so are Dask collections and a `BinnedDataset`.
        y : array
            Numbers.
        eval_set : tuple or None, default=None
            Validation rows, (X, y): then models are chosen on them (fewer than 1000: together with out-of-fold
            predictions), instead of by cross-validation alone.
        progress : callable or None, default=None
            Called with (what is done, share of the work, seconds left).
        prices : frame, mapping, array of shape (n_rows, n_acquisitions) or None, default=None
            What each acquisition really cost each row, by name or in the order of `costs.acquisitions`: stops are
            learned by it, and plans keep estimates of it.
        """
        self._fit_rows(X, y, None, eval_set, progress, prices)
        return self

    def predict(
        self, X: Any, budget: float | None = None, mean_budget: float | None = None, mix: bool = False
    ) -> np.ndarray:
        """Numbers, by the best model, or by what is best under a budget.

        Parameters
        ----------
        X : array or frame, rows × features
            The rows; each reads only what it pays for.
        budget : float or None, default=None
            The most that any row may pay.
        mean_budget : float or None, default=None
            What rows may pay in the mean, as measured on validation rows.
        mix : bool, default=False
            Draw rows between two neighbours of the frontier, by a hash of the row, so that the mean is used up.
        """
        return self._ask("predict", X, budget, mean_budget, mix)

    def predict_cost(  # type: ignore[override]
        self,
        X: Any,
        budget: float | None = None,
        mean_budget: float | None = None,
        mix: bool = False,
        *,
        prices: Any = None,
    ) -> np.ndarray:
        """What each row pays, or with measured `prices` really paid; arguments as in `predict` and `fit`."""
        return self._ask("predict_cost", X, budget, mean_budget, mix, prices=prices)


class AutoMiserRanker(PlanRegressor, _AutoMiser):
    """The best frontier of rankers that a time limit allows, in one call.

    Parameters
    ----------
    costs : CostTable
        What features need, and what that costs. `CostTable.uniform()` if all cost the same.
    time_limit : float or None, default=60
        Seconds after which no new model is begun; compiling does not count. None: all of the portfolio is tried, and
        the same seed gives the same bits.
    metric : str or Metric, default="auto"
        What "better" means on the frontier. "auto": NDCG@5.
    random_state : int, RandomState instance or None, default=0
        Divides the rows into folds.
    max_rounds : int or None, default=None
        The most orders that a row may make, such as visits. What is ordered together counts once, so which tests belong
        together is learned.

    Attributes
    ----------
    frontier_ : Frontier
        The models worth keeping, cheapest first. The free constant is one of them.
    menu_ : Menu
        All of them in one thing that keeps any budget; it can be saved and served. Made when first asked for.
    plan_ : Plan
        The plan of the best model.
    metric_ : Metric
        The metric that was used.

    Notes
    -----
    Sets of acquisitions are found by forward selection with retraining and by gain per price. Each gets a boosted
    model. Cascades let only the documents that a cheap model ranks high buy what the next one needs.
    Without `eval_set` everything is chosen on out-of-fold predictions, and models are fitted again on all rows.
    Of Dask collections and of a `BinnedDataset` a sample of about 12,000 rows is brought here, and decides; the models
    of the frontier are then learned from all rows, where these are.

    Examples
    --------
    >>> import numpy as np
    >>> from miserly import AutoMiserRanker, CostTable
    >>> X = np.random.default_rng(0).normal(size=(120, 2))
    >>> grades, qid = np.clip(np.rint(X[:, 0] + 1), 0, 2), np.repeat(np.arange(12), 10)
    >>> model = AutoMiserRanker(CostTable.per_feature([1.0, 10.0])).fit(X, grades, qid=qid)
    >>> bool(model.predict_cost(X, qid=qid, budget=5).max() <= 5)
    True
    """

    _kind, _planned = "lists", PlannedRanker

    def fit(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        *,
        eval_set: Any = None,
        progress: Progress | None = None,
        prices: Any = None,
    ) -> AutoMiserRanker:
        """Learn the frontier. Ctrl-C keeps what is done.

        Parameters
        ----------
        X : array or frame, rows × features
            Categories of frames and missing values are fine; so are Dask collections and a `BinnedDataset`.
        y : array
            Grades of documents.
        qid : array or None, default=None
            The query of each document; those of a query lie together. None: all are one list.
        eval_set : tuple or None, default=None
            Validation rows, (X, y, qid): then models are chosen on them (fewer than 1000: together with out-of-fold
            predictions), instead of by cross-validation alone.
        progress : callable or None, default=None
            Called with (what is done, share of the work, seconds left).
        prices : frame, mapping, array of shape (n_rows, n_acquisitions) or None, default=None
            What each acquisition really cost each row, by name or in the order of `costs.acquisitions`: stops are
            learned by it, and plans keep estimates of it.
        """
        self._fit_rows(X, y, qid, eval_set, progress, prices)
        return self

    def _targets(self, y: np.ndarray) -> tuple[np.ndarray | None, Floats]:
        return None, y - min(0.0, float(y.min()))  # ranking metrics want grades of 0 or more

    def predict(  # type: ignore[override]
        self, X: Any, qid: Any = None, budget: float | None = None, mean_budget: float | None = None
    ) -> np.ndarray:
        """Scores to rank by, of the best model, or of what is best under a budget.

        Parameters
        ----------
        X : array or frame, rows × features
            The documents; each reads only what it pays for.
        qid : array or None, default=None
            The query of each document; those of a query lie together.
        budget : float or None, default=None
            The most that any document may pay.
        mean_budget : float or None, default=None
            What documents may pay in the mean, as measured on validation rows.
        """
        return self._ask("predict", X, budget, mean_budget, False, qid)

    def predict_cost(  # type: ignore[override]
        self,
        X: Any,
        qid: Any = None,
        budget: float | None = None,
        mean_budget: float | None = None,
        *,
        prices: Any = None,
    ) -> np.ndarray:
        """What each document pays, or with measured `prices` really paid; arguments as in `predict` and `fit`."""
        return self._ask("predict_cost", X, budget, mean_budget, False, qid, prices)

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
from miserly.auto._menus import make_menu
from miserly.auto._planned import PlannedClassifier, PlannedRanker, PlannedRegressor
from miserly.auto._portfolio import build
from miserly.auto._task import Kind, Rows, Task, choose_metric
from miserly.costs import CostTable
from miserly.estimators import PlanClassifier, PlanEstimator, PlanRegressor, constraints
from miserly.frontiers import Frontier, Measured, Point
from miserly.metrics import Metric, get_metric
from miserly.plan import Menu, Plan

logger = logging.getLogger(__name__)


class _AutoMiser(PlanEstimator):
    """What classification, regression and ranking share."""

    cost_axis = "budget"
    _kind: ClassVar[Kind]
    _planned: ClassVar[Any]
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "costs": constraints.COSTS,
        "time_limit": [constraints.positive(), None],
        "metric": [str, Metric],
        "random_state": ["random_state"],
    }
    frontier_: Frontier
    metric_: Metric

    def __init__(
        self,
        costs: CostTable | None = None,
        time_limit: float | None = 60,
        metric: str | Metric = "auto",
        random_state: Any = 0,
    ) -> None:
        self.costs = costs
        self.time_limit = time_limit
        self.metric = metric
        self.random_state = random_state

    def _fit_rows(self, X: Any, y: Any, qid: Any, eval_set: Any, progress: Progress | None) -> None:
        """From data to `frontier_`, `plan_` and `metric_`."""
        clock = TimeLimit(self.time_limit, progress)
        X, y, _ = self._fit_data(X, y, y_numeric=self._kind != "classes")
        X = np.asarray(X.toarray() if issparse(X) else X, np.float64)
        classes, target = self._targets(y)
        held = None if eval_set is None else self._held(eval_set, classes)
        if isinstance(self.metric, str) and self.metric == "auto":
            self.metric_, why = choose_metric(self._kind, target)
            logger.info("The metric is %s: %s.", self.metric_.name, why)
        else:
            self.metric_ = get_metric(self.metric)
        seed = int(check_random_state(self.random_state).randint(2**31))
        task = Task(self._kind, Rows(X, target, qid), held, classes, self._bound_costs(), self.metric_, seed)
        kept, scale = build(task, clock)
        self.frontier_ = self._frontier(kept, scale, complete=not clock.interrupted)
        self.plan_ = self.frontier_.points[-1].model.plan_

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
            points.append(Point(params, model, Measured.of(figure, candidate.costs), None, math.nan))
        plans = [point.model.plan_ for point in points]
        offer = _Offer(scale, kept, plans)
        unit, name = scale.task.costs.unit, type(self).__name__
        return Frontier(tuple(points), scale.task.metric, unit, name, complete, offer)

    def _model(self, plan: Plan, task: Task) -> Any:
        """A fitted model of one plan."""
        classes = plan.classes if plan.classes is None else task.classes
        notes = {**plan.notes, **self._category_notes()}
        return self._planned.of(self, replace(plan, classes=classes, notes=notes))

    @property
    def menu_(self) -> Menu:
        """All models of the frontier in one thing that answers under any budget."""
        check_is_fitted(self)
        return self.frontier_.menu()

    def _ask(
        self, what: str, X: Any, budget: float | None, mean_budget: float | None, mix: bool, qid: Any = None
    ) -> Any:
        """Ask the best plan or, with a budget, the menu."""
        check_is_fitted(self)
        if budget is None and mean_budget is None:
            best = self.frontier_.points[-1].model
            return getattr(best, what)(X, qid) if self._kind == "lists" else getattr(best, what)(X)
        matrix = self._dense(X)
        return getattr(self.menu_, what)(matrix, budget=budget, mean_budget=mean_budget, mix=mix, qid=qid)


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


class AutoMiserClassifier(PlanClassifier, _AutoMiser):
    """The best frontier of classifiers that a time limit allows, in one call.

    It tries a portfolio (boosted trees that pay for features, chains of nested feature sets with learned stops,
    cascades, single trees, the free constant), chooses by cross-validation or on `eval_set`, and refits on all rows.

    Parameters
    ----------
    costs : CostTable
        The price of each acquisition, and what each feature needs. There is no default price.
    time_limit : float above 0 or None, default=60
        Seconds after which nothing new is tried. None: no limit, and the same seed gives the same bits.
    metric : str or Metric, default="auto"
        What is compared at each cost. "auto" takes accuracy, or AUC or log-loss where classes are skewed.
    random_state : int, RandomState or None, default=0
        Seed of the folds and of the draws of rows.

    Attributes
    ----------
    frontier_ : Frontier
        Everything tried that is worth keeping, cheapest first; its first model is the free constant.
    menu_ : Menu
        The same in one thing that can be saved and served, and predicts under any budget.
    plan_ : Plan
        The plan of the best model of the frontier.
    metric_ : Metric
        The metric that was used.
    classes_ : array of shape (n_classes,)
        The labels.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> model = ms.AutoMiserClassifier(ms.CostTable.per_feature([1.0, 5.0, 20.0]), time_limit=5).fit(X, y)
    >>> bool(model.predict_cost(X, budget=6).max() <= 6)
    True
    """

    _kind, _planned = "classes", PlannedClassifier

    def fit(self, X: Any, y: Any, *, eval_set: Any = None, progress: Progress | None = None) -> AutoMiserClassifier:
        """Learn the frontier."""
        self._fit_rows(X, y, None, eval_set, progress)
        return self

    def _targets(self, y: np.ndarray) -> tuple[np.ndarray | None, Floats]:
        self.classes_ = self._find_classes(y)
        return self.classes_, np.searchsorted(self.classes_, y).astype(np.float64)

    def predict(
        self, X: Any, budget: float | None = None, mean_budget: float | None = None, mix: bool = False
    ) -> np.ndarray:
        """Labels, by the best model, or under a budget."""
        return self._ask("predict", X, budget, mean_budget, mix)

    def predict_proba(
        self, X: Any, budget: float | None = None, mean_budget: float | None = None, mix: bool = False
    ) -> np.ndarray:
        """Probability of each class, in the order of `classes_`."""
        return self._ask("predict_proba", X, budget, mean_budget, mix)

    def predict_cost(  # type: ignore[override]
        self, X: Any, budget: float | None = None, mean_budget: float | None = None, mix: bool = False
    ) -> np.ndarray:
        """What each row pays."""
        return self._ask("predict_cost", X, budget, mean_budget, mix)


class AutoMiserRegressor(PlanRegressor, _AutoMiser):
    """The best frontier of regressors that a time limit allows, in one call.

    It tries a portfolio (boosted trees that pay for features, chains of nested feature sets with learned stops,
    cascades, single trees, the free constant), chooses by cross-validation or on `eval_set`, and refits on all rows.

    Parameters
    ----------
    costs : CostTable
        The price of each acquisition, and what each feature needs. There is no default price.
    time_limit : float above 0 or None, default=60
        Seconds after which nothing new is tried. None: no limit, and the same seed gives the same bits.
    metric : str or Metric, default="auto"
        What is compared at each cost. "auto" takes the mean squared error and logs which.
    random_state : int, RandomState or None, default=0
        Seed of the folds and of the draws of rows.

    Attributes
    ----------
    frontier_ : Frontier
        Everything tried that is worth keeping, cheapest first; its first model is the free constant.
    menu_ : Menu
        The same in one thing that can be saved and served, and predicts under any budget.
    plan_ : Plan
        The plan of the best model of the frontier.
    metric_ : Metric
        The metric that was used.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = X[:, 0] + X[:, 1]
    >>> model = ms.AutoMiserRegressor(ms.CostTable.per_feature([1.0, 5.0, 20.0]), time_limit=5).fit(X, y)
    >>> bool(model.predict_cost(X, budget=6).max() <= 6)
    True
    """

    _kind, _planned = "numbers", PlannedRegressor

    def fit(self, X: Any, y: Any, *, eval_set: Any = None, progress: Progress | None = None) -> AutoMiserRegressor:
        """Learn the frontier."""
        self._fit_rows(X, y, None, eval_set, progress)
        return self

    def predict(
        self, X: Any, budget: float | None = None, mean_budget: float | None = None, mix: bool = False
    ) -> np.ndarray:
        """Numbers, by the best model, or under a budget."""
        return self._ask("predict", X, budget, mean_budget, mix)

    def predict_cost(  # type: ignore[override]
        self, X: Any, budget: float | None = None, mean_budget: float | None = None, mix: bool = False
    ) -> np.ndarray:
        """What each row pays."""
        return self._ask("predict_cost", X, budget, mean_budget, mix)


class AutoMiserRanker(PlanRegressor, _AutoMiser):
    """The best frontier of rankers that a time limit allows, in one call.

    It tries a portfolio (boosted trees that pay for features, chains of nested feature sets with learned stops,
    cascades, single trees, the free constant), chooses by cross-validation or on `eval_set`, and refits on all rows.

    Parameters
    ----------
    costs : CostTable
        The price of each acquisition, and what each feature needs. There is no default price.
    time_limit : float above 0 or None, default=60
        Seconds after which nothing new is tried. None: no limit, and the same seed gives the same bits.
    metric : str or Metric, default="auto"
        What is compared at each cost. "auto" takes NDCG and logs which.
    random_state : int, RandomState or None, default=0
        Seed of the folds and of the draws of rows.

    Attributes
    ----------
    frontier_ : Frontier
        Everything tried that is worth keeping, cheapest first; its first model is the free constant.
    menu_ : Menu
        The same in one thing that can be saved and served, and predicts under any budget.
    plan_ : Plan
        The plan of the best model of the frontier.
    metric_ : Metric
        The metric that was used.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = (X[:, 0] + X[:, 1] > 1).astype(float)
    >>> qid = np.repeat(np.arange(20), 10)
    >>> model = ms.AutoMiserRanker(ms.CostTable.per_feature([1.0, 5.0, 20.0]), time_limit=5).fit(X, y, qid)
    >>> bool(model.predict_cost(X, qid, budget=6).max() <= 6)
    True
    """

    _kind, _planned = "lists", PlannedRanker

    def fit(
        self, X: Any, y: Any, qid: Any = None, *, eval_set: Any = None, progress: Progress | None = None
    ) -> AutoMiserRanker:
        """Learn the frontier; rows of a query lie together."""
        qid = np.zeros(len(y), np.intp) if qid is None else column_or_1d(qid)
        self._fit_rows(X, y, qid, eval_set, progress)
        return self

    def predict(  # type: ignore[override]
        self, X: Any, qid: Any = None, budget: float | None = None, mean_budget: float | None = None
    ) -> np.ndarray:
        """Scores to rank by, by the best model, or under a budget."""
        return self._ask("predict", X, budget, mean_budget, False, qid)

    def predict_cost(  # type: ignore[override]
        self, X: Any, qid: Any = None, budget: float | None = None, mean_budget: float | None = None
    ) -> np.ndarray:
        """What each document pays."""
        return self._ask("predict_cost", X, budget, mean_budget, False, qid)

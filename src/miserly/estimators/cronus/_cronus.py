"""Cronus (Chen, Xu, Weinberger, Chapelle, Kedem, AISTATS 2012): a cascade of re-weighted, re-ordered weak learners.

Algorithm 2 finds the stages in closed form, each as if it were the last, under a tradeoff that falls to λ (δ) and with
thresholds that keep a share of the rows; algorithm 1 then improves the stages in cycles, while gates get steeper. The
objective is in `_soft_cascade`. Other than in the paper, a rejected row is answered with the score of the stage
that rejected it, and ranks below all that went on (the paper says −1, which its loss does not know of); and steepness
is relative to the standard deviation of a stage's scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from miserly._blas import blas_threads
from miserly._typing import Floats
from miserly.costs import CostTable
from miserly.estimators._base import (
    DICTIONARY,
    GraphEstimator,
    HeldOutRows,
    PlanRegressor,
    Posed,
    Reading,
    Scorer,
    TwoClasses,
    check_eval_set,
    constraints,
)
from miserly.estimators.cronus._soft_cascade import CascadeTask, SoftCascade
from miserly.metrics import Metric
from miserly.solvers import Design, GateGraph

SHARPENING = (5.0, 15.0, 50.0)  # at 50, the paper's, gradients vanish: softer gates come first


@dataclass(frozen=True)
class StageSettings:
    """What the fast initialisation is asked about: ρ of all stages but the last, of the last, δ, and ω⁺/ω⁻."""

    rho: float
    rho_last: float
    inflation: float
    positive_weight: float = 1.0


TRIED: dict[str, tuple[float, ...]] = {
    "rho": (1e-4, 1e-3, 1e-2),
    "rho_last": (1e-4, 1e-3, 1e-2),
    "inflation": (1.0, 1.3, 1.7),
    "positive_weight": (1.0, 2.0, 3.5),
}


class _Cronus(GraphEstimator):
    """The parameters and the fit that regression and classification share."""

    cost_axis = "tradeoff"
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "costs": constraints.COSTS,
        "tradeoff": [constraints.not_negative()],
        "n_stages": [constraints.at_least(1)],
        "dictionary": DICTIONARY,
        "rho": [constraints.not_negative()],
        "rho_last": [constraints.not_negative(), None],
        "inflation": [constraints.limits(1.0)],
        "keep": [constraints.share()],
        "steepness": [constraints.positive(), "array-like"],
        "reweight": ["boolean"],
        "optimise": ["boolean"],
        "tune": ["boolean"],
        "validation_fraction": [constraints.share()],
        "metric": [str, Metric, None],
        "max_iter": [constraints.at_least(0)],
        "tol": [constraints.not_negative()],
        "random_state": ["random_state"],
    }

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, eval_set: Any = None, backend: Any = None) -> Self:
        """Learn the cascade.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or Dask collection of shape (n_rows, n_features)
            Training rows.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like or None, default=None
            Weights of the rows, 0 or more.
        eval_set : tuple or None, default=None
            Validation rows, (X, y) or (X, y, qid): they choose what `tune` tries, and the steepness.
        backend : DaskBackend or None, default=None
            Holds remote rows; for Dask collections it is found.

        Returns
        -------
        self
        """
        posed = self._scaled(self._pose(X, y, sample_weight, backend))
        with closing(posed.learners.design), blas_threads(posed.n_cells):
            self._solve(posed, eval_set)
        return self

    def _solve(self, posed: Posed, eval_set: Any) -> None:
        """Both algorithms, and the plan of what is best on validation rows."""
        rho_last = self.rho if self.rho_last is None else self.rho_last
        self.choice_ = StageSettings(float(self.rho), float(rho_last), float(self.inflation))
        judge = self._judge(posed, eval_set)
        if self.tune:
            if judge is None:
                raise ValueError("Too few rows to hold some out for tune=True. Give eval_set=(X, y), or tune=False.")
            self.choice_ = self._tuned(judge)
        schedule = tuple(float(g) for g in np.atleast_1d(self.steepness)) if self.optimise and self.max_iter else ()
        tried: list[list[float]] = []
        if schedule and judge is not None and eval_set is None:  # rows held out say how far to go, then all are used
            _, tried, best = self._descended(judge.posed, schedule, judge)
            schedule = schedule[:best]
        hard, self.objective_, best = self._descended(posed, schedule, judge if eval_set is not None else None)
        self.steepness_ = schedule[best - 1] if best else None
        self.n_iter_ = sum(len(values) - 1 for values in (*tried, *self.objective_))
        self.n_stages_ = len(hard.scorers)
        tiers = list(range(len(hard.scorers)))
        self.plan_ = self._graph_plan(posed, hard.graph, hard.scorers, hard.reading, tiers)

    def _descended(
        self, posed: Posed, schedule: tuple[float, ...], judge: _Judge | None
    ) -> tuple[_Hard, list[list[float]], int]:
        """The initialisation, or the cascade after a steepness, whichever is best; without a judge, the last.

        Also the values of the objective on the way, and how many steepnesses led to the best.
        """
        cascade = self._initialised(posed, self.choice_)
        best, number = self._hard(posed, cascade), 0
        mark = judge.figure(best) if judge is not None else None
        objective: list[list[float]] = []
        for k, steepness in enumerate(schedule, start=1):
            cascade.sharpen(steepness)
            objective.append(cascade.optimise(self.max_iter, self.tol))
            hard = self._hard(posed, cascade)
            if judge is None or mark is None:
                best, number = hard, k
            elif (now := judge.figure(hard)) > mark:
                best, mark, number = hard, now, k
        return best, objective, number

    def rank_score(self, X: Any, budget: float | None = None) -> np.ndarray:
        """The order to show: rows that were rejected stand below all that went on."""
        return self._by_blocks(X, lambda plan, block: plan.rank_score(block, budget=budget))

    # ---- the two algorithms -----------------------------------------------------------------------------------

    def _initialised(self, posed: Posed, choice: StageSettings) -> SoftCascade:
        """Algorithm 2. Targets have unit deviation here, so λ, which is per unit of loss, is divided by it."""
        positive = posed.targets[:, 0] > 0
        emphasis = posed.emphasis * np.where(positive, choice.positive_weight, 1.0)
        omega = posed.weights * emphasis
        rhos = (choice.rho,) * (self.n_stages - 1) + (choice.rho_last,)
        norm = posed.norm.times(float(self.tradeoff) / self._unit)
        task = CascadeTask(
            posed.learners.design,
            posed.targets[:, 0],
            omega / omega.sum(),
            posed.share,
            norm,
            rhos,
            bool(self.reweight),
        )
        gram = posed.gram if choice.positive_weight == 1.0 and (posed.emphasis == 1.0).all() else None
        return SoftCascade.initialise(task, choice.inflation, float(self.keep), gram)

    def _scaled(self, posed: Posed) -> Posed:
        """Numbers brought to mean 0 and deviation 1, so that ρ means the same for all."""
        self._mean, self._unit = posed.target.unit(posed.targets, posed.share)
        return replace(posed, targets=(posed.targets - self._mean) / self._unit)

    # ---- what validation rows choose ---------------------------------------------------------------------------

    def _judge(self, posed: Posed, eval_set: Any) -> _Judge | None:
        """Validation rows: those given, or some of the training rows, which then lose their weight."""
        metric = self._metric(self.metric or (None if posed.target.numeric else "auc"), posed.target)
        if eval_set is not None:
            X, y, qid = check_eval_set(self, eval_set, qid=metric.name if metric.grouped else True)
            return _Judge(posed, HeldOutRows(posed.learners, X), y, qid, metric)
        if metric.grouped and self.tune:
            raise ValueError(f"{metric.name} compares the rows of a query: give eval_set=(X, y, qid) to tune by it.")
        if metric.grouped:
            metric = self._metric(None, posed.target)
        n = len(posed.weights)
        drawn = check_random_state(self.random_state).permutation(n)[: max(1, int(self.validation_fraction * n))]
        rows = np.sort(drawn)
        weights = posed.weights.copy()
        weights[rows] = 0.0
        left = posed.targets[weights > 0]
        if not len(left) or (not posed.target.numeric and len(np.unique(left)) < 2):
            return None
        y = posed.target.decode(posed.targets * self._unit + self._mean)[rows]
        if not posed.target.numeric and len(np.unique(y)) < 2:
            return None
        return _Judge(replace(posed, weights=weights), _Part(posed.learners.design, rows), y, None, metric)

    def _tuned(self, judge: _Judge) -> StageSettings:
        """One setting after the other, each at its best on validation data with algorithm 2 alone (paper 3.4)."""
        posed = replace(judge.posed, gram=judge.posed.learners.design.gram(judge.posed.share))
        best = self.choice_
        figures: dict[StageSettings, tuple[float, float]] = {}

        def figure(choice: StageSettings) -> tuple[float, float]:
            if choice not in figures:
                figures[choice] = judge.figure(self._hard(posed, self._initialised(posed, choice)))
            return figures[choice]

        for name, values in TRIED.items():
            if name == "positive_weight" and posed.target.numeric:
                continue
            best = max([best, *(replace(best, **{name: v}) for v in values)], key=figure)
        return best

    # ---- the plan ---------------------------------------------------------------------------------------------

    def _hard(self, posed: Posed, cascade: SoftCascade) -> _Hard:
        """The stages that are left when those that reject no training row are taken out, and how they are read.

        A last stage without weights would give all survivors one score: then the last live stage answers them.
        """
        design, present = posed.learners.design, posed.weights > 0
        inside, scores, scorers = present, np.zeros(len(present)), []
        alive = [k for k, stage in enumerate(cascade.stages) if not stage.is_dummy] or [cascade.last]
        for k in alive:
            stage = cascade.stages[k]
            routing = design.scores(stage.beta)
            goes_on = inside & (routing > stage.threshold)
            if k < alive[-1] and goes_on.sum() == inside.sum():
                continue
            scores[inside] = (routing + stage.bias)[inside]
            scorers.append(
                Scorer(stage.beta[:, None].copy(), np.array([stage.bias]), stage.beta.copy(), stage.threshold)
            )
            inside = goes_on
        graph = GateGraph.cascade(len(scorers))
        if posed.target.numeric:
            mean = np.array([self._mean])
            return _Hard(graph, scorers, Reading("identity", np.array([[self._unit]]), mean, mean))
        seen = replace(posed, targets=posed.targets[present], weights=posed.weights[present])
        seen = replace(seen, emphasis=posed.emphasis[present])
        return _Hard(graph, scorers, self._reading(seen, scores[present, None]))


@dataclass(frozen=True)
class _Hard:
    """A cascade as the plan will have it."""

    graph: GateGraph
    scorers: list[Scorer]
    reading: Reading


@dataclass(frozen=True)
class _Judge:
    """Validation rows, what is measured on them, and the data without them."""

    posed: Posed
    rows: HeldOutRows | _Part
    y: np.ndarray
    qid: np.ndarray | None
    metric: Metric

    def figure(self, hard: _Hard) -> tuple[float, float]:
        """The metric (the larger, the better), then minus the mean cost; orders are by stage first, then by score."""
        inside, scores, stage = np.ones(len(self.y), bool), np.zeros(len(self.y)), np.zeros(len(self.y), np.intp)
        for k, scorer in enumerate(hard.scorers):
            here = self.rows.scores(scorer.beta).reshape(len(self.y))
            scores[inside], stage[inside] = here[inside] + scorer.bias[0], k
            inside &= here > scorer.threshold
        reading = hard.reading
        if self.metric.input == "score":
            scores = stage + 0.49 * scores / (1.0 + np.abs(scores))
            reading = replace(reading, matrix=np.eye(1), offset=np.zeros(1))
        learners = self.posed.learners
        used = [np.flatnonzero(scorer.beta[:, 0]) for scorer in hard.scorers]
        costs = np.array([learners.price(np.unique(np.concatenate(used[: k + 1]))) for k in range(len(used))])
        figure = self.posed.target.measure(self.metric, self.y, scores[:, None], reading, self.qid)
        return figure, -float(costs[stage].mean())


class _Part:
    """Scores of some of the design's own rows."""

    def __init__(self, design: Design, rows: NDArray[np.intp]) -> None:
        self.design, self.rows = design, rows

    def scores(self, beta: Floats) -> Floats:
        """What weights give there."""
        return self.design.scores(beta)[self.rows]


class CronusRegressor(PlanRegressor, _Cronus):
    """A cascade for numbers, such as grades of documents: rows with low scores leave early.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    tradeoff : float, default=0.001
        λ, 0 or more: the price of a unit of cost, in units of the mean of ½(y − f)².
    n_stages : int, default=10
        Stages tried, 1 or more; those that reject nobody are taken out.
    dictionary : None, "trees", Trees, Plan or estimator, default=None
        The learners that are weighed: the raw features (None), trees of mixed depth grown on the same rows
        ("trees", see `tree_dictionary`), what `import_trees` gives, a plan, or a model of boosted trees, which is
        fitted first unless it is fitted already.
    rho : float, default=0.001
        ρ, 0 or more: a penalty on the weights of every stage, in units of the standard deviation of y, times the
        share of rows that comes to the stage.
    rho_last : float or None, default=None
        The same for the last stage; None is `rho`.
    inflation : float, default=1.3
        δ, 1 or more: stage k of K pays λ δ^(K−k) in the initialisation.
    keep : float in (0, 1], default=0.85
        Share of rows that each stage lets pass at first (1 − ε in the paper).
    steepness : float or sequence of float, default=(5, 15, 50)
        γ of the gates, above 0, in the paper's unit (targets ±1, or of unit variance), one after the other.
    reweight : bool, default=True
        Whether learners that share acquisitions are chosen by a log-reweighted norm, which is nearer to a count of
        acquisitions but not convex. False is the mixed norm of the papers.
    optimise : bool, default=True
        Whether algorithm 1 follows the initialisation. Validation rows keep the better of the initialisation and
        each steepness.
    tune : bool, default=False
        Whether ρ, ρ of the last stage, δ are chosen with the initialisation on validation rows (paper 3.4).
    validation_fraction : float in (0, 1], default=0.25
        Share of rows that choose if there is no `eval_set`; the chosen schedule is then run on all rows.
    metric : str, Metric or None, default=None
        What validation rows measure; None is "mse".
    max_iter : int, default=5
        Most cycles over the stages at each steepness, 0 or more.
    tol : float, default=0.001
        The descent ends when a round lowers the objective by less than this share of it; 0 or more.
    random_state : int, RandomState or None, default=0
        Seed of the draw of validation rows.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    n_stages_ : int
        Stages left.
    steepness_ : float or None
        The steepness that was kept; None is the initialisation.
    objective_ : list of list of float
        Values of the objective at each steepness.
    n_iter_ : int
        Cycles done.

    References
    ----------
    M. Chen, Z. Xu, K. Weinberger, O. Chapelle, D. Kedem. Classifier Cascade for Minimizing Feature Evaluation Cost.
    AISTATS 2012, equation (8), algorithms 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = X[:, 0] + X[:, 1] * X[:, 2]
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = ms.CronusRegressor(costs, tradeoff=0.01, n_stages=3).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """

    def __init__(
        self,
        costs: CostTable | None = None,
        tradeoff: float = 1e-3,
        n_stages: int = 10,
        dictionary: Any = None,
        rho: float = 1e-3,
        rho_last: float | None = None,
        inflation: float = 1.3,
        keep: float = 0.85,
        steepness: float | Sequence[float] = SHARPENING,
        reweight: bool = True,
        optimise: bool = True,
        tune: bool = False,
        validation_fraction: float = 0.25,
        metric: str | Metric | None = None,
        max_iter: int = 5,
        tol: float = 1e-3,
        random_state: Any = 0,
    ) -> None:
        self.costs = costs
        self.tradeoff = tradeoff
        self.n_stages = n_stages
        self.dictionary = dictionary
        self.rho = rho
        self.rho_last = rho_last
        self.inflation = inflation
        self.keep = keep
        self.steepness = steepness
        self.reweight = reweight
        self.optimise = optimise
        self.tune = tune
        self.validation_fraction = validation_fraction
        self.metric = metric
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state


class CronusClassifier(TwoClasses, _Cronus):
    """A cascade for two classes, the second of which is rare: rows that look like the first leave early.

    Squared loss on ±1; probabilities by Platt's scaling of the scores at the exits. The paper's ω⁺ = 3.5 is
    `class_weight={positive: 3.5}`.

    Parameters
    ----------
    costs : CostTable or None, default=None
        Prices of the features and of evaluating learners. None is refused: `CostTable.uniform()` says that all cost
        the same.
    tradeoff : float, default=0.001
        λ, 0 or more: the price of a unit of cost, in units of the mean of ½(y − f)².
    n_stages : int, default=10
        Stages tried, 1 or more; those that reject nobody are taken out.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes in the loss, as in scikit-learn; never in the cost.
    dictionary : None, "trees", Trees, Plan or estimator, default=None
        The learners that are weighed: the raw features (None), trees of mixed depth grown on the same rows
        ("trees", see `tree_dictionary`), what `import_trees` gives, a plan, or a model of boosted trees, which is
        fitted first unless it is fitted already.
    rho : float, default=0.001
        ρ, 0 or more: a penalty on the weights of every stage, in units of the standard deviation of y, times the
        share of rows that comes to the stage.
    rho_last : float or None, default=None
        The same for the last stage; None is `rho`.
    inflation : float, default=1.3
        δ, 1 or more: stage k of K pays λ δ^(K−k) in the initialisation.
    keep : float in (0, 1], default=0.85
        Share of rows that each stage lets pass at first (1 − ε in the paper).
    steepness : float or sequence of float, default=(5, 15, 50)
        γ of the gates, above 0, in the paper's unit (targets ±1, or of unit variance), one after the other.
    reweight : bool, default=True
        Whether learners that share acquisitions are chosen by a log-reweighted norm, which is nearer to a count of
        acquisitions but not convex. False is the mixed norm of the papers.
    optimise : bool, default=True
        Whether algorithm 1 follows the initialisation. Validation rows keep the better of the initialisation and
        each steepness.
    tune : bool, default=False
        Whether ρ, ρ of the last stage, δ and the weight of positive rows are chosen with the initialisation on
        validation rows (paper 3.4).
    validation_fraction : float in (0, 1], default=0.25
        Share of rows that choose if there is no `eval_set`; the chosen schedule is then run on all rows.
    metric : str, Metric or None, default=None
        What validation rows measure; None is "auc".
    max_iter : int, default=5
        Most cycles over the stages at each steepness, 0 or more.
    tol : float, default=0.001
        The descent ends when a round lowers the objective by less than this share of it; 0 or more.
    random_state : int, RandomState or None, default=0
        Seed of the draw of validation rows.

    Attributes
    ----------
    plan_ : Plan
        The fitted model: it predicts, prices, explains and saves itself.
    n_stages_ : int
        Stages left.
    steepness_ : float or None
        The steepness that was kept; None is the initialisation.
    objective_ : list of list of float
        Values of the objective at each steepness.
    n_iter_ : int
        Cycles done.
    classes_ : ndarray
        The classes, in order.

    References
    ----------
    M. Chen, Z. Xu, K. Weinberger, O. Chapelle, D. Kedem. Classifier Cascade for Minimizing Feature Evaluation Cost.
    AISTATS 2012, equation (8), algorithms 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    >>> costs = ms.CostTable.per_feature([1.0, 2.0, 5.0, 1.0])
    >>> model = ms.CronusClassifier(costs, tradeoff=0.001, n_stages=3).fit(X, y)
    >>> bool(model.predict_cost(X).max() <= 9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **_Cronus._parameter_constraints,
        "class_weight": [constraints.one_of("balanced"), dict, None],
    }

    def __init__(
        self,
        costs: CostTable | None = None,
        tradeoff: float = 1e-3,
        n_stages: int = 10,
        class_weight: Any = None,
        dictionary: Any = None,
        rho: float = 1e-3,
        rho_last: float | None = None,
        inflation: float = 1.3,
        keep: float = 0.85,
        steepness: float | Sequence[float] = SHARPENING,
        reweight: bool = True,
        optimise: bool = True,
        tune: bool = False,
        validation_fraction: float = 0.25,
        metric: str | Metric | None = None,
        max_iter: int = 5,
        tol: float = 1e-3,
        random_state: Any = 0,
    ) -> None:
        self.costs = costs
        self.tradeoff = tradeoff
        self.n_stages = n_stages
        self.class_weight = class_weight
        self.dictionary = dictionary
        self.rho = rho
        self.rho_last = rho_last
        self.inflation = inflation
        self.keep = keep
        self.steepness = steepness
        self.reweight = reweight
        self.optimise = optimise
        self.tune = tune
        self.validation_fraction = validation_fraction
        self.metric = metric
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

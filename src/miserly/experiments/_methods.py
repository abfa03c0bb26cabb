"""The methods that figures compare, each from a problem to the points of its curve; fits and points are kept."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from miserly import baselines, estimators
from miserly.experiments._measure import Figures, best, figures, first_rounds, staged_figures
from miserly.experiments._parts import DataPart, LearningProblem
from miserly.experiments._study import Bench
from miserly.metrics import Metric
from miserly.plan import Plan, cascade

Points = list[Figures]
RATE, DEPTH, EVERY = 0.1, 3, 10
EXIT_AT = 5
CRONUS_STAGES, CSCC_STAGES = 10, 10
DRAWS = 10
STARTS = (0.1, 0.4, 0.7, 1.0)
FINE = 1.2
WIDER, WIDENINGS = 10.0, 3  # how a sweep goes on beyond an end of its grid where cost still changes, and how often
WEIGHTS = (1e-5, 1e1)


def fit_arguments(kind: Any, part: DataPart) -> dict[str, np.ndarray]:
    """What a fit of this class wants to know of the rows beyond X and y."""
    given = {"qid": part.qid, "sample_weight": part.copies}
    return {name: of for name, of in given.items() if of is not None and name in signature(kind.fit).parameters}


def fitted(model: Any, problem: LearningProblem, **more: Any) -> Any:
    """The model fitted to the training part, rows as often as they count."""
    train = problem.split.train
    return model.fit(train.X, train.y, **fit_arguments(type(model), train), **more)


def pick(stem: str, problem: LearningProblem, package: Any) -> Any:
    """The class of that stem: numbers for grades, classes otherwise."""
    return getattr(package, stem + ("Regressor" if problem.is_graded else "Classifier"))


def metric_on(problem: LearningProblem, part: DataPart) -> Metric:
    """The metric as an estimator takes it, which does not know how often rows count."""
    metric = problem.metric
    if part.copies is None:
        return metric
    return replace(metric, function=partial(metric.function, multiplicity=part.copies))


# ---- boosting -----------------------------------------------------------------------------------------------------


def blind(bench: Bench, problem: LearningProblem, n_trees: int, loss: str = "auto", **more: Any) -> Plan:
    """Stage-wise regression (GBRT), blind to cost: squared loss, also of two classes, unless a loss is named."""

    kinds = baselines.StagewiseRegressor, baselines.StagewiseClassifier
    return _boosted(bench, "blind boosting", problem, kinds, n_trees=n_trees, loss=loss, **more)


def _boosted(
    bench: Bench, name: str, problem: LearningProblem, kinds: tuple[Any, Any], n_trees: int, loss: str, **more: Any
) -> Plan:
    """Boosting of the papers' shape, as a regressor of grades or a classifier."""

    def make() -> Plan:
        regressor, classifier = kinds
        model = (regressor if problem.is_ranking and loss == "auto" else classifier)(
            problem.costs,
            n_estimators=n_trees,
            learning_rate=RATE,
            min_samples_leaf=problem.min_samples_leaf,
            loss=loss,
            **{"max_depth": DEPTH, **more},
        )
        return fitted(bench.prepared(model), problem).plan_

    return bench.plan(name, problem, make, n_trees=n_trees, loss=loss, **more)


def stagewise(bench: Bench, problem: LearningProblem, n_trees: int, loss: str = "auto") -> Points:
    """Blind boosting as trees are added, ten at a time."""

    def make() -> Points:
        return staged_figures(blind(bench, problem, n_trees, loss), problem, EVERY)

    return bench.record("blind boosting", problem, make, n_trees=n_trees, loss=loss)


def best_blind(bench: Bench, problem: LearningProblem, n_trees: int) -> Plan:
    """Blind boosting up to the iteration that is best on validation, which exits go into."""
    return at_best(blind(bench, problem, n_trees), stagewise(bench, problem, n_trees))


def at_best(plan: Plan, trace: Points) -> Plan:
    """A sum of rounds up to the iteration that is best on validation."""
    return first_rounds(plan, (trace.index(best(trace)) + 1) * EVERY)


def subsets(bench: Bench, problem: LearningProblem, n_trees: int, prices: Sequence[float]) -> Points:
    """Stage-wise regression on the features that cost at most a price; the iteration that is best on validation."""

    def one(price: float) -> Figures:
        kind = baselines.FeatureSubsetRegressor if problem.is_ranking else baselines.FeatureSubsetClassifier
        model = kind(problem.costs, price, n_estimators=n_trees, learning_rate=RATE, max_depth=DEPTH)
        plan = fitted(model.set_params(min_samples_leaf=problem.min_samples_leaf), problem).plan_
        return best(staged_figures(plan, problem, EVERY)) if plan.nodes else figures(plan, problem)

    return [bench.record("subset", problem, partial(one, p), n_trees=n_trees, max_price=p) for p in prices]


def tradeoffs(problem: LearningProblem, papers: Sequence[float], n_points: int) -> list[float]:
    """The miser's λ: the paper's own, in our unit (per row), on the paper's data; a suggested grid otherwise."""
    if not problem.stand_in and problem.is_ranking and papers:
        copies = problem.split.train.copies
        n = len(problem.split.train.y) if copies is None else int(copies.sum())
        return [lam / n for lam in papers]
    model = estimators.GreedyMiserRegressor(problem.costs) if problem.is_ranking else None
    model = model or estimators.GreedyMiserClassifier(problem.costs)
    return [float(t) for t in model.suggest_grid(problem.split.train.y, n_points)]


def lambdas(bench: Bench, problem: LearningProblem, papers: Sequence[float] = ()) -> list[float]:
    """The same without the ends of a suggested grid, where everything or nothing is bought."""
    n = bench.n_lambdas
    if not problem.stand_in and problem.is_ranking and papers:
        return tradeoffs(problem, papers, n)
    return tradeoffs(problem, (), 2 * n)[(n + 1) // 2 : (n + 1) // 2 + n]


def miser_plan(bench: Bench, problem: LearningProblem, n_trees: int, tradeoff: float, loss: str = "auto") -> Plan:
    """Greedy Miser for one λ."""

    kinds = estimators.GreedyMiserRegressor, estimators.GreedyMiserClassifier
    return _boosted(bench, "miser", problem, kinds, n_trees=n_trees, loss=loss, tradeoff=tradeoff)


def miser_trace(bench: Bench, problem: LearningProblem, n_trees: int, tradeoff: float, loss: str = "auto") -> Points:
    """The miser for one λ as trees are added."""

    def make() -> Points:
        plan = miser_plan(bench, problem, n_trees, tradeoff, loss)
        return staged_figures(plan, problem, EVERY) if plan.nodes else [figures(plan, problem)]

    return bench.record("miser trace", problem, make, n_trees=n_trees, tradeoff=tradeoff, loss=loss)


def miser(
    bench: Bench,
    problem: LearningProblem,
    n_trees: int,
    papers: Sequence[float] = (),
    loss: str = "auto",
    n_points: int = 0,
) -> Points:
    """The miser over λ, each at the iteration that is best on validation."""
    grid = tradeoffs(problem, papers, n_points) if n_points else lambdas(bench, problem, papers)
    return [best(miser_trace(bench, problem, n_trees, t, loss)) for t in grid]


def early_exits(
    bench: Bench, problem: LearningProblem, plan: Plan, thresholds: Sequence[float] | None = None, **key: Any
) -> Points:
    """Exits every ten trees: by proximity to the query's fifth best, or, for classes, by confidence."""
    kind = baselines.EarlyExitRanker if problem.is_ranking else baselines.EarlyExitClassifier
    y = problem.split.train.y
    values = kind(plan).suggest_grid(y, bench.n_points) if thresholds is None else thresholds

    def one(s: float) -> Figures:
        model = kind(plan, threshold=s)
        if problem.is_ranking:
            model.set_params(k=EXIT_AT)
        return figures(fitted(model, problem).plan_, problem)

    return [
        bench.record("early exit", problem, partial(one, float(s)), n_nodes=len(plan.nodes), s=float(s), **key)
        for s in values
    ]


def cascade_with_exits(bench: Bench, problem: LearningProblem, plans: Sequence[Plan], **key: Any) -> Points:
    """Whole models, cheapest first, one after another from each of them on; rows leave between them."""
    return [
        point
        for first in range(len(plans) - 1)
        for point in early_exits(bench, problem, cascade(plans[first:]), first=first, **key)
    ]


# ---- cascades and trees over a dictionary -------------------------------------------------------------------------

Way = Literal["single", "initialised", "optimised"]


def cronus_settings(bench: Bench, problem: LearningProblem, trees: Plan, **key: Any) -> dict[str, Any]:
    """ρ of the first and the last stages, δ and ω⁺ as the paper chooses them: with the fast initialisation, on
    validation; here at one λ in the middle of the grid."""

    def make() -> dict[str, float]:
        kind = pick("Cronus", problem, estimators)
        train, part = problem.split.train, problem.split.validation
        grid = kind(problem.costs).suggest_grid(train.y)
        model = kind(problem.costs, float(grid[len(grid) // 3]), CRONUS_STAGES, dictionary=trees, optimise=False)
        model.set_params(tune=True, metric=metric_on(problem, part))
        choice = fitted(bench.prepared(model), problem, eval_set=(part.X, part.y, part.qid)).choice_
        return {
            "rho": choice.rho,
            "rho_last": choice.rho_last,
            "inflation": choice.inflation,
            "positive": choice.positive_weight,
        }

    found = bench.record("cronus settings", problem, make, **key)
    settings = {name: found[name] for name in ("rho", "rho_last", "inflation")}
    return settings if problem.is_graded else {**settings, "class_weight": {1.0: found["positive"]}}


def cronus_plans(bench: Bench, problem: LearningProblem, trees: Plan, way: Way = "optimised", **key: Any) -> list[Plan]:
    """Cronus over λ: at most ten stages, 85 % kept at each stage of the initialisation."""
    kind = pick("Cronus", problem, estimators)
    settings = cronus_settings(bench, problem, trees, **key)

    def one(tradeoff: float) -> Plan:
        n_stages = 1 if way == "single" else CRONUS_STAGES
        model = kind(problem.costs, tradeoff, n_stages, dictionary=trees, **settings)
        return fitted(bench.prepared(model).set_params(optimise=way == "optimised"), problem).plan_

    def kept(tradeoff: float) -> Plan:
        return bench.plan("cronus", problem, partial(one, tradeoff), way=way, tradeoff=tradeoff, **key)

    return _swept_graph(bench, problem, kind, kept)


def graph_plans(bench: Bench, problem: LearningProblem, stem: str, trees: Plan | None, **params: Any) -> list[Plan]:
    """CSTC or CSCC over λ; `params` are the estimator's and go into the key, but for `key`, which names the trees."""
    key = params.pop("key", {})
    kind = estimators.CSCCClassifier if stem == "CSCC" else pick(stem, problem, estimators)

    def one(tradeoff: float) -> Plan:
        more: dict[str, Any] = {}
        model = kind(problem.costs, tradeoff, dictionary=trees, **params)
        if params.get("max_depth", 0) > 1 and "eval_set" in signature(model.fit).parameters:
            part = problem.split.validation
            model.set_params(metric=metric_on(problem, part))
            more["eval_set"] = (part.X, part.y, part.qid) if problem.is_ranking else (part.X, part.y)
        return fitted(bench.prepared(model), problem, **more).plan_

    def kept(tradeoff: float) -> Plan:
        return bench.plan(stem, problem, partial(one, tradeoff), tradeoff=tradeoff, **params, **key)

    return _swept_graph(bench, problem, kind, kept)


def swept(bench: Bench, problem: LearningProblem, make: Callable[[float], Plan], low: float, high: float) -> list[Plan]:
    """Plans at four tradeoffs, then between the two neighbours whose costs on validation differ most (in their
    logarithm), again and again: the window in which a cascade changes may be narrow. Those that buy nothing take no
    time and do not count; neighbours that are very near have nothing between them. Before that the grid grows at its
    ends: upwards until nothing is bought, downwards until that buys no more."""
    nothing = min(p for p in problem.costs.price_list if p > 0) / 2.0
    found: dict[float, tuple[Plan, float]] = {}

    def at(tradeoff: float) -> None:
        plan = make(tradeoff)
        cost = bench.record("mean cost", problem, partial(_mean_cost, plan, problem), plan=_digest(plan))
        found[tradeoff] = plan, math.log(max(nothing, cost))

    for share in STARTS:
        at(float(low ** (1.0 - share) * high**share))
    for _ in range(WIDENINGS):
        if found[max(found)][1] <= math.log(nothing):
            break
        at(WIDER * max(found))
    for _ in range(WIDENINGS):
        lowest, second = sorted(found)[:2]
        if found[lowest][1] <= found[second][1] + math.log(FINE):
            break
        at(lowest / WIDER)
    while sum(bool(plan.nodes) for plan, _ in found.values()) < bench.n_swept:
        gap, a, b = max(
            (abs(found[a][1] - found[b][1]) if b > FINE * a else 0.0, a, b) for a, b in pairwise(sorted(found))
        )
        if not gap:
            break
        at(math.sqrt(a * b))
    return [found[t][0] for t in sorted(found)]


def _mean_cost(plan: Plan, problem: LearningProblem) -> float:
    return float(plan.predict_cost(problem.split.validation.X).mean())


def _swept_graph(bench: Bench, problem: LearningProblem, kind: Any, make: Callable[[float], Plan]) -> list[Plan]:
    grid = kind(problem.costs).suggest_grid(problem.split.train.y)
    return swept(bench, problem, make, float(grid[0]), float(grid[-1]))


def measured(bench: Bench, problem: LearningProblem, what: str, plans: Sequence[Plan]) -> Points:
    """The points of some plans."""
    return [bench.record(what, problem, partial(figures, plan, problem), plan=_digest(plan)) for plan in plans]


def _digest(plan: Plan) -> str:
    """Tells plans over one dictionary apart."""
    content = hashlib.sha256()
    for node in plan.nodes:
        for part in (node.learners, node.weights, node.bias, np.array([node.gate.value])):
            content.update(part.tobytes())
    return content.hexdigest()[:16]


def tiered(bench: Bench, problem: LearningProblem, stem: str, trees: Plan | None, **key: Any) -> Points:
    """AND-OR or the soft cascade, in the stages of the papers on the Yahoo! prices, over the weight of the cost."""
    return measured(bench, problem, stem, tiered_plans(bench, problem, stem, trees, **key))


def tiered_plans(bench: Bench, problem: LearningProblem, stem: str, trees: Plan | None, **key: Any) -> list[Plan]:
    """The plans of `tiered`."""
    kind = getattr(baselines, stem + "CascadeClassifier")

    def one(weight: float) -> Plan:
        model = kind(problem.costs, weight, problem.tiers, class_weight="balanced", dictionary=trees)
        return fitted(model.set_params(max_iter=100), problem).plan_

    def kept(weight: float) -> Plan:
        return bench.plan(stem, problem, partial(one, weight), cost_weight=weight, **key)

    return swept(bench, problem, kept, *WEIGHTS)


def adaboost_rs(bench: Bench, problem: LearningProblem, n_trees: int) -> tuple[Points, list[list[float]]]:
    """AdaBoostRS over budgets, mean of ten draws; and the deviations of test cost and quality over the draws."""

    def make() -> list[list[Figures]]:
        model = baselines.AdaBoostRSClassifier(problem.costs, n_estimators=n_trees, random_state=0)
        train = problem.split.train
        budgets = model.suggest_grid(train.y, bench.n_points)
        models = model.path(train.X, train.y, budgets, DRAWS, train.copies)
        found = [figures(m.plan_, problem) for m in models]
        return [found[i : i + DRAWS] for i in range(0, len(found), DRAWS)]

    found = [np.array(draws) for draws in bench.record("adaboost rs", problem, make, n_trees=n_trees)]
    return [f.mean(axis=0).tolist() for f in found], [f.std(axis=0)[2:].tolist() for f in found]


# ---- others -------------------------------------------------------------------------------------------------------


def linear_svm(bench: Bench, problem: LearningProblem) -> Points:
    """The linear SVM on all features: one point."""

    def make() -> Figures:
        return figures(fitted(baselines.LinearSVM(problem.costs), problem).plan_, problem)

    return [bench.record("linear svm", problem, make)]


def afr(bench: Bench, problem: LearningProblem, **settings: Any) -> Points:
    """AFR: one fit, its stages the points."""

    def make() -> Points:
        model = estimators.AFRClassifier(problem.costs, random_state=0, **settings)
        part = problem.split.validation
        plan = fitted(model, problem, eval_set=(part.X, part.y)).plan_
        return staged_figures(plan, problem)

    return bench.record("afr", problem, make, **settings)


def anytime_miser(bench: Bench, problem: LearningProblem) -> Points:
    """The anytime miser: one fit, its stages the points."""

    def make() -> Points:
        model = estimators.AnytimeMiserClassifier(problem.costs, loss="squared_hinge", max_leaf_nodes=8)
        return staged_figures(fitted(model, problem).plan_, problem)

    return bench.record("anytime miser", problem, make)


def astc(bench: Bench, problem: LearningProblem, depth: int, trees: Plan | None = None, soft: bool = False) -> Points:
    """ASTC over one budget for all nodes and over depths up to the given one: how deep a tree should be depends on what
    it may spend."""
    kind = pick("ASTC", problem, estimators)

    def one(budget: float, levels: int) -> Figures:
        model = kind(problem.costs, budget, levels, soft, dictionary=trees)
        return figures(fitted(bench.prepared(model), problem).plan_, problem)

    budgets = kind(problem.costs).suggest_grid(problem.split.train.y, 2 * bench.n_points)
    over = {} if trees is None else {"trees": _digest(trees)}
    return [
        bench.record("astc", problem, partial(one, float(b), levels), depth=levels, soft=soft, budget=float(b), **over)
        for levels in range(1, depth + 1)
        for b in budgets
    ]


def weighted_l1(bench: Bench, problem: LearningProblem) -> Points:
    """The cost-weighted l1 classifier over λ."""
    kind = pick("CostWeightedL1", problem, baselines)

    def make() -> Points:
        train = problem.split.train
        weight = {} if train.copies is None else {"sample_weight": train.copies}
        model = kind(problem.costs)
        grid = model.suggest_grid(train.y, 2 * bench.n_points)
        return [figures(m.plan_, problem) for m in model.path(train.X, train.y, grid, **weight)]

    return bench.record("l1", problem, make)

"""The family as methods of `benchmarks.frontier_vs_peers`: each grows the plans of its whole frontier."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from benchmarks.family.data import metric_of
from benchmarks.frontier_vs_peers.data import Problem, Split
from benchmarks.frontier_vs_peers.methods import (
    Method,
    Settings,
    find_baseline,
    miser,
    miser_cascade,
    ours,
    path_trees,
    sklearn_tree,
    sweep,
)
from miserly import estimators
from miserly.costs import CostTable
from miserly.experiments import fit_arguments
from miserly.plan import Plan

N_POINTS = 13
ASTC_DEPTHS = (3, 5)
SHARE_OF_FEATURES = 0.3
LEAST, MIDDLE = 1e-4, 3e-3


def settings_of(problem: Problem) -> Settings:
    """What all methods share."""
    return Settings(problem.min_samples_leaf, problem.is_ranking, n_points=N_POINTS)


def dictionary(split: Split, costs: CostTable, how: Settings) -> Any:
    """Stumps of cost-blind boosting, each round on a part of the features: each costs what one feature costs."""
    return FrozenEstimator(blind(split, costs, how, max_depth=1, max_features=SHARE_OF_FEATURES))


def blind(split: Split, costs: CostTable, how: Settings, **params: Any) -> Any:
    """Boosting that does not look at prices."""
    kind = find_baseline("Stagewise", how.is_ranking)
    model = kind(
        costs,
        n_estimators=how.n_estimators,
        learning_rate=how.learning_rate,
        min_samples_leaf=how.min_samples_leaf,
        random_state=0,
        n_jobs=1,
        **params,
    )
    return model.fit(split.train.X, split.train.y, **fit_arguments(kind, split.train))


# ---- how each grows -----------------------------------------------------------------------------------------------


def kind_of(stem: str, split: Split, how: Settings) -> tuple[Any, np.ndarray]:
    """The class of an estimator for these labels, and the labels as it takes them: CSCC has no grades."""
    y = split.train.y
    graded = how.is_ranking and len(np.unique(y)) > 2
    if not graded or hasattr(estimators, stem + "Regressor"):
        return getattr(estimators, stem + ("Regressor" if graded else "Classifier")), y
    return getattr(estimators, stem + "Classifier"), y >= 1


def graph(stem: str, split: Split, costs: CostTable, how: Settings, trees: Any = None, **params: Any) -> Iterator[Plan]:
    """A tree or a cascade over λ."""
    kind, y = kind_of(stem, split, how)
    model, more = kind(costs, dictionary=trees, **params), fit_arguments(kind, split.train)
    unit = float(np.std(y)) if how.is_ranking else 1.0

    def fit(rate: float) -> Plan:
        return model.set_params(tradeoff=unit * rate).fit(split.train.X, y, **more).plan_

    yield from sweep(fit, split, costs, how, "learner", LEAST)


def cronus_settings(problem: Problem, split: Split, costs: CostTable, how: Settings, trees: Any) -> dict[str, Any]:
    """ρ, ρ of the last stage, δ and the weight of positives as Cronus tunes them: with its initialisation, on
    validation, at one exchange rate in the middle of the sweep."""
    kind, y = kind_of("Cronus", split, how)
    rate = MIDDLE / np.mean([costs.price([f]) for f in costs.features])
    validation = split.validation
    model = kind(costs, float(np.std(y)) * rate, dictionary=trees, optimise=False, tune=True)
    model.set_params(metric=metric_of(problem, validation))
    model.fit(split.train.X, y, eval_set=validation[:3], **fit_arguments(kind, split.train))
    choice = model.choice_
    found = {"rho": choice.rho, "rho_last": choice.rho_last, "inflation": choice.inflation}
    return found if kind is estimators.CronusRegressor else {**found, "class_weight": {1.0: choice.positive_weight}}


def astc(split: Split, costs: CostTable, how: Settings, trees: Any = None) -> Iterator[Plan]:
    """ASTC over its budgets, at several depths."""
    kind, y = kind_of("ASTC", split, how)
    more = fit_arguments(kind, split.train)
    for depth in ASTC_DEPTHS:
        model = kind(costs, dictionary=trees, max_depth=depth)
        for budget in model.suggest_grid(y, how.n_points):
            yield model.set_params(node_budget=float(budget)).fit(split.train.X, y, **more).plan_


def early_exits(split: Split, costs: CostTable, how: Settings) -> Iterator[Plan]:
    """Cost-blind boosting with exits: by proximity to the fifth best of a query, or for classes by confidence."""
    plan = blind(split, costs, how, max_depth=how.max_depth).plan_
    kind = find_baseline("EarlyExit", how.is_ranking)
    model, y = kind(plan), split.train.y
    more = fit_arguments(kind, split.train)
    for value in model.suggest_grid(y, how.n_points):
        yield model.set_params(threshold=value).fit(split.train.X, y, **more).plan_


# ---- the list -----------------------------------------------------------------------------------------------------

BOOSTING, TREE = "boosting", "sklearn tree"


def methods_of(problem: Problem, trees: Any, cronus: dict[str, Any]) -> list[Method]:
    """All methods for one split: the family (`pooled`) over raw features and over `trees`, and the others."""
    over = {"raw": None, "trees": trees}
    family: dict[str, Any] = {}
    for what, dictionary in over.items():
        family[f"single, {what}"] = partial(graph, "CSTC", trees=dictionary, max_depth=1)
        family[f"CSTC, {what}"] = partial(graph, "CSTC", trees=dictionary)
        family[f"ASTC, {what}"] = partial(astc, trees=dictionary)
    family["CSCC initialised"] = partial(graph, "CSCC", trees=trees, max_iter=0)
    family["CSCC"] = partial(graph, "CSCC", trees=trees)
    if problem.is_ranking:
        family["Cronus single stage"] = partial(graph, "Cronus", trees=trees, n_stages=1, **cronus)
        family["Cronus initialised"] = partial(graph, "Cronus", trees=trees, optimise=False, **cronus)
        family["Cronus optimised"] = partial(graph, "Cronus", trees=trees, **cronus)
    others = [
        Method("miser by learner", partial(miser, charge="learner"), "learner", ours=True),
        Method("miser cascade", partial(miser_cascade, charge="learner"), "learner", ours=True),
        Method("CostWeightedL1", partial(ours, "CostWeightedL1"), "learner", ours=True),
        Method(BOOSTING, partial(ours, "Stagewise", grid=(settings_of(problem).n_estimators,)), "learner", ours=True),
        Method("early exit", early_exits, "learner", ours=True),
    ]
    if not problem.is_ranking:
        others += [
            Method("miser by path", partial(miser, charge="path"), "path", ours=True),
            Method("PathTree", path_trees, "path", ours=True),
            Method(TREE, sklearn_tree, "path"),
        ]
    return [*(Method(name, grow, "learner", ours=True, pooled=True) for name, grow in family.items()), *others]

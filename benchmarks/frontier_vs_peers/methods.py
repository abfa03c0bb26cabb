"""The methods: each grows the plans of its whole frontier from prices. One line each in METHODS.

A method yields pairs of plans: one fitted on the training part, by which points are chosen on validation, and the same
setting fitted again on training and validation rows, which is what is tested.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.frontier_vs_peers import importers
from benchmarks.frontier_vs_peers.data import Part, Split
from benchmarks.frontier_vs_peers.measure import best_quality
from miserly import auto, estimators
from miserly.costs import CostTable
from miserly.experiments import fit_arguments
from miserly.frontiers import Frontier
from miserly.frontiers._between import between
from miserly.metrics import Metric
from miserly.plan import Plan

try:
    import lightgbm
except ImportError:
    lightgbm = None
try:
    import catboost
except ImportError:
    catboost = None

SHAPES = ({"max_depth": 3, "max_leaf_nodes": 8}, {"max_depth": 6, "max_leaf_nodes": 16})
Pair = tuple[Plan, Plan]
Fit = Callable[[float], Plan]  # of a rate of exchange


@dataclass(frozen=True)
class Settings:
    """What all boosted methods share, and the length of a frontier."""

    min_samples_leaf: int
    metric: Metric
    n_estimators: int = 300
    learning_rate: float = 0.1
    max_depth: int = 3
    max_leaf_nodes: int = 8
    n_points: int = 15

    @property
    def is_ranking(self) -> bool:
        """Whether documents of queries are ranked."""
        return self.metric.grouped


@dataclass(frozen=True)
class Method:
    """`grow(split, costs, settings)` yields pairs of plans; `charge` is how they are priced. Others' methods learn from
    flat prices only."""

    name: str
    grow: Callable[[Split, CostTable, Settings], Iterator[Pair]]
    charge: str
    ours: bool = False


def classes_of(train: Part, how: Settings) -> np.ndarray | None:
    """The classes, or None where grades are ranked."""
    return None if how.is_ranking else np.unique(train.y)


def joined_rows(split: Split) -> Part:
    """All rows that are not test; the queries of the two parts are kept apart."""
    parts = (split.train, split.validation)
    X, y = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y"))
    if split.train.qid is None:
        return Part(X, y)
    qids = [np.unique(part.qid, return_inverse=True)[1] + 10**6 * k for k, part in enumerate(parts)]
    return Part(X, y, np.concatenate(qids))


def sweep(
    fitter: Callable[[Part, Settings], Fit], split: Split, costs: CostTable, how: Settings, charge: str
) -> Iterator[Pair]:
    """Plans at the cost-blind end, at some exchange rates far apart, then between the two neighbours with most between
    them, again and again: the difference of their mean costs on validation times that of their rates, both in
    logarithms, so that a jump of the cost is not pursued for ever. To buy nothing counts as a third of the cheapest
    price: the frontier begins where the first purchase is made. The same rule for every method.

    Rates are shares of what a perfect first tree would gain: at the last even the cheapest feature costs more than any
    tree gains, at the first a typical feature costs 1e-5 of that. The shape of trees is the one whose cost-blind model
    is best on validation after its best number of rounds.
    """
    prices = [p for p in (costs.price([f]) for f in costs.features) if p > 0]
    first, last = 1e-5 / np.mean(prices), 0.6 / min(prices)
    found: list[tuple[float, float]] = []
    shapes = [replace(how, **shape) for shape in SHAPES]
    shape = max(shapes, key=lambda shape: best_quality(fitter(split.train, shape)(0.0), split.validation, how.metric))
    fit, fit_again = fitter(split.train, shape), fitter(joined_rows(split), shape)

    def at(rate: float) -> Pair:
        plan = fit(rate)
        spent = plan.predict_cost(split.validation.X, charge=charge).mean()
        found.append((math.log(max(rate, first / 10)), math.log(max(spent, min(prices) / 3))))
        return plan, fit_again(rate)

    yield from map(at, [0.0, *np.geomspace(first, last, how.n_points // 2)])
    while len(found) < how.n_points:
        places = between([found], 1)
        if not places:
            break
        yield at(math.exp(places[0][1]))


def spread(train: Part, how: Settings) -> float:
    """Mean square of the first gradients, of the output where it is largest."""
    if how.is_ranking:
        return float(np.var(train.y))
    shares = np.unique(train.y, return_counts=True)[1] / len(train.y)
    return float(np.max(shares * (1 - shares)))


# ---- ours ---------------------------------------------------------------------------------------------------------


def miser(split: Split, costs: CostTable, how: Settings, charge: str = "learner", **params: Any) -> Iterator[Pair]:
    """Greedy Miser over λ."""
    kind = estimators.GreedyMiserRanker if how.is_ranking else estimators.GreedyMiserClassifier
    if charge != "learner":
        params["charge"] = charge

    def fitter(part: Part, how: Settings) -> Fit:
        model = kind(
            costs,
            n_estimators=how.n_estimators,
            learning_rate=how.learning_rate,
            max_depth=how.max_depth,
            max_leaf_nodes=how.max_leaf_nodes,
            min_samples_leaf=how.min_samples_leaf,
            n_jobs=1,
            **params,
        )
        binned, more = model.prepare(part.X), fit_arguments(kind, part)

        def fit(rate: float) -> Plan:
            model.set_params(tradeoff=0.5 * spread(part, how) * rate)
            return model.fit(part.X, part.y, binned=binned, **more).plan_

        return fit

    yield from sweep(fitter, split, costs, how, charge)


def miser_both(split: Split, costs: CostTable, how: Settings) -> Iterator[Pair]:
    """Both charges, pooled, as CatBoost's two kinds of penalty are; on half of the rows a round, leaves shrunk."""
    for charge in ("learner", "path"):
        yield from miser(split, costs, how, charge, subsample=0.5, l2_regularization=10.0, random_state=0)


def auto_frontier(split: Split, costs: CostTable, is_ranking: bool) -> Frontier:
    """The documented call with default settings, on all rows that are not test."""
    rows = joined_rows(split)
    if is_ranking:
        return auto.AutoMiserRanker(costs, random_state=0).fit(rows.X, rows.y, qid=rows.qid).frontier_
    return auto.AutoMiserClassifier(costs, random_state=0).fit(rows.X, rows.y).frontier_


# ---- peers --------------------------------------------------------------------------------------------------------


def lightgbm_params(part: Part, how: Settings, objective: str = "regression") -> dict[str, Any]:
    """What both ways to use LightGBM share; grades are learned by `objective`."""
    classes = classes_of(part, how)
    return {
        "objective": objective if classes is None else "binary" if len(classes) == 2 else "multiclass",
        "num_leaves": how.max_leaf_nodes,
        "max_depth": how.max_depth,
        "learning_rate": how.learning_rate,
        "min_data_in_leaf": how.min_samples_leaf,
        "num_threads": 1,
        "force_col_wise": True,
        "verbose": -1,
        **({"num_class": len(classes)} if classes is not None and len(classes) > 2 else {}),
    }


def lightgbm_cegb(split: Split, costs: CostTable, how: Settings, lazy: bool, **params: Any) -> Iterator[Pair]:
    """LightGBM over `cegb_tradeoff`: coupled penalties once per model, lazy ones once per row that meets a split."""
    prices = np.array([costs.price([f]) for f in costs.features])
    check = split.validation.X[:500]

    def fitter(part: Part, how: Settings) -> Fit:
        classes = classes_of(part, how)
        kind, share = ("lazy", 1.0) if lazy else ("coupled", float(len(part.y)))
        all_params = {**lightgbm_params(part, how), **params, f"cegb_penalty_feature_{kind}": list(prices * share)}
        y = part.y if classes is None else np.searchsorted(classes, part.y)
        data = lightgbm.Dataset(part.X, y, params=all_params, free_raw_data=False).construct()
        # Its gain is a sum over rows of squared gradients over second derivatives: about 1 a row for log-loss.
        per_row = spread(part, how) if classes is None else 1.0

        def fit(rate: float) -> Plan:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                booster = lightgbm.train({**all_params, "cegb_tradeoff": rate * per_row}, data, how.n_estimators)
            plan = importers.from_lightgbm(booster, costs, classes)
            importers.check_same(plan, check, booster.predict(check, raw_score=True), "LightGBM")
            return plan

        return fit

    yield from sweep(fitter, split, costs, how, "path" if lazy else "learner")


def lightgbm_top_k(split: Split, costs: CostTable, how: Settings) -> Iterator[Pair]:
    """LightGBM trained again on the k features with most gain per price, for k from 1 to all, in each shape."""
    prices = np.array([costs.price([f]) for f in costs.features])
    for shape in SHAPES:
        settings = replace(how, **shape)
        trainers = [_lightgbm_trainer(part, costs, settings) for part in (split.train, joined_rows(split))]
        whole, _ = trainers[0](np.arange(len(prices)))
        order = np.argsort(-whole.feature_importance("gain") / np.maximum(prices, 1e-12), kind="stable")
        for k in np.unique(np.geomspace(1, len(order), how.n_points).round().astype(int)):
            first, second = (train(order[:k])[1] for train in trainers)
            yield first, second


def _lightgbm_trainer(part: Part, costs: CostTable, how: Settings) -> Callable[[np.ndarray], tuple[Any, Plan]]:
    classes = classes_of(part, how)
    params = lightgbm_params(part, how, "lambdarank")
    y = part.y if classes is None else np.searchsorted(classes, part.y)
    starts = None if part.qid is None else np.flatnonzero(np.r_[True, part.qid[1:] != part.qid[:-1]])
    group = None if starts is None else np.diff(np.r_[starts, len(y)])

    def train(columns: np.ndarray) -> tuple[Any, Plan]:
        X = np.zeros_like(part.X)
        X[:, columns] = part.X[:, columns]
        booster = lightgbm.train(params, lightgbm.Dataset(X, y, group=group), how.n_estimators)
        return booster, importers.from_lightgbm(booster, costs, classes)

    return train


def catboost_penalties(
    split: Split, costs: CostTable, how: Settings, per_object: bool, policy: str, **params: Any
) -> Iterator[Pair]:
    """CatBoost over `penalties_coefficient`: penalties for a feature's first use in the model, or by each object."""
    prices = np.array([costs.price([f]) for f in costs.features])
    check = split.validation.X[:500]
    name = "per_object_feature_penalties" if per_object else "first_feature_use_penalties"

    def fitter(part: Part, how: Settings) -> Fit:
        classes = classes_of(part, how)
        y = part.y if classes is None else np.searchsorted(classes, part.y)
        all_params = {
            "loss_function": "RMSE" if classes is None else "Logloss" if len(classes) == 2 else "MultiClass",
            "iterations": how.n_estimators,
            "depth": how.max_depth,
            "learning_rate": how.learning_rate,
            "grow_policy": policy,
            "score_function": "L2",
            "thread_count": 1,
            "verbose": 0,
            "allow_writing_files": False,
            "random_seed": 0,
            name: list(prices * (1.0 if per_object else len(y))),
            **params,
        }
        if policy == "Lossguide":
            all_params |= {"max_leaves": how.max_leaf_nodes, "min_data_in_leaf": how.min_samples_leaf}
        pool = catboost.Pool(part.X.astype(np.float32), y)
        pool.quantize(border_count=254)

        def fit(rate: float) -> Plan:
            model = catboost.CatBoost({**all_params, "penalties_coefficient": rate * spread(part, how)}).fit(pool)
            plan = importers.from_catboost(model, costs, classes)
            importers.check_same(plan, check, model.predict(check, prediction_type="RawFormulaVal"), "CatBoost")
            return plan

        return fit

    yield from sweep(fitter, split, costs, how, "path" if per_object else "learner")


def catboost_both(split: Split, costs: CostTable, how: Settings, **params: Any) -> Iterator[Pair]:
    """Its two kinds of penalty, pooled: it gets the better of both."""
    yield from catboost_penalties(split, costs, how, per_object=False, policy="SymmetricTree", **params)
    yield from catboost_penalties(split, costs, how, per_object=True, policy="Lossguide", **params)


def sklearn_tree(split: Split, costs: CostTable, how: Settings) -> Iterator[Pair]:
    """One plain tree over `max_leaf_nodes`; prices do not enter its training."""
    check = split.validation.X[:500]

    def fit(part: Part, leaves: int) -> Plan:
        classes = classes_of(part, how)
        kind = DecisionTreeRegressor if classes is None else DecisionTreeClassifier
        model = kind(max_leaf_nodes=leaves, min_samples_leaf=how.min_samples_leaf, random_state=0).fit(part.X, part.y)
        plan = importers.from_sklearn(model, costs, classes)
        if classes is None:
            importers.check_same(plan, check, model.predict(check), "scikit-learn")
        elif not (plan.predict(check) == model.predict(check)).all():
            raise AssertionError("The plan imported from scikit-learn differs from its own predictions.")
        return plan

    for leaves in np.unique(np.geomspace(2, 256, how.n_points).round().astype(int)):
        yield fit(split.train, int(leaves)), fit(joined_rows(split), int(leaves))


# ---- the list -----------------------------------------------------------------------------------------------------

AUTO, MISER = "auto", "miser"
BAGGED = {"bagging_fraction": 0.5, "bagging_freq": 1, "bagging_seed": 0}
METHODS = (
    Method(MISER, miser_both, "path", ours=True),
    Method("lightgbm coupled", partial(lightgbm_cegb, lazy=False), "learner"),
    Method("lightgbm top-k", lightgbm_top_k, "learner"),
    Method("lightgbm lazy", partial(lightgbm_cegb, lazy=True), "path"),
    Method("lightgbm lazy, half the rows", partial(lightgbm_cegb, lazy=True, **BAGGED), "path"),
    Method("catboost", catboost_both, "path"),
    Method("catboost, half the rows", partial(catboost_both, bootstrap_type="Bernoulli", subsample=0.5), "path"),
    Method("sklearn tree", sklearn_tree, "path"),
)


def usable(methods: tuple[Method, ...]) -> list[Method]:
    """The methods whose packages are installed."""
    missing = {"lightgbm": lightgbm is None, "catboost": catboost is None}
    return [m for m in methods if not any(gone for word, gone in missing.items() if m.name.startswith(word))]


def repriced(plan: Plan, costs: CostTable, charge: str) -> Plan:
    """The same plan under other prices and another way of charging."""
    return replace(plan, costs=costs, charge=charge)

"""The methods: each grows the plans of its whole frontier from a training part and prices. One line each in METHODS."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.frontier_vs_peers import importers
from benchmarks.frontier_vs_peers.data import Part, Split
from miserly import auto, baselines, estimators
from miserly.costs import CostTable
from miserly.experiments import fit_arguments
from miserly.frontiers import Frontier
from miserly.frontiers._between import between
from miserly.plan import Plan, cascade

try:
    import lightgbm
except ImportError:
    lightgbm = None
try:
    import catboost
except ImportError:
    catboost = None

LEAST_RISE, N_THRESHOLDS = 1.15, 6


@dataclass(frozen=True)
class Settings:
    """What all boosted methods share, and the length of a frontier."""

    min_samples_leaf: int
    is_ranking: bool
    n_estimators: int = 100
    learning_rate: float = 0.1
    max_depth: int = 3
    max_leaf_nodes: int = 8
    n_points: int = 15


@dataclass(frozen=True)
class Method:
    """`grow(split, costs, settings)` yields plans; `charge` is how they are priced. Others' methods learn from flat
    prices only. `pooled` are the entries of ours that make "miserly: all"."""

    name: str
    grow: Callable[[Split, CostTable, Settings], Iterator[Plan]]
    charge: str
    ours: bool = False
    pooled: bool = False


def classes_of(train: Part, how: Settings) -> np.ndarray | None:
    """The classes, or None where grades are ranked."""
    return None if how.is_ranking else np.unique(train.y)


def sweep(
    fit: Callable[[float], Plan], split: Split, costs: CostTable, how: Settings, charge: str, least: float = 1e-5
) -> Iterator[Plan]:
    """Plans at the cost-blind end, at some exchange rates far apart, then between the two neighbours with most between
    them, again and again: the difference of their mean costs on validation times that of their rates, both in
    logarithms, so that a jump of the cost is not pursued for ever. To buy nothing counts as a third of the cheapest
    price: the frontier begins where the first purchase is made. The same rule for every method.

    Rates are shares of what a perfect first tree would gain: at the last even the cheapest feature costs more than any
    tree gains, at the first a typical feature costs the share `least` of that.
    """
    prices = [p for p in (costs.price([f]) for f in costs.features) if p > 0]
    first, last = least / np.mean(prices), 0.6 / min(prices)
    found: list[tuple[float, float]] = []

    def at(rate: float) -> Plan:
        plan = fit(rate)
        spent = plan.predict_cost(split.validation.X, charge=charge).mean()
        found.append((math.log(max(rate, first / 10)), math.log(max(spent, min(prices) / 3))))
        return plan

    yield from map(at, [0.0, *np.geomspace(first, last, how.n_points // 2)])
    while len(found) < how.n_points:
        ((_, place),) = between([found], 1)
        yield at(math.exp(place))


def spread(train: Part, how: Settings) -> float:
    """Mean square of the first gradients, of the output where it is largest."""
    if how.is_ranking:
        return float(np.var(train.y))
    shares = np.unique(train.y, return_counts=True)[1] / len(train.y)
    return float(np.max(shares * (1 - shares)))


# ---- ours ---------------------------------------------------------------------------------------------------------


def miser(split: Split, costs: CostTable, how: Settings, charge: str = "learner", **params: Any) -> Iterator[Plan]:
    """Greedy Miser over λ."""
    kind = estimators.GreedyMiserRanker if how.is_ranking else estimators.GreedyMiserClassifier
    if charge != "learner":
        params["charge"] = charge
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
    binned, train = model.prepare(split.train.X), split.train
    more = fit_arguments(kind, train)

    def fit(rate: float) -> Plan:
        model.set_params(tradeoff=0.5 * spread(train, how) * rate)
        return model.fit(train.X, train.y, binned=binned, **more).plan_

    yield from sweep(fit, split, costs, how, charge)


def miser_both(split: Split, costs: CostTable, how: Settings) -> Iterator[Plan]:
    """Both charges, pooled, as CatBoost's two kinds of penalty are; on half of the rows a round, leaves shrunk."""
    for charge in ("learner", "path"):
        yield from miser(split, costs, how, charge, subsample=0.5, l2_regularization=10.0, random_state=0)


def ours(stem: str, split: Split, costs: CostTable, how: Settings, grid: Any = None, **params: Any) -> Iterator[Plan]:
    """One of `miserly.baselines` over its cost axis: the values of `grid`, those it suggests, or (grid="sweep") λ."""
    kind = find_baseline(stem, how.is_ranking)
    known = signature(kind).parameters
    wanted = {
        "costs": costs,
        "n_estimators": how.n_estimators,
        "learning_rate": how.learning_rate,
        "max_depth": how.max_depth,
        "max_leaf_nodes": how.max_leaf_nodes,
        "min_samples_leaf": how.min_samples_leaf,
        "n_jobs": 1,
        "random_state": 0,
        **params,
    }
    model = kind(**{name: value for name, value in wanted.items() if name in known})
    train = split.train
    more = fit_arguments(kind, train)

    def fit(value: Any) -> Plan:
        return model.set_params(**{kind.cost_axis: value}).fit(train.X, train.y, **more).plan_

    if isinstance(grid, str):
        yield from sweep(lambda rate: fit(0.5 * spread(train, how) * rate), split, costs, how, "path")
    else:
        yield from map(fit, model.suggest_grid(train.y, how.n_points) if grid is None else grid)


def path_trees(split: Split, costs: CostTable, how: Settings) -> Iterator[Plan]:
    """Single trees over λ and, as for the plain tree, over `max_leaf_nodes` (what a prefix is to boosting)."""
    fewer = replace(how, n_points=how.n_points // 2)
    for leaves in (2, 3, 4, 6, 8, 16, 256):
        yield from ours("PathTree", split, costs, fewer, grid="sweep", max_depth=None, max_leaf_nodes=leaves)


def early_exits(split: Split, costs: CostTable, how: Settings) -> Iterator[Plan]:
    """Exits at several thresholds put into a few models of the miser."""
    kind, train = find_baseline("EarlyExit", how.is_ranking), split.train
    more = fit_arguments(kind, train)
    for plan in miser(split, costs, replace(how, n_points=6)):
        if plan.nodes:
            model = kind(plan)
            for value in model.suggest_grid(train.y, 5):
                yield model.set_params(threshold=value).fit(train.X, train.y, **more).plan_


def miser_cascade(split: Split, costs: CostTable, how: Settings, charge: str, **params: Any) -> Iterator[Plan]:
    """The miser over λ; and its models one after another, cheapest first, from each of them on, with exits between."""
    plans = [plan for plan in miser(split, costs, how, charge, **params) if plan.nodes]
    yield from plans
    spent = [float(plan.predict_cost(split.validation.X).mean()) for plan in plans]
    rising: list[int] = []
    for i in np.argsort(spent):
        if not rising or spent[i] > LEAST_RISE * spent[rising[-1]]:
            rising.append(int(i))
    kind, train = find_baseline("EarlyExit", how.is_ranking), split.train
    for first in range(len(rising) - 1):
        model = kind(cascade([plans[i] for i in rising[first:]]))
        for value in model.suggest_grid(train.y, N_THRESHOLDS):
            yield model.set_params(threshold=value).fit(train.X, train.y, **fit_arguments(kind, train)).plan_


def find_baseline(stem: str, is_ranking: bool) -> Any:
    """The class of that stem for this kind of data, or None while nobody has written it."""
    ends = ("Ranker", "Regressor") if is_ranking else ("Classifier",)
    found = [getattr(baselines, stem + end, None) for end in ends]
    return next((kind for kind in found if kind is not None), None)


def auto_frontier(split: Split, costs: CostTable, is_ranking: bool) -> Frontier:
    """The documented call with default settings: all rows that are not test, cross-validated."""
    parts = (split.train, split.validation)
    X, y = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y"))
    if is_ranking:
        qid = np.concatenate([np.unique(part.qid, return_inverse=True)[1] + 10**6 * k for k, part in enumerate(parts)])
        return auto.AutoMiserRanker(costs).fit(X, y, qid=qid).frontier_
    return auto.AutoMiserClassifier(costs, metric="accuracy").fit(X, y).frontier_


# ---- peers --------------------------------------------------------------------------------------------------------


def lightgbm_cegb(split: Split, costs: CostTable, how: Settings, lazy: bool, **params: Any) -> Iterator[Plan]:
    """LightGBM over `cegb_tradeoff`: coupled penalties once per model, lazy ones once per row that meets a split."""
    train, classes = split.train, classes_of(split.train, how)
    n, prices = len(train.y), np.array([costs.price([f]) for f in costs.features])
    params = {
        "objective": "regression" if classes is None else "binary" if len(classes) == 2 else "multiclass",
        "num_leaves": how.max_leaf_nodes,
        "max_depth": how.max_depth,
        "learning_rate": how.learning_rate,
        "min_data_in_leaf": how.min_samples_leaf,
        "num_threads": 1,
        "force_col_wise": True,
        "verbose": -1,
        **({"num_class": len(classes)} if classes is not None and len(classes) > 2 else {}),
        **params,
    }
    kind, share = ("lazy", 1.0) if lazy else ("coupled", float(n))
    params[f"cegb_penalty_feature_{kind}"] = list(prices * share)
    y = train.y if classes is None else np.searchsorted(classes, train.y)
    data = lightgbm.Dataset(train.X, y, params=params, free_raw_data=False).construct()
    # Its gain is a sum over rows of squared gradients over second derivatives: about 1 a row for log-loss.
    per_row = spread(train, how) if classes is None else 1.0
    check = split.validation.X[:500]

    def fit(rate: float) -> Plan:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            booster = lightgbm.train({**params, "cegb_tradeoff": rate * per_row}, data, how.n_estimators)
        plan = importers.from_lightgbm(booster, costs, classes)
        importers.check_same(plan, check, booster.predict(check, raw_score=True), "LightGBM")
        return plan

    yield from sweep(fit, split, costs, how, "path" if lazy else "learner")


def lightgbm_top_k(split: Split, costs: CostTable, how: Settings) -> Iterator[Plan]:
    """LightGBM trained again on the k features with most gain per price, for k from 1 to all."""
    train, classes = split.train, classes_of(split.train, how)
    prices = np.array([costs.price([f]) for f in costs.features])
    params = {
        "objective": "lambdarank" if classes is None else "binary" if len(classes) == 2 else "multiclass",
        "num_leaves": how.max_leaf_nodes,
        "max_depth": how.max_depth,
        "learning_rate": how.learning_rate,
        "min_data_in_leaf": how.min_samples_leaf,
        "num_threads": 1,
        "verbose": -1,
        **({"num_class": len(classes)} if classes is not None and len(classes) > 2 else {}),
    }
    y = train.y if classes is None else np.searchsorted(classes, train.y)
    starts = None if train.qid is None else np.flatnonzero(np.r_[True, train.qid[1:] != train.qid[:-1]])
    group = None if starts is None else np.diff(np.r_[starts, len(y)])
    whole = lightgbm.train(params, lightgbm.Dataset(train.X, y, group=group), how.n_estimators)
    order = np.argsort(-whole.feature_importance("gain") / np.maximum(prices, 1e-12), kind="stable")
    for k in np.unique(np.geomspace(1, len(order), 30).round().astype(int)):
        X = np.zeros_like(train.X)
        X[:, order[:k]] = train.X[:, order[:k]]
        booster = lightgbm.train(params, lightgbm.Dataset(X, y, group=group), how.n_estimators)
        yield importers.from_lightgbm(booster, costs, classes)


def catboost_penalties(
    split: Split, costs: CostTable, how: Settings, per_object: bool, policy: str, **params: Any
) -> Iterator[Plan]:
    """CatBoost over `penalties_coefficient`: penalties for a feature's first use in the model, or by each object."""
    train, classes = split.train, classes_of(split.train, how)
    n, prices = len(train.y), np.array([costs.price([f]) for f in costs.features])
    y = train.y if classes is None else np.searchsorted(classes, train.y)
    params = {
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
        **params,
    }
    if policy == "Lossguide":
        params |= {"max_leaves": how.max_leaf_nodes, "min_data_in_leaf": how.min_samples_leaf}
    name, share = ("per_object_feature_penalties", 1.0) if per_object else ("first_feature_use_penalties", float(n))
    params[name] = list(prices * share)
    pool = catboost.Pool(train.X.astype(np.float32), y)
    pool.quantize(border_count=254)
    check = split.validation.X[:500]

    def fit(rate: float) -> Plan:
        model = catboost.CatBoost({**params, "penalties_coefficient": rate * spread(train, how)}).fit(pool)
        plan = importers.from_catboost(model, costs, classes)
        importers.check_same(plan, check, model.predict(check, prediction_type="RawFormulaVal"), "CatBoost")
        return plan

    yield from sweep(fit, split, costs, how, "path" if per_object else "learner")


def catboost_both(split: Split, costs: CostTable, how: Settings, **params: Any) -> Iterator[Plan]:
    """Its two kinds of penalty, pooled: it gets the better of both."""
    yield from catboost_penalties(split, costs, how, per_object=False, policy="SymmetricTree", **params)
    yield from catboost_penalties(split, costs, how, per_object=True, policy="Lossguide", **params)


def sklearn_tree(split: Split, costs: CostTable, how: Settings) -> Iterator[Plan]:
    """One plain tree over `max_leaf_nodes`; prices do not enter its training."""
    train, classes = split.train, classes_of(split.train, how)
    kind = DecisionTreeRegressor if classes is None else DecisionTreeClassifier
    check = split.validation.X[:500]
    for leaves in np.unique(np.geomspace(2, 256, how.n_points).round().astype(int)):
        model = kind(max_leaf_nodes=int(leaves), min_samples_leaf=how.min_samples_leaf, random_state=0)
        model.fit(train.X, train.y)
        plan = importers.from_sklearn(model, costs, classes)
        if classes is None:
            importers.check_same(plan, check, model.predict(check), "scikit-learn")
        elif not (plan.predict(check) == model.predict(check)).all():
            raise AssertionError("The plan imported from scikit-learn differs from its own predictions.")
        yield plan


# ---- the list -----------------------------------------------------------------------------------------------------

AUTO, MISER = "auto", "miser"
BAGGED = {"bagging_fraction": 0.5, "bagging_freq": 1, "bagging_seed": 0}
_LEARNER = partial(miser, charge="learner")
_COUPLED = partial(lightgbm_cegb, lazy=False)
METHODS = (
    Method(MISER, miser_both, "path", ours=True, pooled=True),
    Method("miser learner", _LEARNER, "learner", ours=True),
    Method("miser learner, by path", _LEARNER, "path", ours=True, pooled=True),
    Method("PathTree", path_trees, "path", ours=True, pooled=True),
    Method("Stagewise", partial(ours, "Stagewise", grid=(100,)), "learner", ours=True),
    Method("FeatureSubset", partial(ours, "FeatureSubset"), "learner", ours=True),
    Method("EarlyExit", early_exits, "learner", ours=True),
    Method("CostWeightedL1", partial(ours, "CostWeightedL1"), "learner", ours=True),
    Method("lightgbm coupled", _COUPLED, "learner"),
    Method("lightgbm coupled, by path", _COUPLED, "path"),
    Method("lightgbm top-k", lightgbm_top_k, "learner"),
    Method("lightgbm lazy", partial(lightgbm_cegb, lazy=True), "path"),
    Method("lightgbm lazy, half the rows", partial(lightgbm_cegb, lazy=True, **BAGGED), "path"),
    Method("catboost", catboost_both, "path"),
    Method("catboost, half the rows", partial(catboost_both, bootstrap_type="Bernoulli", subsample=0.5), "path"),
    Method("sklearn tree", sklearn_tree, "path"),
)


def usable(methods: tuple[Method, ...], is_ranking: bool) -> list[Method]:
    """The methods whose code is here: peers that are installed, baselines and charges that are written."""
    has_path = "charge" in signature(estimators.GreedyMiserClassifier).parameters
    missing = {
        "miser path": not has_path,
        "lightgbm": lightgbm is None,
        "catboost": catboost is None,
    }
    kept = []
    for method in methods:
        stem = method.name if method.grow in (early_exits, path_trees) else None
        if isinstance(method.grow, partial) and method.grow.func is ours:
            stem = method.grow.args[0]
        absent = stem is not None and find_baseline(stem, is_ranking) is None
        if not absent and not any(gone for word, gone in missing.items() if method.name.startswith(word)):
            kept.append(method)
    return kept


def repriced(plan: Plan, costs: CostTable, charge: str) -> Plan:
    """The same plan under other prices and another way of charging."""
    return replace(plan, costs=costs, charge=charge)

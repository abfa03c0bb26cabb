"""Small runs of hand-made plans, which need no training: the thyroid-like prices of `oracles.hand_built`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.datasets import load_digits

import miserly as ms
from miserly.frontiers import Frontier, Point
from miserly.frontiers._front import Measured
from miserly.metrics import get_metric
from miserly.plan import Gate
from miserly.report import LabelledRows, Observed, SavedRun
from miserly.report._runs import Kept
from oracles import hand_built

BUDGETS = (1.0, 1.3, 1.4, 3.0, 12.0, 25.0, 60.0)
SURE = (0.55, 0.6, 0.65, 0.7, 0.8, 0.9, 0.99)


def front_of(plans, rows, metric, name):
    """A sweep over plans (by their parameters), measured on the rows as a sweep measures."""
    metric = get_metric(metric)
    points = []
    for params, plan in plans:
        seen = Observed.of(plan, rows)
        measured = Measured.of(seen.quality(metric), plan.predict_cost(rows.X, rows.qid))
        test = Measured(measured.quality - 0.01, {**measured.cost, "mean": measured.cost["mean"] * 1.02})
        points.append(Point(params, Kept(plan), measured, test, 0.25))
    return Frontier(tuple(points), metric, plans[0][1].costs.unit, name)


def triage(n=400):
    """Numbers: an anytime model cut at budgets, a cascade, a tree, a chain of trees charged by path."""
    costs = replace(hand_built.COSTS, evaluation=0.0)
    plan, tree, cascade, trees = (
        replace(p, costs=costs, prior=p.prior + shift)
        for p, shift in (
            (hand_built.anytime(), 0.0),
            (hand_built.binary_tree(), 1.2),
            (hand_built.cascade(), 1.5),
            (hand_built.anytime_trees(), 1.0),
        )
    )
    X = hand_built.rows(n, seed=3)
    noise = np.random.default_rng(5).normal(size=n)
    rows = LabelledRows(X, np.round(0.9 * plan.predict(X) + 0.1 * tree.predict(X) + 0.2 * noise, 3))
    fronts = [
        front_of([({"budget": b}, plan.truncate(b)) for b in BUDGETS], rows, "mse", "Anytime"),
        front_of([({"stages": 3}, cascade)], rows, "mse", "Cascade"),
        front_of([({"shape": "tree"}, tree), ({"shape": "path"}, replace(trees, charge="path"))], rows, "mse", "Trees"),
    ]
    runs = [SavedRun(front, rows) for front in fronts]
    return [replace(runs[0], chosen=fronts[0].pareto()[2]), *runs[1:]]


def mail(n=500):
    """Two classes: rows leave when they are sure enough."""
    plan = hand_built.confident()
    X = hand_built.rows(n, seed=8)
    spam = plan.stopping(1.0).predict_proba(X)[:, 1] > np.random.default_rng(2).random(n)
    rows = LabelledRows(X, np.where(spam, "spam", "ham"))
    plans = []
    for p in SURE:
        nodes = [replace(k, gate=Gate.unless_confident(p)) if k.gate.kind != "open" else k for k in plan.nodes]
        plans.append(({"sure": p}, replace(plan, nodes=tuple(nodes))))
    front = front_of(plans, rows, "logloss", "Early exit")
    return [SavedRun(front, rows, front.pareto()[len(front.pareto()) // 2])]


def search(n_queries=40, per_query=10):
    """Ranking: gates let the best documents of each query pass."""
    n = n_queries * per_query
    X, qid = hand_built.rows(n, seed=4), np.repeat(np.arange(n_queries), per_query)
    best = hand_built.by_query(Gate.top(per_query)).score(X, qid)
    y = np.clip(np.round(best + 1.0 + 0.3 * np.random.default_rng(1).normal(size=n)), 0, 4).astype(np.int64)
    rows = LabelledRows(X, y, qid)
    plans = [({"k": k}, hand_built.by_query(Gate.top(k))) for k in (1, 2, 3, 5, 8)]
    return [SavedRun(front_of(plans, rows, "ndcg@5", "Top k"), rows)]


def digits(n=400):
    """Ten classes: pixels that cost 1 each, by a model that was trained."""
    X, y = load_digits(return_X_y=True)
    costs = ms.CostTable.per_feature({f"pixel_{i}": 1.0 for i in range(X.shape[1])}, unit="pixels")
    model = ms.GreedyMiserClassifier(costs, n_estimators=12)
    grid = {"tradeoff": [0.0, 1e-4, 1e-3, 1e-2]}
    front = ms.frontier(model, (X[n:], y[n:]), (X[:n], y[:n]), grid=grid, metric="accuracy")
    return [SavedRun(replace(front, name="Greedy Miser"), LabelledRows(X[:n], y[:n]), front.pareto()[-2])]

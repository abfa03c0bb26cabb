"""The free constant prediction beside the models of a sweep, and the menu of both."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from miserly.frontiers._front import Point
from miserly.frontiers._job import Job
from miserly.plan import Menu, Plan, Run

LEAST = -1e9  # the quality of what cannot be measured


def baseline(like: Point, job: Job) -> Point | None:
    """The model that buys nothing and predicts the constant of a fitted one; None for models without a plan."""
    plan = getattr(like.model, "plan_", None)
    if type(plan) is not Plan or isinstance(getattr(type(like.model), "plan_", None), property):
        return None  # a policy has its own way to buy nothing, a pipeline a plan of a step
    model = copy(like.model)
    model.plan_ = replace(plan, nodes=(), roots=(), certificate=None)
    data = job.train if job.validation is None else job.validation
    test = None if job.test is None else job.measure(model, job.test)
    return Point({}, model, job.measure(model, data), test, 0.0)


def menu_of(front: list[Point], job: Job) -> Menu:
    """The models of a front as a menu, measured under caps on the validation rows."""
    assert job.validation is not None
    X, y, qid = job.validation
    sign = 1.0 if job.metric.greater_is_better else -1.0

    like = front[-1].model
    dense, costs = like._dense(X), front[-1].model.plan_.costs
    logged = job.purchases(like).rows(dense, y) if costs.not_ordered else None

    def weigh(run: Run) -> Any:
        assert logged is not None
        assert run.accounts is not None
        return logged.weights_of(run.accounts)

    def quality(plan: Plan, run: Run) -> float:
        if logged is not None:
            value = job.quality(np.asarray(y), _output(plan, run, job), qid, plan.classes, weigh(run))
            return sign * value if math.isfinite(value) else LEAST
        return sign * job.metric(np.asarray(y), _output(plan, run, job), qid=qid, classes=plan.classes)

    plans = [point.model.plan_ for point in front]
    names = [", ".join(f"{name}={value:.3g}" for name, value in point.params.items()) or "constant" for point in front]
    weights = None if logged is None else weigh
    return Menu.measured(plans, dense, quality, qid, names=names, metric=job.metric.name, weights=weights)


def _output(plan: Plan, run: Run, job: Job) -> Any:
    if job.metric.grouped:
        return run.tier * 1e6 + run.score[:, 0]  # documents of a later tier stand above all others
    if job.metric.input == "proba":
        return plan.probabilities(run.z)
    if job.metric.input == "score":
        return run.score[:, 0] if plan.classes is None else plan.probabilities(run.z)[:, 1]
    return plan.read(run.z)

"""Fitted value iteration against brute force: on a tiny discrete problem the learned policy is the best there is."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from miserly.auto._policy import StageGraph
from miserly.auto._stages import StageModel
from miserly.auto._task import Rows, Task
from miserly.costs import CostTable, Ledger
from miserly.metrics import get_metric
from miserly.plan import Node, Plan, stack_trees

COSTS = CostTable.per_feature([1.0, 3.0])
A, B = 1, 2


def stump(feature):
    return {
        "feature": np.array([feature, 0, 0], np.int32),
        "threshold": np.array([0.5, np.inf, np.inf]),
        "left": np.array([1, 1, 2], np.int32),
        "missing_right": np.zeros(3, bool),
        "value": np.array([0.0, -1.0, 1.0]),
    }


def plan(*features):
    nodes = (Node(np.arange(len(features)), np.ones(len(features))),) if features else ()
    roots = (0,) if features else ()
    return Plan(COSTS, stack_trees([stump(f) for f in features]), nodes, [0.0], "logistic", [0, 1], roots)


def problem(seed, n=4000):
    """Two binary features; class probabilities by their four values; the best prediction from each subset."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 2)).astype(float)
    chance = rng.uniform(0.05, 0.95, (2, 2))
    y = (rng.uniform(size=n) < chance[X[:, 0].astype(int), X[:, 1].astype(int)]).astype(float)
    outputs = {}
    for state in (0, A, B, A | B):
        known = X * [bool(state & A), bool(state & B)]
        p = np.zeros(n)
        for cell in np.unique(known, axis=0):
            here = (known == cell).all(axis=1)
            p[here] = y[here].mean()
        outputs[state] = np.column_stack([1 - p, p])
    return Rows(X, y), outputs


def graph_of(rows, outputs):
    task = Task("classes", rows, None, np.array([0, 1]), COSTS, get_metric("accuracy"), 0)
    ledger = Ledger(COSTS.price_list, ())
    features = {0: (), A: (0,), B: (1,), A | B: (0, 1)}
    stages = {s: StageModel(s, ledger.price(s), outputs[s], None, plan(*features[s])) for s in outputs}
    says = {id(stage.plan): stage.oof for stage in stages.values()}
    predict = lambda plan, rows: says[id(plan)]  # noqa: E731
    return StageGraph(task, SimpleNamespace(stages=stages, price=ledger.price, predict=predict))


def best_by_brute_force(rows, outputs, rate):
    """The least mean loss + rate · cost of all policies: what to buy first and, by its value, whether to go on."""
    error = {s: (outputs[s].argmax(axis=1) != rows.y).astype(float) for s in outputs}
    price = {0: 0.0, A: 1.0, B: 3.0, A | B: 4.0}
    values = [error[0].mean()]
    for first in (A, B):
        column = rows.X[:, 0 if first == A else 1]
        for goes_on in product((False, True), repeat=2):
            on = np.where(column > 0.5, goes_on[1], goes_on[0])
            end = np.where(on, error[A | B] + rate * price[A | B], error[first] + rate * price[first])
            values.append(end.mean())
    return min(values)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rate", [0.001, 0.01, 0.03, 0.08])
def test_the_policy_is_as_good_as_the_best_of_all(seed, rate):
    rows, outputs = problem(seed)
    graph = graph_of(rows, outputs)
    policy = graph.policy(rate, "error")
    ends = np.array(graph.order)[policy.end_of_all]
    error = np.array([(outputs[s].argmax(axis=1) != rows.y) for s in graph.order], float)
    value = (error[policy.end_of_all, np.arange(len(ends))] + rate * graph.prices[policy.end_of_all]).mean()
    best = best_by_brute_force(rows, outputs, rate)
    assert best - 1e-12 <= value <= best + 0.004  # rules are fitted on two thirds of the rows


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rate", [0.001, 0.01, 0.03])
def test_policies_of_two_orders_are_the_best_of_all_and_of_one_the_best_set(seed, rate):
    rows, outputs = problem(seed)
    graph = graph_of(rows, outputs)
    error = np.array([(outputs[s].argmax(axis=1) != rows.y) for s in graph.order], float)
    every = np.arange(len(rows))

    def value(max_rounds):
        graph.task = replace(graph.task, max_rounds=max_rounds)
        ends = graph.policy(rate, "error").end_of_all
        return (error[ends, every] + rate * graph.prices[ends]).mean()

    one_set = (error + rate * graph.prices[:, None]).mean(axis=1).min()
    assert value(1) == pytest.approx(one_set, abs=0.004)  # rules are fitted on two thirds of the rows
    assert value(2) == pytest.approx(best_by_brute_force(rows, outputs, rate), abs=0.004)

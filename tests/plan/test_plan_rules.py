"""A plan that could loop, or points outside what there is, cannot be made; what it says of itself is right."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from miserly.plan import EXIT, Gate, Node, Plan, RawFeatures, Trees, stack_trees
from oracles.hand_built import COSTS, PLANS, RAW, TREES, rows, tree

NODE = Node([0], [1.0])
WRONG = {
    "backwards": (lambda: {"nodes": (NODE, replace(NODE, passed=0))}, "Node 1"),
    "to itself": (lambda: {"nodes": (replace(NODE, failed=0),)}, "Node 0"),
    "beyond": (lambda: {"nodes": (replace(NODE, passed=5),)}, "Node 0"),
    "root beyond": (lambda: {"roots": (1,)}, "roots"),
    "root below": (lambda: {"roots": (-1,)}, "roots"),
    "no roots": (lambda: {"roots": ()}, "roots"),
    "learner beyond": (lambda: {"nodes": (Node([8], [1.0]),)}, "learners"),
    "learner below": (lambda: {"nodes": (Node([-1], [1.0]),)}, "learners"),
    "output beyond": (lambda: {"nodes": (replace(NODE, outputs=(1,)),)}, "outputs"),
    "no output": (lambda: {"nodes": (Node([], [], [], ()),)}, "output"),
    "charge": (lambda: {"charge": "bit"}, "charge"),
    "link without classes": (lambda: {"link": "logistic"}, "classes"),
    "classes without link": (lambda: {"classes": np.array([0, 1])}, "classes"),
    "three classes on one score": (lambda: {"link": "softmax", "classes": np.arange(3)}, "3 classes"),
    "unknown link": (lambda: {"link": "probit", "classes": np.arange(1)}, "link"),
    "unknown combine": (lambda: {"nodes": (replace(NODE, combine="subtract"),)}, "combine"),
    "unknown activation": (lambda: {"nodes": (replace(NODE, activation="relu"),)}, "activation"),
    "confidence without classes": (lambda: {"nodes": (replace(NODE, gate=Gate.unless_confident(0.5)),)}, "confidence"),
    "features beyond": (lambda: {"dictionary": RawFeatures(columns=[0, 8])}, "features"),
    "evaluation prices": (lambda: {"costs": replace(COSTS, evaluation=(1.0, 2.0))}, "2 evaluation prices"),
    "prior of two dimensions": (lambda: {"prior": np.zeros((1, 2))}, "prior"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_plan_that_does_not_fit_together_is_refused(what):
    change, message = WRONG[what]
    fields = {"costs": COSTS, "dictionary": RAW, "nodes": (NODE,), "prior": [0.0]}
    with pytest.raises(ValueError, match=message):
        Plan(**{**fields, **change()})


def test_gates_that_mean_nothing_are_refused():
    for make in (lambda: Gate.top(0), lambda: Gate.among_seen(0), lambda: Gate.near_top(0, 1.0)):
        with pytest.raises(ValueError, match="at least one document"):
            make()
    with pytest.raises(ValueError, match="direction"):
        Gate("threshold", 0.0, 2)
    with pytest.raises(ValueError, match="gate"):
        Gate("closed")


def test_nodes_whose_arrays_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="weights"):
        Node([0, 1], [1.0])
    with pytest.raises(ValueError, match="weights"):
        Node([0, 1], [[1.0], [2.0]], outputs=(0, 1))
    with pytest.raises(ValueError, match="routing"):
        Node([0, 1], [1.0, 2.0], routing=[1.0])


GOOD = {name: getattr(TREES, name) for name in TREES.array_types}


def changed(name, at, value):
    array = np.array(GOOD[name])
    array[at] = value
    return {**GOOD, name: array}


BAD_TREES = {
    "child before parent": changed("left", 2, 1),
    "child beyond the tree": changed("left", 0, 4),
    "child at the end of the numbers": changed("left", 0, 2**31 - 1),
    "child below": changed("left", 0, -5),
    "leaf with a threshold": changed("threshold", 1, 0.0),
    "leaf that sends missing values right": changed("missing_right", 1, True),
    "threshold that is not a number": changed("threshold", 0, np.nan),
    "feature below": changed("feature", 0, -1),
    "start that falls": changed("start", 1, 0),
    "start that ends early": {**GOOD, "start": GOOD["start"][:-1]},
    "values too few": {**GOOD, "value": GOOD["value"][:-1]},
}


@pytest.mark.parametrize("what", BAD_TREES)
def test_tables_of_trees_that_would_be_read_outside_are_refused(what):
    with pytest.raises(ValueError, match="tree table"):
        Trees(**BAD_TREES[what])


def test_trees_are_evaluated_one_by_one_as_the_oracle_does():
    from oracles.executor import _fresh, _tree_value

    plan = PLANS["forest"]()

    X = rows(130, 4, 0.2)
    for t in range(len(TREES)):
        assert TREES.evaluate(X, t).tolist() == [_tree_value(plan, t, _fresh(plan, x)) for x in X]
    assert TREES.depth.tolist() == [2, 2, 1, 1, 2, 2, 0, 1, 2, 1, 1, 2]
    assert TREES.features_of(8).tolist() == [4, 5]
    assert stack_trees([]).depth.size == 0
    assert len(stack_trees([tree(1.0)])) == 1


def test_a_plan_is_frozen():
    plan = PLANS["forest"]()
    with pytest.raises(FrozenInstanceError):
        plan.charge = "path"
    for array in (plan.prior, plan.classes, plan.dictionary.value, plan.nodes[0].weights):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_describes_itself_with_the_ledgers_figures(name):
    plan = PLANS[name]()
    text = plan.describe()
    assert f"{len(plan.nodes)} node{'s' if len(plan.nodes) > 1 else ''}" in text
    assert plan.export("dot").startswith("digraph")
    if name in ("anytime", "anytime_trees"):
        lines = plan.purchases()
        bought = [a for line in lines for a in line["buys"]]
        assert sorted(bought) == sorted(COSTS.prices)
        total = sum(line["price"] + line["evaluation"] for line in lines)
        np.testing.assert_allclose(total, plan.predict_cost(np.zeros((1, 8)))[0])
    if not plan.nodes:
        assert plan.purchases() == []
    assert EXIT == -1

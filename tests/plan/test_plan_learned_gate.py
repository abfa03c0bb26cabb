"""A learned gate: its forest looks at owned columns and at how sure the answer is; batch, walk and file agree."""

import numpy as np
import pytest

from miserly.costs import CostTable
from miserly.plan import EXIT, Gate, Node, Plan, load_plan, stack_trees
from oracles.driver import assert_walk_is, drive

COSTS = CostTable.per_feature({"a": 1.0, "b": 2.0, "c": 5.0})


def stump(feature, threshold, low, high):
    return {
        "feature": np.array([feature, 0, 0], np.int32),
        "threshold": np.array([threshold, np.inf, np.inf]),
        "left": np.array([1, 1, 2], np.int32),
        "missing_right": np.zeros(3, bool),
        "value": np.array([0.0, low, high]),
    }


def gated_plan(*rule):
    """Three classes: feature a, then c where the rule says so; the rule's column b is paid at the first node."""
    trees = stack_trees([stump(0, 0.0, -1.0, 1.0), stump(2, 0.0, -3.0, 3.0)])
    nodes = (
        Node([0], np.array([[1.0, 0.0, -1.0]]), np.zeros(3), (0, 1, 2), gate=Gate.learned(), passed=1,
             rule=stack_trees(list(rule))),
        Node([1], np.array([[0.0, 1.0, -1.0]]), np.zeros(3), (0, 1, 2), combine="replace"),
    )  # fmt: skip
    return Plan(COSTS, trees, nodes, np.array([0.5, 0.0, 0.0]), "softmax", np.array([0, 1, 2]))


# Inputs of a rule: 0-2 the columns, 3-5 the probabilities, 6 the highest of them, 7 its distance from the second.
PLAN = gated_plan(stump(1, 0.3, -1.0, 0.5), stump(6, 0.7, 0.6, -0.6))


def test_the_gate_is_what_its_forest_says():
    X = np.random.default_rng(0).normal(size=(200, 3))
    first = np.array([0.5, 0.0, 0.0]) + np.where(X[:, :1] > 0, 1.0, -1.0) * [1.0, 0.0, -1.0]
    p = np.exp(first) / np.exp(first).sum(axis=1, keepdims=True)
    gain = np.where(X[:, 1] > 0.3, 0.5, -1.0) + np.where(p.max(axis=1) > 0.7, -0.6, 0.6)
    result = PLAN.run(X)
    assert 0 < (gain > 0).sum() < 200
    np.testing.assert_array_equal(result.exit[:, 0], gain > 0)
    np.testing.assert_array_equal(result.cost, np.where(gain > 0, 8.0, 3.0))


def test_a_walk_and_a_file_equal_the_batch(tmp_path):
    X = np.random.default_rng(1).normal(size=(30, 3))
    PLAN.save(tmp_path / "p.plan")
    loaded = load_plan(tmp_path / "p.plan")
    assert loaded == PLAN
    assert gated_plan(stump(1, 0.3, -1.0, 0.5)) != PLAN
    result = PLAN.run(X)
    for i, x in enumerate(X):
        assert_walk_is(drive(loaded, x, None), result, i)


def test_what_a_rule_may_not_look_at_is_refused():
    with pytest.raises(ValueError, match="learned gate"):
        gated_plan(stump(8, 0.0, 0.0, 1.0))
    with pytest.raises(ValueError, match="exactly if its gate is learned"):
        Node([], np.zeros((0, 1)), passed=EXIT, gate=Gate.learned())

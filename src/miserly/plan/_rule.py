"""The rule of a learned gate: a small forest that says what going on is expected to gain, less what it costs.

Its trees look at what the row owns at the node, and at how sure the row's present answer is. Feature f of a tree is

- column f of the data, for f below the number of features of the plan;
- then the probability of each class (the scores themselves where a plan has no classes);
- then, with classes, the highest probability, and its distance from the second highest.

The node pays for the columns that its rule may look at, as it does for those of its learners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from miserly._typing import Floats
from miserly.kernels import trees as kernels
from miserly.plan._dictionary import Trees

if TYPE_CHECKING:
    from miserly.plan._plan import Plan


def n_inputs(plan: Plan) -> int:
    """How many features the trees of a rule may number."""
    return len(plan.costs.features) + (plan.n_outputs if plan.classes is None else len(plan.classes) + 2)


def rule_inputs(plan: Plan, X: Floats, z: Floats) -> Floats:
    """The columns that a rule may look at: the data (rows × features), then how sure the answer `z` is."""
    if plan.classes is None:
        return np.concatenate([X, z], axis=1)
    return np.concatenate([X, confidence_columns(plan.probabilities(np.ascontiguousarray(z)))], axis=1)


def confidence_columns(p: Floats) -> Floats:
    """Probabilities (rows × classes), then the highest of each row and its distance from the second highest."""
    ordered = np.sort(p, axis=1)
    return np.concatenate([p, ordered[:, -1:], ordered[:, -1:] - ordered[:, -2:-1]], axis=1)


def rule_value(rule: Trees, inputs: Floats) -> Floats:
    """The sum of a rule's trees for each row; the same bits for one row as for many."""
    n = len(rule)
    out = np.zeros((len(inputs), 1))
    learners, pointer, output = np.arange(n, dtype=np.int32), np.arange(n + 1, dtype=np.int32), np.zeros(n, np.int32)
    keep, no_values, no_known = np.full(n, -1, np.int32), np.zeros((1, 1)), np.zeros((1, 1), np.bool_)
    edges = (learners, pointer, output, np.ones(n), keep, no_values, no_known)
    kernels.add_trees(inputs, np.arange(len(inputs)), rule.table, rule.used, *edges, out)
    return out[:, 0]

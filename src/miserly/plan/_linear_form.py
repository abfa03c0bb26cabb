"""A plan whose rows all go the same way is one weighted sum of its learners: what other formats can say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from miserly._typing import Floats
from miserly.plan._dictionary import Trees, stack_trees
from miserly.plan._node import EXIT

if TYPE_CHECKING:
    from miserly.plan._plan import Plan

MOST_PLACES = 1 << 24  # some gigabytes as text


@dataclass(frozen=True)
class Sum:
    """z = Σ_t weights[t] h_t(x) + constant, one column for each output: what the plan's link reads."""

    weights: Floats
    constant: Floats

    @property
    def learners(self) -> NDArray[np.intp]:
        """Those that count."""
        return np.flatnonzero(self.weights.any(axis=1))


def unshared(trees: Trees) -> Trees:
    """The same trees where each split has its own children, as other formats need: a question about categories shares
    the ends of its branches."""
    inner = np.flatnonzero(~trees.is_leaf)
    if len(np.unique(trees.left[inner])) == len(inner):
        return trees
    tables, n_places = [], 0
    for root in trees.start[:-1].tolist():
        order, left, at = [root], [], 0
        while at < len(order):
            place = order[at]
            left.append(at if trees.is_leaf[place] else len(order))
            if not trees.is_leaf[place]:
                order += [int(trees.left[place]), int(trees.left[place]) + 1]
            at += 1
            if n_places + at > MOST_PLACES:
                raise ValueError(f"Without shared branches the trees take more than {MOST_PLACES} places.")
        n_places += at
        parts = {name: getattr(trees, name)[order] for name in ("feature", "threshold", "missing_right", "value")}
        tables.append({**parts, "left": np.array(left)})
    return stack_trees(tables)


def as_sum(plan: Plan) -> Sum:
    """The sum that a plan computes for every row; refused if rows take different ways or lack features of the plan."""
    if plan.unavailable:
        raise ValueError(
            f"The plan does without {plan.unavailable[0]!r}, which other formats would read. Write the plan before it "
            "is truncated, or fit a model within the budget."
        )
    if getattr(plan, "policy", None) is not None:
        raise ValueError("The plan chooses for each row what to buy. Other formats have no purchases.")
    weights, constant = np.zeros((len(plan.dictionary), len(plan.prior))), plan.prior.copy()
    scale, offset = np.ones(len(plan.prior)), np.zeros(len(plan.prior))
    for root in plan.roots:
        k = root
        while k != EXIT:
            node = plan.nodes[k]
            if node.gate.kind != "open" and node.passed != node.failed:
                raise ValueError(
                    f"Node {k} sends rows different ways ({node.gate.describe()}). Only plans in which all rows go the "
                    "same way can be written in other formats."
                )
            if not node.is_direct:
                raise ValueError(f"Node {k} is more than a sum ({node.combine}, {node.activation}).")
            outputs = np.array(node.outputs)
            if node.combine == "replace":
                weights[:, outputs], constant[outputs] = 0.0, 0.0
            np.add.at(weights, np.ix_(node.learners, outputs), node.weights)
            constant[outputs] += node.bias
            scale[outputs] = 1.0 if node.scale is None else node.scale
            offset[outputs] = 0.0 if node.offset is None else node.offset
            k = node.passed
    return Sum(weights * scale, constant * scale + offset)

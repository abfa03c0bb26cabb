"""Several models one after another: each answers in place of the one before, so that rows may stop between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from miserly.plan._dictionary import Trees
from miserly.plan._node import EXIT, Node
from miserly.plan._plan import Plan


def cascade(plans: Sequence[Plan]) -> Plan:
    """The plans of several sums of trees as one, in the given order, cheapest first, say: a row buys what the next one
    needs and takes its answer instead. `confidence`, a budget, or the gates of `stopping` end its way between them.

    All must have the same features at the same prices, and answer in the same way.

    Parameters
    ----------
    plans : sequence of Plan
        At least one, each a sum of trees without gates, in the order in which rows meet them.

    Returns
    -------
    Plan
        A chain of stages, each of which replaces the prediction of the one before.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> costs = ms.CostTable.per_feature([1.0, 5.0])
    >>> models = [ms.GreedyMiserClassifier(costs, t, n_estimators=5).fit(X, X.sum(axis=1) > 0) for t in (0.03, 0.0)]
    >>> plan = ms.cascade([model.plan_ for model in models])
    >>> bool((plan.predict_cost(X, confidence=0.6) <= plan.predict_cost(X)).all())
    True
    """
    if not plans:
        raise ValueError("Give at least one plan.")
    first, nodes, n_trees = plans[0], [], 0
    for number, plan in enumerate(plans):
        _check(first, plan, number)
        if plan.nodes:
            node = joined([plan.nodes[k] for k in plan.tables.chain], plan.n_outputs, EXIT)
            bias = node.bias + plan.prior
            nodes.append(replace(node, learners=node.learners + n_trees, bias=bias, combine="replace"))
        n_trees += len(plan.dictionary)
    nodes[:-1] = [replace(node, passed=k) for k, node in enumerate(nodes[:-1], start=1)]
    return replace(
        first,
        dictionary=_stacked([plan.dictionary for plan in plans]),
        nodes=tuple(nodes),
        roots=(0,) if nodes else (),
        certificate=None,
        shares=None if any(plan.shares is None for plan in plans) else np.concatenate([p.shares for p in plans]),
        notes={
            "estimator": "cascade",
            "models": [plan.notes.get("estimator", "Plan") for plan in plans],
        },
    )


def joined(nodes: Sequence[Node], n_outputs: int, passed: int) -> Node:
    """Nodes of a sum as one."""
    learners = np.concatenate([node.learners for node in nodes])
    weights, bias = np.zeros((len(learners), n_outputs)), np.zeros(n_outputs)
    scale, offset = np.ones(n_outputs), np.zeros(n_outputs)
    at = 0
    for node in nodes:
        here = list(node.outputs)
        weights[at : at + len(node.learners), here] = node.weights
        bias[here] += node.bias
        scale[here] = 1.0 if node.scale is None else node.scale
        offset[here] = 0.0 if node.offset is None else node.offset
        at += len(node.learners)
    return Node(
        learners,
        weights,
        bias=bias,
        outputs=tuple(range(n_outputs)),
        scale=scale if (scale != 1.0).any() else None,
        offset=offset if offset.any() else None,
        passed=passed,
    )


def _check(first: Plan, plan: Plan, number: int) -> None:
    what = f"Plan {number}"
    if not isinstance(plan.dictionary, Trees) or (plan.nodes and not plan.tables.chain):
        raise ValueError(f"{what} is not a sum of trees without gates; only such models can be cascaded.")
    if not all(node.is_sum for node in plan.nodes):
        raise ValueError(f"{what} does more than add up its trees; only sums can be cascaded.")
    if plan.costs != first.costs or plan.charge != first.charge:
        raise ValueError(f"{what} has other features, prices or another charge than the first.")
    if (plan.link, plan.n_outputs, _names(plan)) != (first.link, first.n_outputs, _names(first)):
        raise ValueError(f"{what} does not answer as the first does: another link, or other classes.")
    if _categories(plan) != _categories(first):
        raise ValueError(f"{what} numbers the categories of a feature in another way than the first.")


def _categories(plan: Plan) -> dict[str, Any]:
    return {} if plan.schema is None else plan.schema.categories


def _names(plan: Plan) -> list[Any] | None:
    return None if plan.classes is None else plan.classes.tolist()


def _stacked(dictionaries: Sequence[Any]) -> Trees:
    ends = np.cumsum([0, *(len(trees.left) for trees in dictionaries)])
    parts = {name: [getattr(trees, name) for trees in dictionaries] for name in dictionaries[0].arrays()}
    parts["start"] = [*(s[:-1] + place for s, place in zip(parts["start"], ends)), ends[-1:]]
    parts["left"] = [left + place for left, place in zip(parts["left"], ends)]
    return Trees(**{name: np.concatenate(arrays) for name, arrays in parts.items()})

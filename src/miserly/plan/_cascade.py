"""Several models one after another: each answers in place of the one before, so that rows may stop between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from miserly.plan._dictionary import Trees, stack_trees
from miserly.plan._node import EXIT, Gate, Node
from miserly.plan._plan import Plan


def cascade(plans: Sequence[Plan], go_on: Sequence[Plan] | None = None) -> Plan:
    """The plans of several sums of trees as one, in the given order, cheapest first, say: a row buys what the next one
    needs and takes its answer instead. `confidence`, a budget, or the gates of `stopping` end its way between them.

    All must have the same features at the same prices, and answer in the same way.

    Parameters
    ----------
    plans : sequence of Plan
        At least one, each a sum of trees without gates, in the order in which rows meet them.
    go_on : sequence of Plan, optional
        Who goes on: for each plan but the last one that predicts a number, a sum of trees over the same features. Rows
        for which it is above 0 go on, the others stop. What it looks at is paid where it stands. By default all go on.

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
            bias = node.bias + (0.0 if plan.nodes[plan.tables.chain[0]].combine == "replace" else plan.prior)
            nodes.append(replace(node, learners=node.learners + n_trees, bias=bias, combine="replace"))
        elif go_on is not None:  # a free constant: rows may stop there
            outputs = tuple(range(plan.n_outputs))
            none = np.zeros(0, np.int32)
            nodes.append(Node(none, np.zeros((0, plan.n_outputs)), plan.prior, outputs, "replace"))
        n_trees += len(plan.dictionary)
    nodes[:-1] = [replace(node, passed=k) for k, node in enumerate(nodes[:-1], start=1)]
    if go_on is not None:
        if len(go_on) != len(nodes) - 1:
            raise ValueError(f"{len(nodes)} plans have {len(nodes) - 1} gates between them, go_on has {len(go_on)}.")
        rules = [_rule(first, plan, number) for number, plan in enumerate(go_on)]
        nodes[:-1] = [replace(node, gate=Gate.learned(), rule=rule) for node, rule in zip(nodes, rules)]
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


def _rule(first: Plan, plan: Plan, number: int) -> Trees:
    """The trees of a plan that predicts a number as the rule of a gate."""
    what = f"Plan {number} of go_on"
    if not isinstance(plan.dictionary, Trees) or (plan.nodes and not plan.tables.chain) or not _is_sum(plan):
        raise ValueError(f"{what} is not a sum of trees without gates. Fit a boosted regressor.")
    if plan.classes is not None or plan.link != "identity":
        raise ValueError(f"{what} does not predict a number, what going on is expected to gain. Fit a regressor.")
    if plan.costs.features != first.costs.features or _categories(plan) != _categories(first):
        raise ValueError(f"{what} has other features than the plans.")
    trees, nodes = plan.dictionary, [plan.nodes[k] for k in plan.tables.chain]
    replaced = bool(nodes) and nodes[0].combine == "replace"
    constant = sum(float(node.bias[0]) for node in nodes) + (0.0 if replaced else float(plan.prior[0]))
    leaf = {"feature": [0], "threshold": [np.inf], "left": [0], "missing_right": [False], "value": [constant]}
    tables = [{name: np.array(values) for name, values in leaf.items()}]
    for node in nodes:
        for tree, weight in zip(node.learners, node.weights[:, 0]):
            places = slice(trees.start[tree], trees.start[tree + 1])
            table = {name: getattr(trees, name)[places] for name in leaf}
            tables.append({**table, "left": table["left"] - trees.start[tree], "value": weight * table["value"]})
    return stack_trees(tables)


def _check(first: Plan, plan: Plan, number: int) -> None:
    what = f"Plan {number}"
    if not isinstance(plan.dictionary, Trees) or (plan.nodes and not plan.tables.chain):
        raise ValueError(f"{what} is not a sum of trees without gates; only such models can be cascaded.")
    if not _is_sum(plan):
        raise ValueError(f"{what} does more than add up its trees; only sums can be cascaded.")
    if plan.costs != first.costs or plan.charge != first.charge:
        raise ValueError(f"{what} has other features, prices or another charge than the first.")
    if (plan.link, plan.n_outputs, _names(plan)) != (first.link, first.n_outputs, _names(first)):
        raise ValueError(f"{what} does not answer as the first does: another link, or other classes.")
    if _categories(plan) != _categories(first):
        raise ValueError(f"{what} numbers the categories of a feature in another way than the first.")


def _is_sum(plan: Plan) -> bool:
    """Whether it adds up its trees; the first node may replace the free answer, as that of imported models does."""
    nodes = [plan.nodes[k] for k in plan.tables.chain]
    whole = all(n.is_direct and n.routing is None and len(n.outputs) == plan.n_outputs for n in nodes[:1])
    return whole and all(node.is_sum for node in nodes[1:])


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


def put_in_front(front: Plan, plan: Plan, X: Any, keep: int = 10, rounds: int | None = None) -> Plan:
    """A cheap ranker before an expensive one: the first documents of each query go on, the others leave with its score.

    Those that go on get the sum of both scores, brought to the same spread, and rank above the others. Rankers that err
    differently are better together than alone, so the expensive one may need few of its rounds.

    Parameters
    ----------
    front : Plan
        The cheap ranker: trees that add up to one score. Fit it with `plan.costs`.
    plan : Plan
        The expensive one, of the same columns and prices: what `import_plan` made, say.
    X : array or frame, rows × features
        Rows, without labels, on which both scores get the same spread.
    keep : int, default=10
        How many documents of each query go on, 1 or more.
    rounds : int, optional
        How many rounds of the expensive ranker are used, from its first. By default all.

    Returns
    -------
    Plan
        Ranks by `rank_score`, with the query of each row.

    Examples
    --------
    >>> import numpy as np
    >>> import miserly as ms
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(200, 2)), np.repeat(np.arange(10), 20)
    >>> costs, y = ms.CostTable.per_feature([1.0, 9.0]), np.digitize(X.sum(axis=1), [0.0, 1.0])
    >>> cheap, whole = (ms.GreedyMiserRanker(costs, t, n_estimators=9).fit(X, y, qid=qid).plan_ for t in (0.1, 0.0))
    >>> plan = ms.put_in_front(cheap, whole, X, keep=5)
    >>> plan.predict_cost(X, qid).mean() < whole.predict_cost(X).mean()
    np.True_
    """
    for name, part in (("front", front), ("plan", plan)):
        if getattr(part, "laziness", None) is not None:
            raise ValueError(
                f"The {name} is lazy, and a lazy plan cannot be part of another. Give the plan that it was made of, "
                "and take the cheaper of the two, in front or lazy, on validation rows."
            )
        if not isinstance(part.dictionary, Trees) or not part.tables.chain or not _is_sum(part):
            raise ValueError(f"The {name} is not a sum of trees without gates. Give a boosted ranker.")
        if part.classes is not None or part.n_outputs > 1:
            raise ValueError(f"The {name} does not predict one number, by which documents are ranked. Give a ranker.")
    if front.costs != plan.costs:
        raise ValueError("The rankers have other features or prices. Fit the front with the costs of the plan.")
    if rounds is not None and rounds < 1:
        raise ValueError(f"rounds is a number of rounds, 1 or more, got {rounds}.")
    parts = [[part.nodes[k] for k in part.tables.chain] for part in (front, plan)]
    parts[1] = parts[1][:rounds]
    ends = replace(plan, nodes=_linked(parts[1]), roots=(0,), certificate=None)
    spread = [float(np.std(score)) for score in (front.score(X), ends.score(X))]
    factor = spread[1] / spread[0] if spread[0] > 0.0 else 1.0
    first = [replace(n, weights=n.weights * factor, bias=n.bias * factor) for n in parts[0]]
    second = [replace(n, learners=n.learners + len(front.dictionary), combine="add", tier=1) for n in parts[1]]
    nodes = list(_linked([*first, *second]))
    nodes[len(first) - 1] = replace(nodes[len(first) - 1], gate=Gate.top(keep), failed=EXIT)
    both = front.shares is not None and plan.shares is not None
    return replace(
        plan,
        dictionary=_stacked([front.dictionary, plan.dictionary]),
        nodes=tuple(nodes),
        prior=front.prior * factor,
        roots=(0,),
        certificate=None,
        shares=np.concatenate([front.shares, plan.shares]) if both else None,
        notes={
            "estimator": "put_in_front",
            "task": "ranking",
            "models": [p.notes.get("estimator", "Plan") for p in (front, plan)],
        },
    )


def _linked(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """A chain of open nodes, each leading to the next."""
    last = len(nodes) - 1
    return tuple(replace(n, passed=k + 1 if k < last else EXIT) for k, n in enumerate(nodes))

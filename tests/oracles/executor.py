"""A slow, obvious executor of plans: one query at a time, with sets and lists, written from the design and not from the
code. It is the gold standard that the batch run, the walk and the list walk must equal."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from miserly.plan import EXIT, Kernels, Trees
from oracles.kernel_functions import coupled, value


class CannotPay(Exception):  # noqa: N818
    """The next purchase would exceed the budget."""


@dataclass
class Row:
    """What is known of one row on its way."""

    x: list[float]
    score: list[float]
    scale: list[float]
    offset: list[float]
    exit: list[int]
    owned: set[str] = field(default_factory=set)
    evaluated: set[int] = field(default_factory=set)
    answered: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)
    is_skipping: bool = False
    tier: int = 0
    out_of_budget: bool = False

    @property
    def z(self):
        return [s * a + b for s, a, b in zip(self.score, self.scale, self.offset)]


def execute(plan, X, qid=None, budget=None, charge=None):
    """The rows after the plan: each query on its own where gates compare documents, else each row on its own."""
    n = len(X)
    keys = [0] * n if qid is None else list(qid)
    if not any(node.gate.kind in ("proximity", "rank", "capacity") for node in plan.nodes):
        keys = list(range(n))
    done = [None] * n
    for key in dict.fromkeys(keys):
        members = [i for i in range(n) if keys[i] == key]
        rows = [_fresh(plan, X[i]) for i in members]
        _run_query(plan, rows, math.inf if budget is None else budget, charge or plan.charge)
        for i, row in zip(members, rows):
            done[i] = row
    return done


def cost(plan, row):
    """The exactly rounded price of the set that the row bought."""
    evaluation = plan.costs.evaluation
    each = evaluation if isinstance(evaluation, tuple) else [evaluation] * len(plan.dictionary)
    return math.fsum([plan.costs.prices[a] for a in row.owned] + [each[t] for t in row.evaluated])


def features_bought(plan, row):
    """The features that a row may look at: those whose every acquisition it owns."""
    return [f for f in plan.costs.features if set(plan.costs.needs[f]) <= row.owned]


def _fresh(plan, x):
    k = len(plan.prior)
    x = [float(v) for v in x]
    unknown = {i for i, name in enumerate(plan.costs.features) if name in plan.unavailable}
    for i in range(len(x)):
        x[i] = math.nan if i in unknown else x[i]
        x[i] = float(plan.means[i]) if plan.means is not None and math.isnan(x[i]) else x[i]
    row = Row(x, [float(p) for p in plan.prior], [1.0] * k, [0.0] * k, [EXIT] * len(plan.roots))
    row.unknown = unknown
    return row


def _run_query(plan, rows, budget, charge):
    for number, root in enumerate(plan.roots):
        place = [root] * len(rows)
        for row in rows:
            row.is_skipping = False
        for k, node in enumerate(plan.nodes):
            here = []
            for i, row in enumerate(rows):
                if place[i] != k:
                    continue
                if not _enter(plan, node, row, budget, charge):
                    place[i] = EXIT
                    if row.is_skipping and node.gate.kind in ("open", "confidence"):
                        place[i] = node.passed if _gate(plan, node.gate, [row], [None])[0] else node.failed
                    continue
                here.append((i, row, _score(plan, node, row)))
                row.exit[number] = k
                row.tier = node.tier
            passed = _gate(plan, node.gate, [row for _, row, _ in here], [seen for _, _, seen in here])
            for (i, _, _), on in zip(here, passed):
                place[i] = node.passed if on else node.failed


def _buy(plan, row, acquisitions, learners, budget):
    owned, evaluated = row.owned, row.evaluated
    row.owned, row.evaluated = owned | set(acquisitions), evaluated | set(learners)
    if cost(plan, row) > budget:
        row.owned, row.evaluated = owned, evaluated
        raise CannotPay


def _enter(plan, node, row, budget, charge):
    """Buy what the node needs, or what of it fits the budget; tells whether the row is scored by the node.

    Features that do not fit are missing, or have the mean of the training rows. A node that would replace an answer
    that the row has is bought whole or skipped, and so are the nodes that add to it.
    """
    replaces = node.combine == "replace"
    if row.is_skipping and not replaces:
        row.out_of_budget = True
        return False
    is_whole = replaces and set(node.outputs) <= row.answered
    try:
        missed = _pay(plan, node, row, budget, charge, is_whole)
    except CannotPay:
        row.out_of_budget, row.is_skipping = True, is_whole
        return False
    row.out_of_budget |= missed
    row.is_skipping = False
    row.answered |= set(node.outputs) if len(node.learners) else set()
    return True


def _pay(plan, node, row, budget, charge, is_whole):
    """Buy; tells whether some features did not fit."""
    learners = [int(t) for t in node.learners]
    missed = False
    if charge == "path" and isinstance(plan.dictionary, Trees):
        _buy(plan, row, (), learners, budget)
        for t in learners:
            missed |= _walk_tree(plan, t, row, budget, is_whole)
        return missed
    features = [f for t in learners for f in _features(plan.dictionary, t)]
    try:
        _buy(plan, row, {a for f in features for a in _needs(plan, f)}, learners, budget)
    except CannotPay:
        if is_whole or not (isinstance(plan.dictionary, Trees) or plan.means is not None):
            raise
        _buy(plan, row, (), learners, budget)
        for f in features:
            missed |= not _could_buy(plan, row, f, budget)
    return missed


def _could_buy(plan, row, feature, budget):
    """Buy a feature if it fits; if not, the row never knows it."""
    try:
        _buy(plan, row, _needs(plan, feature), (), budget)
    except CannotPay:
        if plan.means is not None:
            row.x[feature] = float(plan.means[feature])
        row.unknown.add(feature)
        return False
    return True


def _walk_tree(plan, t, row, budget, is_whole):
    trees, missed = plan.dictionary, False
    at = int(trees.start[t])
    while trees.left[at] != at:
        feature = int(trees.feature[at])
        if is_whole:
            _buy(plan, row, _needs(plan, feature), (), budget)
        else:
            missed |= not _could_buy(plan, row, feature, budget)
        at = _child(plan, at, row)
    return missed


def _child(plan, at, row):
    """Where a row goes from a split; one that does not know the feature goes where most training rows went."""
    trees, feature = plan.dictionary, int(plan.dictionary.feature[at])
    value = row.x[feature]
    if feature in row.unknown and plan.shares is not None:
        right = plan.shares[at] < 0.5
    elif feature in row.unknown or math.isnan(value):
        right = bool(trees.missing_right[at])
    else:
        right = value > trees.threshold[at]
    return int(trees.left[at]) + bool(right)


def _adds_to_prior(plan, t):
    """Whether some node adds a tree to the prior: then the tree says nothing where its root is not known."""
    for node in plan.nodes:
        constants = [b + (plan.prior[k] if node.combine == "add" else 0.0) for b, k in zip(node.bias, node.outputs)]
        is_prior = constants == [plan.prior[k] for k in node.outputs]
        if t in node.learners and is_prior and node.activation == "identity":
            return True
    return False


def _mean(plan, at):
    """The mean value of the training rows at a place."""
    left = int(plan.dictionary.left[at])
    if left == at:
        return float(plan.dictionary.value[at])
    share = float(plan.shares[at])
    return share * _mean(plan, left) + (1.0 - share) * _mean(plan, left + 1)


def _tree_value(plan, t, row):
    """The value of a tree; what is not known changes nothing in the mean."""
    trees, at, correction = plan.dictionary, int(plan.dictionary.start[t]), 0.0
    while trees.left[at] != at:
        child = _child(plan, at, row)
        if int(trees.feature[at]) in row.unknown and plan.shares is not None:
            is_root = at == int(trees.start[t])
            correction += (0.0 if is_root and _adds_to_prior(plan, t) else _mean(plan, at)) - _mean(plan, child)
        at = child
    return float(trees.value[at]) + correction


def _needs(plan, feature):
    name = plan.costs.features[feature]
    return () if name in plan.unavailable else plan.costs.needs[name]


def _features(dictionary, t):
    if isinstance(dictionary, Kernels):
        return [int(c) for c in dictionary.columns]
    if not isinstance(dictionary, Trees):
        return [int(dictionary.columns[t])]
    places = range(int(dictionary.start[t]), int(dictionary.start[t + 1]))
    return [int(dictionary.feature[p]) for p in places if dictionary.left[p] != p]


def _value(plan, t, row):
    if isinstance(plan.dictionary, Kernels):
        return value(plan.dictionary, t, row.x)
    if isinstance(plan.dictionary, Trees):
        return _tree_value(plan, t, row)
    return row.x[int(plan.dictionary.columns[t])]


def _score(plan, node, row):
    """Join the node's outputs with the score; returns what its gate looks at."""
    values = [_value(plan, int(t), row) for t in node.learners]
    onto_score = node.combine == "add" and node.activation == "identity"
    for j, output in enumerate(node.outputs):
        own = row.score[output] + node.bias[j] if onto_score else float(node.bias[j])
        for i, h in enumerate(values):
            if node.weights[i, j]:
                own += float(node.weights[i, j]) * h
        own = sigmoid(own) if node.activation == "logistic" else own
        if onto_score or node.combine == "replace":
            row.score[output] = own
        elif node.combine == "add":
            row.score[output] += own
        else:
            row.score[output] *= own
        row.scale[output] = 1.0 if node.scale is None else float(node.scale[j])
        row.offset[output] = 0.0 if node.offset is None else float(node.offset[j])
    if node.routing is None:
        return row.score[node.outputs[0]]
    seen = float(node.routing_bias)
    for i, h in enumerate(values):
        if node.routing[i]:
            seen += float(node.routing[i]) * h
    return seen


def _gate(plan, gate, rows, seen):
    n = len(rows)
    if gate.kind == "open":
        return [True] * n
    if gate.kind == "threshold":
        return [s > gate.value if gate.direction > 0 else s < gate.value for s in seen]
    if gate.kind == "confidence":
        return [max(probabilities(plan, row.z)) < gate.value for row in rows]
    if gate.kind == "capacity":
        return [sum(seen[j] >= seen[i] for j in range(i)) < gate.k for i in range(n)]
    if gate.kind == "rank":
        better = [sum(seen[j] > seen[i] or (seen[j] == seen[i] and j < i) for j in range(n)) for i in range(n)]
        return [b < gate.k for b in better]
    if n < gate.k:
        return [True] * n
    kth = sorted(seen, reverse=True)[gate.k - 1]
    return [s >= kth - gate.value for s in seen]


def sigmoid(z):
    if z >= 0:
        return 1.0 / (1.0 + math.exp(-z))
    return math.exp(z) / (1.0 + math.exp(z))


def votes(z, n_classes):
    """The share of the pairs that each class wins."""
    won, pair = [0] * n_classes, 0
    for a in range(n_classes):
        for b in range(a + 1, n_classes):
            won[a if z[pair] > 0 else b] += 1
            pair += 1
    return [v / pair for v in won]


def probabilities(plan, z):
    n_classes = len(plan.classes)
    if plan.link == "vote":
        return votes(z, n_classes)
    if plan.link == "coupled":
        return coupled(z, n_classes)
    if plan.link == "softmax":
        parts = [math.exp(v - max(z)) for v in z]
    else:
        parts = [sigmoid(v) for v in z]
        if len(z) == 1:
            return [1.0 - parts[0], parts[0]]
    total = 0.0
    for p in parts:
        total += p
    return [p / total for p in parts]


def label(plan, z):
    """What `predict` answers: the most probable class, ties to the first, or the numbers themselves."""
    if plan.classes is None:
        return z[0] if len(z) == 1 else list(z)
    if plan.link == "logistic" and len(z) == 1:
        return plan.classes[int(z[0] > 0)]
    shown = votes(z, len(plan.classes)) if plan.link in ("vote", "coupled") else z
    return plan.classes[max(range(len(shown)), key=lambda c: (shown[c], -c))]


def assert_run_is(plan, result, rows, at=slice(None)):
    """The batch's result says of these rows what the oracle says, to the last bit."""
    np.testing.assert_array_equal(result.score[at], np.array([r.score for r in rows]))
    np.testing.assert_array_equal(result.cost[at], np.array([cost(plan, r) for r in rows]))
    np.testing.assert_array_equal(result.exit[at], np.array([r.exit for r in rows], int).reshape(len(rows), -1))
    np.testing.assert_array_equal(result.tier[at], [r.tier for r in rows])
    np.testing.assert_array_equal(result.out_of_budget[at], [r.out_of_budget for r in rows])
    np.testing.assert_array_equal(result.z[at], np.array([r.z for r in rows]))


def cut_or_refused(plan, budget):
    """The plan cut to a budget, or nothing where it says to use `predict`."""
    try:
        return plan.truncate(budget)
    except ValueError as error:
        if "predict(X, budget=...)" not in str(error):
            raise
        return None

"""Random plans: any graph with forward edges, over any dictionary, with any gates and prices."""

from __future__ import annotations

import numpy as np

from miserly.costs import CostTable
from miserly.plan import Chi2Kernels, Gate, Node, Plan, PolynomialKernels, RawFeatures, RBFKernels, stack_trees
from oracles.hand_built import tree

LINKS = (
    ("identity", 0, 1),
    ("identity", 0, 2),
    ("logistic", 2, 1),
    ("logistic", 3, 3),
    ("softmax", 3, 3),
    ("vote", 3, 3),
    ("coupled", 3, 3),
)


def random_plan(seed, *, kind=None, queries=None, charge="learner"):
    """A plan from a seed; prices may be zero and acquisitions shared, but every feature needs something."""
    rng = np.random.default_rng(seed)
    kind = kind or rng.choice(["raw", "trees", "trees", "rbf", "polynomial"])
    n_learners = int(rng.integers(1, 9))
    costs = _costs(rng, int(rng.integers(2, 8)), n_learners)
    d = len(costs.features)
    if kind == "raw":
        dictionary = RawFeatures(columns=rng.integers(0, d, n_learners))
    elif kind in ("rbf", "polynomial", "chi2"):
        columns = rng.choice(d, int(rng.integers(1, d + 1)), replace=False)
        place = (columns, _grid(rng, (n_learners, len(columns))), float(rng.choice([0.25, 1.0])))
        if kind == "polynomial":
            dictionary = PolynomialKernels(*place, 0.5, int(rng.integers(1, 4)))
        elif kind == "rbf":
            dictionary = RBFKernels(*place)
        else:
            dictionary = Chi2Kernels(place[0], np.abs(place[1]), place[2])
    else:
        dictionary = stack_trees([tree(_tree(rng, d, int(rng.integers(0, 4)))) for _ in range(n_learners)])
    link, n_classes, n_outputs = LINKS[rng.integers(len(LINKS))]
    queries = rng.random() < 0.4 if queries is None else queries
    n_nodes = int(rng.integers(1, 8))
    chain = rng.random() < 0.4
    nodes = [_node(rng, k, n_nodes, n_learners, n_outputs, n_classes, queries, chain) for k in range(n_nodes)]
    roots = (
        (0,)
        if chain or rng.random() < 0.6
        else tuple(rng.choice(n_nodes, int(rng.integers(1, min(3, n_nodes) + 1)), False))
    )
    classes = np.array(["x", "y", "z"][:n_classes]) if n_classes else None
    prior = _grid(rng, n_outputs)
    means = None if kind == "trees" or rng.random() < 0.3 else _grid(rng, d)
    away = () if rng.random() < 0.7 or (kind != "trees" and means is None) else costs.features[:1]
    shares = rng.integers(0, 5, len(dictionary.left)) / 4.0 if kind == "trees" and rng.random() < 0.6 else None
    background = {"means": means, "unavailable": away, "shares": shares}
    return Plan(costs, dictionary, tuple(nodes), prior, link, classes, roots, charge, **background)


def random_rows(plan, seed, n=12):
    """Rows on a grid with ties, and interleaved query ids. Values are missing only where trees read them."""
    rng = np.random.default_rng(seed + 1)
    X = _grid(rng, (n, len(plan.costs.features)))
    if (plan.dictionary.kind == "trees" or plan.means is not None) and rng.random() < 0.7:
        X[rng.random(X.shape) < 0.25] = np.nan
    return X, rng.integers(0, 3, n)


def random_budgets(plan, X, qid, seed, charge=None):
    """Budgets at which things happen: nothing, the very prices that rows pay, just below them, and in between."""
    rng = np.random.default_rng(seed + 2)
    paid = np.unique(plan.predict_cost(X, qid, charge=charge))
    some = rng.choice(paid, min(2, len(paid)), replace=False)
    return [0.0, *some, *np.nextafter(some, -1.0), float(rng.random() * (paid.max() + 0.1))]


def _grid(rng, shape):
    return rng.integers(-4, 5, shape) / 4.0


def _costs(rng, d, n_learners):
    n_acquisitions = int(rng.integers(1, d + 3))
    unused = 66 if rng.random() < 0.25 else 0
    names = [f"unused{i}" for i in range(unused)] + [f"a{i}" for i in range(n_acquisitions)]
    prices = {name: float(rng.choice([0.0, 0.1, 0.2, 0.3, 1.0, 2.5, 7.7])) for name in names}
    needs = {}
    for f in range(d):
        size = int(rng.integers(1, min(3, n_acquisitions) + 1))
        needs[f"f{f}"] = tuple(rng.choice(names[unused:], size, replace=False).tolist())
    evaluation = [0.0, 0.1, tuple(rng.choice([0.0, 0.1, 0.7], n_learners).tolist())][rng.integers(3)]
    return CostTable(tuple(needs), needs, prices, evaluation)


def _tree(rng, d, depth):
    if depth == 0 or rng.random() < 0.15:
        return float(_grid(rng, ())) if rng.random() < 0.5 else float(rng.normal())
    left, right = _tree(rng, d, depth - 1), _tree(rng, d, depth - 1)
    return (int(rng.integers(d)), float(_grid(rng, ())), left, right, bool(rng.random() < 0.5))


def _gate(rng, n_classes, queries):
    kinds = ["open", "open", "above", "below"] + ["confidence"] * bool(n_classes) + ["near", "top", "seen"] * queries
    kind = rng.choice(kinds)
    value = float(_grid(rng, ()))
    return {
        "open": Gate(),
        "above": Gate.above(value),
        "below": Gate.below(value),
        "confidence": Gate.unless_confident(float(rng.choice([0.4, 0.6, 2 / 3, 0.8]))),
        "near": Gate.near_top(int(rng.integers(1, 4)), abs(value)),
        "top": Gate.top(int(rng.integers(1, 4))),
        "seen": Gate.among_seen(int(rng.integers(1, 4))),
    }[kind]


def _node(rng, k, n_nodes, n_learners, n_outputs, n_classes, queries, chain):
    learners = rng.choice(n_learners, int(rng.integers(0, min(3, n_learners) + 1)), replace=False)
    outputs = np.sort(rng.choice(n_outputs, int(rng.integers(1, n_outputs + 1)), replace=False))
    shape = (len(learners), len(outputs))
    weights = np.where(rng.random(shape) < 0.5, _grid(rng, shape), rng.normal(size=shape))
    routed, calibrated = rng.random() < 0.2, rng.random() < 0.2
    later = [*range(k + 1, n_nodes), -1]
    plain = chain or rng.random() < 0.4
    follow = k + 1 if k + 1 < n_nodes else -1
    return Node(
        learners,
        weights,
        _grid(rng, len(outputs)) if rng.random() < 0.4 else np.zeros(len(outputs)),
        tuple(outputs),
        combine="add" if plain else str(rng.choice(["add", "replace", "multiply"])),
        activation="identity" if plain or rng.random() < 0.6 else "logistic",
        scale=_grid(rng, len(outputs)) if calibrated else None,
        offset=_grid(rng, len(outputs)) if calibrated and rng.random() < 0.7 else None,
        routing=_grid(rng, len(learners)) if routed and not plain else None,
        routing_bias=float(_grid(rng, ())),
        gate=Gate() if plain else _gate(rng, n_classes, queries),
        passed=follow if plain else int(rng.choice(later)),
        failed=int(rng.choice(later)),
        tier=int(rng.integers(0, 3)),
    )

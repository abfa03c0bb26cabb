"""One small plan of each kind that the papers' algorithms end as, with shared and derived acquisitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from miserly.costs import CostTable
from miserly.plan import Gate, Node, Plan, PolynomialKernels, RawFeatures, RBFKernels, stack_trees

INF = float("inf")
AGE, SEX, T3, TT4, T4U, FTI, PAGE, LINKS = range(8)
COSTS = CostTable(
    features=("age", "sex", "t3", "tt4", "t4u", "fti", "page", "links"),
    needs={
        "age": ("ask",),
        "sex": ("ask",),
        "t3": ("draw", "t3"),
        "tt4": ("draw", "tt4"),
        "t4u": ("draw", "t4u"),
        "fti": ("draw", "tt4", "t4u"),
        "page": ("fetch",),
        "links": ("fetch", "parse"),
    },
    prices={"ask": 1.0, "draw": 2.1, "t3": 9.31, "tt4": 12.41, "t4u": 9.31, "fetch": 0.3, "parse": 0.1},
    evaluation=0.7,
    unit="CAD",
)
RAW = RawFeatures(columns=np.arange(8))


def tree(spec):
    """A tree from nested (feature, threshold, left, right[, missing_right]); a number is a leaf."""
    lines, queue = [None], [(0, spec)]
    while queue:
        at, part = queue.pop(0)
        if isinstance(part, tuple):
            left = len(lines)
            lines += [None, None]
            lines[at] = (part[0], part[1], left, len(part) > 4 and part[4], 0.0)
            queue += [(left, part[2]), (left + 1, part[3])]
        else:
            lines[at] = (0, INF, at, False, float(part))
    names = ("feature", "threshold", "left", "missing_right", "value")
    return dict(zip(names, (np.array(column) for column in zip(*lines))))


TREES = stack_trees(
    [
        tree((AGE, 0.0, -0.31, (SEX, 0.2, 0.17, 0.83))),
        tree((T3, -0.1, (AGE, 0.5, -0.7, 0.11), (PAGE, 0.0, 0.3, 0.9, True), True)),
        tree((FTI, 0.3, -0.2, 0.6)),
        tree((SEX, -0.4, -0.15, 0.25, True)),
        tree((TT4, 0.1, (T4U, 0.0, -0.45, 0.05), 0.37)),
        tree((LINKS, 0.0, (PAGE, -0.5, -0.9, 0.1), (LINKS, 1.0, 0.2, 0.77), True)),
        tree(0.125),
        tree((PAGE, 0.7, -0.05, 0.55)),
        tree((T4U, -0.3, -0.33, (FTI, 0.6, 0.21, 0.94, True))),
        tree((AGE, -0.8, 0.4, -0.1)),
        tree((TT4, 0.9, 0.07, -0.66)),
        tree((LINKS, -0.6, -0.27, (T3, 0.4, 0.13, 0.5))),
    ]
)


def rows(n, seed=0, missing=0.0, n_features=8, decimals=1):
    """Rows on a coarse grid, so that scores tie; some values may be missing."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, n_features)), decimals)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def cascade():
    """Reject gates with tiers; each stage replaces the score."""
    return Plan(
        COSTS,
        RAW,
        (
            Node([AGE, SEX], [0.4, -1.3], 0.1, combine="replace", gate=Gate.above(-0.5), passed=1, tier=0),
            Node([AGE, PAGE, T3], [0.2, 0.9, 0.3], -0.2, combine="replace", gate=Gate.above(-0.1), passed=2, tier=1),
            Node([SEX, FTI, LINKS], [0.3, 0.5, 1.1], 0.05, combine="replace", tier=2),
        ),
        prior=[-0.7],
    )


def binary_tree():
    """CSTC-like: seven nodes, a routing vector of its own in each, weights on raw features."""
    rng = np.random.default_rng(4)
    features = ([AGE, SEX], [AGE, PAGE], [T3], [LINKS, PAGE], [SEX], [TT4, T3], [FTI, T4U])
    ways = ((1, 2), (3, 4), (5, 6), (-1, -1), (-1, -1), (-1, -1), (-1, -1))
    nodes = tuple(
        Node(
            f,
            np.round(rng.normal(size=len(f)), 2),
            0.1 * k,
            combine="replace" if k % 2 else "add",
            routing=np.round(rng.normal(size=len(f)), 2),
            routing_bias=0.05,
            gate=Gate.below(0.1) if k < 3 else Gate(),
            passed=way[0],
            failed=way[1],
        )
        for k, (f, way) in enumerate(zip(features, ways))
    )
    return Plan(COSTS, RAW, nodes, prior=[0.3])


def anytime():
    """A chain over raw features with open gates, a bias in its first node."""
    groups = ([AGE], [SEX], [PAGE, AGE], [LINKS], [T3], [TT4, T4U], [FTI])
    nodes = [
        Node(f, np.linspace(0.3, -0.4, len(f)), 0.25 if k == 0 else 0.0, passed=k + 1 if k < 6 else -1)
        for k, f in enumerate(groups)
    ]
    return Plan(COSTS, RAW, tuple(nodes), prior=[1.5])


def anytime_trees(evaluation=0.7):
    """One tree in each of twelve nodes, several of which buy nothing new."""
    order = (0, 3, 9, 6, 7, 5, 1, 11, 2, 4, 8, 10)
    nodes = [Node([t], [0.1 + 0.05 * k], passed=k + 1 if k < 11 else -1, gain=0.1 * k) for k, t in enumerate(order)]
    return Plan(replace(COSTS, evaluation=evaluation), TREES, tuple(nodes), prior=[0.2])


def by_query(gate, dictionary=TREES):
    """Early exit: each stage asks a gate over the documents of the query."""
    nodes = (
        Node([0, 3], [1.0, 0.5], gate=gate, passed=1, tier=0),
        Node([5, 7], [0.8, 0.6], gate=gate, passed=2, tier=1),
        Node([1, 2], [0.7, 0.9], tier=2),
    )
    return Plan(COSTS, dictionary, nodes, prior=[0.0])


def soft_cascade():
    """Each stage multiplies the probability so far by its own."""
    gate = Gate.above(0.2)
    nodes = (
        Node([0], [2.0], 0.4, combine="replace", activation="logistic", gate=gate, passed=1, tier=0),
        Node([1, 3], [1.0, -0.5], 0.9, combine="multiply", activation="logistic", gate=gate, passed=2, tier=1),
        Node([2, 5], [1.5, 0.5], 0.2, combine="multiply", activation="logistic", tier=2),
    )
    return Plan(COSTS, TREES, nodes, prior=[0.5])


def forest():
    """One tree of nodes per class, all on one account (one-vs-rest)."""
    nodes = []
    for c, learners in enumerate(((0, 1, 2), (3, 4, 5), (7, 8, 9))):
        at = 3 * c
        nodes += [
            Node([learners[0]], [0.9], 0.1 * c, (c,), gate=Gate.above(0.1), passed=at + 1, failed=at + 2),
            Node([learners[1]], [0.7], 0.0, (c,)),
            Node([learners[2], learners[0]], [0.4, 0.2], -0.3, (c,), combine="replace"),
        ]
    return Plan(COSTS, TREES, tuple(nodes), [0.0, 0.1, -0.1], "logistic", np.array(["a", "b", "c"]), roots=(0, 3, 6))


def one_vs_one():
    """Four classes, six outputs, one vote each."""
    rng = np.random.default_rng(8)
    nodes = (
        Node([AGE, SEX], np.round(rng.normal(size=(2, 6)), 1), np.zeros(6), tuple(range(6)), passed=1),
        Node([PAGE, LINKS], np.round(rng.normal(size=(2, 3)), 1), 0.1, (1, 3, 5), passed=2),
        Node([FTI, T3], np.round(rng.normal(size=(2, 2)), 1), 0.0, (0, 4)),
    )
    return Plan(COSTS, RAW, nodes, np.zeros(6), "vote", np.array(["n", "e", "s", "w"]))


def shared_softmax():
    """Three classes at once; trees 0, 1 and 5 serve several nodes."""
    rng = np.random.default_rng(9)
    weights = np.round(rng.normal(size=(4, 3, 3)), 2)
    sure = Gate.unless_confident(0.6)
    nodes = (
        Node([0, 3, 5], weights[0], np.zeros(3), (0, 1, 2), gate=sure, passed=1),
        Node([0, 1, 5], weights[1], np.array([0.1, 0.0, 0.0]), (0, 1, 2), gate=sure, passed=2, failed=3),
        Node([1, 2, 8], weights[2], np.zeros(3), (0, 1, 2), combine="replace", passed=3),
        Node([5, 4], weights[3][:2, :2], 0.0, (2, 0)),
    )
    return Plan(COSTS, TREES, nodes, [0.2, 0.0, -0.2], "softmax", np.array([3, 5, 8]))


def platt():
    """A chain whose score is read through a scale and an offset of each node, two outputs by turns."""
    nodes = (
        Node([0], [[1.0]], 0.0, (0,), scale=2.0, offset=0.3, passed=1),
        Node([1], [[0.5, -0.5, 0.2]], 0.0, (0, 1, 2), scale=[1.5, 0.5, 1.0], offset=[0.0, -0.2, 0.1], passed=2),
        Node([2], [[0.8]], 0.0, (1,), scale=3.0, offset=-1.0, passed=3),
        Node([5], [[0.6]], 0.0, (2,), scale=0.25, offset=0.75, passed=4),
        Node([4], [[0.4, 0.9]], 0.0, (0, 2), scale=[1.1, 1.2], offset=[0.01, 0.02]),
    )
    return Plan(COSTS, TREES, nodes, [0.1, 0.0, 0.2], "logistic", np.array([0, 1, 2]))


def confident():
    """Two classes; rows leave as soon as they are sure, read through Platt's scale."""
    sure = Gate.unless_confident(0.7)
    nodes = (
        Node([0, 9], [1.2, -0.8], 0.1, gate=sure, passed=1, scale=1.3, offset=0.1),
        Node([1], [1.9], gate=sure, passed=2, scale=0.9, offset=-0.2),
        Node([5, 11], [1.1, 0.4], scale=1.7, offset=0.05),
    )
    return Plan(COSTS, TREES, nodes, [0.0], "logistic", np.array(["ham", "spam"]))


VECTORS = np.round(np.random.default_rng(11).normal(size=(9, 5)), 1)
SEEN = [AGE, SEX, PAGE, LINKS, T3]


def machine():
    """A compressed SVM of three classes, one against one, over one pool of vectors."""
    weights = np.round(np.random.default_rng(12).normal(size=(9, 3)), 2)
    node = Node(np.arange(9), weights, np.array([0.1, -0.2, 0.0]), (0, 1, 2), combine="replace", scale=[1.5, 2.0, 1.0])
    return Plan(COSTS, RBFKernels(SEEN, VECTORS, 0.3), (node,), np.zeros(3), "coupled", np.array(["a", "b", "c"]))


def cascade_of_machines():
    """Easy rows leave after two vectors, others after six; each stage weighs the earlier vectors again."""
    rng = np.random.default_rng(13)
    sizes = (2, 6, 9)
    nodes = tuple(
        Node(
            np.arange(m),
            np.round(rng.normal(size=(m, 1)), 1),
            0.1,
            combine="replace",
            scale=0.5 + 0.1 * k,
            gate=Gate.unless_confident(0.8) if k < 2 else Gate(),
            passed=k + 1 if k < 2 else -1,
        )
        for k, m in enumerate(sizes)
    )
    kernels = PolynomialKernels(SEEN[::-1], VECTORS, 0.4, 0.5, 2)
    return Plan(COSTS, kernels, nodes, [0.0], "logistic", np.array(["ham", "spam"]))


def constant():
    """No nodes: the free answer for everyone."""
    return Plan(COSTS, RAW, (), [0.25], roots=())


def wide():
    """Seventy acquisitions, so that their bit sets take two words."""
    costs = CostTable(
        features=tuple(f"f{i}" for i in range(70)),
        needs={f"f{i}": (f"a{i}", f"a{(i * 7) % 70}") for i in range(70)},
        prices={f"a{i}": 0.1 * (1 + i % 9) for i in range(70)},
        evaluation=tuple(0.05 * (t % 3) for t in range(35)),
    )
    trees = stack_trees([tree((2 * t, 0.0, -0.1 * t, (2 * t + 1, 0.3, 0.2, 0.5, True))) for t in range(35)])
    nodes = [Node(np.arange(5 * k, 5 * k + 5), np.linspace(-1, 1, 5), passed=k + 1 if k < 6 else -1) for k in range(7)]
    return Plan(costs, trees, tuple(nodes), [0.0])


PLANS = {
    "cascade": cascade,
    "binary_tree": binary_tree,
    "anytime": anytime,
    "anytime_trees": anytime_trees,
    "anytime_trees_free": lambda: anytime_trees(0.0),
    "proximity": lambda: by_query(Gate.near_top(2, 0.3)),
    "rank": lambda: by_query(Gate.top(3)),
    "capacity": lambda: by_query(Gate.among_seen(2)),
    "soft_cascade": soft_cascade,
    "forest": forest,
    "one_vs_one": one_vs_one,
    "shared_softmax": shared_softmax,
    "platt": platt,
    "confident": confident,
    "machine": machine,
    "cascade_of_machines": cascade_of_machines,
    "constant": constant,
    "wide": wide,
}

"""Greedy moves with hard gates: what they add up, against one row after the other; what a leaf chooses."""

import numpy as np
import pytest

from miserly.costs import CostTable
from miserly.estimators._base._dictionary import find_learners
from miserly.estimators.cstc._leaf_choice import LeafChoice
from miserly.estimators.cstc._polish import Polish
from miserly.estimators.cstc._soft_graph import Classifier, GraphTask, SoftGraph
from miserly.solvers import EXIT, AcquisitionNorm, GateGraph

GRAPHS = {
    "tree": GateGraph.tree(3),
    "lopsided": GateGraph.tree(3).keep(np.array([1, 1, 0, 1, 1, 0, 0], bool)),
    "one child": GateGraph.tree(2).keep(np.array([1, 0, 1], bool)),
}
T, N = 5, 60


def a_polish(graph, seed, price=0.05, n_outputs=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, T))
    y = rng.normal(size=(N, n_outputs)) + X[:, :1] + np.where(X[:, 1] > 0, X[:, 2], X[:, 3])[:, None]
    names = [f"x{j}" for j in range(T)]
    needs = {name: (name, "shared") if j >= 3 else (name,) for j, name in enumerate(names)}
    costs = CostTable(features=tuple(names), needs=needs, prices=dict.fromkeys(names, 1.0) | {"shared": 2.0})
    learners = find_learners(None, costs, X, y[:, 0])
    share = np.full(N, 1 / N)
    norm = AcquisitionNorm.of(learners.masks, learners.evaluation, costs.price_list).times(price)
    task = GraphTask(learners.design, y, share, share, norm)
    soft = SoftGraph(task, graph)
    for _ in range(len(graph)):
        beta = rng.normal(size=(T, n_outputs)) * (rng.random((T, 1)) < 0.6)
        beta[1] = 0.5
        soft.nodes.append(Classifier(beta, np.zeros(n_outputs), np.eye(n_outputs)[0], 0.2 * rng.normal()))
    for k in range(len(graph)):
        soft.refresh(k)
    return Polish(soft, learners, price), soft, learners


def slowly(soft, learners, price):
    """Loss and cost of a polished graph, row by row: a path pays its columns, exits are fitted by least squares."""
    graph, H = soft.graph, soft.task.design.scores(np.eye(T))
    exits, paid = {}, {}
    for i in range(N):
        k, bought = 0, set()
        while True:
            node = soft.nodes[k]
            bought |= set(np.flatnonzero(node.beta.any(axis=1))) | set(np.flatnonzero(node.routing))
            if graph.is_leaf(k):
                break
            way = graph.up[k] if H[i] @ node.routing > node.threshold else graph.low[k]
            if way == EXIT:
                break
            k = way
        exits.setdefault(k, []).append(i)
        paid[k] = sorted(bought)
    total = 0.0
    for k, rows in exits.items():
        Z = np.column_stack([np.ones(len(rows)), H[np.ix_(rows, paid[k])]])
        y = soft.task.targets[rows]
        rest = y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]
        total += 0.5 * (rest**2).sum() / N + price * learners.price(paid[k]) * len(rows) / N
    return total


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_value_is_that_of_the_rows(name, n_outputs):
    """Also of rows that an inner node lets go, which once cost nothing."""
    for seed in range(3):
        polish, _, learners = a_polish(GRAPHS[name], seed, n_outputs=n_outputs)
        polish.n_moves = 0
        start = slowly(polish.run(), learners, polish.price)
        moves, _, _ = a_polish(GRAPHS[name], seed, n_outputs=n_outputs)
        values, value = [], moves._value
        moves._value = lambda tree, *most, of=value, to=values: to.append(of(tree, *most)) or to[-1]
        end = slowly(moves.run(), learners, polish.price)
        assert values[0] == pytest.approx(start, rel=1e-6)
        assert min(values) == pytest.approx(end, rel=1e-6)
        assert end <= start


def test_the_sum_may_end_early_only_above_the_bound():
    polish, _, _ = a_polish(GRAPHS["tree"], 0, price=0.5)
    early, value = [], polish._value

    def watched(tree, most=np.inf):
        whole = value(tree)
        for share in (0.5, 0.9, 1.0, 1.1):
            polish._leaves.clear()
            part = value(tree, share * whole)
            assert part == pytest.approx(whole, rel=1e-12) or (part == np.inf and share < 1.0)
            early.append(part == np.inf)
        return whole

    polish._value = watched
    polish.run()
    assert any(early)


def test_a_leaf_chooses_as_least_squares_say():
    """Forward choice and its value, against least squares from scratch; two columns are the same."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(80, 6))
    Z[:, 5] = Z[:, 0]
    y = 2 * Z[:, 0] + Z[:, 1] + 0.3 * Z[:, 2] + 0.1 * rng.normal(size=80)
    Z, y = Z - Z.mean(axis=0), y - y.mean()
    learners = find_learners(None, CostTable.per_feature(np.ones(6)), rng.normal(size=(80, 6)), y)
    A, b, total = Z.T @ Z / 80, (Z.T @ y / 80)[:, None], 0.5 * float(y @ y) / 80

    def expected(columns, price):
        rest = y - Z[:, columns] @ np.linalg.lstsq(Z[:, columns], y, rcond=None)[0]
        return 0.5 * float(rest @ rest) / 80 + price * len(columns)

    for price, chosen in ((0.01, {0, 1, 2}), (0.1, {0, 1}), (1.0, {0}), (10.0, set())):
        choice = LeafChoice(A, b, total, learners, price, 80)
        columns, value = choice.best([])
        assert {0 if j == 5 else j for j in columns} == chosen
        assert value == pytest.approx(expected(columns, price), rel=1e-6)
        assert choice.value([0, 5, 3]) == pytest.approx(expected([0, 5, 3], price), rel=1e-6)
    columns, _ = LeafChoice(A, b, total, learners, 0.1, 80).best([3])
    assert set(columns) - {3} == {0, 1}, "what is paid stays"

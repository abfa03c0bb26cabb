import numpy as np
import pytest

from miserly.solvers._traversal import EXIT, GateGraph, Traversal, soft_gate
from oracles.classifier_graphs import gate, walk_probability, walks

GRAPHS = {
    "tree": GateGraph.tree(3),
    "cascade": GateGraph.cascade(4),
    "one node": GateGraph.tree(1),
    "lopsided": GateGraph.tree(4).keep(np.array([k not in (2, 5, 6, 11, 12, 13, 14, 8) for k in range(15)])),
}


def filled(graph, n_rows=5, seed=0):
    rng = np.random.default_rng(seed)
    traversal = Traversal(graph, n_rows)
    s = rng.random((len(graph), n_rows))
    for k in graph.inner:
        traversal.set(k, s[k])
    return traversal, s


def test_shapes():
    assert GateGraph.tree(3).up == (1, 3, 5, EXIT, EXIT, EXIT, EXIT)
    assert GateGraph.tree(3).low == (2, 4, 6, EXIT, EXIT, EXIT, EXIT)
    assert GateGraph.cascade(3) == GateGraph((1, 2, EXIT), (EXIT, EXIT, EXIT))
    assert GateGraph.cascade(3).terminals == ((0, False), (1, False), (2, None))
    assert GateGraph.tree(3).path(5) == (0, 2, 5)
    assert GRAPHS["lopsided"] == GateGraph(
        (1, 2, 4, 5, EXIT, EXIT, EXIT), (EXIT, 3, EXIT, 6, EXIT, EXIT, EXIT), depth=4
    )


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_probabilities_are_those_of_walking_every_path(graph):
    traversal, s = filled(graph)
    ways = walks(graph.up, graph.low)
    assert sorted((w[-1][0], str(w[-1][1])) for w in ways) == sorted((k, str(side)) for k, side in graph.terminals)
    share = np.array([0.1, 0.3, 0.2, 0.15, 0.25])
    for walk in ways:
        number = graph.terminal_number[walk[-1]]
        expected = [walk_probability(walk, s[:, i]) for i in range(5)]
        np.testing.assert_allclose(traversal.leave(number), expected, rtol=1e-13)
        np.testing.assert_allclose(traversal.mean_leave(share)[number], share @ expected, rtol=1e-13)
    for k in range(len(graph)):
        expected = [sum(walk_probability(w, s[:, i]) for w in ways if k in [node for node, _ in w]) for i in range(5)]
        np.testing.assert_allclose(traversal.reach(k), expected, rtol=1e-13)
        leaving = [sum(walk_probability(w, s[:, i]) for w in ways if w[-1][0] == k) for i in range(5)]
        np.testing.assert_allclose(traversal.reach(k) * traversal.exits(k), leaving, rtol=1e-13)


@pytest.mark.parametrize("graph", [g for g in GRAPHS.values() if g.inner], ids=[n for n in GRAPHS if n != "one node"])
@pytest.mark.parametrize("at_exit", [False, True])
def test_conditional_probabilities_do_not_look_at_the_node_itself(graph, at_exit):
    traversal, s = filled(graph)
    loss = np.random.default_rng(1).random((len(graph), 5))
    rows = np.array([3, 0, 2])
    for k in graph.inner:
        for upwards in (True, False):
            numbers, shares = traversal.leave_given(k, upwards, rows)
            given = traversal.loss_given(k, upwards, loss, at_exit, rows)
            for place, i in enumerate(rows):
                total = 0.0
                for walk in walks(graph.up, graph.low):
                    nodes = [node for node, _ in walk]
                    if (k, upwards) not in walk:
                        continue
                    after = walk[nodes.index(k) + 1 :]
                    p = walk_probability(after, s[:, i])
                    assert shares[numbers.index(graph.terminal_number[walk[-1]]), place] == pytest.approx(p, rel=1e-13)
                    met = [node for node, _ in after]
                    skipped = max(0, graph.depth - len(walk)) if met else 0
                    total += p * sum(loss[j, i] for j in (met[-1:] if at_exit else met + met[-1:] * skipped))
                assert given[place] == pytest.approx(total, rel=1e-12, abs=1e-15)
            nodes, reached = traversal.reach_given(k, upwards, rows)
            for j, share in zip(nodes, reached):
                leaving = {n for n, (end, _) in enumerate(graph.terminals) if end in graph.subtree(j)}
                expected = sum(shares[numbers.index(n)] for n in leaving)
                np.testing.assert_allclose(share, expected, rtol=1e-13)
            before = traversal.gate(k).copy()
            traversal.set(k, np.full(5, 0.123))
            assert np.array_equal(traversal.leave_given(k, upwards, rows)[1], shares)
            traversal.set(k, before)


def test_gate_is_the_logistic_function_and_does_not_overflow():
    score = np.array([-3.0, -0.1, 0.2, 4.0])
    np.testing.assert_allclose(soft_gate(score, 0.1, 2.0), gate(score, 0.1, 2.0), rtol=1e-13)
    assert soft_gate(np.array([-1e300, 1e300]), 0.0, 50.0).tolist() == [0.0, 1.0]


def test_single_precision_when_asked():
    traversal = Traversal(GateGraph.tree(2), 4, np.float32)
    assert traversal.gate(0).dtype == np.float32
    assert traversal.leave_given(0, True)[1].dtype == np.float32

"""Soft trees and cascades: the objective from its definition, gradients by finite differences, descent."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from miserly.estimators.cstc._answers import refit_logistic
from miserly.estimators.cstc._curvature import LEAST_CURVATURE, metric
from miserly.estimators.cstc._gated_node import GatedNode
from miserly.estimators.cstc._joint import Joint
from miserly.estimators.cstc._node_losses import NodeLoss
from miserly.estimators.cstc._soft_graph import Classifier, GraphTask, SoftGraph
from miserly.solvers._descent import Memory, descend
from miserly.solvers._design import RawDesign
from miserly.solvers._mixed_norm import AcquisitionNorm
from miserly.solvers._traversal import GateGraph
from miserly.solvers._window import Held
from oracles.classifier_graphs import graph_objective

GRAPHS = {
    "tree": (GateGraph.tree(3), False),
    "cascade": (GateGraph.cascade(3), True),
    "lopsided": (GateGraph.tree(3).keep(np.array([1, 1, 0, 1, 1, 0, 0], bool)), False),
    "tree at exits": (GateGraph.tree(2), True),
    "lopsided at exits": (GateGraph.tree(2).keep(np.array([1, 0, 1], bool)), True),
}


def a_graph(name, n_outputs=1, shared=True, seed=0, n=40, zeros=True, lam=0.05, loss="squared"):
    """A graph with random nodes over random data."""
    graph, at_exit = GRAPHS[name]
    rng = np.random.default_rng(seed)
    T = 6
    X = rng.normal(size=(n, T))
    masks = [(1 << t) | ((1 << T + t // 3) if shared else 0) for t in range(T)]
    prices, evaluation = rng.uniform(0.5, 2, size=T + 2), rng.uniform(0, 0.3, size=T)
    omega, share = rng.random(n), np.full(n, 1 / n)
    task = GraphTask(
        design=RawDesign(X),
        targets=rng.normal(size=(n, n_outputs)),
        omega=omega / omega.sum(),
        share=share,
        norm=AcquisitionNorm.of(masks, evaluation, prices).times(lam),
        rho=0.03,
        at_exit=at_exit,
        loss=NodeLoss(loss),
    )
    if loss == "logistic":
        task = replace(task, targets=np.sign(task.targets))
    whole = SoftGraph(task, graph)
    for _ in range(len(graph)):
        beta = rng.normal(size=(T, n_outputs))
        if zeros:
            beta[rng.random(T) < 0.3] = 0.0
            beta[0] = 0.7
        u = rng.normal(size=n_outputs)
        whole.nodes.append(
            Classifier(beta, rng.normal(size=n_outputs), u / np.linalg.norm(u), rng.normal() * 0.3, rng.uniform(1, 4))
        )
    for k in range(len(graph)):
        whole.refresh(k)
    return whole


CASES = [
    (name, k, shared) for name in GRAPHS for k, shared in ((1, False), (1, True), (3, True)) if k == 1 or name != "tree"
]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(("name", "n_outputs", "shared"), CASES)
def test_objective_is_the_expectation_over_all_paths(name, n_outputs, shared, loss):
    whole = a_graph(name, n_outputs, shared, n=12, loss=loss)
    task = whole.task
    H = np.column_stack([task.design.column(j) for j in range(task.design.n_columns)])
    slow = graph_objective(
        H,
        task.targets,
        task.omega,
        task.share,
        whole.graph.up,
        whole.graph.low,
        [(c.beta, c.bias, c.direction, c.threshold, c.steepness) for c in whole.nodes],
        task.norm.evaluation,
        task.norm.prices,
        task.norm.needs.toarray(),
        task.rho,
        task.at_exit,
        whole.graph.depth,
        loss == "logistic",
    )
    assert whole.objective() == pytest.approx(slow, rel=1e-12)


def finite_differences(function, v, h=1e-6):
    slope = np.zeros_like(v)
    for i in range(len(v)):
        step = np.zeros_like(v)
        step[i] = h
        slope[i] = (function(v + step) - function(v - step)) / (2 * h)
    return slope


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(("name", "n_outputs", "shared"), CASES)
@pytest.mark.parametrize("seed", range(2))
def test_gradient(name, n_outputs, shared, seed, loss):
    """Of the touching surrogate anywhere, and of the objective itself where it touches."""
    whole = a_graph(name, n_outputs, shared, seed, loss=loss)
    rng = np.random.default_rng(seed)
    for k in whole.graph.inner:
        node = GatedNode(whole, k)
        away = node.at + 0.3 * rng.normal(size=node.at.shape)
        slope = node.surrogate(away)[1]
        np.testing.assert_allclose(
            slope, finite_differences(lambda v, node=node: node.surrogate(v)[0], away), atol=3e-8 * np.abs(slope).max()
        )
        slope = node.surrogate(node.at)[1]
        np.testing.assert_allclose(slope, finite_differences(node.value, node.at), atol=3e-8 * np.abs(slope).max())


@pytest.mark.parametrize(("name", "n_outputs", "shared"), CASES)
def test_the_surrogate_touches_from_above_and_the_node_sees_all_that_depends_on_it(name, n_outputs, shared):
    whole = a_graph(name, n_outputs, shared)
    rng = np.random.default_rng(3)
    for k in whole.graph.inner:
        node = GatedNode(whole, k)
        assert node.surrogate(node.at)[0] == pytest.approx(node.value(node.at), rel=1e-12)
        before, value = whole.objective(), node.value(node.at)
        for scale in (1e-4, 0.1, 2.0):
            other = node.at + scale * rng.normal(size=node.at.shape)
            assert node.surrogate(other)[0] >= node.value(other) - 1e-12
            beta, bias, threshold = node.parts(other)
            kept = whole.nodes[k]
            full = np.zeros_like(kept.beta)
            full[node.columns] = beta
            whole.nodes[k] = Classifier(full, bias, kept.direction, threshold, kept.steepness)
            whole.refresh(k)
            assert whole.objective() - before == pytest.approx(node.value(other) - value, rel=1e-9, abs=1e-12)
            whole.nodes[k] = kept
            whole.refresh(k)


@pytest.mark.parametrize(("name", "n_outputs", "shared"), CASES)
@pytest.mark.parametrize(("seed", "loss"), [(0, "squared"), (1, "squared"), (0, "logistic")])
def test_the_objective_never_rises_and_zeros_stay(name, n_outputs, shared, seed, loss):
    whole = a_graph(name, n_outputs, shared, seed, n=150, lam=0.1, loss=loss)
    value = first = whole.objective()
    zero = [node.beta == 0 for node in whole.nodes]
    for _ in range(4):
        for k in range(len(whole.graph)):
            whole.improve(k)
            now = whole.objective()
            assert now <= value + 1e-9 * abs(value)
            value = now
            assert not whole.nodes[k].beta[zero[k]].any()
    assert value < 0.9 * first


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize(("name", "n_outputs", "shared"), CASES)
def test_all_nodes_at_once_have_the_same_objective_and_its_gradient(name, n_outputs, shared, loss):
    whole = a_graph(name, n_outputs, shared, zeros=False, loss=loss)
    joint = Joint(whole)
    v = joint.read()
    value, slope = joint.objective(v)
    assert value == pytest.approx(whole.objective(), rel=1e-12)
    gates = np.array([len(p) - 1 for p in (v[part] for part in joint.slices)])
    free = np.ones(len(v), bool)
    for k, first in enumerate(part.start for part in joint.slices):
        free[first + gates[k]] = not whole.graph.is_leaf(k)
    expected = finite_differences(lambda at: joint.objective(at)[0], v)
    np.testing.assert_allclose(slope[free], expected[free], atol=3e-8 * np.abs(slope).max())
    assert not slope[~free].any()
    joint.write(v + 0.1)
    assert whole.objective() == pytest.approx(joint.objective(v + 0.1)[0], rel=1e-12)
    half = v.copy()
    joint.parts(half)[0][0][2] = 0.0
    assert not joint.parts(joint.objective(half)[1])[0][0][2].any()


@pytest.mark.parametrize(("name", "n_outputs", "shared"), CASES)
def test_a_step_is_judged_from_the_scores_of_its_direction(name, n_outputs, shared):
    joint = Joint(a_graph(name, n_outputs, shared, zeros=False))
    v, rng = joint.read(), np.random.default_rng(5)
    direction = rng.normal(size=v.shape)
    joint.objective(v)
    moves = joint._scores(direction)
    for step in (0.3, 1e-3):
        along = joint._value(v + step * direction, moves, step)
        slope = joint._slope(v + step * direction)
        value, expected = Joint(joint.whole).objective(v + step * direction)
        assert along == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(slope, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_the_metric_inverts_the_curvature_of_each_node(name, n_outputs, monkeypatch):
    """Of the loss as the initialisation saw it, the penalties, and the upward curvature of gates, row by row."""
    monkeypatch.setattr("miserly.estimators.cstc._curvature.MOST_CURVED", 1.0)
    task = a_graph(name, n_outputs, n=100, lam=0.003).task
    joint = Joint(SoftGraph.initialise(task, GRAPHS[name][0]))
    joint.objective(joint.read())
    apply = metric(joint)
    rng = np.random.default_rng(0)
    for k, part in enumerate(joint.slices):
        node, m = joint.whole.nodes[k], len(joint.columns[k])
        if not joint.mass[k]:  # no row leaves here: the intercept is free
            continue
        gram, centre = node.gram_of(joint.columns[k])
        means = np.append(centre, 1.0)
        loss = np.outer(means, means) * node.mass
        loss[:m, :m] += gram
        M = np.zeros((part.stop - part.start,) * 2)
        M[:-1, :-1] = np.kron(loss * joint.mass[k] / node.mass, np.eye(n_outputs))
        at = np.arange(m * n_outputs)
        M[at, at] += np.repeat(joint.curve[joint.places[k], k], n_outputs)
        M[-1, -1] = LEAST_CURVATURE * joint.mass[k]
        if not joint.graph.is_leaf(k):
            for h, gate_curvature in zip(joint.H.values[:, joint.places[k]], joint.gate_curvature[:, k]):
                g = np.concatenate([np.kron(h, node.direction), np.zeros(n_outputs), [-1.0]])
                M += max(gate_curvature, 0.0) * np.outer(g, g)
        x, slope = rng.normal(size=len(M)), np.zeros_like(joint.read())
        slope[part] = M @ x
        moved = apply(slope)
        np.testing.assert_allclose(moved[part], x, rtol=1e-5, atol=1e-6)
        moved[part] = 0.0
        assert not moved.any()


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_all_nodes_at_once_never_rise_and_do_as_well_as_one_after_the_other(name, n_outputs):
    rng = np.random.default_rng(0)
    task = a_graph(name, n_outputs, n=400, lam=0.01).task
    H = np.column_stack([task.design.column(j) for j in range(6)])
    y = np.where(H[:, :1] > 0, H[:, 1:2], -H[:, 2:3]) @ rng.normal(size=(1, n_outputs))
    first = SoftGraph.initialise(replace(task, targets=y + 0.1 * rng.normal(size=y.shape)), GRAPHS[name][0])
    blocks, joint = copy.deepcopy(first), copy.deepcopy(first)
    at_once, swept = joint.optimise(30), blocks.sweep(30)
    assert at_once[0] == pytest.approx(swept[0], rel=1e-12)
    assert max(np.diff(at_once)) <= 1e-12
    assert joint.objective() == pytest.approx(at_once[-1], rel=1e-9)
    assert at_once[-1] <= swept[-1] + 0.02 * (swept[0] - swept[-1]) + 2e-3 * abs(swept[-1])
    for before, after in zip(first.nodes, joint.nodes):
        assert set(after.columns) <= set(before.columns)


def test_a_leaf_is_at_its_minimum():
    whole = a_graph("tree", n=200, lam=0.01)
    rng = np.random.default_rng(0)
    for _ in range(20):
        whole._improve_leaf(5)
    whole.refresh(5)
    best, node = whole.objective(), whole.nodes[5]
    beta, bias = node.beta.copy(), node.bias.copy()
    for scale in (1e-3, 1e-2, 0.1):
        node.beta = np.where(beta != 0, beta + scale * rng.normal(size=beta.shape), 0.0)
        node.bias = bias + scale * rng.normal(size=1)
        whole.refresh(5)
        assert whole.objective() >= best - 1e-9


def test_one_node_is_the_convex_problem():
    """A tree of one level found from the top down, against a general minimiser on the same columns."""
    graph, task = GateGraph.tree(1), a_graph("tree", shared=False, n=300, lam=0.003).task
    whole = SoftGraph.initialise(task, graph)
    node = whole.nodes[0]
    used = node.columns
    assert 0 < len(used) < 6
    H = np.column_stack([task.design.column(int(j)) for j in used])

    def value(v):
        rest = H @ v[:-1] + v[-1] - task.targets[:, 0]
        squares = np.zeros(6)
        squares[used] = v[:-1] ** 2
        return 0.5 * task.omega @ rest**2 + task.rho * np.abs(v[:-1]).sum() + task.norm.value(squares)

    found = minimize(value, np.append(node.beta[used, 0], node.bias), method="Nelder-Mead", options={"xatol": 1e-10})
    assert whole.objective() <= found.fun + 1e-6


def test_one_logistic_node_is_the_convex_problem():
    """No other weights are better, on its columns or with one more."""
    graph, task = GateGraph.tree(1), a_graph("tree", shared=False, n=300, lam=0.002, loss="logistic").task
    whole = SoftGraph.initialise(replace(task, reweight=False), graph)
    node = whole.nodes[0]
    assert 0 < len(node.columns) < 6
    H = np.column_stack([task.design.column(j) for j in range(6)])

    def value(v):
        loss = np.logaddexp(0.0, -task.targets[:, 0] * (H @ v[:-1] + v[-1]))
        return task.omega @ loss + task.rho * np.abs(v[:-1]).sum() + task.norm.value(v[:-1] ** 2)

    at = np.append(node.beta[:, 0], node.bias)
    assert whole.objective() == pytest.approx(value(at), rel=1e-12)
    found = minimize(value, at, method="Powell", options={"xtol": 1e-9, "ftol": 1e-12})
    assert whole.objective() <= found.fun + 1e-5


@pytest.mark.parametrize("known", [False, True])
def test_logistic_answers_are_at_their_minimum(known):
    rng = np.random.default_rng(0)
    Z, offset, weights = rng.normal(size=(80, 3)), rng.normal(size=(80, 1)), rng.random(80)
    y = np.sign(Z[:, :1] + rng.normal(size=(80, 1)))
    near = rng.normal(size=(3, 1)) if known else None
    beta, bias = refit_logistic(Held(Z), y, offset, weights, 2.0, near)

    def value(v):
        loss = np.logaddexp(0.0, -y[:, 0] * (offset[:, 0] + Z @ v[:3] + v[3]))
        return weights @ loss + 0.25 * ((v[:3] - (near[:, 0] if known else 0.0)) ** 2).sum() + 0.125 * v[3] ** 2

    at = np.append(beta[:, 0], bias)
    assert np.abs(finite_differences(value, at)).max() < 1e-4
    assert value(at) <= minimize(value, at).fun + 1e-9


def test_nodes_below_nothing_are_not_made():
    task = a_graph("tree", lam=50.0).task
    whole = SoftGraph.initialise(task, GateGraph.tree(3))
    assert len(whole.graph) == 1
    assert not whole.nodes[0].beta.any()


def test_columns_that_never_vary_do_no_harm():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=50), np.ones(50)])
    norm = AcquisitionNorm.of([1, 2], [0, 0], [0.0, 0.0])
    share = np.full(50, 1 / 50)
    whole = SoftGraph.initialise(GraphTask(RawDesign(X), X[:, :1] ** 2, share, share, norm), GateGraph.tree(3))
    assert all(node.columns.tolist() in ([0], []) for node in whole.nodes)


def test_descent_finds_the_minimum_and_never_rises():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(8, 8))
    A = A @ A.T + 0.1 * np.eye(8)
    seen = []

    def function(v):
        value = 0.5 * v @ A @ v + 0.1 * np.cos(v).sum()
        seen.append(value)
        return value, A @ v - 0.1 * np.sin(v)

    at, value, asked = descend(function, np.full(8, 3.0), lambda g: np.linalg.solve(A, g), 100, 1e-14)
    assert asked == len(seen)
    assert value == min(seen)
    assert np.abs(A @ at - 0.1 * np.sin(at)).max() < 1e-6
    plain = minimize(function, np.full(8, 3.0), jac=True, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-8})
    assert asked < 0.7 * plain.nfev


def test_the_memory_of_a_quadratic_is_its_inverse_and_can_lose_parameters():
    rng = np.random.default_rng(0)
    A = np.diag([1.0, 4.0, 9.0, 16.0])
    memory = Memory()
    for move in np.eye(4):
        memory.learn(move, A @ move)
    memory.learn(np.ones(4), -np.ones(4))
    slope = rng.normal(size=4)
    np.testing.assert_allclose(memory.direction(slope, lambda g: g)[0], -slope / np.diag(A))
    memory.keep(np.array([True, False, True, True]))
    short = slope[[0, 2, 3]]
    direction, derivative = memory.direction(short, lambda g: g)
    np.testing.assert_allclose(direction, -short / np.diag(A)[[0, 2, 3]])
    assert derivative == pytest.approx(float(short @ direction))

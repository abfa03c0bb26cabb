"""Windows on designs that are far: the same products as an array gives, and the same solutions without any column."""

import numpy as np
import pytest

from miserly.estimators.cronus._soft_cascade import CascadeTask, SoftCascade
from miserly.estimators.cstc._soft_graph import GraphTask, SoftGraph
from miserly.solvers._design import RawDesign
from miserly.solvers._mixed_norm import AcquisitionNorm
from miserly.solvers._traversal import GateGraph
from miserly.solvers._window import Asked, Held

N, T = 300, 6


class Far(RawDesign):
    """A design that gives no column away."""

    far = True

    def column(self, j):
        raise AssertionError("The rows are far: columns are not to be fetched.")


def data(n_outputs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, T))
    y = np.where(X[:, :1] > 0, X[:, 1:2], -X[:, 2:3]) @ rng.normal(size=(1, n_outputs))
    omega = rng.random(N)
    norm = AcquisitionNorm.of([1 << t for t in range(T)], (0.0,) * T, np.linspace(0.5, 2, T)).times(0.01)
    return X, y + 0.2 * rng.normal(size=y.shape), omega / omega.sum(), np.full(N, 1 / N), norm


def test_products_are_those_of_the_array():
    rng = np.random.default_rng(1)
    design, columns, rows = RawDesign(data(1)[0]), np.array([4, 0, 3]), np.flatnonzero(rng.random(N) < 0.5)
    H = np.column_stack([design.column(j) for j in range(T)])
    here, far = Held(H[np.ix_(rows, columns)]), Asked(design, columns, rows)
    centre, some, kept = rng.normal(size=3), np.arange(0, len(rows), 3), np.array([True, False, True])
    for one, other in (
        (here, far),
        (here.around(centre), far.around(centre)),
        (here.around(centre).part(some), far.around(centre).part(some)),
        (here.around(centre).part(columns=kept), far.around(centre).part(columns=kept)),
        (here.part(some, np.array([2, 0])), far.part(some, np.array([2, 0]))),
    ):
        n, m = one.values.shape
        weight = rng.random(n)
        for shape in ((), (2,)):
            beta, values = rng.normal(size=(m, *shape)), rng.normal(size=(n, *shape))
            np.testing.assert_allclose(other.scores(beta), one.values @ beta, atol=1e-12)
            np.testing.assert_allclose(one.scores(beta), one.values @ beta)
            np.testing.assert_allclose(other.sums(values), one.values.T @ values, atol=1e-11)
            np.testing.assert_allclose(one.sums(values), one.values.T @ values)
        with_ones = np.column_stack([one.values, np.ones(n)])
        for window in (one, other):
            np.testing.assert_allclose(window.gram(weight), one.values.T @ (weight[:, None] * one.values), atol=1e-11)
            np.testing.assert_allclose(window.bordered(weight), with_ones.T @ (weight[:, None] * with_ones), atol=1e-11)


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("way", ["optimise", "sweep"])
def test_soft_graphs_are_those_of_a_design_that_is_here(way, n_outputs):
    X, Y, omega, share, norm = data(n_outputs)
    found = []
    for kind in (RawDesign, Far):
        soft = SoftGraph.initialise(GraphTask(kind(X), Y, omega, share, norm, rho=0.01), GateGraph.tree(3))
        assert len(soft.graph) > 1
        found.append((getattr(soft, way)(3), soft.nodes))
    (values, nodes), (far_values, far_nodes) = found
    assert far_values[-1] < far_values[0]
    np.testing.assert_allclose(far_values, values, rtol=1e-7)
    for node, other in zip(nodes, far_nodes):
        np.testing.assert_allclose(other.beta, node.beta, atol=1e-5)


def test_soft_cascades_are_those_of_a_design_that_is_here():
    X, Y, omega, share, norm = data(1)
    found = []
    for kind in (RawDesign, Far):
        task = CascadeTask(kind(X), Y[:, 0], omega, share, norm, (0.01, 0.01, 0.001))
        cascade = SoftCascade.initialise(task, 1.3, 0.85)
        cascade.sharpen(5.0)
        found.append((cascade.optimise(3), cascade.stages))
    (values, stages), (far_values, far_stages) = found
    assert far_values[-1] < far_values[0]
    np.testing.assert_allclose(far_values, values, rtol=1e-7)
    for stage, other in zip(stages, far_stages):
        np.testing.assert_allclose(other.beta, stage.beta, atol=1e-5)

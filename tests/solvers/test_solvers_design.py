"""Designs against the matrix written out."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from miserly.costs import CostTable
from miserly.estimators import GreedyMiserRegressor
from miserly.kernels.threads import threads
from miserly.plan import stack_trees
from miserly.solvers import RawDesign, TreeDesign, raw_weights
from miserly.solvers import _design as design
from oracles.design import outputs, standardised

N = 400


def raw_data(dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 6)) * 10.0 ** np.arange(-3, 3) + 7.0
    X[:, 4] = 0.1
    return X.astype(dtype)


def tree_data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 6))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    X[rng.random(X.shape) < 0.1] = np.nan
    model = GreedyMiserRegressor(CostTable.uniform(), tradeoff=0, n_estimators=12, max_depth=4, min_samples_leaf=5)
    return model.fit(X, y).plan_.dictionary, X


def weights_of(kind):
    weight = np.random.default_rng(2).integers(1, 5, N).astype(float)
    return weight if kind == "weighted" else None


def check(found, raw, weight, tolerance=1e-11, common=False):
    """The four methods, one and several columns at a time, and the way back to raw learners."""
    H, centre, scale = standardised(raw, weight, common)
    rng = np.random.default_rng(3)
    assert (found.n_rows, found.n_columns) == H.shape
    assert np.allclose(found.centre, centre, rtol=1e-12, atol=1e-14)
    assert np.allclose(found.scale, scale, rtol=1e-10)
    assert np.array_equal(found.varies, H.any(axis=0))
    for shape in ((), (1,), (3,)):
        beta, values = rng.normal(size=(H.shape[1], *shape)), rng.normal(size=(N, *shape))
        beta[1] = 0.0
        assert found.scores(beta).shape == (N, *shape)
        assert np.allclose(found.scores(beta), H @ beta, atol=tolerance)
        assert found.sums(values).shape == (H.shape[1], *shape)
        assert np.allclose(found.sums(values), H.T @ values, atol=tolerance * N)
        plain, bias = raw_weights(found, beta, np.ones(shape))
        assert np.allclose(raw.astype(float) @ plain + bias.reshape(shape), H @ beta + 1.0, atol=1e-8)
        assert not plain[~found.varies].any()
    assert not found.gram(np.ones(N))[~found.varies].any()
    for weight in (np.ones(N), rng.random(N) * (rng.random(N) < 0.3), rng.normal(size=N), np.zeros(N)):
        assert np.allclose(found.gram(weight), H.T @ (weight[:, None] * H), atol=tolerance * N)
        some = np.array([5, 0, 3])
        assert np.allclose(found.gram(weight, some), (H.T @ (weight[:, None] * H))[np.ix_(some, some)], atol=1e-9)
    for j in range(H.shape[1]):
        assert np.allclose(found.column(j), H[:, j], atol=tolerance)
        assert found.varies[j] == found.column(j).any()


@pytest.mark.parametrize("cells", [1 << 21, 1000], ids=["one block", "many blocks"])
@pytest.mark.parametrize("weighted", ["weighted", "equal"])
@pytest.mark.parametrize("form", ["C", "F", "float32"])
def test_raw_features(cells, weighted, form, monkeypatch):
    monkeypatch.setattr(design, "BLOCK_CELLS", cells)
    X = raw_data(np.float32 if form == "float32" else np.float64)
    X, before = np.asarray(X, order="F" if form == "F" else "C"), X.copy()
    check(RawDesign(X, weights_of(weighted)), X, weights_of(weighted))
    assert np.array_equal(X, before)


@pytest.mark.parametrize("form", ["float64", "float32"])
def test_sums_of_a_large_table_in_one_pass(form, monkeypatch):
    """Without a standardised copy; also in another order, with columns left out, and rows without weight."""
    monkeypatch.setattr(design, "MANY_CELLS", 0)
    X, order = raw_data(form), np.array([3, 1, 5, 0, 4, 2])
    weight = weights_of("weighted")
    weight[::3] = 0.0
    found = RawDesign(X, columns=order)
    assert found._in_one_pass
    check(RawDesign(X, weight), X, weight)
    check(found, X[:, order], None)
    assert np.allclose(RawDesign(X, columns=order[:3]).sums(weight), found.sums(weight)[:3], rtol=1e-12)


def test_raw_features_in_another_order():
    X = raw_data()
    order = np.array([3, 1, 5, 0, 2, 4])
    check(RawDesign(X, columns=order), X[:, order], None)


def test_sparse_features():
    X = random_array((N, 8), density=0.2, rng=np.random.default_rng(0), format="csr")
    check(RawDesign(X), X.toarray(), None)
    check(RawDesign(X.tocsc()), X.toarray(), None)


@pytest.mark.parametrize("cells", [1 << 21, 1000], ids=["one block", "many blocks"])
@pytest.mark.parametrize("weighted", ["weighted", "equal"])
def test_trees(cells, weighted, monkeypatch):
    monkeypatch.setattr(design, "BLOCK_CELLS", cells)
    trees, X = tree_data()
    check(TreeDesign(trees, X, weights_of(weighted)), outputs(trees, X), weights_of(weighted), common=True)


def test_trees_over_sparse_data_and_other_precisions():
    trees, X = tree_data()
    X = np.where(np.isnan(X) | (np.abs(X) < 0.3), 0.0, X)
    check(TreeDesign(trees, csr_array(X)), outputs(trees, X), None, common=True)
    single = X.astype(np.float32)
    check(TreeDesign(trees, single), outputs(trees, single.astype(float)), None, common=True)
    check(TreeDesign(trees, np.asfortranarray(X)), outputs(trees, X), None, common=True)


def test_trees_that_do_not_vary_are_zero():
    _, X = tree_data()
    stump = {
        "feature": np.array([0, 0, 0]),
        "threshold": np.array([1e9, np.inf, np.inf]),
        "left": np.array([1, 1, 2]),
        "missing_right": np.zeros(3, bool),
        "value": np.array([0.0, 0.1, 5.0]),
    }
    leaf = {
        "feature": np.zeros(1, int),
        "threshold": np.array([np.inf]),
        "left": np.zeros(1, int),
        "missing_right": np.zeros(1, bool),
        "value": np.array([0.1]),
    }
    found = TreeDesign(stack_trees([stump, leaf]), X, weights_of("weighted"))
    assert not found.varies.any()
    assert not found.scores(np.ones(2)).any()
    assert np.array_equal(found.scale, np.ones(2))
    assert np.allclose(found.centre, 0.1)
    none = TreeDesign(stack_trees([]), X)
    assert none.scores(np.zeros((0, 2))).shape == (N, 2)
    assert none.gram(np.ones(N)).shape == (0, 0)


def test_a_leaf_is_one_byte():
    trees, X = tree_data()
    found = TreeDesign(trees, X)
    held = sum(a.nbytes for a in vars(found).values() if isinstance(a, np.ndarray))
    assert N * len(trees) <= held <= N * len(trees) + len(trees) * 16 * 8 + 20 * 8 * len(trees)


@pytest.mark.parametrize(("depth", "fits"), [(7, True), (8, False)])
def test_at_most_255_leaves(depth, fits):
    """A complete tree over one feature."""
    n_splits = 2**depth - 1
    at = np.arange(2 * n_splits + 1)
    leaf = at >= n_splits
    threshold = np.full(len(at), np.inf)
    low, high = {0: 0.0}, {0: 1.0}
    for k in range(n_splits):
        threshold[k] = (low[k] + high[k]) / 2
        low[2 * k + 1], high[2 * k + 1] = low[k], threshold[k]
        low[2 * k + 2], high[2 * k + 2] = threshold[k], high[k]
    tree = {
        "feature": np.zeros(len(at), int),
        "threshold": threshold,
        "left": np.where(leaf, at, 2 * at + 1),
        "missing_right": np.zeros(len(at), bool),
        "value": np.where(leaf, at, 0.0),
    }
    X = np.random.default_rng(0).random((1000, 1))
    trees = stack_trees([tree])
    if fits:
        assert np.allclose(TreeDesign(trees, X).column(0), standardised(outputs(trees, X))[0][:, 0])
    else:
        with pytest.raises(ValueError, match="256 leaves"):
            TreeDesign(trees, X)


def test_sums_do_not_depend_on_the_threads():
    trees, X = tree_data()
    rng = np.random.default_rng(0)
    values, beta = rng.normal(size=(N, 2)), rng.normal(size=(len(trees), 2))
    answers = []
    for n_jobs in (1, 2):
        with threads(n_jobs):
            found = TreeDesign(trees, X)
            answers.append((found.scores(beta), found.sums(values), found.centre, found.scale))
    assert all(np.array_equal(a, b) for a, b in zip(*answers))


def test_lines_that_do_not_match_are_refused():
    trees, X = tree_data()
    for found in (TreeDesign(trees, X), RawDesign(raw_data())):
        with pytest.raises(ValueError, match="lines"):
            found.scores(np.ones(found.n_columns + 1))
        with pytest.raises(ValueError, match="lines"):
            found.sums(np.ones((found.n_rows - 1, 2)))

"""Forward selection in Gram form against incremental QR; softmax scaling against an independent fit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from miserly.estimators.astc._selection import GramMatrix, GramRows, Selection
from miserly.solvers import RawDesign
from miserly.solvers._calibration import softmax_objective, softmax_scaling
from oracles.astc import QRSelection, residual


def centred(H, y, p):
    """Centred weighted means of products."""
    share = p / p.sum()
    y = y.reshape(len(y), -1)
    H, y = H - share @ H, y - share @ y
    return GramMatrix(H.T @ (share[:, None] * H)), H.T @ (share[:, None] * y)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(12, 60),
    d=st.integers(1, 9),
    k=st.integers(1, 3),
    soft=st.booleans(),
    prices=st.lists(st.floats(0.1, 10.0), min_size=9, max_size=9),
)
def test_gains_choices_and_coefficients_are_those_of_qr(seed, n, d, k, soft, prices):
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)
    y = rng.normal(size=(n, k))
    p = rng.random(n) if soft else (rng.random(n) < 0.7) + 1e-300
    fast = Selection(*centred(H, y, p), np.zeros(d))
    slow = QRSelection(H, y, p)
    for _ in range(min(d, n // 2)):
        gains = fast.gains()
        for j in np.flatnonzero(fast.usable):
            assert gains[j] == pytest.approx(slow.gain(j), rel=1e-5, abs=1e-10)
        ratio = gains / np.array(prices[:d])
        best = int(np.argmax(ratio))
        if ratio[best] <= 0:
            break
        fast.add(best)
        slow.add(best)
    columns = fast.chosen
    _, prediction = residual(H, y, p, columns)
    share = p / p.sum()
    ours = share @ y + (H - share @ H)[:, columns] @ fast.coefficients()
    assert np.allclose(ours, prediction, atol=1e-5)
    before, _ = residual(H, y, p, [])
    after, _ = residual(H, y, p, columns)
    assert fast.explained() == pytest.approx((before - after) / p.sum(), rel=1e-6, abs=1e-9)


def test_a_joint_gain_is_that_of_least_squares_on_all():
    rng = np.random.default_rng(0)
    H, y, p = rng.normal(size=(80, 7)), rng.normal(size=(80, 2)), rng.random(80)
    H[:, 6] = H[:, 2] + H[:, 3]
    found = Selection(*centred(H, y, p), np.zeros(7))
    found.add(1)
    for columns in ([0], [0, 2], [2, 3, 6], [0, 2, 3, 4, 5, 6]):
        gain = (residual(H, y, p, [1])[0] - residual(H, y, p, [1, *columns])[0]) / p.sum()
        assert found.joint_gain(np.array(columns)) == pytest.approx(gain, rel=1e-9)


def test_what_the_chosen_span_already_is_not_usable():
    rng = np.random.default_rng(0)
    H = rng.normal(size=(50, 4))
    H[:, 2] = H[:, 0] - 2 * H[:, 1]
    H[:, 3] = 1.0
    found = Selection(*centred(H, rng.normal(size=50), np.ones(50)), np.full(4, 1e-9))
    assert not found.usable[3]
    found.add(0)
    found.add(1)
    assert not found.usable[2]
    assert not found.gains().any()


def classes(n, k, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    scores = np.eye(k)[y] + rng.normal(size=(n, k)) * 0.7
    scores -= scores.mean(axis=1, keepdims=True)
    return scores, y[:, None] == np.arange(k), rng.integers(1, 4, n).astype(float)


def test_the_gradient_of_the_scaling():
    scores, member, weights = classes(40, 3)
    Z = np.column_stack([scores, np.ones(40)])
    arguments = (Z, member * 0.9 + 0.1 / 3, weights / weights.sum(), np.array([[0.1], [0.2], [0.3], [0.0]]))
    at = np.random.default_rng(1).normal(size=12)
    _, slope = softmax_objective(at, *arguments)
    for i in range(12):
        step = np.eye(12)[i] * 1e-6
        numeric = (softmax_objective(at + step, *arguments)[0] - softmax_objective(at - step, *arguments)[0]) / 2e-6
        assert slope[i] == pytest.approx(numeric, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("k", [3, 5])
def test_softmax_scaling_is_logistic_regression_with_soft_targets(k):
    scores, member, weights = classes(300, k)
    matrix, offset = softmax_scaling(scores, member, weights)
    total = weights.sum()
    away = scores - weights @ scores / total
    size, vectors = np.linalg.eigh(away.T @ (away * weights[:, None]) / total)
    Z = away @ (vectors[:, 1:] / np.sqrt(size[1:]))
    target = (1 - k / (total + k)) * member + 1 / (total + k)
    rows, labels = np.repeat(np.arange(300), k), np.tile(np.arange(k), 300)
    peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000)
    peer.fit(Z[rows], labels, sample_weight=(target * weights[:, None]).ravel())
    assert np.allclose(softmax(scores @ matrix + offset, axis=1), peer.predict_proba(Z), atol=1e-5)


def test_softmax_scaling_of_hard_cases():
    """Scores that do not vary give shares; a class that is not there stays unlikely; separable classes stay finite."""
    scores, member, weights = classes(200, 3)
    matrix, offset = softmax_scaling(np.full((200, 3), 0.1), member, weights)
    assert np.abs(matrix).max(initial=0.0) == 0.0
    counts = weights @ member
    assert np.allclose(softmax(offset), (counts + 1) / (weights.sum() + 3), atol=1e-3)
    two = member.copy()
    two[member[:, 2]] = [True, False, False]
    matrix, offset = softmax_scaling(scores, two, weights)
    assert softmax(scores @ matrix + offset, axis=1)[:, 2].max() < 0.05
    matrix, offset = softmax_scaling(member * 2.0 - 1.0, member, weights)
    p = softmax((member * 2.0 - 1.0) @ matrix + offset, axis=1)
    assert 0.9 < p[member].min() < 1.0


def test_gram_rows_are_made_when_they_are_needed():
    """The whole matrix was made for every node though a step needs one row of it."""
    rng = np.random.default_rng(0)
    X, share = rng.normal(size=(80, 30)), rng.random(80)
    share /= share.sum()
    design = RawDesign(X, share + 0.01)
    means = design.sums(share)
    whole = GramMatrix(design.gram(share) - np.outer(means, means))
    rows = GramRows(design, share, means)
    np.testing.assert_allclose(rows.diagonal, whole.diagonal, rtol=1e-12)
    calls = []
    design.gram = lambda *args: calls.append(len(args)) or type(design).gram(design, *args)
    for j in (3, 7, 3, 11):
        np.testing.assert_allclose(rows.row(j), whole.row(j), atol=1e-13)
    assert calls == []
    some = np.array([2, 5, 9])
    np.testing.assert_allclose(rows.block(some), whole.block(some), atol=1e-13)
    for j in range(30):
        np.testing.assert_allclose(rows.row(j), whole.row(j), atol=1e-13)
    assert calls == [2, 1]

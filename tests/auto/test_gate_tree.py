"""The trees of rules against slow, obvious growth: every cut of every column, the best leaf first."""

import numpy as np
import pytest

from miserly.auto._gate_tree import MOST_LEAVES, N_BINS, SHRINK, Inputs, grow
from miserly.kernels.gates import grow_gate


def spread(y):
    return ((y - y.mean()) ** 2).sum()


def best_split(codes, y, rows, least):
    found = (0.0, None, None)
    for column in range(codes.shape[1]):
        for cut in range(codes[:, column].max()):
            left, right = (rows[side] for side in (codes[rows, column] <= cut, codes[rows, column] > cut))
            if min(len(left), len(right)) >= least:
                gain = spread(y[rows]) - spread(y[left]) - spread(y[right])
                if gain > found[0] + 1e-9:
                    found = gain, column, cut
    return found


def slow(codes, y, rows, least):
    """The value of each row."""
    leaves = [(rows, np.arange(len(y)), y[rows].mean(), best_split(codes, y, rows, least))]
    while len(leaves) < MOST_LEAVES:
        at = max(range(len(leaves)), key=lambda k: leaves[k][3][0])
        members, reached, value, (gain, column, cut) = leaves.pop(at)
        if not gain:
            leaves.append((members, reached, value, (gain, column, cut)))
            break
        for left in (True, False):
            part, there = (a[(codes[a, column] <= cut) == left] for a in (members, reached))
            mean = (y[part].sum() + SHRINK * value) / (len(part) + SHRINK)
            leaves.append((part, there, mean, best_split(codes, y, part, least)))
    out = np.zeros(len(y))
    for _, reached, value, _ in leaves:
        out[reached] = value
    return out


@pytest.mark.parametrize("seed", range(6))
def test_as_slow_growth(seed):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(90, 3)), 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0] * X[:, 1]) + 0.2 * rng.normal(size=90)
    inputs, rows = Inputs.of(X, (0, 1, 2)), np.flatnonzero(rng.random(90) < 0.7)
    tree = grow(inputs, y, rows, least_rows=5)
    assert tree.predict(inputs.codes) == pytest.approx(slow(inputs.codes, y, rows, 5))


def test_nothing_to_split_by_is_a_mean():
    y = np.arange(8.0)
    assert grow(Inputs.of(np.zeros((8, 0)), ()), y, np.arange(8), 1).value.tolist() == [3.5]
    assert grow(Inputs.of(np.ones((8, 1)), (0,)), y, np.arange(8), 1).value.tolist() == [3.5]


def test_a_weight_is_a_number_of_rows():
    rng = np.random.default_rng(0)
    X, y, rows = rng.normal(size=(80, 2)).round(1), rng.normal(size=80), np.arange(80)
    inputs, weight = Inputs.of(X, (0, 1)), rng.integers(0, 3, 80)
    there = rows[weight > 0]
    one = grow_gate(inputs.codes, N_BINS, y, weight.astype(np.float64), there, MOST_LEAVES, 8, SHRINK)
    two = grow_gate(inputs.codes, N_BINS, y, np.ones(80), np.repeat(rows, weight), MOST_LEAVES, 8, SHRINK)
    assert all(a == pytest.approx(b) for a, b in zip(one, two))
    left_out = grow(inputs, y, rows, 5, 3.0 * (weight > 0))  # weights of rows that count alike have a mean of 1
    assert left_out.predict(inputs.codes) == pytest.approx(slow(inputs.codes, y, there, 5))

"""Exact sums are those of fsum, in any order and however the rows are parted."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miserly.boosting import LambdaRankLoss, LogLoss, SoftmaxLoss, SquaredHingeLoss, SquaredLoss
from miserly.boosting._exact import exact_sum, mean, mean_of_sums, sums_of_mean

moderate = st.floats(-1e300, 1e300, allow_subnormal=True)


@settings(max_examples=200, deadline=None)
@given(st.lists(moderate, min_size=1, max_size=40), st.integers(0, 40))
def test_the_mean_is_that_of_fsum_and_parts_add_up(values, cut):
    array = np.array(values)
    assert mean(array) == math.fsum(values) / len(values)
    parts = [sums_of_mean(part) for part in (array[:cut], array[cut:])]
    joined = [a + b for a, b in zip(*parts)]
    assert mean_of_sums(*joined) == mean(array)
    assert exact_sum(array[::-1]) == exact_sum(array)


def test_weights_weigh_and_what_is_not_finite_is_told():
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=1000), rng.exponential(size=1000)
    assert mean(values, weight) == math.fsum(weight * values) / math.fsum(weight)
    assert mean(values, np.zeros(1000)) == 0.0
    assert math.isnan(mean(np.array([1.0, np.inf])))
    assert math.isnan(mean(np.array([1.0, np.nan])))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["squared", "log", "softmax", "hinge", "hinge of three", "lambdarank"])
def test_losses_of_parted_rows_are_those_of_all(name, weighted):
    rng = np.random.default_rng(1)
    n, qid = 120, np.repeat(np.arange(12), 10)
    made = {
        "squared": SquaredLoss(),
        "log": LogLoss(),
        "softmax": SoftmaxLoss(3),
        "hinge": SquaredHingeLoss(),
        "hinge of three": SquaredHingeLoss(3),
        "lambdarank": LambdaRankLoss(qid),
    }
    loss = made[name]
    y = rng.normal(size=n) if name == "squared" else rng.integers(0, 2 + (loss.n_outputs > 1), n).astype(float)
    score = rng.normal(size=(loss.n_outputs, n))
    weight = rng.exponential(size=n) if weighted else None
    parts = [slice(0, 50), slice(50, 60), slice(60, n)]
    of = [(loss.on(qid[p]), y[p], score[:, p], None if weight is None else weight[p]) for p in parts]
    terms = [sums_of_mean(*one.terms(*rows)) for one, *rows in of]
    assert mean_of_sums(*(sum(column) for column in zip(*terms))) == loss.value(y, score, weight)
    averaged = [[sums_of_mean(v, w) for v in one.averaged(t)] for one, t, _, w in of]
    means = [mean_of_sums(*(sum(column) for column in zip(*pairs))) for pairs in zip(*averaged)]
    assert loss.constant_of(means, n).tolist() == loss.constant(y, weight).tolist()

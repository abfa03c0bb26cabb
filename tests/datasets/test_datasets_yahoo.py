import hashlib
from collections import Counter

import lightgbm
import numpy as np
import pytest

from miserly.datasets import yahoo_like
from miserly.datasets._yahoo import GRADE_SHARES, TIERS
from miserly.metrics import ndcg

FROZEN = {
    "X": "0d1c895f9216d52f60eaa40f6ef3f111221638dc90a54e519dd2c986a3fb0d13",
    "y": "5e8086ba7b580670536dd9ef3daa286eb171c54faf56df860ed6400ec2134cee",
}


@pytest.fixture(scope="module")
def train():
    return yahoo_like(500, seed=0)


@pytest.fixture(scope="module")
def unseen():
    return yahoo_like(400, seed=1)


def prices(data):
    return np.array([data.costs.prices[feature] for feature in data.costs.features])


def test_the_bits_are_frozen():
    data = yahoo_like(20, seed=0)
    assert {name: hashlib.sha256(getattr(data, name).tobytes()).hexdigest() for name in FROZEN} == FROZEN


def test_the_shape_is_yahoos(train):
    assert train.X.shape == (len(train.y), 519)
    assert train.X.dtype == np.float32
    assert train.X.flags.c_contiguous
    assert train.X.min() == 0.0
    assert 0.9 < train.X.max() <= 1.0
    assert 0.1 < (train.X == 0).mean() < 0.4
    assert train.costs.features[0] == "f000"
    assert train.costs.features[-1] == "f518"
    assert train.costs.unit == "tree evaluations"
    assert Counter(prices(train)) == TIERS


def test_queries_are_contiguous_skewed_and_as_long_as_yahoos(train):
    assert train.qid.dtype == np.int64
    assert set(np.diff(train.qid)) == {0, 1}
    length = np.concatenate([np.bincount(yahoo_like(500, seed).qid) for seed in (2, 3)])
    assert abs(length.mean() - 23.7) < 1.5
    assert length.min() >= 1
    assert 100 < length.max() <= 140
    assert np.median(length) < 0.85 * length.mean()


def test_grades_have_the_published_shares(train, unseen):
    y = np.concatenate([train.y, unseen.y])
    off = np.abs(np.bincount(y) / len(y) - GRADE_SHARES)
    assert (off < (0.02, 0.02, 0.02, 0.01, 0.004)).all(), off


def test_some_columns_belong_to_the_query(train):
    same_query = np.diff(train.qid) == 0
    constant = (np.diff(train.X, axis=0)[same_query] == 0).all(axis=0)
    assert 20 < constant.sum() < 60
    assert set(prices(train)[constant]) == {1.0}


def test_a_seed_gives_its_bits_and_another_seed_other_rows_of_the_same_columns(train):
    again, other = yahoo_like(500, seed=0), yahoo_like(500, seed=1)
    assert (again.X == train.X).all()
    assert (again.y == train.y).all()
    assert (again.qid == train.qid).all()
    assert other.costs == train.costs
    assert (other.X[:100] != train.X[:100]).any()
    np.testing.assert_allclose(other.X.mean(axis=0), train.X.mean(axis=0), atol=0.06)


def test_dear_columns_are_worth_buying_and_cheap_ones_worth_something(train, unseen):
    price = prices(train)

    def figure(limit):
        columns = np.flatnonzero(price <= limit)
        options = {"max_depth": 3, "num_leaves": 8, "learning_rate": 0.15, "num_threads": 1, "verbose": -1}
        rows = lightgbm.Dataset(train.X[:, columns], train.y)
        model = lightgbm.train({**options, "max_bin": 31}, rows, 100)
        return ndcg(unseen.y, model.predict(unseen.X[:, columns]), 5, unseen.qid)

    blind = ndcg(unseen.y, np.zeros(len(unseen.y)), 5, unseen.qid)
    cheap, middle, everything = figure(1), figure(20), figure(200)
    assert blind + 0.1 < cheap
    assert cheap + 0.01 < middle
    assert cheap + 0.05 < everything < 0.85


def test_no_queries_are_refused():
    with pytest.raises(ValueError, match="n_queries must be 1 or more, got 0"):
        yahoo_like(0, seed=0)

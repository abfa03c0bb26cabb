import numpy as np
import pytest

from miserly.costs import CostTable
from miserly.datasets import Dataset, circle

COSTS = CostTable.per_feature({"row": 1.0})


def ranking(lengths):
    qid = np.repeat(np.arange(len(lengths)), lengths)
    return Dataset(np.arange(len(qid), dtype=float)[:, None], np.zeros(len(qid)), COSTS, qid, "toy")


def test_rows_go_to_one_part_each_in_their_order():
    data = circle(101, seed=0)
    parts = data.split(0.5, 0.3, 0.2, seed=4)
    assert [len(p.X) for p in parts] == [50, 31, 20]
    rows = [tuple(row) for part in parts for row in part.X]
    assert sorted(rows) == sorted(map(tuple, data.X))
    again = data.split(0.5, 0.3, 0.2, seed=4)
    assert all((a.X == b.X).all() and (a.y == b.y).all() for a, b in zip(parts, again))
    assert (data.split(0.5, seed=5)[0].X != parts[0].X).any()
    assert parts[0].costs is data.costs


def test_queries_stay_whole_and_sorted():
    data = ranking(np.random.default_rng(0).integers(1, 9, 40))
    first, second = data.split(0.5, 0.25, seed=0)
    assert len(np.unique(first.qid)) == 20
    assert len(np.unique(second.qid)) == 10
    assert not set(first.qid) & set(second.qid)
    for part in (first, second):
        assert (np.diff(part.qid) >= 0).all()
        assert (part.X[:, 0] == np.flatnonzero(np.isin(data.qid, part.qid))).all()


@pytest.mark.parametrize("shares", [(), (0.7, 0.7), (0.5, -0.1), (0.0,)])
def test_shares_that_are_no_shares_are_refused(shares):
    with pytest.raises(ValueError, match="sum to 1 or less"):
        ranking([2, 3]).split(*shares, seed=0)


def test_an_empty_part_is_refused():
    with pytest.raises(ValueError, match="2 queries into shares"):
        ranking([2, 3]).split(0.9, 0.1, seed=0)


def test_arrays_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match="'toy': y has 2 rows, X has 3"):
        Dataset(np.zeros((3, 1)), np.zeros(2), COSTS, name="toy")
    with pytest.raises(ValueError, match="'toy': the costs price 1 features, X has 2 columns"):
        Dataset(np.zeros((3, 2)), np.zeros(3), COSTS, name="toy")

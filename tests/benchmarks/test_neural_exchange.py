"""What comes back from the neural peers: costs, stops and points. PyTorch is not needed."""

import numpy as np

from benchmarks.frontier_vs_peers.data import Part, Split
from benchmarks.frontier_vs_peers.neural import measured
from benchmarks.neural.exchange import Way, _costs, groups_of, points
from miserly.metrics import get_metric
from oracles.policy import shared_table


def needs_of(costs):
    return np.array([[mask >> a & 1 for a in range(len(costs.acquisitions))] for mask in costs.feature_masks], bool)


def test_each_acquisition_is_paid_once():
    costs = shared_table()
    needs = needs_of(costs)
    groups = groups_of(needs)
    number = {tuple(a for a, has in zip(costs.acquisitions, row) if has): g for g, row in enumerate(groups)}
    assert set(number) == {tuple(sorted(costs.needs[f])) for f in costs.features if costs.needs[f]}
    bought = np.array([[number["a",], number["a", "c"], number["b", "d"]], [number["b", "d"], number["d",], -1]])
    paid = _costs(bought, needs, np.array(costs.price_list))
    assert np.allclose(paid, [[0.0, 1.0, 1.3, 7.9], [0.0, 6.6, 6.6, 6.6]])


def ways():
    """Two rows, three purchases: what comes next is worth less and less, predictions surer and surer."""
    cost = np.array([[0.0, 1, 3, 4], [0, 2, 3, 4]])
    predicted = np.array([[0, 1, 1, 0], [0, 0, 1, 1]])
    sure = np.array([[0.5, 0.7, 0.8, 1.0], [0.5, 0.6, 0.9, 1.0]])
    rate = np.array([[0.9, 0.3, 0.1, -np.inf], [0.8, 0.5, 0.2, -np.inf]])
    return Way(cost, predicted, sure, rate)


def test_rows_stop_where_they_do_not_go_on():
    way = ways()
    codes, cost = way.stopped(way.rate > 0.25)
    assert codes.tolist() == [1, 1]
    assert cost.tolist() == [3.0, 3.0]
    assert way.stopped(way.rate > -1)[1].tolist() == [4.0, 4.0]
    assert way.stopped(way.rate > 1)[1].tolist() == [0.0, 0.0]


def test_points_go_from_nothing_to_everything():
    split = Split(*(Part(np.zeros((2, 3)), np.array([5, 7])) for _ in range(3)))
    for method in ("DIME", "GDFS"):
        both = list(points(method, [ways(), ways()]))
        spent = [cost.mean() for answers in both for _, cost in answers]
        assert min(spent) == 0.0
        assert max(spent) == 4.0
        found = measured(method, [ways(), ways()], split, np.array([5, 7]), get_metric("accuracy"))
        assert len(found) == len(both)
        assert max(point.on("test").quality for point in found) == 1.0

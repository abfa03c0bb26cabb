"""Cheap yes-or-no questions: out of fold, models of few different predictions differ by fold, and rules cut between."""

import numpy as np

import miserly as ms


def test_the_plan_pays_what_the_frontier_says():
    rng = np.random.default_rng(0)
    flags, x = (rng.random((240, 2)) < 0.3).astype(float), rng.normal(size=240)
    y = (x + 0.8 * flags[:, 0] + 0.3 * rng.normal(size=240) > 1.2).astype(int)
    X = np.column_stack([flags, x])
    costs = ms.CostTable.per_feature([1.0, 1.0, 20.0])
    model = ms.AutoMiserClassifier(costs, time_limit=None, metric="accuracy").fit(X, y)
    points = model.frontier_.points
    assert len(points) > 2
    for point in points:
        assert abs(point.validation.cost["mean"] - point.model.predict_cost(X).mean()) < 0.6

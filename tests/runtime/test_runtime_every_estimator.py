"""The plan of every estimator runs on demand, row by row or query by query, as it does in the batch."""

import numpy as np
import pytest

from miserly.runtime import OnDemand, readers
from oracles.every_estimator import EVERY, data, model_of, targets_of
from oracles.prices import shared_prices

X, Y = data(400)
COSTS = shared_prices()


@pytest.mark.parametrize("name", EVERY)
def test_on_demand(name):
    for target in targets_of(name, Y):
        plan = model_of(name, COSTS).fit(X, target).plan_
        assert plan.nodes
        rows = [dict(zip(COSTS.features, x)) for x in X[:40]]
        for budget in (None, 0.5 * plan.tables.most_expensive):
            result = plan.run(X[:40], np.zeros(40), budget)
            runner = OnDemand(plan, readers(COSTS))
            if plan.by_query:
                answers = runner.rank("query", rows, budget).answers
            else:
                answers = [runner.predict(row, budget) for row in rows]
            np.testing.assert_array_equal([a.score for a in answers], result.score)
            np.testing.assert_array_equal([a.cost for a in answers], result.cost)
            np.testing.assert_array_equal([a.value for a in answers], plan.read(result.z))


def test_none_is_forgotten():
    assert len(EVERY) >= 23

"""The four quadrants with default settings: a sweep of the suggested tradeoffs, chosen on validation data."""

import numpy as np

from miserly.datasets import four_quadrants

BUDGET = 12.5


def choose(model, seed, **settings):
    """Test error and mean test cost of the best model within the budget, both judged on validation data."""
    data = four_quadrants(3000, seed, **settings)
    train, validation, test = slice(0, 1000), slice(1000, 2000), slice(2000, 3000)
    models = model.set_params(costs=data.costs).path(data.X[train], data.y[train])
    X, y = data.X[validation], data.y[validation]
    affordable = [m for m in models if m.predict_cost(X).mean() <= BUDGET]
    best = min(affordable, key=lambda m: np.mean((m.predict(X) - y) ** 2))
    X, y = data.X[test], data.y[test]
    return float(np.mean((best.predict(X) - y) ** 2)), float(best.predict_cost(X).mean()), best

"""The grids that estimators suggest: weights count as copies, and no part of a grid is without use."""

import numpy as np
import pytest

from oracles.every_estimator import EVERY, data, model_of, targets_of
from oracles.prices import shared_prices

_, Y = data(120)
COUNTS = np.where(np.quantile(Y, 0.9) < Y, 10, 1)


@pytest.mark.parametrize("name", [name for name, kind in EVERY.items() if hasattr(kind, "suggest_grid")])
def test_weights_are_copies(name):
    """Sample weights were ignored: the variance was overstated 7 to 9 times under tenfold copies."""
    model = model_of(name, shared_prices())
    for y in targets_of(name, Y):
        weighted = model.suggest_grid(y, 6, sample_weight=COUNTS)
        if "n_vectors" in model.get_params():  # numbers of vectors go with the number of rows
            continue
        np.testing.assert_allclose(weighted, model.suggest_grid(np.repeat(y, COUNTS), 6), rtol=1e-9)
        assert len(weighted) <= 6

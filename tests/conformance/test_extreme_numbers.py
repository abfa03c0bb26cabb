"""Numbers near the ends of what a double holds: an answer or an error that names them, never chance."""

import logging

import numpy as np
import pytest

import miserly as ms
from miserly.baselines import CostWeightedL1Classifier

REGRESSORS = [
    ms.GreedyMiserRegressor,
    ms.AnytimeMiserRegressor,
    ms.CSTCRegressor,
    ms.ASTCRegressor,
    ms.CronusRegressor,
]
LINEAR = [ms.CSTCClassifier, ms.CSCCClassifier, ms.ASTCClassifier, ms.CronusClassifier, CostWeightedL1Classifier]


def problem():
    X = np.random.default_rng(0).normal(size=(300, 4))
    return X, X[:, 0] - 2 * X[:, 1]


def free(kind):
    """An estimator that pays nothing."""
    costs = ms.CostTable.uniform(4)
    return kind(costs, tradeoff=0.0) if "tradeoff" in kind().get_params() else kind(costs)


def explained(y, predicted):
    size = np.abs(y).max()
    return 1.0 - np.mean((y / size - predicted / size) ** 2) / np.var(y / size)


@pytest.mark.parametrize("kind", REGRESSORS)
@pytest.mark.parametrize("factor", [1e-305, 1e-170, 1e-140, 1e140, 1e155, 1e300])
def test_targets_of_any_size(kind, factor):
    """Below 1e-160 and above 1e160 every model was the mean; at 1e-305 there was an OverflowError."""
    X, y = problem()
    if 1e-150 < factor < 1e150:
        assert explained(y * factor, free(kind).fit(X, y * factor).predict(X)) > 0.9
    else:
        with pytest.raises(ValueError, match=r"y has numbers beyond|y varies by"):
            free(kind).fit(X, y * factor)


@pytest.mark.parametrize("kind", REGRESSORS)
@pytest.mark.parametrize("weight", [1e-300, 1e300])
def test_weights_of_any_size(kind, weight):
    X, y = problem()
    assert explained(y, free(kind).fit(X, y, sample_weight=np.full(300, weight)).predict(X)) > 0.9


def test_constant_targets_are_fitted():
    X, _ = problem()
    assert np.all(ms.GreedyMiserRegressor(ms.CostTable.uniform(4)).fit(X, np.full(300, 1e-300)).predict(X) == 1e-300)


@pytest.mark.parametrize("kind", LINEAR)
@pytest.mark.parametrize("offset", [1e8, 1e14])
def test_features_far_from_zero(kind, offset):
    """At 1e14 linear methods took the columns as constant, and were chance."""
    X, y = problem()
    X = X + offset
    assert np.mean(kind(ms.CostTable.uniform(4)).fit(X, y > 0).predict(X) == (y > 0)) > 0.9


def test_a_column_lost_in_rounding_is_logged(caplog):
    X, y = problem()
    X[:, 2] = 1.7e18 + 256 * (np.arange(300) % 3)
    with caplog.at_level(logging.WARNING, "miserly"):
        ms.ASTCRegressor(ms.CostTable.uniform(4)).fit(X, y)
    assert "Column 2 (from 0) varies by 512 around 1.7e+18" in caplog.text

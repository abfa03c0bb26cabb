"""Ten thousand features and twenty rows: every estimator learns, answers, and charges for some of them."""

import numpy as np
import pytest

from miserly.costs import CostTable
from oracles.every_estimator import CLASSIFIERS, EVERY, model_of

# they solve linear systems over all features, again and again: minutes for ten thousand, seconds for these
CUBIC = dict.fromkeys(
    ("CSTCRegressor", "CSTCClassifier", "CSCCClassifier", "CronusRegressor", "CronusClassifier"), 1000
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EVERY)
def test_many_more_features_than_rows(name):
    n_features = CUBIC.get(name, 10_000)
    X = np.random.default_rng(0).normal(size=(20, n_features))
    y = X[:, 0] + X[:, 3]
    prices = 1.0 + np.arange(n_features) % 7
    model = model_of(name, CostTable.per_feature(prices))
    small_leaves = [key for key in model.get_params() if key.endswith("min_samples_leaf")]
    model.set_params(**dict.fromkeys(small_leaves, 2)).fit(X, y > 0 if name in CLASSIFIERS else y)
    answers, cost = np.asarray(model.predict(X)), model.predict_cost(X)
    assert len(answers) == 20
    assert np.isin(answers, model.classes_).all() if name in CLASSIFIERS else np.isfinite(answers).all()
    assert ((cost >= 0) & (cost <= prices.sum())).all()

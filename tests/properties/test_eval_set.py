"""With `eval_set` the result is never worse on that very set than any candidate of the fit itself."""

from inspect import signature

import numpy as np
import pytest

from miserly.metrics import get_metric
from oracles.every_estimator import CLASSIFIERS, EVERY, data, model_of, targets_of
from oracles.prices import shared_prices

COSTS = shared_prices()
TAKES = {name for name, kind in EVERY.items() if "eval_set" in signature(kind.fit).parameters}
ROUNDS = {name for name in TAKES if "n_iter_no_change" in signature(EVERY[name]).parameters}
GRAPHS = {"CSTCRegressor", "CSTCClassifier", "CSCCClassifier", "CronusRegressor", "CronusClassifier"}
ALL_BUDGETS = {"AFRClassifier", "AnytimeMiserRegressor", "AnytimeMiserClassifier"}  # every stage stays in the plan


def split(name, seed):
    X, y = data(500, seed)
    for target in targets_of(name, y):
        yield X[:250], target[:250], X[250:], target[250:]


def test_every_estimator_that_takes_it_is_here():
    assert TAKES == ROUNDS | GRAPHS | ALL_BUDGETS


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_graphs_keep_the_best_candidate(name, seed):
    """The start, the descent without validation rows, one node or stage, and the start with validation rows."""
    for X, y, X_valid, y_valid in split(name, seed):
        model = model_of(name, COSTS)
        metric = get_metric(("auc" if name == "CronusClassifier" else "accuracy") if name in CLASSIFIERS else "mse")

        def reached(fitted, metric=metric, X=X_valid, y=y_valid):
            output = fitted.rank_score(X) if metric.input == "score" else fitted.predict(X)
            figure = metric(y, output, classes=getattr(fitted, "classes_", None))
            return figure if metric.greater_is_better else -figure

        kept = reached(model.fit(X, y, eval_set=(X_valid, y_valid)))
        size = "max_depth" if "max_depth" in model.get_params() else "n_stages"
        others = [{"max_iter": 0}] if name.startswith("Cronus") else [{}, {"max_iter": 0}, {size: 1, "max_iter": 0}]
        for settings in others:
            other = model_of(name, COSTS).set_params(**settings).fit(X, y)
            assert kept >= reached(other) - 1e-6 * abs(reached(other)), settings


@pytest.mark.parametrize("name", sorted(ROUNDS))
def test_boosting_keeps_the_best_round(name):
    for X, y, X_valid, y_valid in split(name, 0):
        model = model_of(name, COSTS).set_params(n_iter_no_change=3, n_estimators=40)
        if name == "GreedyMiserRanker":
            qid = np.repeat(np.arange(25), 10)
            model.fit(X, np.digitize(y, [0.0, 1.0]), qid, eval_set=(X_valid, np.digitize(y_valid, [0.0, 1.0]), qid))
        else:
            model.fit(X, y, eval_set=(X_valid, y_valid))
        kept = model.validation_loss_[model.n_iter_ - 1] if model.n_iter_ else np.inf
        assert kept == min(model.validation_loss_, default=np.inf)

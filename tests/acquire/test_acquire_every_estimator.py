"""The plan of every estimator runs on demand, row by row or query by query, as it does in the batch."""

import numpy as np
import pytest

from miserly import baselines, estimators
from miserly.acquire import OnDemand, readers
from oracles.extractors import of_documents
from oracles.prices import shared_prices

rng = np.random.default_rng(5)
X = rng.normal(size=(400, 7))
Y = X[:, 0] + X[:, 3] * X[:, 4] + 0.5 * X[:, 6] + 0.1 * rng.normal(size=400)
TARGETS = {"numbers": Y, "two": Y > 0, "three": np.digitize(Y, [-0.5, 0.5])}
COSTS = shared_prices()
BOOSTED = {"n_estimators": 20}
SETTINGS = {
    "GreedyMiserRegressor": {**BOOSTED, "charge": "path"},
    "GreedyMiserClassifier": BOOSTED,
    "GreedyMiserRanker": BOOSTED,
    "StagewiseRegressor": BOOSTED,
    "StagewiseClassifier": BOOSTED,
    "FeatureSubsetRegressor": {**BOOSTED, "max_price": 4.0},
    "FeatureSubsetClassifier": {**BOOSTED, "max_price": 4.0},
    "AFRClassifier": {"n_dims": 3, "n_trees_per_dim": 1, "n_levels": 6, "random_state": 0},
    "AnytimeMiserRegressor": {"n_estimators": 4},
    "AnytimeMiserClassifier": {"n_estimators": 4},
    "ASTCRegressor": {"node_budget": 3.0},
    "ASTCClassifier": {"node_budget": 3.0},
    "CompressedSVC": {"n_vectors": 9, "n_stages": 2, "n_starts": 0, "max_iter": 10},
}
WRAPPED = {"EarlyExitClassifier": "GreedyMiserClassifier", "EarlyExitRanker": "GreedyMiserRanker"}
TWO_CLASSES = ("CronusClassifier", "AdaBoostRSClassifier", "AndOrCascadeClassifier", "SoftCascadeClassifier")
NOT_ALONE = ("Boosted", "Plan", "KernelClassifier")
KINDS = ("Regressor", "Classifier", "Ranker", "SVM", "SVC")
EVERY = [
    (name, kind)
    for room in (estimators, baselines)
    for name, kind in ((n, getattr(room, n)) for n in room.__all__)
    if isinstance(kind, type) and name.endswith(KINDS) and not name.startswith(NOT_ALONE)
]


def model_of(name, kind):
    if name in WRAPPED:
        inner = getattr(estimators, WRAPPED[name])(COSTS, **BOOSTED, tradeoff=0.0)
        return kind(inner, threshold=0.7 if name.endswith("Classifier") else 0.3, exits=4)
    settings = SETTINGS.get(name, {})
    return kind(costs=COSTS, **({"tradeoff": 1e-3} if "tradeoff" in kind().get_params() else {}), **settings)


@pytest.mark.parametrize(("name", "kind"), EVERY, ids=[name for name, _ in EVERY])
def test_on_demand(name, kind):
    is_class = name.endswith(("Classifier", "SVM", "SVC"))
    for target in ("two", "three") if is_class and name not in TWO_CLASSES else ("two",) if is_class else ("numbers",):
        model = model_of(name, kind).fit(X, TARGETS[target])
        plan = model.plan_
        assert plan.nodes
        rows = [dict(zip(COSTS.features, x)) for x in X[:40]]
        for budget in (None, 0.5 * plan.most_expensive):
            result = plan.run(X[:40], np.zeros(40), budget)
            if plan.by_query:
                answers = OnDemand(plan, of_documents(readers(COSTS))).rank("query", rows, budget).answers
            else:
                runner = OnDemand(plan, readers(COSTS))
                answers = [runner.predict(row, budget) for row in rows]
            np.testing.assert_array_equal([a.score for a in answers], result.score)
            np.testing.assert_array_equal([a.cost for a in answers], result.cost)
            np.testing.assert_array_equal([a.value for a in answers], plan.read(result.z))


def test_none_is_forgotten():
    assert len(EVERY) >= 23

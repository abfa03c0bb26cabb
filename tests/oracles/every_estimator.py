"""Every public estimator, with settings that make it small."""

import numpy as np

from miserly import baselines, estimators

BOOSTED = {"n_estimators": 20}
SETTINGS = {
    "GreedyMiserRegressor": {**BOOSTED, "charge": "path"},
    "GreedyMiserClassifier": BOOSTED,
    "GreedyMiserRanker": BOOSTED,
    "StagewiseRegressor": BOOSTED,
    "StagewiseClassifier": BOOSTED,
    "FeatureSubsetRegressor": {**BOOSTED, "max_price": 4.0},
    "FeatureSubsetClassifier": {**BOOSTED, "max_price": 4.0},
    "ActiveRegressor": {"n_estimators": 6, "n_folds": 2, "min_samples_leaf": 3},
    "ActiveClassifier": {"n_estimators": 6, "n_folds": 2, "min_samples_leaf": 3},
    "AFRClassifier": {"n_dims": 3, "n_trees_per_dim": 1, "n_levels": 6, "random_state": 0},
    "AnytimeMiserRegressor": {"n_estimators": 4},
    "AnytimeMiserClassifier": {"n_estimators": 4},
    "ASTCRegressor": {"node_budget": 3.0},
    "ASTCClassifier": {"node_budget": 3.0},
    "CSTCRegressor": {"max_depth": 2, "max_iter": 3},
    "CSTCClassifier": {"max_depth": 2, "max_iter": 3},
    "CSCCClassifier": {"n_stages": 2, "max_iter": 3},
    "CronusRegressor": {"n_stages": 3, "max_iter": 2},
    "CronusClassifier": {"n_stages": 3, "max_iter": 2},
    "AdaBoostRSClassifier": BOOSTED,
    "CompressedSVC": {"n_vectors": 9, "n_stages": 2, "n_starts": 0, "max_iter": 10},
}
WRAPPED = {"EarlyExitClassifier": "GreedyMiserClassifier", "EarlyExitRanker": "GreedyMiserRanker"}
TWO_CLASSES = (
    "CronusClassifier",
    "AdaBoostRSClassifier",
    "AndOrCascadeClassifier",
    "SoftCascadeClassifier",
    "FastFrugalTreeClassifier",
)
NOT_ALONE = ("Boosted", "Plan", "KernelClassifier")
KINDS = ("Regressor", "Classifier", "Ranker", "SVM", "SVC")
EVERY = {
    name: kind
    for room in (estimators, baselines)
    for name, kind in ((n, getattr(room, n)) for n in room.__all__)
    if isinstance(kind, type) and name.endswith(KINDS) and not name.startswith(NOT_ALONE)
}
CLASSIFIERS = [name for name in EVERY if name.endswith(("Classifier", "SVM", "SVC"))]


def model_of(name, costs):
    """The estimator of that name."""
    kind = EVERY[name]
    if name in WRAPPED:
        inner = getattr(estimators, WRAPPED[name])(costs, **BOOSTED, tradeoff=0.0)
        return kind(inner, threshold=0.7 if name.endswith("Classifier") else 0.3, exits=4)
    tradeoff = {"tradeoff": 1e-3} if "tradeoff" in kind().get_params() else {}
    return kind(costs=costs, **tradeoff, **SETTINGS.get(name, {}))


def data(n_rows, seed=5):
    """Rows of seven features, and a number for each that some of them tell."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 7))
    return X, X[:, 0] + X[:, 3] * X[:, 4] + 0.5 * X[:, 6] + 0.1 * rng.normal(size=n_rows)


def targets_of(name, y):
    """What it can learn from such numbers: them, or two and three classes."""
    if name not in CLASSIFIERS:
        return [y]
    two, three = y > 0, np.digitize(y, [-0.5, 0.5])
    return [two] if name in TWO_CLASSES else [two, three]

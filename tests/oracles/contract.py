"""The one list of what scikit-learn's own checks are run on: every public estimator, some in several settings.

Each entry is a model, how many checks there are for it, and the checks that are expected to fail, with the reason.
"""

from miserly.baselines import (
    AdaBoostRSClassifier,
    AndOrCascadeClassifier,
    CostWeightedL1Classifier,
    CostWeightedL1Regressor,
    EarlyExitClassifier,
    EarlyExitRanker,
    FeatureSubsetClassifier,
    FeatureSubsetRegressor,
    LinearSVM,
    PathTreeClassifier,
    PathTreeRegressor,
    ReducedSVC,
    SoftCascadeClassifier,
    StagewiseClassifier,
    StagewiseRegressor,
)
from miserly.costs import CostTable
from miserly.estimators import (
    ActiveClassifier,
    ActiveRegressor,
    AFRClassifier,
    AnytimeMiserClassifier,
    AnytimeMiserRegressor,
    ASTCClassifier,
    ASTCRegressor,
    CompressedSVC,
    CronusClassifier,
    CronusRegressor,
    CSCCClassifier,
    CSTCClassifier,
    CSTCRegressor,
    FastFrugalTreeClassifier,
    GreedyMiserClassifier,
    GreedyMiserRanker,
    GreedyMiserRegressor,
)

UNIFORM = CostTable.uniform()
# leaves of single rows, so that a row of weight two may stand for two rows; not so for boosted classes: in tiny data
# many splits of the later rounds tie, and near-ties fall either way
SINGLE = {"n_estimators": 30, "min_samples_leaf": 1}
ACTIVE = {"n_estimators": 10, "n_folds": 2, "min_samples_leaf": 1, "n_rounds": 1, "lookahead": False}
TREES = {"n_estimators": 12, "min_samples_leaf": 1, "max_leaf_nodes": 4}
QUICK = {"n_starts": 1, "max_iter": 5}
SHORT = {"n_stages": 2, "max_iter": 1}
WEIGHTS = tuple(f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse"))
STATES = "states are drawn for each row: a row of weight two and the same row twice are in different states"
HELD_OUT = "rows that choose the steepness are drawn, and a row that stands twice is drawn twice as often"
COUNTED = "how sure an exit is follows the number of its rows, and a row of weight two is one row"
MOVED = "LibSVM's own answer for a row of weight two is that for two rows only to its tolerance; ours moves on from it"
DRAWN = "vectors are drawn among the rows, and a row that stands twice is drawn twice as often"

CONTRACT = {
    "miser, numbers": (GreedyMiserRegressor(UNIFORM, **SINGLE), 59, {}),
    "miser, classes": (GreedyMiserClassifier(UNIFORM, n_estimators=30), 62, {}),
    "miser, lists": (GreedyMiserRanker(UNIFORM, **SINGLE), 59, {}),
    "stagewise, numbers": (StagewiseRegressor(UNIFORM, **SINGLE), 59, {}),
    "stagewise, classes": (StagewiseClassifier(UNIFORM, n_estimators=30), 62, {}),
    "feature subset, numbers": (FeatureSubsetRegressor(UNIFORM, **SINGLE), 59, {}),
    "feature subset, classes": (FeatureSubsetClassifier(UNIFORM, n_estimators=30), 62, {}),
    "path tree, numbers": (PathTreeRegressor(UNIFORM, min_samples_leaf=1), 59, {}),
    "path tree, classes": (PathTreeClassifier(UNIFORM, min_samples_leaf=1), 62, {}),
    "fast-and-frugal tree": (FastFrugalTreeClassifier(UNIFORM), 63, dict.fromkeys(WEIGHTS, COUNTED)),
    "active, numbers": (ActiveRegressor(UNIFORM, **ACTIVE), 59, dict.fromkeys(WEIGHTS, STATES)),
    "active, classes": (ActiveClassifier(UNIFORM, **ACTIVE), 62, dict.fromkeys(WEIGHTS, STATES)),
    "AFR": (AFRClassifier(UNIFORM, n_dims=8, n_trees_per_dim=1, n_levels=2), 63, {}),
    "anytime, numbers": (AnytimeMiserRegressor(UNIFORM, n_estimators=5), 59, {}),
    "anytime, classes": (AnytimeMiserClassifier(UNIFORM, n_estimators=5), 62, {}),
    "ASTC, numbers": (ASTCRegressor(UNIFORM, min_samples_leaf=5), 60, {}),
    "ASTC, classes": (ASTCClassifier(UNIFORM, min_samples_leaf=5), 63, {}),
    "soft ASTC, numbers": (ASTCRegressor(UNIFORM, 2, soft=True, penalty=0), 60, {}),
    "soft ASTC, classes": (ASTCClassifier(UNIFORM, 2, soft=True, threshold="half"), 63, {}),
    "ASTC of trees, numbers": (ASTCRegressor(UNIFORM, dictionary=GreedyMiserRegressor(UNIFORM, **TREES)), 59, {}),
    "ASTC of trees, classes": (
        ASTCClassifier(UNIFORM, dictionary=GreedyMiserClassifier(UNIFORM, n_estimators=12)),
        62,
        {},
    ),
    "CSTC, numbers": (CSTCRegressor(UNIFORM, max_depth=2), 60, {}),
    "CSTC, classes": (CSTCClassifier(UNIFORM, max_depth=2), 63, {}),
    "CSCC": (CSCCClassifier(UNIFORM), 64, {}),
    "Cronus, numbers": (CronusRegressor(UNIFORM, **SHORT), 60, dict.fromkeys(WEIGHTS, HELD_OUT)),
    "Cronus, classes": (CronusClassifier(UNIFORM, **SHORT), 65, dict.fromkeys(WEIGHTS, HELD_OUT)),
    "compressed SVM": (CompressedSVC(ratio=0.3, **QUICK), 63, dict.fromkeys(WEIGHTS, MOVED)),
    "cascade of compressed SVMs": (
        CompressedSVC(ratio=0.3, n_stages=2, kernel="poly", degree=2, coef0=1.0, **QUICK),
        63,
        dict.fromkeys(WEIGHTS, MOVED),
    ),
    "reduced SVM": (ReducedSVC(), 63, dict.fromkeys(WEIGHTS, DRAWN)),
    "Nyström": (ReducedSVC(selection="random"), 63, dict.fromkeys(WEIGHTS, DRAWN)),
    "weighted l1, numbers": (CostWeightedL1Regressor(UNIFORM), 60, {}),
    "weighted l1, classes": (CostWeightedL1Classifier(UNIFORM), 63, {}),
    "linear SVM": (LinearSVM(UNIFORM), 63, {}),
    "AND-OR": (AndOrCascadeClassifier(UNIFORM, tol=0.0, max_iter=2000), 65, {}),
    "soft cascade": (SoftCascadeClassifier(UNIFORM), 65, {}),
    "AdaBoostRS": (AdaBoostRSClassifier(UNIFORM, n_estimators=30), 63, {}),
    "exits by proximity": (EarlyExitRanker(GreedyMiserRanker(UNIFORM)), 59, {}),
    "exits by score": (
        EarlyExitRanker(GreedyMiserRegressor(UNIFORM), rule="score", threshold=0.9, exits=4),
        59,
        {},
    ),
    "exits by confidence": (EarlyExitClassifier(GreedyMiserClassifier(UNIFORM)), 62, {}),
}

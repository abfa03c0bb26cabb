"""What the papers are compared with, each a `Plan` like the rest."""

from miserly.baselines._adaboost_rs import AdaBoostRSClassifier
from miserly.baselines._and_or_cascade import AndOrCascadeClassifier
from miserly.baselines._early_exit import EarlyExitClassifier, EarlyExitRanker
from miserly.baselines._linear_svm import LinearSVM
from miserly.baselines._path_tree import PathTreeClassifier, PathTreeRegressor
from miserly.baselines._reduced_svc import ReducedSVC
from miserly.baselines._soft_cascade import SoftCascadeClassifier
from miserly.baselines._stagewise import (
    FeatureSubsetClassifier,
    FeatureSubsetRegressor,
    StagewiseClassifier,
    StagewiseRegressor,
)
from miserly.baselines._weighted_l1 import CostWeightedL1Classifier, CostWeightedL1Regressor

__all__ = [
    "AdaBoostRSClassifier",
    "AndOrCascadeClassifier",
    "CostWeightedL1Classifier",
    "CostWeightedL1Regressor",
    "EarlyExitClassifier",
    "EarlyExitRanker",
    "FeatureSubsetClassifier",
    "FeatureSubsetRegressor",
    "LinearSVM",
    "PathTreeClassifier",
    "PathTreeRegressor",
    "ReducedSVC",
    "SoftCascadeClassifier",
    "StagewiseClassifier",
    "StagewiseRegressor",
]

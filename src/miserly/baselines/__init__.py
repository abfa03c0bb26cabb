"""What the papers are compared with, each a `Plan` like the rest."""

from miserly.baselines.adaboost_rs import AdaBoostRSClassifier
from miserly.baselines.and_or_cascade import AndOrCascadeClassifier
from miserly.baselines.early_exit import EarlyExitClassifier, EarlyExitRanker
from miserly.baselines.linear_svm import LinearSVM
from miserly.baselines.path_tree import PathTreeClassifier, PathTreeRegressor
from miserly.baselines.reduced_svc import ReducedSVC
from miserly.baselines.soft_cascade import SoftCascadeClassifier
from miserly.baselines.stagewise import (
    FeatureSubsetClassifier,
    FeatureSubsetRegressor,
    StagewiseClassifier,
    StagewiseRegressor,
)
from miserly.baselines.weighted_l1 import CostWeightedL1Classifier, CostWeightedL1Regressor

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

"""The learners, one file per paper. Each ends as a `Plan` in `plan_`."""

from miserly.estimators import constraints
from miserly.estimators.astc import ASTCClassifier, ASTCRegressor
from miserly.estimators.base import PlanClassifier, PlanEstimator, PlanRegressor
from miserly.estimators.boosted import BoostedClassifier, BoostedEstimator, BoostedRanker, BoostedRegressor, Purchase
from miserly.estimators.cronus import CronusClassifier, CronusRegressor
from miserly.estimators.cscc import CSCCClassifier
from miserly.estimators.cstc import CSTCClassifier, CSTCRegressor
from miserly.estimators.miser import GreedyMiserClassifier, GreedyMiserRanker, GreedyMiserRegressor

__all__ = [
    "ASTCClassifier",
    "ASTCRegressor",
    "BoostedClassifier",
    "BoostedEstimator",
    "BoostedRanker",
    "BoostedRegressor",
    "CSCCClassifier",
    "CSTCClassifier",
    "CSTCRegressor",
    "CronusClassifier",
    "CronusRegressor",
    "GreedyMiserClassifier",
    "GreedyMiserRanker",
    "GreedyMiserRegressor",
    "PlanClassifier",
    "PlanEstimator",
    "PlanRegressor",
    "Purchase",
    "constraints",
]
